//! Text of documents from their bytes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    archive,
    context::Context,
    data_uris, detect, docx, encoding, epub,
    format::Format,
    html, invisible,
    left_out::{self, LeftOut, Tally},
    limits::{Deadline, Limits},
    mail, notebook, open_document, pdf,
    pictures::{self, Picture},
    sheets, signed, slides,
    unreadable::Unreadable,
};

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// The text; empty for a picture.
    pub text: String,
    /// The picture that a model sees, if the document is one; of a PDF, the pages that were drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// The document's format.
    pub format: Format,
    /// Number of pages, if the format has pages.
    pub pages: Option<usize>,
    /// Position of each page in the text, in bytes; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page_starts: Vec<usize>,
    /// The parts that are not in the text, by kind.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

/// Extracts a document's text. `name` is its file name; its extension helps to detect the format.
///
/// A hostile document may crash its parser or keep it busy forever. Use a [`Reader`](crate::Reader)
/// for untrusted documents.
///
/// # Errors
/// [`Unreadable`] with the reason why there is no text.
pub fn extract(bytes: &[u8], name: &str, limits: &Limits) -> Result<Extracted, Unreadable> {
    extract_within(bytes, name, limits, 0)
}

/// Extracts a document at `depth`, the number of documents around it.
fn extract_within(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    depth: usize,
) -> Result<Extracted, Unreadable> {
    if bytes.len() as u64 > limits.bytes {
        return Err(Unreadable::TooLarge {
            what: "file".into(),
            size: bytes.len() as u64,
            most: limits.bytes,
        });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unreadable::Empty);
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(Unreadable::Zeros);
    }
    let (bytes, name) = signed::unwrap(bytes, name)?;
    let bytes = &*bytes;
    let (format, deadline) = (Format::detect(bytes, name)?, Deadline::from_limits(limits));
    if format.is_picture() {
        return picture(bytes, format, limits, depth);
    }
    if encoding::is_encrypted(bytes) {
        return Err(Unreadable::Encrypted { format });
    }
    let tally = Tally::new(limits.hidden);
    let context = &Context { limits, deadline, depth, tally: &tally, read_within };
    let (mut pictures, mut page_starts) = (Vec::new(), Vec::new());
    let (text, pages) = match format {
        Format::Text | Format::Markdown | Format::Csv | Format::Jsonl => {
            (data_uris::replace_data(encoding::decode(bytes)?, &tally), None)
        }
        Format::Notebook => {
            let text = encoding::decode(bytes)?;
            let cells = notebook::extract(&text, &tally);
            (data_uris::replace_data(cells.map_or(text, Cow::Owned), &tally), None)
        }
        Format::Html if detect::is_xhtml(name) => {
            (Cow::Owned(html::extract_xhtml(bytes, &tally, &|_| None)?), None)
        }
        Format::Html => (Cow::Owned(html::extract(bytes, &tally)?), None),
        Format::Docx => (Cow::Owned(docx::extract(bytes, context)?), None),
        Format::Pptx => (Cow::Owned(slides::extract(bytes, context)?), None),
        Format::Odt | Format::Odp => {
            (Cow::Owned(open_document::extract(bytes, format, context)?), None)
        }
        Format::Pdf => {
            let read = pdf::extract(bytes, context)?;
            (pictures, page_starts) = (read.pictures, read.starts);
            (Cow::Owned(read.text), Some(read.count))
        }
        Format::Xlsx | Format::Xls | Format::Ods => {
            (Cow::Owned(sheets::extract(bytes, format, context)?), None)
        }
        Format::Epub => (Cow::Owned(epub::extract(bytes, context)?), None),
        Format::Eml => (Cow::Owned(mail::extract(bytes, context)?), None),
        // Returned above.
        Format::Png | Format::Jpeg | Format::Webp | Format::Tiff => (Cow::Borrowed(""), None),
        Format::Zip | Format::Tar | Format::Gzip | Format::Zstd | Format::Mbox => {
            (Cow::Owned(archive::extract(bytes, name, context)?), None)
        }
    };
    let length = text.len();
    let text = clean_and_check(text, limits, &tally)?;
    if text.len() != length {
        page_starts.clear();
    }
    // Nested text is counted once, in the outermost document. A PDF has glyphs, and no encoding.
    if depth == 0 && format != Format::Pdf {
        tally.add(left_out::Kind::UndecodedCharacters, text.matches('\u{fffd}').count());
    }
    let text = text.into_owned();
    let left_out = tally.into_left_out();
    Ok(Extracted { text, pictures, format, pages, page_starts, left_out })
}

/// Removes characters that no program shows, and checks the bounds of the text.
pub(crate) fn clean_and_check<'t>(
    text: Cow<'t, str>,
    limits: &Limits,
    tally: &Tally,
) -> Result<Cow<'t, str>, Unreadable> {
    let text = invisible::remove_invisible(text, tally);
    limits.take_text(text.len())?;
    if text.trim().is_empty() { Err(Unreadable::Empty) } else { Ok(text) }
}

/// Extracts a nested document, without its pictures and pages.
fn read_within(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    depth: usize,
) -> Result<(String, LeftOut), Unreadable> {
    extract_within(bytes, name, limits, depth).map(|read| (read.text, read.left_out))
}

/// Reads a picture. A nested one is [`Unreadable::Picture`], because text has no place for it.
fn picture(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    depth: usize,
) -> Result<Extracted, Unreadable> {
    if depth > 0 {
        return Err(Unreadable::Picture { format });
    }
    let (picture, count) = pictures::read_picture(bytes, format, limits)?;
    let mut left_out = LeftOut::default();
    for page in 2..=count {
        left_out.add(left_out::Kind::UnreadPages, 1, Some(left_out::Place::Page(page)));
    }
    Ok(Extracted {
        text: String::new(),
        pictures: vec![picture],
        format,
        pages: (count > 1).then_some(count),
        page_starts: Vec::new(),
        left_out,
    })
}
