//! Checks of the beginning of a file of records.

use crate::{encoding, format::Format, unreadable::Unreadable};

/// Bytes that are checked for the delimiter and the format.
pub(super) const HEAD_BYTES: u64 = 1 << 20;

/// Returns the delimiter of a table: the most frequent of `,` `;` tab and `|` in the header.
pub fn detect_delimiter(text: &[u8]) -> u8 {
    let header = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // Names in quotes are skipped; they may contain any delimiter.
    let unquoted = header.split(|byte| *byte == b'"').step_by(2).flatten();
    let count = |delimiter: &u8| unquoted.clone().filter(|byte| *byte == delimiter).count();
    let delimiters = b",;\t|".iter().copied();
    delimiters.max_by_key(|delimiter| (count(delimiter), *delimiter == b',')).unwrap_or(b',')
}

/// Reads the delimiter from a first line `sep=…`. Returns it with the length of the line in bytes.
pub(super) fn read_sep_line(text: &[u8]) -> Option<(u8, u64)> {
    let line = text.split_inclusive(|byte| *byte == b'\n').next()?;
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    let (name, delimiter) = text.split_at_checked(4)?;
    let [delimiter @ (b'\t' | b'!'..=b'~')] = *delimiter else { return None };
    let is_sep_line = name.eq_ignore_ascii_case(b"sep=") && delimiter != b'"';
    is_sep_line.then_some((delimiter, line.len() as u64))
}

/// Refuses a file with the mark of another format, whatever its name.
pub(super) fn check_format(head: &[u8]) -> Result<(), Unreadable> {
    match Format::detect(head, "records.csv") {
        Ok(Format::Csv) => Ok(()),
        // Only the head was checked, so an archive looks damaged.
        Ok(format) | Err(Unreadable::Damaged { format, .. } | Unreadable::Encrypted { format }) => {
            Err(Unreadable::OtherFormat { format })
        }
        Err(other) => Err(other),
    }
}

/// Returns the error for a large file in UTF-16, or for a file that is no text.
pub(super) fn not_utf8_error(head: &[u8]) -> Unreadable {
    match encoding::decode(&head[..head.len() & !1]) {
        Ok(_) => Unreadable::Unsupported {
            what: "a large file of records in UTF-16; save it in UTF-8".into(),
        },
        Err(unreadable) => unreadable,
    }
}
