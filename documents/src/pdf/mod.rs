//! PDF: the text of each page in reading order, and the pages that cannot be read.

mod arabic;
mod attachments;
mod comments;
mod content;
mod endless;
mod forms;
mod glyphs;
mod layers;
mod layout;
mod meaning;
#[cfg(feature = "pages")]
mod picture;
mod rules;
mod sight;
mod strikes;
mod tree;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::{
    InterpreterCache,
    hayro_syntax::{DecryptionError, LoadPdfError, Pdf, page::Page},
};

use endless::Rest;
use glyphs::Letters;
use layers::Layers;
use rules::Rules;

use crate::{
    context::Context,
    format::Format,
    left_out::Kind,
    limits::{Hidden, Limits},
    pictures::Picture,
    unreadable::Unreadable,
};

/// Pages that share a cache of fonts.
const PAGES_OF_A_CACHE: usize = 100;

/// The content of a PDF.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Text of all pages, with a blank line between them.
    pub(crate) text: String,
    /// Byte offset at which each page begins in the text. A page without text has the offset of the next
    /// one; missing pages at the end have none.
    pub(crate) starts: Vec<usize>,
    /// Number of pages, including those that cannot be read.
    pub(crate) count: usize,
    /// Pages that were drawn because their text is incomplete, in their order. The text marks the place of
    /// each.
    pub(crate) pictures: Vec<Picture>,
}

/// Reads a PDF as far as possible. A damaged page loses only itself, and a damaged cross-reference table
/// is rebuilt from the objects found.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Pages, Unreadable> {
    let Context { limits, deadline, tally, .. } = *context;
    let damaged = |reason: &str| Unreadable::damaged(Format::Pdf, reason);
    let file = catch_unwind(|| Pdf::new(bytes.to_vec()))
        .map_err(|_| damaged("its parser failed"))?
        .map_err(|error| match error {
            LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
                Unreadable::Encrypted { format: Format::Pdf }
            }
            LoadPdfError::Decryption(_) => damaged("its encryption is damaged or unknown"),
            LoadPdfError::Invalid => damaged("it has no pages"),
        })?;
    if forms::is_dynamic(&file) {
        let what =
            "a form that only Adobe's programs fill in (dynamic XFA): print it to a PDF there";
        return Err(Unreadable::Unsupported { what: what.into() });
    }
    let mut numbers = tree::present(&file);
    let absent = numbers.missing(file.pages().len());
    let count = file.pages().len() + absent.len();
    let missing = absent.len();
    for number in absent {
        tally.on_page(Kind::UnreadPages, 1, number);
    }
    if count == 0 {
        return Err(damaged("it has no pages"));
    }
    if count > limits.pages as usize {
        return Err(Unreadable::TooManyPages { pages: count, most: limits.pages });
    }
    let mut read = Read { missing, ..Read::default() };
    let mut starts = Vec::with_capacity(count);
    // Fonts are read once, but dropped from time to time, because there may be many.
    let mut cache = InterpreterCache::new();
    let layers = Layers::of(file.xref());
    for (place, page) in file.pages().iter().enumerate() {
        let number = numbers.next();
        // Missing pages before this one begin here, too.
        starts.resize(number, read.text.len());
        if deadline.has_passed() {
            return Err(Unreadable::TooSlow(limits.time));
        }
        if place % PAGES_OF_A_CACHE == 0 {
            cache = InterpreterCache::new();
        }
        match catch_unwind(AssertUnwindSafe(|| said(page, &layers, &cache, limits))) {
            Ok(said) => read.add(page, number, said, context),
            Err(cause) => {
                read.has_endless |= endless::is_endless(&*cause);
                // The cache may be half written.
                cache = InterpreterCache::new();
                read.missing += 1;
                tally.on_page(Kind::UnreadPages, 1, number);
            }
        }
        limits.take_text(read.text.len())?;
    }
    let attached = catch_unwind(AssertUnwindSafe(|| attachments::of(&file, context)));
    let (attached, is_read) = attached.ok().flatten().unwrap_or_default();
    let Read { mut text, pictures, blank, missing, says, has_endless } = read;
    if says || is_read {
        append(&mut text, &attached);
        return Ok(Pages { text, starts, count, pictures });
    }
    if has_endless {
        return Err(damaged("its pages draw without end"));
    }
    if missing > blank {
        return Err(damaged("none of its pages can be read"));
    }
    Err(Unreadable::NoTextLayer { pages: count })
}

/// The content of a page.
struct Said {
    words: String,
    hidden_words: String,
    comments: String,
    drawn: Letters,
}

fn said<'a>(
    page: &Page<'a>,
    layers: &Layers<'a>,
    cache: &InterpreterCache<'a>,
    limits: &Limits,
) -> Said {
    let rest = Rest::of(limits);
    let drawn = glyphs::draw(page, layers, cache, rest.clone());
    let words = layout::text(&drawn.glyphs, &drawn.rules, &rest);
    let comments = comments::of(page, layers, &words);
    let hidden_words = match limits.hidden {
        Hidden::Mark => layout::text(&drawn.hidden, &Rules::default(), &rest),
        Hidden::Drop => String::new(),
    };
    Said { words, hidden_words, comments, drawn }
}

/// Content of the pages read so far.
#[derive(Default)]
struct Read {
    text: String,
    pictures: Vec<Picture>,
    /// Number of pages that show pictures and no words.
    blank: usize,
    /// Number of pages of which something is missing.
    missing: usize,
    /// Whether a page has words or a picture. Comments do not count: they do not replace the words of a scan.
    says: bool,
    has_endless: bool,
}

impl Read {
    fn add(&mut self, page: &Page<'_>, number: usize, said: Said, context: &Context<'_>) {
        let Context { limits, tally, .. } = *context;
        let Said { words, hidden_words, comments, drawn } = said;
        let hidden = drawn.hidden.iter().filter(|glyph| !glyph.text.trim().is_empty());
        tally.on_page(Kind::HiddenText, hidden.count(), number);
        tally.on_page(Kind::UnknownGlyphs, drawn.unknown, number);
        self.blank += usize::from(words.is_empty() && drawn.pictures);
        let shows_more = drawn.shows_more(&words);
        let may_draw = shows_more && self.pictures.len() < limits.page_pictures as usize;
        let seen = if may_draw { draw(page, limits) } else { None };
        self.says |= !words.is_empty() || seen.is_some();
        if let Some(picture) = seen {
            self.pictures.push(picture);
            let note = format!("[Page {number}: picture {}]", self.pictures.len());
            append(&mut self.text, &note);
        } else if shows_more || glyphs::is_damaged(page) {
            self.missing += 1;
            let kind = if shows_more { Kind::PagesWithoutText } else { Kind::UnreadPages };
            tally.on_page(kind, 1, number);
        }
        append(&mut self.text, &words);
        append(&mut self.text, &tally.marked(&hidden_words));
        append(&mut self.text, &comments);
    }
}

/// Appends a page's words after a blank line.
fn append(text: &mut String, words: &str) {
    if !words.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        text.push_str(words);
    }
}

/// Draws a page. `None` if that fails.
#[cfg(feature = "pages")]
fn draw(page: &Page<'_>, limits: &Limits) -> Option<Picture> {
    // A page on which the renderer panics counts as missing.
    catch_unwind(AssertUnwindSafe(|| picture::of(page, limits))).ok().flatten()
}

#[cfg(not(feature = "pages"))]
fn draw(_: &Page<'_>, _: &Limits) -> Option<Picture> {
    None
}
