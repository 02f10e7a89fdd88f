//! PDF: the text layer, page by page.

use pdf_extract::{Document, PlainTextOutput, output_doc_page};

use crate::{
    format::Format,
    limits::{Deadline, Limits},
    unreadable::Unreadable,
};

/// The text of all pages with a blank line between them, and how many pages there are.
///
/// A page that cannot be read is left out if others can: the rest is worth more than nothing.
pub(crate) fn extract(
    bytes: &[u8],
    limits: &Limits,
    deadline: Deadline,
) -> Result<(String, usize), Unreadable> {
    let damaged =
        |error: &dyn std::fmt::Display| Unreadable::damaged(Format::Pdf, error.to_string());
    let document = Document::load_mem(bytes).map_err(|error| {
        let text = error.to_string();
        if text.to_ascii_lowercase().contains("password") {
            Unreadable::Encrypted { format: Format::Pdf }
        } else {
            damaged(&text)
        }
    })?;
    // An empty password has been tried; what it opens is as good as open.
    if document.is_encrypted()
        || (document.trailer.get(b"Encrypt").is_ok() && !document.was_encrypted())
    {
        return Err(Unreadable::Encrypted { format: Format::Pdf });
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(damaged(&"it has no pages"));
    }
    if pages.len() > limits.pages as usize {
        return Err(Unreadable::TooManyPages { pages: pages.len(), most: limits.pages });
    }
    let (mut text, mut fault) = (String::new(), None);
    for number in pages.keys() {
        if deadline.has_passed() {
            return Err(Unreadable::TooSlow(limits.time));
        }
        let mut page = String::new();
        match output_doc_page(&document, &mut PlainTextOutput::new(&mut page), *number) {
            Ok(()) => add(&mut text, &page),
            Err(error) => fault = Some(error.to_string()),
        }
        if text.len() > limits.text_bytes {
            return Err(Unreadable::TooLarge {
                what: "text".into(),
                size: text.len() as u64,
                most: limits.text_bytes as u64,
            });
        }
    }
    match (text.is_empty(), fault) {
        (false, _) => Ok((text, pages.len())),
        (true, Some(fault)) => Err(damaged(&fault)),
        (true, None) => Err(Unreadable::NoTextLayer { pages: pages.len() }),
    }
}

/// A page without blank lines in a row and spaces at the ends of lines.
fn add(text: &mut String, page: &str) {
    let mut blank = !text.is_empty();
    for line in page.lines().map(str::trim_end) {
        if line.is_empty() {
            blank = !text.is_empty();
            continue;
        }
        if !text.is_empty() {
            text.push_str(if blank { "\n\n" } else { "\n" });
        }
        blank = false;
        text.push_str(line);
    }
}
