//! E-mail: the visible header, the message, and its attachments.

mod base64;
mod boundaries;
mod encoded_words;
mod enriched;
mod flowed;
mod part_texts;
mod uuencode;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    mem,
};

use mail_parser::{
    Address, Message, MessageParser, MessagePart, MessagePartId, MimeHeaders as _, PartType,
};

use crate::{
    context::Context,
    encoding,
    format::Format,
    html,
    left_out::{Kind, Tally},
    unreadable::Unreadable,
};
use part_texts::{part_bytes, part_text, raw_part};

/// Levels of messages within messages.
const MAX_DEPTH: usize = 4;

/// Words from which a plain text counts as a message. A shorter one may only say that the message is
/// HTML; then the HTML has several times as many words.
const FEW_WORDS: usize = 40;

/// Reads an attachment by its bytes, name and depth.
type TextOf<'t> = dyn Fn(&[u8], &str, usize) -> Result<String, Unreadable> + 't;

/// Extracts a message: its header, its text and the texts of its attachments.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let text_of: &TextOf<'_> = &|bytes, name, depth| context.text_of(bytes, name, depth);
    let decoded = decode_utf16(bytes)?;
    let bytes = with_line_feeds(decoded.as_deref().unwrap_or(bytes));
    let bytes = boundaries::with_unique_boundaries(unwrap_emlx(&bytes));
    let bytes = encoded_words::join_split_words(with_header_in_utf8(bytes));
    let mut message = MessageParser::default()
        .parse(&*bytes)
        .ok_or_else(|| Unreadable::damaged(Format::Eml, "it has no header"))?;
    drop_deep_messages(&mut message);
    Ok(message_text(&message, context.depth, context.tally, text_of))
}

/// Ends lines with a line feed where all of them end with a carriage return, as on old Macs.
fn with_line_feeds(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.contains(&b'\n') || !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect::<Vec<_>>().into()
}

/// Decodes a header that is not UTF-8. Some programs write names and subjects unencoded, in the
/// encoding of the text.
fn with_header_in_utf8(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let is_end =
        |at: &usize| bytes[*at..].starts_with(b"\n\n") || bytes[*at..].starts_with(b"\n\r\n");
    let end = memchr::memchr_iter(b'\n', &bytes).find(is_end).unwrap_or(bytes.len());
    let (header, rest) = bytes.split_at(end);
    if std::str::from_utf8(header).is_ok() {
        return bytes;
    }
    let lowercase = String::from_utf8_lossy(header).to_ascii_lowercase();
    let label = lowercase.split("charset=").nth(1).map(|rest| rest.trim_start_matches('"'));
    let label = label.and_then(|rest| rest.split(['"', ';', ' ', '\r', '\n']).next());
    let declared = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    let declared = declared.filter(|it| *it != encoding_rs::UTF_8);
    let header = encoded_words::escape_bytes(header);
    let encoding = declared.unwrap_or_else(|| encoding::detect_encoding(&header));
    let (header, ..) = encoding.decode(&header);
    Cow::Owned([header.as_bytes(), rest].concat())
}

/// Decodes a message that a program has saved in UTF-16.
fn decode_utf16(bytes: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
    let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    is_wide.then(|| Ok(encoding::decode(bytes)?.into_owned().into_bytes())).transpose()
}

/// Returns the message within an EMLX file of Apple Mail, which has the message's length before it
/// and a property list behind it. Returns other files unchanged.
pub(crate) fn unwrap_emlx(bytes: &[u8]) -> &[u8] {
    let Some(end) = bytes.iter().take(20).position(|byte| *byte == b'\n') else { return bytes };
    let length = std::str::from_utf8(&bytes[..end]).ok().and_then(|it| it.trim().parse().ok());
    let message = length.and_then(|length: usize| bytes[end + 1..].get(..length));
    message.unwrap_or(bytes)
}

