//! What a file is, by its first bytes and its name.

use crate::{docx, format::Format, unreadable::Unreadable};

/// First bytes of what cannot be read.
const FOREIGN: [(&[u8], &str); 16] = [
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"{\\rtf", "rich text (RTF)"),
    (b"%!PS", "PostScript"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"II*\0", "an image"),
    (b"MM\0*", "an image"),
    (b"RIFF", "a picture, sound or film"),
    (b"ID3", "sound"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "a database"),
];

impl Format {
    /// Decides by the first bytes, then by the name's extension, then by a look inside. What is
    /// text has no mark, so it is the last resort; whether it is text at all is found out when it
    /// is decoded.
    ///
    /// # Errors
    /// [`Unreadable::Unsupported`] for what is known and cannot be read.
    pub fn of(bytes: &[u8], name: &str) -> Result<Self, Unreadable> {
        let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        // The mark may come after up to a kilobyte of anything.
        if start[..start.len().min(1_024)].windows(5).any(|window| window == b"%PDF-") {
            return Ok(Self::Pdf);
        }
        if start.starts_with(b"PK\x03\x04") {
            return docx::is_docx(start).then_some(Self::Docx).ok_or_else(|| {
                Unreadable::Unsupported {
                    what: "an archive or an Office document other than DOCX".into(),
                }
            });
        }
        if start.starts_with(b"\xd0\xcf\x11\xe0") && docx::is_encrypted(start) {
            return Err(Unreadable::Encrypted { format: Self::Docx });
        }
        if let Some((_, what)) = FOREIGN.into_iter().find(|(mark, _)| start.starts_with(mark)) {
            return Err(Unreadable::Unsupported { what: what.into() });
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        Ok(match extension.as_deref() {
            Some("md" | "markdown") => Self::Markdown,
            Some("html" | "htm" | "xhtml") => Self::Html,
            Some("csv" | "tsv") => Self::Csv,
            Some("jsonl" | "ndjson") => Self::Jsonl,
            Some("txt" | "text" | "log" | "rst" | "xml" | "json" | "yaml" | "toml") => Self::Text,
            _ if looks_like_html(start) => Self::Html,
            _ => Self::Text,
        })
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let head: Vec<u8> = bytes
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .take(15)
        .map(|byte| byte.to_ascii_lowercase())
        .collect();
    head.starts_with(b"<!doctype html") || head.starts_with(b"<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_before_the_name_and_the_name_before_a_look() {
        let cases: [(&[u8], &str, Format); 8] = [
            (b"%PDF-1.7", "a.txt", Format::Pdf),
            (b"\r\njunk %PDF-1.7", "a", Format::Pdf),
            (b"plain", "a.MD", Format::Markdown),
            (b"a,b", "a.tsv", Format::Csv),
            (b"<!DOCTYPE html><p>", "page", Format::Html),
            (b"<!DOCTYPE html><p>", "source.txt", Format::Text),
            (b"{}", "a.ndjson", Format::Jsonl),
            (b"fn main() {}", "main.rs", Format::Text),
        ];
        for (bytes, name, format) in cases {
            assert_eq!(Format::of(bytes, name), Ok(format), "{name}");
        }
        for (bytes, what) in [
            (&b"\x89PNG\r\n"[..], "an image"),
            (b"\xd0\xcf\x11\xe0", "an old Office"),
            (b"PK\x03\x04", "an archive"),
        ] {
            assert!(Format::of(bytes, "a.txt").unwrap_err().to_string().contains(what), "{what}");
        }
    }
}
