//! What readers of a page have written on it: notes, and words to what they have marked.

use hayro_interpret::hayro_syntax::{
    object::{Array, Name, String as PdfString},
    page::Page,
    xref::XRef,
};

use super::forms::{HIDDEN, decoded, dictionaries};
use crate::spaces::one_line;

/// Comments of a page at most.
const MAX_COMMENTS: usize = 1_000;
/// Letters from which on a comment that the page says itself is a copy of what is marked.
const COPY: usize = 12;

/// The comments of a page in their order, a line each; `words` is what the page says.
pub(super) fn of(page: &Page<'_>, xref: &XRef, words: &str) -> String {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return String::new() };
    let mut said: Option<String> = None;
    let comments = dictionaries(&notes, xref).take(MAX_COMMENTS).filter_map(|note| {
        let kind = note.get::<Name<'_>>("Subtype")?;
        // Those of drawn ones are mostly what is drawn.
        let is_drawn = match kind.as_str() {
            "Text" | "Caret" | "FileAttachment" => false,
            "Highlight" | "Underline" | "Squiggly" | "StrikeOut" => false,
            "Square" | "Circle" | "Line" | "Polygon" | "PolyLine" | "Ink" => false,
            "FreeText" | "Stamp" => true,
            _ => return None,
        };
        if note.get::<u32>("F").is_some_and(|flags| flags & HIDDEN != 0) {
            return None;
        }
        let text = decoded(note.get::<PdfString<'_>>("Contents")?.as_bytes());
        let text = one_line(&text);
        let letters = letters(&text);
        if letters.is_empty() {
            return None;
        }
        let said = said.get_or_insert_with(|| self::letters(words));
        if (is_drawn || letters.chars().count() >= COPY) && said.contains(&letters) {
            return None;
        }
        let author = note.get::<PdfString<'_>>("T").map(|author| decoded(author.as_bytes()));
        Some(match author.as_deref().map(str::trim).filter(|author| !author.is_empty()) {
            Some(author) => format!("[Comment by {author}: {text}]"),
            None => format!("[Comment: {text}]"),
        })
    });
    comments.collect::<Vec<_>>().join("\n")
}

/// Its letters and digits alone, in small letters: spaces and lines may be others.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