fn message_text(
    message: &Message<'_>,
    depth: usize,
    tally: &Tally,
    text_of: &TextOf<'_>,
) -> String {
    let header = [
        ("From", message.from().map(format_addresses)),
        ("Reply-To", format_reply_to(message)),
        ("To", message.to().map(format_addresses)),
        ("Cc", message.cc().map(format_addresses)),
        ("Bcc", message.bcc().map(format_addresses)),
        ("Date", format_date(message)),
        ("Subject", message.subject().map(str::to_owned)),
    ];
    let header = header
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|it| !it.trim().is_empty())?)))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut parts = vec![header];
    let (bodies, attachments) = split_parts(message);
    for body in bodies {
        let text = match body_text(message, body, tally) {
            Ok(text) => text,
            Err(error) => {
                tally.add(Kind::UnreadParts, 1);
                format!("[Message: {error}]")
            }
        };
        // Old programs write attachments into the text.
        let (words, within) = uuencode::take_out_files(&text);
        parts.push(words);
        for (name, bytes) in within {
            parts.push(format_attachment(name, text_of(&bytes, name, depth + 1)));
        }
    }
    let alternatives = alternative_of_part(message);
    // Skips style sheets and scripts of a page saved as a message, and signatures.
    let is_text = |part: &&MessagePart<'_>| {
        let kind = part.content_type().and_then(|kind| kind.subtype()).unwrap_or_default();
        let is_one = |kinds: &[&str]| kinds.iter().any(|it| kind.eq_ignore_ascii_case(it));
        // The last two repeat the message for programs of some vendors.
        let others = ["css", "javascript", "x-javascript", "x-amp-html", "watch-html"];
        let signatures = ["pkcs7-signature", "x-pkcs7-signature", "pgp-signature"];
        !is_one(&signatures) && (!is_one(&others) || part.attachment_name().is_some())
    };
    // Enriched text repeats the plain text beside it.
    let repeated: Vec<&MessagePart<'_>> = (0..)
        .zip(&message.parts)
        .filter(|(id, part)| is_enriched(part) && alternatives.contains_key(id))
        .map(|(_, part)| part)
        .collect();
    let is_text = |part: &&MessagePart<'_>| {
        is_text(part) && !repeated.iter().any(|it| std::ptr::eq(*it, *part))
    };
    for attachment in attachments.into_iter().filter(is_text) {
        parts.push(read_attachment(message, attachment, depth, tally, text_of));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// Drops the messages that lie too deep to be read, one after the other: dropped with the message
/// around them, thousands of them overflow the stack.
fn drop_deep_messages(message: &mut Message<'_>) {
    let mut level: Vec<&mut Message<'_>> = vec![message];
    for _ in 0..=MAX_DEPTH {
        let parts = level.into_iter().flat_map(|message| &mut message.parts);
        level = parts
            .filter_map(|part| match &mut part.body {
                PartType::Message(message) => Some(message),
                _ => None,
            })
            .collect();
    }
    let mut dropped: Vec<Message<'_>> = level.into_iter().map(mem::take).collect();
    while let Some(mut message) = dropped.pop() {
        for part in &mut message.parts {
            if let PartType::Message(message) = &mut part.body {
                dropped.push(mem::take(message));
            }
        }
    }
}

/// Returns the date, as it is written if it is not in the usual form.
fn format_date(message: &Message<'_>) -> Option<String> {
    let date = message.date().filter(|date| date.is_valid());
    date.map(mail_parser::DateTime::to_rfc3339).or_else(|| {
        let raw = message.header_raw("Date")?;
        Some(raw.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

/// Returns the addresses for answers, if they are not those of the sender.
fn format_reply_to(message: &Message<'_>) -> Option<String> {
    let of = |address: &Address<'_>| {
        address.iter().filter_map(|one| one.address().map(str::to_lowercase)).collect::<Vec<_>>()
    };
    let reply_to = message.reply_to()?;
    (message.from().map(of) != Some(of(reply_to))).then(|| format_addresses(reply_to))
}

/// Returns the parts of the message itself, and its attachments. If the parser could not decode the
/// text, it lists the text as an attachment; so it does with enriched text, and with the root of
/// related parts that is not the first. That is mended if there is no other text.
fn split_parts<'m>(
    message: &'m Message<'m>,
) -> (Vec<&'m MessagePart<'m>>, Vec<&'m MessagePart<'m>>) {
    let bodies = body_parts(message);
    let has_text = bodies.iter().any(|body| has_words(body));
    let roots = related_roots(message);
    let is_root = |part: &MessagePart<'_>| {
        part.content_id().is_some_and(|id| roots.contains(&id.trim_matches(['<', '>'])))
    };
    let is_given_up = |part: &&MessagePart<'_>| {
        let kind = part.content_type().map(mail_parser::ContentType::ctype);
        !has_text
            && (part.is_encoding_problem || is_enriched(part) || is_root(part))
            && part.attachment_name().is_none()
            && kind.is_some_and(|kind| kind.eq_ignore_ascii_case("text"))
    };
    let (given_up, attached) = message.attachments().partition(is_given_up);
    if has_text { (bodies, attached) } else { ([bodies, given_up].concat(), attached) }
}

/// Returns the style sheet among the parts of a saved page.
fn style_sheet(message: &Message<'_>, address: &str) -> Option<String> {
    let id = address.strip_prefix("cid:").unwrap_or(address);
    let is_named = |part: &&MessagePart<'_>| {
        part.is_content_type("text", "css")
            && (part.content_location() == Some(address)
                || part.content_id().is_some_and(|it| it.trim_matches(['<', '>']) == id))
    };
    let part = message.parts.iter().find(is_named)?;
    Some(String::from_utf8_lossy(part.contents()).into_owned())
}

