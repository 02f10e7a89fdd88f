//! DOCX: a ZIP archive whose `word/document.xml` holds the text.

use std::io::{Cursor, Read};

use quick_xml::{Reader, events::Event};
use zip::ZipArchive;

use crate::{format::Format, limits::Limits, unreadable::Unreadable};

const BODY: &str = "word/document.xml";

/// The name under which Office wraps an encrypted document, in UTF-16 as the wrapping has it.
const ENCRYPTED: &str = "EncryptedPackage";

/// Whether an archive is a DOCX. Reads its directory alone.
pub(crate) fn is_docx(bytes: &[u8]) -> bool {
    ZipArchive::new(Cursor::new(bytes)).is_ok_and(|archive| archive.index_for_name(BODY).is_some())
}

/// Whether an old Office container holds an encrypted new one.
pub(crate) fn is_encrypted(bytes: &[u8]) -> bool {
    let name: Vec<u8> = ENCRYPTED.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(name.len()).any(|window| window == name)
}

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<String, Unreadable> {
    let damaged =
        |error: &dyn std::fmt::Display| Unreadable::damaged(Format::Docx, error.to_string());
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let body = archive.by_name(BODY).map_err(|error| damaged(&error))?;
    let mut xml = Vec::new();
    // Counted while it is unpacked: what the archive says of its size is not believed.
    body.take(limits.unpacked_bytes + 1).read_to_end(&mut xml).map_err(|error| damaged(&error))?;
    if xml.len() as u64 > limits.unpacked_bytes {
        return Err(Unreadable::TooLarge {
            what: "unpacked DOCX".into(),
            size: xml.len() as u64,
            most: limits.unpacked_bytes,
        });
    }
    let xml = std::str::from_utf8(&xml).map_err(|_| damaged(&"its text is not UTF-8"))?;
    text(xml)
}

/// Paragraphs, tabs, breaks and tables. Entities other than XML's own are left out, so that none
/// can grow.
fn text(xml: &str) -> Result<String, Unreadable> {
    let mut reader = Reader::from_str(xml);
    let (mut text, mut in_text, mut cells, mut deleted, mut open) =
        (String::new(), false, 0_usize, 0_usize, 0_usize);
    loop {
        let event =
            reader.read_event().map_err(|error| Unreadable::damaged(Format::Docx, error))?;
        match &event {
            Event::Start(_) => open += 1,
            Event::End(_) => open = open.saturating_sub(1),
            _ => {}
        }
        match event {
            // Half a document is not passed off as a whole one.
            Event::Eof if open > 0 => {
                return Err(Unreadable::damaged(Format::Docx, "it breaks off"));
            }
            Event::Eof => break,
            Event::Start(tag) => match tag.local_name().as_ref() {
                "t" => in_text = deleted == 0,
                "del" | "moveFrom" => deleted += 1,
                "tr" => cells = 0,
                "tc" => {
                    if cells > 0 {
                        text.truncate(text.trim_end_matches('\n').len());
                        text.push_str(" | ");
                    }
                    cells += 1;
                }
                _ => {}
            },
            Event::Empty(tag) => match tag.local_name().as_ref() {
                "tab" => text.push('\t'),
                "br" | "cr" => text.push('\n'),
                "p" => text.push('\n'),
                _ => {}
            },
            Event::End(tag) => match tag.local_name().as_ref() {
                "t" => in_text = false,
                "del" | "moveFrom" => deleted = deleted.saturating_sub(1),
                "p" | "tr" => text.push('\n'),
                _ => {}
            },
            Event::Text(words) if in_text => text.push_str(&words.xml10_content()),
            Event::CData(words) if in_text => text.push_str(&words.xml10_content()),
            Event::GeneralRef(name) if in_text => match name.resolve_char_ref() {
                Ok(Some(character)) => text.push(character),
                _ => text.push_str(match name.as_ref() {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" => "\"",
                    "apos" => "'",
                    _ => "",
                }),
            },
            _ => {}
        }
    }
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_tables_and_signs() {
        let xml = "<w:document><w:body><w:p><w:r><w:t>Ebb &amp; flow&#33;</w:t><w:tab/><w:t xml:space='preserve'> on</w:t></w:r></w:p>\
            <w:p><w:del><w:r><w:t>gone</w:t></w:r></w:del><w:r><w:t>Second &lol;</w:t></w:r></w:p>\
            <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
            </w:body></w:document>";
        assert_eq!(text(xml).unwrap(), "Ebb & flow!\t on\nSecond \na | b");
    }
}
