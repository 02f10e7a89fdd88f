//! Mailboxes: messages one after the other, each behind a line `From ada@example.org Sun Nov 22 …`.

use std::{
    borrow::Cow,
    io::{Cursor, Read},
    ops::Range,
};

use memchr::memmem;

/// Returns whether a file is a mailbox.
pub(crate) fn is_mailbox(bytes: &[u8]) -> bool {
    begins_message(bytes)
}

/// A message as stored in a mailbox. A line that begins with `From ` is stored with a `>` before
/// it. That is removed only when the message is read, because most messages are only skipped.
pub(super) struct Message<'a> {
    raw: &'a [u8],
    /// Its first byte in the mailbox.
    at: usize,
    opened: Option<Cursor<Cow<'a, [u8]>>>,
}

impl<'a> Message<'a> {
    /// Takes the bytes of a message, and the position of the first one in the mailbox.
    pub(super) fn new(raw: &'a [u8], at: usize) -> Self {
        Self { raw, at, opened: None }
    }

    /// Returns where it lies in the mailbox.
    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.at + self.raw.len()
    }

    /// Returns the number of bytes as stored.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }
}

impl Read for Message<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.opened.get_or_insert_with(|| Cursor::new(unquote_from_lines(self.raw))).read(buffer)
    }
}

/// Returns the messages of a mailbox in order.
pub(super) fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        // Text before the first separator line is part of the first message.
        let from = if begins_message(rest) { first_line(rest).len() } else { 0 };
        let (message, next) = rest.split_at_checked(find_message_end(rest, from))?;
        rest = next;
        let raw = message.get(from..).filter(|message| !message.is_empty())?;
        Some(Message::new(raw, bytes.len() - next.len() - raw.len()))
    })
}

/// Returns the end of the message whose lines begin at `from`: the next separator line behind a
/// blank line, or the end of the file.
fn find_message_end(bytes: &[u8], from: usize) -> usize {
    let found = memmem::find_iter(bytes.get(from..).unwrap_or_default(), b"\nFrom ");
    let lines = found.map(|at| from + at + 1);
    let is_behind_blank = |at: &usize| {
        let before = bytes[..*at].strip_suffix(b"\n").unwrap_or_default();
        let line = before.rsplit(|byte| *byte == b'\n').next();
        line.is_some_and(|line| line.trim_ascii().is_empty())
    };
    let mut ends = lines.filter(is_behind_blank).filter(|at| begins_message(&bytes[*at..]));
    ends.next().unwrap_or(bytes.len())
}

/// Returns whether a message begins here. A line of text may begin with `From ` too, so a separator
/// line must contain a time, and a header line must follow it.
fn begins_message(bytes: &[u8]) -> bool {
    if !bytes.starts_with(b"From ") {
        return false;
    }
    let line = first_line(bytes);
    let is_time = |part: &[u8]| {
        part[2] == b':' && [0, 1, 3, 4].iter().all(|place| part[*place].is_ascii_digit())
    };
    let header = first_line(&bytes[line.len()..]);
    let name = header.iter().position(|byte| *byte == b':').map(|end| &header[..end]);
    line.windows(5).any(is_time)
        && name.is_some_and(|name| !name.is_empty() && name.iter().all(u8::is_ascii_graphic))
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn unquote_from_lines(message: &[u8]) -> Cow<'_, [u8]> {
    let is_quoted = |line: &[u8]| {
        let signs = line.iter().take_while(|byte| **byte == b'>').count();
        signs > 0 && line[signs..].starts_with(b"From ")
    };
    let lines = || message.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(is_quoted) {
        return Cow::Borrowed(message);
    }
    Cow::Owned(lines().flat_map(|line| &line[usize::from(is_quoted(line))..]).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mailbox: &str) -> Vec<String> {
        let messages = messages(mailbox.as_bytes());
        messages.map(|message| std::io::read_to_string(message).unwrap()).collect()
    }

    #[test]
    fn messages_begin_where_a_line_and_a_header_say_so() {
        let mark = "From - Sun Nov 22 10:00:00 2026\r\n";
        let one =
            "Subject: one\r\n\r\nA line.\r\n\r\nFrom here on, at 10:00,\r\nno header.\r\n\r\n";
        let two = "Subject: two\r\n\r\n>From quoted\r\n>>From twice\r\n> From a reply\r\n";
        let all = format!("{mark}{one}{mark}{two}");
        assert!(is_mailbox(all.as_bytes()) && !is_mailbox(one.as_bytes()));
        let second = two.replace(">From q", "From q").replace(">>From", ">From");
        assert_eq!(read(&all), [one, &second]);
        assert_eq!(read(&format!("junk\n\n{all}")), ["junk\n\n", one, &second]);
        for other in ["From a to b", "From 10:00 to 11:00\n", "From 10:00\nit says: no", ""] {
            assert!(!is_mailbox(other.as_bytes()), "{other}");
        }
    }
}
