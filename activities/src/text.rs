//! From bytes to text.

use tidegate_workflows::contract::failure_type;

use crate::failure::Failure;

/// Larger files are no documents for one call; the largest contexts of today take some 4 MB of text.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Text of a document in plain text or Markdown.
///
/// # Errors
/// `UnreadableDocument` with the reason: empty, binary, or not UTF-8.
pub fn extract(bytes: &[u8]) -> Result<&str, Failure> {
    let unreadable = |reason: String| Failure::never(failure_type::UNREADABLE_DOCUMENT, reason);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Some(format) = known_format(bytes) {
        return Err(unreadable(format!("this is {format}; only plain text and Markdown can be read")));
    }
    if bytes.contains(&0) {
        return Err(unreadable("this is binary data or UTF-16; only text in UTF-8 can be read".to_owned()));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| unreadable(format!("not UTF-8 text: bad byte at position {}", error.valid_up_to())))?;
    if text.trim().is_empty() {
        return Err(unreadable("the document is empty".to_owned()));
    }
    Ok(text)
}

fn known_format(bytes: &[u8]) -> Option<&'static str> {
    let formats: [(&[u8], &str); 6] = [
        (b"%PDF-", "a PDF"),
        (b"PK\x03\x04", "a ZIP archive or an Office document"),
        (b"\xd0\xcf\x11\xe0", "an old Office document"),
        (b"\x89PNG", "an image"),
        (b"\xff\xd8\xff", "an image"),
        (b"\x1f\x8b", "a compressed file"),
    ];
    formats.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_says_why() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "empty"),
            (b" \n\t", "empty"),
            (b"%PDF-1.7 ...", "a PDF"),
            (b"abc\0def", "binary"),
            (b"caf\xe9", "bad byte at position 3"),
            (b"PK\x03\x04", "Office"),
        ];
        for (bytes, reason) in cases {
            let failure = extract(bytes).unwrap_err();
            assert!(failure.message.contains(reason), "{failure:?}");
            assert_eq!((failure.kind, failure.retry_after), (failure_type::UNREADABLE_DOCUMENT, None));
        }
        assert_eq!(extract("\u{feff}Grüße".as_bytes()).unwrap(), "Grüße");
    }
}
