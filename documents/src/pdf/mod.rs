//! PDF: the text of each page in reading order, and the pages that cannot be read.

mod accents;
mod attachments;
mod comments;
mod content;
mod form_contents;
mod forms;
mod glyph;
mod glyphs;
mod layers;
mod layout;
mod meaning;
mod page_budget;
#[cfg(feature = "pages")]
mod picture;
mod repair;
mod rules;
mod strikes;
mod structure;
mod tiling;
mod tree;
mod visibility;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::{
    InterpreterCache,
    hayro_syntax::{DecryptionError, LoadPdfError, Pdf, page::Page},
};

use glyphs::PageLetters;
use layers::Layers;
use page_budget::PageBudget;
use rules::Rules;
use structure::Structure;

use crate::{
    context::Context,
    format::Format,
    left_out::{Kind, count_characters},
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
    let without_layers = layers::without_layers();
    if forms::is_dynamic(&file) {
        let what =
            "a form that only Adobe's programs fill in (dynamic XFA): print it to a PDF there";
        return Err(Unreadable::Unsupported { what: what.into() });
    }
    let mut page_tree = tree::walk_page_tree(&file);
    let absent = page_tree.missing_numbers(file.pages().len());
    let count = file.pages().len() + absent.len();
    let incomplete_pages = absent.len();
    for number in absent {
        tally.add_on_page(Kind::UnreadPages, 1, number);
    }
    if count == 0 {
        return Err(damaged("it has no pages"));
    }
    if count > limits.pages as usize {
        return Err(Unreadable::TooManyPages { pages: count, most: limits.pages });
    }
    let mut pages_read = PagesRead { incomplete_pages, ..PagesRead::default() };
    let mut starts = Vec::with_capacity(count);
    // Fonts are read once, but dropped from time to time, because there may be many.
    let mut cache = InterpreterCache::new();
    let (layers, structure) = (Layers::read(file.xref()), Structure::read(&file));
    let all_on = without_layers.as_ref().and_then(|other| layers.all_on(other.xref()));
    for (place, page) in file.pages().iter().enumerate() {
        let number = page_tree.next_number();
        // Missing pages before this one begin here, too.
        starts.resize(number, pages_read.text.len());
        if deadline.has_passed() {
            return Err(Unreadable::TooSlow(limits.time));
        }
        if place % PAGES_OF_A_CACHE == 0 {
            cache = InterpreterCache::new();
        }
        match catch_unwind(AssertUnwindSafe(|| {
            read_page(page, (&layers, all_on.as_ref()), &structure, &cache, limits)
        })) {
            Ok(content) => pages_read.add(page, number, content, context),
            Err(cause) => {
                pages_read.has_page_over_budget |= page_budget::is_budget_exceeded(&*cause);
                // The cache may be half written.
                cache = InterpreterCache::new();
                pages_read.incomplete_pages += 1;
                tally.add_on_page(Kind::UnreadPages, 1, number);
            }
        }
        limits.take_text(pages_read.text.len())?;
    }
    let attached = catch_unwind(AssertUnwindSafe(|| attachments::read_attachments(&file, context)));
    let (attachments, is_read) = attached.ok().flatten().unwrap_or_default();
    let PagesRead {
        mut text,
        pictures,
        pages_without_words,
        incomplete_pages,
        has_content,
        has_page_over_budget,
    } = pages_read;
    if has_content || is_read {
        append(&mut text, &attachments);
        return Ok(Pages { text, starts, count, pictures });
    }
    if has_page_over_budget {
        return Err(damaged("its pages draw without end"));
    }
    if incomplete_pages > pages_without_words {
        return Err(damaged("none of its pages can be read"));
    }
    Err(Unreadable::NoTextLayer { pages: count })
}

/// The content of a page.
struct PageContent {
    words: String,
    hidden_words: String,
    comments: String,
    letters: PageLetters,
    /// Whether layers that are off could not be read.
    has_unread_layers: bool,
}

/// Reads a page. `all_on` are the document's layers, all on, if some are off.
fn read_page<'a>(
    page: &Page<'a>,
    (layers, all_on): (&Layers<'a>, Option<&Layers<'a>>),
    structure: &Structure<'a>,
    cache: &InterpreterCache<'a>,
    limits: &Limits,
) -> PageContent {
    let budget = PageBudget::from_limits(limits);
    let mut letters = glyphs::collect_letters(page, layers, structure, cache, budget.clone());
    let mut has_unread_layers = false;
    if let Some(all_on) = all_on {
        // The page is read already, whatever these layers hold.
        let (cache, budget) = (InterpreterCache::new(), PageBudget::from_limits(limits));
        match catch_unwind(AssertUnwindSafe(|| {
            glyphs::collect_letters(page, all_on, structure, &cache, budget)
        })) {
            Ok(all) => letters.add_letters_of_layers(all),
            Err(_) => has_unread_layers = true,
        }
    }
    let words = layout::page_text(&letters.glyphs, &letters.rules, &budget);
    let comments = comments::read_comments(page, layers, &words);
    let hidden_words = match limits.hidden {
        Hidden::Mark => layout::page_text(&letters.hidden, &Rules::default(), &budget),
        Hidden::Drop => String::new(),
    };
    PageContent { words, hidden_words, comments, letters, has_unread_layers }
}

/// Content of the pages read so far.
#[derive(Default)]
struct PagesRead {
    text: String,
    pictures: Vec<Picture>,
    /// Number of pages that show pictures and no words.
    pages_without_words: usize,
    /// Number of pages of which something is missing.
    incomplete_pages: usize,
    /// Whether a page has words or a picture. Comments do not count: they do not replace the words of a scan.
    has_content: bool,
    has_page_over_budget: bool,
}

impl PagesRead {
    fn add(&mut self, page: &Page<'_>, number: usize, content: PageContent, context: &Context<'_>) {
        let Context { limits, tally, .. } = *context;
        let PageContent { words, hidden_words, comments, letters, has_unread_layers } = content;
        tally.add_on_page(Kind::UnreadParts, usize::from(has_unread_layers), number);
        let hidden = letters.hidden.iter().map(|glyph| count_characters(&glyph.text));
        tally.add_on_page(Kind::HiddenText, hidden.sum(), number);
        tally.add_on_page(Kind::UnknownGlyphs, letters.unknown, number);
        self.pages_without_words += usize::from(words.is_empty() && letters.has_picture);
        let shows_more = letters.shows_more(&words);
        let may_draw = shows_more && self.pictures.len() < limits.page_pictures as usize;
        let picture = if may_draw { draw_page(page, limits) } else { None };
        self.has_content |= !words.is_empty() || picture.is_some();
        if let Some(picture) = picture {
            self.pictures.push(picture);
            let note = format!("[Page {number}: picture {}]", self.pictures.len());
            append(&mut self.text, &note);
        } else if shows_more || letters.is_cut_off || glyphs::is_damaged(page) {
            self.incomplete_pages += 1;
            let kind = if shows_more { Kind::PagesWithoutText } else { Kind::UnreadPages };
            tally.add_on_page(kind, 1, number);
        }
        append(&mut self.text, &words);
        append(&mut self.text, &tally.mark_only(&hidden_words));
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
fn draw_page(page: &Page<'_>, limits: &Limits) -> Option<Picture> {
    // A page on which the renderer panics counts as missing.
    catch_unwind(AssertUnwindSafe(|| picture::render_page(page, limits))).ok().flatten()
}

#[cfg(not(feature = "pages"))]
fn draw_page(_: &Page<'_>, _: &Limits) -> Option<Picture> {
    None
}
