//! E-mail: the header that a person reads, the message, and what is attached to it.

use mail_parser::{Address, Message, MessageParser, MimeHeaders as _, PartType};

use crate::{
    extract::extract_within, format::Format, html, limits::Limits, unreadable::Unreadable,
};

/// Messages within messages.
const MAX_DEPTH: usize = 4;

/// `depth` counts the documents that this one is attached to.
pub(crate) fn extract(bytes: &[u8], limits: &Limits, depth: usize) -> Result<String, Unreadable> {
    let message = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Unreadable::damaged(Format::Eml, "it has no header"))?;
    Ok(text(&message, limits, depth))
}

fn text(message: &Message<'_>, limits: &Limits, depth: usize) -> String {
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
        parts.push(attached(attachment, limits, depth));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// An attachment under its name: its text, or why there is none.
fn attached(part: &mail_parser::MessagePart<'_>, limits: &Limits, depth: usize) -> String {
    let name = part.attachment_name().unwrap_or("without a name");
    if depth >= MAX_DEPTH {
        return format!("[Attachment {name}: it is attached too deeply]");
    }
    let read = match &part.body {
        PartType::Message(message) => Ok(text(message, limits, depth + 1)),
        _ => extract_within(part.contents(), name, limits, depth + 1).map(|read| read.text),
    };
    match read {
        Ok(text) => format!("## Attachment: {name}\n\n{}", text.trim()),
        Err(error) => format!("[Attachment {name}: {error}]"),
    }
}

fn people(address: &Address<'_>) -> String {
    let all = address.iter().map(|one| match (one.name(), one.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    });
    all.collect::<Vec<_>>().join(", ")
}
