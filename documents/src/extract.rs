//! Bytes to text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    archive, detect, docx, encoding, epub,
    format::Format,
    html,
    limits::{Deadline, Limits},
    mail, open_document, pdf,
    pictures::{self, Picture},
    sheets, slides,
    unreadable::Unreadable,
};

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// The text; empty of a picture alone.
    pub text: String,
    /// What a model sees of it, where it is one; of a PDF, the pages that were drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// What it was.
    pub format: Format,
    /// Pages, where there are pages.
    pub pages: Option<usize>,
    /// Numbers, from 1 and ascending, of the pages of which something is missing from the text:
    /// pictures without text, damaged pages, letters whose meaning nothing says. Those that were
    /// drawn are not among them. Of an EPUB, its chapters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_pages: Vec<usize>,
}

/// Reads a document. `name` is its file name, for its extension.
///
/// A parser may crash at hostile bytes or never end: use a [`Reader`](crate::Reader) where that
/// matters.
///
/// # Errors
/// [`Unreadable`] says why there is no text.
pub fn extract(bytes: &[u8], name: &str, limits: &Limits) -> Result<Extracted, Unreadable> {
    extract_within(bytes, name, limits, 0)
}

/// The same for a document that is attached to another one; `depth` counts those around it.
pub(crate) fn extract_within(
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
    let (format, deadline) = (Format::of(bytes, name)?, Deadline::of(limits));
    if format.is_picture() {
        return picture(bytes, format, limits, depth);
    }
    let (mut missing_pages, mut pictures) = (Vec::new(), Vec::new());
    // Of what is attached to it or packed in it.
    let text_of = |bytes: &[u8], name: &str, depth: usize| {
        extract_within(bytes, name, limits, depth).map(|read| read.text)
    };
    let (text, pages) = match format {
        Format::Text | Format::Markdown | Format::Csv | Format::Jsonl => {
            (encoding::decode(bytes)?, None)
        }
        Format::Html if detect::is_xhtml(name) => (Cow::Owned(html::extract_xhtml(bytes)?), None),
        Format::Html => (Cow::Owned(html::extract(bytes)?), None),
        Format::Docx => (Cow::Owned(docx::extract(bytes, limits, depth, &text_of)?), None),
        Format::Pdf => {
            let read = pdf::extract(bytes, limits, deadline)?;
            (missing_pages, pictures) = (read.missing, read.pictures);
            (Cow::Owned(read.text), Some(read.count))
        }
        Format::Xlsx | Format::Xls | Format::Ods => {
            (Cow::Owned(sheets::extract(bytes, format, limits, deadline)?), None)
        }
        Format::Pptx => (Cow::Owned(slides::extract(bytes, limits)?), None),
        Format::Odt | Format::Odp => {
            (Cow::Owned(open_document::extract(bytes, format, limits)?), None)
        }
        Format::Epub => {
            let (text, missing) = epub::extract(bytes, limits, deadline)?;
            missing_pages = missing;
            (Cow::Owned(text), None)
        }
        Format::Eml => (Cow::Owned(mail::extract(bytes, depth, &text_of)?), None),
        // Above.
        Format::Png | Format::Jpeg | Format::Webp | Format::Tiff => (Cow::Borrowed(""), None),
        Format::Zip | Format::Tar | Format::Gzip | Format::Zstd | Format::Mbox => {
            let text_of = |bytes: &[u8], name: &str| text_of(bytes, name, depth + 1);
            (Cow::Owned(archive::extract(bytes, name, limits, depth, text_of)?), None)
        }
    };
    if text.len() > limits.text_bytes {
        return Err(Unreadable::TooLarge {
            what: "text".into(),
            size: text.len() as u64,
            most: limits.text_bytes as u64,
        });
    }
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    Ok(Extracted { text: text.into_owned(), pictures, format, pages, missing_pages })
}

/// A picture as it is sent. In a text there is no place for one.
fn picture(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    depth: usize,
) -> Result<Extracted, Unreadable> {
    if depth > 0 {
        return Err(Unreadable::Picture { format });
    }
    let (picture, count) = pictures::read(bytes, format, limits)?;
    Ok(Extracted {
        text: String::new(),
        pictures: vec![picture],
        format,
        pages: (count > 1).then_some(count),
        missing_pages: (2..=count).collect(),
    })
}