/// Returns the ids of the parts that related parts name as their roots.
fn related_roots<'m>(message: &'m Message<'_>) -> Vec<&'m str> {
    let related = message.parts.iter().filter(|it| it.is_content_type("multipart", "related"));
    let start = |part: &'m MessagePart<'_>| part.content_type()?.attribute("start");
    related.filter_map(start).map(|id| id.trim().trim_matches(['<', '>'])).collect()
}

fn is_enriched(part: &MessagePart<'_>) -> bool {
    part.is_content_type("text", "enriched") || part.is_content_type("text", "richtext")
}

/// Returns the text of a part of the message.
fn body_text(
    message: &Message<'_>,
    part: &MessagePart<'_>,
    tally: &Tally,
) -> Result<String, Unreadable> {
    let (PartType::Html(parsed) | PartType::Text(parsed)) = &part.body else {
        return Ok(String::new());
    };
    let text = part_text(message, part, parsed);
    if encoding::is_encrypted(text.as_bytes()) {
        return Err(Unreadable::Encrypted { format: Format::Eml });
    }
    if matches!(part.body, PartType::Html(_)) || part.is_content_type("text", "html") {
        let linked = |address: &str| style_sheet(message, address);
        return html::extract_linked(text.as_bytes(), tally, &linked);
    }
    if is_enriched(part) {
        return Ok(enriched::to_plain_text(&text));
    }
    let text = flowed::join_flowed_lines(part, text.replace("\r\n", "\n"));
    Ok(text.trim().to_owned())
}

/// Which of its alternatives a message is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Plain,
    Html,
    Both,
}

/// Returns the parts of the message itself. Of alternatives, the HTML is what mail programs show. The
/// plain text is used if it has all words of the HTML, and beside it if the HTML lacks some of its words.
fn body_parts<'m>(message: &'m Message<'m>) -> Vec<&'m MessagePart<'m>> {
    let part = |id: &MessagePartId| message.parts.get(*id as usize);
    let alternatives = alternative_of_part(message);
    let alternative_of = |id: &MessagePartId| alternatives.get(id).copied();
    let mut html: HashMap<MessagePartId, Vec<&MessagePartId>> = HashMap::new();
    for id in &message.html_body {
        if let Some(alternative) = alternative_of(id) {
            html.entry(alternative).or_default().push(id);
        }
    }
    let mut plain: HashMap<MessagePartId, String> = HashMap::new();
    for id in message.text_body.iter().filter(|id| part(id).is_some_and(has_words)) {
        if let (Some(alternative), Some(part)) = (alternative_of(id), part(id))
            && let PartType::Text(parsed) = &part.body
        {
            let text = plain.entry(alternative).or_default();
            text.push_str(&part_text(message, part, parsed));
            text.push('\n');
        }
    }
    let choices: HashMap<MessagePartId, Choice> = plain
        .iter()
        .map(|(alternative, plain)| {
            let pages = html.get(alternative).into_iter().flatten().filter_map(|id| part(id));
            let pages: String = pages.map(|page| html_words(message, page) + "\n").collect();
            (*alternative, choose_alternative(plain, &pages))
        })
        .collect();
    let mut ids = Vec::new();
    for id in &message.text_body {
        let Some(alternative) = alternative_of(id) else {
            ids.push(id);
            continue;
        };
        let choice = choices.get(&alternative).copied().unwrap_or(Choice::Html);
        if choice != Choice::Html {
            ids.push(id);
        }
        // The HTML is used once, for all parts of the alternative.
        if choice != Choice::Plain {
            ids.extend(html.remove(&alternative).unwrap_or_default());
        }
    }
    ids.into_iter().filter_map(part).collect()
}

