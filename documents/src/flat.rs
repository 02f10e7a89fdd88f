//! Office documents in a single XML file: Word's of 2003, its flat packages, and `OpenDocument`'s.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use memchr::memmem;
use quick_xml::{Reader, events::Event};

use crate::{encoding, format::Format, unreadable::Unreadable, xml};

/// Namespace of the main element of Word 2003 XML.
const WORD_2003: &str = "schemas.microsoft.com/office/word/2003/wordml";

/// Namespace of a package whose parts are elements of one file.
const PACKAGE: &str = "schemas.microsoft.com/office/2006/xmlPackage";

/// The parts of a package with their names.
pub(crate) type Parts<'a> = Vec<(String, Cow<'a, [u8]>)>;

/// Detects the format of a single XML file. Returns `None` for other files.
pub(crate) fn detect_format(bytes: &[u8]) -> Option<Format> {
    let head = xml::head(bytes)?;
    if head.contains(WORD_2003) && head.contains("wordDocument") {
        return Some(Format::Docx);
    }
    if head.contains(PACKAGE) {
        let has = |part: &str| memmem::find(bytes, part.as_bytes()).is_some();
        return if has("\"/word/") || has("'/word/") {
            Some(Format::Docx)
        } else if has("\"/ppt/") || has("'/ppt/") {
            Some(Format::Pptx)
        } else {
            None
        };
    }
    let mut reader = Reader::from_str(&head);
    loop {
        match reader.read_event().ok()? {
            Event::Start(root) | Event::Empty(root) => {
                return Format::of_open_document(&xml::element(&root).attribute("mimetype")?);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Returns the parts of such a document; `None` for an archive.
pub(crate) fn read_parts(bytes: &[u8], format: Format) -> Result<Option<Parts<'_>>, Unreadable> {
    let Some(head) = xml::head(bytes) else { return Ok(None) };
    Ok(Some(if head.contains(PACKAGE) {
        parts_of_package(bytes, format)?
    } else if format == Format::Docx {
        vec![("word/document.xml".to_owned(), bytes.into())]
    } else {
        // Styles and content are in the same file.
        ["content.xml", "styles.xml"].map(|name| (name.to_owned(), bytes.into())).into()
    }))
}

/// Reads `<pkg:part pkg:name="…"><pkg:xmlData>…`, or `<pkg:binaryData>` in base64.
fn parts_of_package(bytes: &[u8], format: Format) -> Result<Parts<'static>, Unreadable> {
    let damaged = |error: quick_xml::Error| Unreadable::damaged(format, error);
    let text = encoding::decode(bytes)?;
    let mut reader = Reader::from_str(&text);
    let (mut parts, mut name) = (Parts::new(), String::new());
    loop {
        let tag = match reader.read_event().map_err(damaged)? {
            Event::Start(tag) => tag,
            Event::Eof => return Ok(parts),
            _ => continue,
        };
        match tag.local_name().as_ref() {
            "part" => name = xml::element(&tag).attribute("name").unwrap_or_default(),
            kind @ ("xmlData" | "binaryData") => {
                let place = reader.read_to_end(tag.name()).map_err(damaged)?;
                let place = place.start as usize..place.end as usize;
                let data = text.get(place).unwrap_or_default();
                let part = if kind == "xmlData" {
                    data.as_bytes().to_vec()
                } else {
                    let signs: Vec<u8> =
                        data.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
                    BASE64_STANDARD
                        .decode(signs)
                        .map_err(|error| Unreadable::damaged(format, error))?
                };
                parts.push((name.trim_start_matches('/').to_owned(), part.into()));
            }
            _ => {}
        }
    }
}
