//! E-mail: the header that a person reads, the message, and what is attached to it.

mod boundaries;
mod uuencode;

use std::borrow::Cow;

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders as _, PartType};

use crate::{format::Format, html, unreadable::Unreadable};

/// Messages within messages.
const MAX_DEPTH: usize = 4;

/// Reads an attachment of a name, which so many documents are around.
type TextOf<'t> = dyn Fn(&[u8], &str, usize) -> Result<String, Unreadable> + 't;

/// `depth` counts the documents that this one is attached to.
pub(crate) fn extract(
    bytes: &[u8],
    depth: usize,
    text_of: &TextOf<'_>,
) -> Result<String, Unreadable> {
    let bytes = boundaries::unmistakable(bytes);
    let message = MessageParser::default()
        .parse(&*bytes)
        .ok_or_else(|| Unreadable::damaged(Format::Eml, "it has no header"))?;
    Ok(text(&message, depth, text_of))
}

fn text(message: &Message<'_>, depth: usize, text_of: &TextOf<'_>) -> String {
    let header = [
        ("From", message.from().map(people)),
        ("To", message.to().map(people)),
        ("Cc", message.cc().map(people)),
        ("Date", message.date().map(mail_parser::DateTime::to_rfc3339)),
        ("Subject", message.subject().map(str::to_owned)),
    ];
    let header = header
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}: {}", value?)))
        .collect::<Vec<_>>()
        .join("\n");
    let mut parts = vec![header];
    for body in message.text_bodies() {
        match &body.body {
            PartType::Html(page) => parts.extend(html::extract(page.as_bytes()).ok()),
            PartType::Text(words) => parts.push(words.replace("\r\n", "\n").trim().to_owned()),
            _ => {}
        }
    }
    for attachment in message.attachments() {
        parts.push(attached(message, attachment, depth, text_of));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// An attachment under its name: its text, or why there is none.
fn attached(
    message: &Message<'_>,
    part: &MessagePart<'_>,
    depth: usize,
    text_of: &TextOf<'_>,
) -> String {
    let name = part.attachment_name().unwrap_or("without a name");
    if depth >= MAX_DEPTH {
        return format!("[Attachment {name}: it is attached too deeply]");
    }
    let read = match &part.body {
        PartType::Message(message) => Ok(text(message, depth + 1, text_of)),
        _ => text_of(&contents(part), name, depth + 1),
    };
    let is_empty = match &read {
        Ok(text) => text.trim().is_empty(),
        Err(error) => *error == Unreadable::Empty,
    };
    // What is attached as a message and is none is read as it stands.
    let read = if is_empty { text_of(raw(message, part), "", depth + 1) } else { read };
    match read {
        Ok(text) => format!("## Attachment: {name}\n\n{}", text.trim()),
        Err(error) => format!("[Attachment {name}: {error}]"),
    }
}

/// A part as it stands, without the boundary that ends it.
fn raw<'m>(message: &'m Message<'_>, part: &MessagePart<'_>) -> &'m [u8] {
    let (from, to) = (part.raw_body_offset() as usize, part.raw_end_offset() as usize);
    let raw = message.raw_message.get(from..to).unwrap_or_default().trim_ascii_end();
    let last = raw.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if raw[last..].starts_with(b"--") { &raw[..last] } else { raw }
}

/// What is attached; unpacked where the parser does not know how.
fn contents<'m>(part: &'m MessagePart<'_>) -> Cow<'m, [u8]> {
    let encoding = part.content_transfer_encoding().unwrap_or_default().to_ascii_lowercase();
    if matches!(encoding.as_str(), "x-uuencode" | "uuencode" | "x-uue")
        && let Some(bytes) = uuencode::decoded(part.contents())
    {
        return bytes.into();
    }
    part.contents().into()
}

fn people(address: &Address<'_>) -> String {
    let all = address.iter().map(|one| match (one.name(), one.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    });
    all.collect::<Vec<_>>().join(", ")
}
