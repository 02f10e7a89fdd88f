//! Texts of cells, in the sheet itself or shared by the sheets of a book.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use crate::{
    encoding,
    format::Format,
    look::{self, Look},
    unreadable::Unreadable,
    xml,
};

/// Text of runs, with raised digits and marks of struck text and without phonetic hints.
#[derive(Default)]
pub(super) struct RichText {
    text: String,
    /// Text of the open element `t`.
    piece: String,
    is_text: bool,
    phonetic_depth: usize,
    look: Look,
}

impl RichText {
    pub(super) fn begin(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            "r" => self.look = Look::default(),
            "rPh" => self.phonetic_depth += 1,
            "t" => self.is_text = self.phonetic_depth == 0,
            _ => self.set_property(element),
        }
    }

    /// Sets a property of the run.
    pub(super) fn set_property(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            "strike" => self.look.struck = Some(!xml::element(element).is_off("val")),
            "vertAlign" => {
                let place = xml::element(element).attribute("val");
                self.look.raised = Some(place.as_deref() == Some("superscript"));
                self.look.lowered = Some(place.as_deref() == Some("subscript"));
            }
            _ => {}
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        match name {
            "r" => self.look = Look::default(),
            "rPh" => self.phonetic_depth = self.phonetic_depth.saturating_sub(1),
            "t" => {
                self.is_text = false;
                self.text.push_str(&self.look.apply_to(std::mem::take(&mut self.piece)));
            }
            _ => {}
        }
    }

    pub(super) fn add_event(&mut self, event: &Event<'_>) {
        if self.is_text {
            self.piece.push_str(&xml::event_text(event));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the whole text.
    pub(super) fn to_text(&self) -> String {
        unescape(&look::finish_line(&self.text))
    }
}

/// Reads the shared texts.
pub(super) fn read_shared_strings(bytes: &[u8]) -> Result<Vec<Box<str>>, Unreadable> {
    let damaged = |error: quick_xml::Error| Unreadable::damaged(Format::Xlsx, error);
    let words = decode_xml(bytes).map_err(|error| Unreadable::damaged(Format::Xlsx, error))?;
    let mut reader = Reader::from_str(&words);
    let (mut all, mut text, mut is_open) = (Vec::new(), RichText::default(), false);
    loop {
        match reader.read_event().map_err(damaged)? {
            Event::Start(element) => match element.local_name().as_ref() {
                "sst" => is_open = true,
                "si" => text = RichText::default(),
                _ => text.begin(&element),
            },
            Event::Empty(element) => match element.local_name().as_ref() {
                "si" => all.push(Box::default()),
                _ => text.set_property(&element),
            },
            Event::End(element) => match element.local_name().as_ref() {
                "sst" => is_open = false,
                "si" => all.push(text.to_text().into()),
                name => text.end(name),
            },
            // A truncated table must not count as complete.
            Event::Eof if is_open => {
                return Err(Unreadable::damaged(Format::Xlsx, "its texts break off"));
            }
            Event::Eof => return Ok(all),
            event => text.add_event(&event),
        }
    }
}

pub(super) fn decode_xml(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    encoding::decode(bytes).map_err(|_| "a part of it is no text".to_owned())
}

/// Decodes `_x000D_` and the like, which stand for characters that XML cannot hold.
pub(super) fn unescape(text: &str) -> String {
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