/// Chooses between a plain text and the text of a page that stands for it.
fn choose_alternative(plain: &str, page: &str) -> Choice {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (of_plain, of_page) = (words(plain), words(page));
    if of_page.is_subset(&of_plain) {
        return Choice::Plain;
    }
    let shared = of_plain.intersection(&of_page).count();
    // A short text beside a long page only says that there is a page.
    let is_note = of_plain.len() < FEW_WORDS && of_page.len() > of_plain.len() * 3;
    if is_note || shared * 10 >= of_plain.len() * 9 { Choice::Html } else { Choice::Both }
}

/// Returns the words that an HTML part shows; nothing for other parts.
fn html_words(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let PartType::Html(parsed) = &part.body else { return String::new() };
    let page = part_text(message, part, parsed);
    html::extract(page.as_bytes(), &Tally::default()).unwrap_or_default()
}

/// Maps each part within a `multipart/alternative` to the outermost one around it.
fn alternative_of_part(message: &Message<'_>) -> HashMap<MessagePartId, MessagePartId> {
    let mut alternatives = HashMap::new();
    // A part precedes the parts within it.
    for (id, part) in (0..).zip(&message.parts) {
        let PartType::Multipart(within) = &part.body else { continue };
        let is_alternative = part.is_content_type("multipart", "alternative");
        let alternative = alternatives.get(&id).copied().or_else(|| is_alternative.then_some(id));
        alternatives.extend(
            alternative.iter().flat_map(|alternative| within.iter().map(|id| (*id, *alternative))),
        );
    }
    alternatives
}

/// Returns whether a part has visible text. HTML always counts as such.
fn has_words(part: &MessagePart<'_>) -> bool {
    let is_seen =
        |c: char| !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200d}' | '\u{feff}');
    match &part.body {
        PartType::Text(words) => words.contains(is_seen),
        PartType::Html(_) => true,
        _ => false,
    }
}

/// Reads an attachment. Returns its text under its name, or its name with the error.
fn read_attachment(
    message: &Message<'_>,
    part: &MessagePart<'_>,
    depth: usize,
    tally: &Tally,
    text_of: &TextOf<'_>,
) -> String {
    let name = part.attachment_name().unwrap_or("without a name");
    let name = &*name.split_whitespace().collect::<Vec<_>>().join(" ");
    if depth >= MAX_DEPTH {
        tally.add_in_part(Kind::UnreadParts, 1, name);
        return format!("[Attachment {name}: it is attached too deeply]");
    }
    let read = match &part.body {
        PartType::Message(message) => Ok(message_text(message, depth + 1, tally, text_of)),
        PartType::Text(parsed) if is_enriched(part) => {
            Ok(enriched::to_plain_text(&part_text(message, part, parsed)))
        }
        // A fragment of HTML is not recognized by its bytes.
        _ if part.is_content_type("text", "html") && !name.contains('.') => {
            text_of(&part_bytes(message, part), "page.html", depth + 1)
        }
        _ => text_of(&part_bytes(message, part), name, depth + 1),
    };
    let is_empty = match &read {
        Ok(text) => text.trim().is_empty(),
        Err(error) => *error == Unreadable::Empty,
    };
    // An attachment declared as a message that is none is read as raw text.
    let read = if is_empty { text_of(raw_part(message, part), "", depth + 1) } else { read };
    let kinds = ["pkcs7-mime", "x-pkcs7-mime"];
    match read {
        // The signed message itself.
        Ok(text) if kinds.iter().any(|kind| part.is_content_type("application", kind)) => text,
        read => format_attachment(name, read),
    }
}

/// Formats an attachment: its text under its name, or its name with the error.
fn format_attachment(name: &str, read: Result<String, Unreadable>) -> String {
    match read {
        Ok(text) => format!("## Attachment: {name}\n\n{}", text.trim()),
        Err(error) => format!("[Attachment {name}: {error}]"),
    }
}

fn format_addresses(address: &Address<'_>) -> String {
    let all = address.iter().map(|one| match (one.name(), one.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    });
    all.collect::<Vec<_>>().join(", ")
}
