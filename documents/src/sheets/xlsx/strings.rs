//! Texts of cells, in the sheet itself or shared by the sheets of a book.

use std::borrow::Cow;

use quick_xml::{Reader, events::Event};

use crate::{encoding, format::Format, look::STRUCK, unreadable::Unreadable, xml};

/// Reads the shared texts, with marks of struck text and without phonetic hints.
pub(super) fn strings(bytes: &[u8]) -> Result<Vec<Box<str>>, Unreadable> {
    let damaged = |error: quick_xml::Error| Unreadable::damaged(Format::Xlsx, error);
    let words = decoded(bytes).map_err(|error| Unreadable::damaged(Format::Xlsx, error))?;
    let mut reader = Reader::from_str(&words);
    let (mut all, mut text) = (Vec::new(), String::new());
    let (mut is_text, mut spoken, mut is_struck) = (false, 0_usize, false);
    let (mut is_open, mut is_mark_open) = (false, false);
    loop {
        match reader.read_event().map_err(damaged)? {
            Event::Start(element) => match element.local_name().as_ref() {
                "sst" => is_open = true,
                "si" => text.clear(),
                "r" => is_struck = false,
                "rPh" => spoken += 1,
                "strike" => is_struck = !xml::element(&element).is_off("val"),
                "t" => {
                    is_text = spoken == 0;
                    // Adjacent struck runs get one pair of marks.
                    if is_text && is_struck != is_mark_open {
                        text.push_str(STRUCK);
                        is_mark_open = is_struck;
                    }
                }
                _ => {}
            },
            Event::Empty(element) => match element.local_name().as_ref() {
                "si" => all.push(Box::default()),
                "strike" => is_struck = !xml::element(&element).is_off("val"),
                _ => {}
            },
            Event::End(element) => match element.local_name().as_ref() {
                "sst" => is_open = false,
                "si" => {
                    text.push_str(if std::mem::take(&mut is_mark_open) { STRUCK } else { "" });
                    all.push(unescaped(&text).into());
                }
                "rPh" => spoken = spoken.saturating_sub(1),
                "t" => is_text = false,
                "r" => is_struck = false,
                _ => {}
            },
            // A truncated table must not count as complete.
            Event::Eof if is_open => {
                return Err(Unreadable::damaged(Format::Xlsx, "its texts break off"));
            }
            Event::Eof => return Ok(all),
            event if is_text => text.push_str(&xml::words(&event)),
            _ => {}
        }
    }
}

pub(super) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    encoding::decode(bytes).map_err(|_| "a part of it is no text".to_owned())
}

/// Decodes `_x000D_` and the like, which stand for characters that XML cannot hold.
pub(super) fn unescaped(text: &str) -> String {
    if !text.contains("_x") {
        return text.to_owned();
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("_x") {
        plain.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest.get(at + 6..at + 7) == Some("_"));
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(letter) => {
                plain.push(letter);
                rest = &rest[at + 7..];
            }
            None => {
                plain.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    plain.push_str(rest);
    plain
}
