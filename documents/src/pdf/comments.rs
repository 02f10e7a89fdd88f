//! Comments that readers have written on a page: notes, and remarks on marked text.

use hayro_interpret::hayro_syntax::{
    object::{Array, Name, String as PdfString},
    page::Page,
};

use super::{
    forms::{HIDDEN, decode_text, dictionaries},
    layers::Layers,
};
use crate::spaces::one_line;

/// Most comments of a page.
const MAX_COMMENTS: usize = 1_000;
/// A comment of this many letters or more that stands on the page, too, is a copy of the marked text.
const COPY: usize = 12;

/// Returns the comments of a page in their order, one a line. `words` is the text of the page.
pub(super) fn read_comments(page: &Page<'_>, layers: &Layers<'_>, words: &str) -> String {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return String::new() };
    let mut page_letters: Option<String> = None;
    let comments = dictionaries(&notes, layers.xref).take(MAX_COMMENTS).filter_map(|note| {
        let kind = note.get::<Name<'_>>("Subtype")?;
        // Drawn comments are mostly in the page's text already.
        let is_drawn = match kind.as_str() {
            "Text" | "Caret" | "FileAttachment" => false,
            "Highlight" | "Underline" | "Squiggly" | "StrikeOut" => false,
            "Square" | "Circle" | "Line" | "Polygon" | "PolyLine" | "Ink" => false,
            "FreeText" | "Stamp" => true,
            _ => return None,
        };
        if note.get::<u32>("F").is_some_and(|flags| flags & HIDDEN != 0)
            || layers.hides_annotation(&note)
        {
            return None;
        }
        let text = decode_text(note.get::<PdfString<'_>>("Contents")?.as_bytes());
        let text = one_line(&text);
        let comment_letters = letters(&text);
        if comment_letters.is_empty() {
            return None;
        }
        let letters_of_page = page_letters.get_or_insert_with(|| self::letters(words));
        if (is_drawn || comment_letters.chars().count() >= COPY)
            && letters_of_page.contains(&comment_letters)
        {
            return None;
        }
        let author = note.get::<PdfString<'_>>("T").map(|author| decode_text(author.as_bytes()));
        Some(match author.as_deref().map(str::trim).filter(|author| !author.is_empty()) {
            Some(author) => format!("[Comment by {author}: {text}]"),
            None => format!("[Comment: {text}]"),
        })
    });
    comments.collect::<Vec<_>>().join("\n")
}

/// Returns the letters and digits of a text in lower case. Spaces and line breaks may differ between
/// copies.
pub(super) fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
