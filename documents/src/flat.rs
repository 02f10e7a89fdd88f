//! Office documents in one file of XML: Word's of 2003, its flat packages, and `OpenDocument`'s.

use std::io::{Cursor, Write as _};

use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{format::Format, unreadable::Unreadable, xml};

/// Word's format of 2003, as its main element's namespace says.
const WORD_2003: &str = "schemas.microsoft.com/office/word/2003/wordml";

/// A package whose parts stand one after the other.
const PACKAGE: &str = "schemas.microsoft.com/office/2006/xmlPackage";

/// What such a file is.
pub(crate) fn format(bytes: &[u8]) -> Option<Format> {
    let head = xml::head(bytes)?;
    if head.contains(WORD_2003) && head.contains("wordDocument") {
        return Some(Format::Docx);
    }
    if head.contains(PACKAGE) {
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        return if has(b"\"/word/") {
            Some(Format::Docx)
        } else if has(b"\"/ppt/") {
            Some(Format::Pptx)
        } else {
            None
        };
    }
    let kind = head.split_once("mimetype=\"application/vnd.oasis.opendocument.")?.1;
    match kind.split('"').next()? {
        "text" | "text-template" => Some(Format::Odt),
        "spreadsheet" | "spreadsheet-template" => Some(Format::Ods),
        "presentation" | "presentation-template" => Some(Format::Odp),
        _ => None,
    }
}

/// The same document as an archive of parts; nothing of what is one already.
pub(crate) fn as_package(bytes: &[u8], format: Format) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some(head) = xml::head(bytes) else { return Ok(None) };
    let parts = if head.contains(PACKAGE) {
        parts(&String::from_utf8_lossy(bytes))
    } else if format == Format::Docx {
        vec![("word/document.xml".to_owned(), bytes.to_vec())]
    } else {
        // Styles and content are the same file.
        ["content.xml", "styles.xml"].map(|name| (name.to_owned(), bytes.to_vec())).into()
    };
    let packed = |error: &dyn std::fmt::Display| Unreadable::damaged(format, error.to_string());
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, part) in parts {
        archive.start_file(name, SimpleFileOptions::default()).map_err(|error| packed(&error))?;
        archive.write_all(&part).map_err(|error| packed(&error))?;
    }
    Ok(Some(archive.finish().map_err(|error| packed(&error))?.into_inner()))
}

/// The parts of a flat package: `<pkg:part pkg:name="…"><pkg:xmlData>…`. Pictures are in base 64, and
/// are none of them.
fn parts(package: &str) -> Vec<(String, Vec<u8>)> {
    let parts = package.split("<pkg:part ").skip(1).filter_map(|part| {
        let name = part.split_once("pkg:name=\"")?.1.split('"').next()?.trim_start_matches('/');
        let (_, data) = part.split_once("<pkg:xmlData")?;
        let data = data.split_once('>')?.1.split("</pkg:xmlData>").next()?;
        Some((name.to_owned(), data.as_bytes().to_vec()))
    });
    parts.collect()
}
