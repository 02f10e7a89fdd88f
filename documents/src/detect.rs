//! Detection of a file's format by its first bytes and its name.

use std::io::{Cursor, Read};

use memchr::memmem;
use zip::ZipArchive;

use crate::{
    archive, compound, flat, foreign, format::Format, notebook, sheets::xml_2003,
    unreadable::Unreadable,
};

/// Longest media type, in characters, that a message quotes.
const MAX_KIND: usize = 100;

/// Most comments and declarations that are skipped before a page.
const MAX_COMMENTS: usize = 20;

/// Bytes read of a part that names the type of an archive.
const NAMING_PART: u64 = 1 << 20;

/// Most bytes before an office document in its file.
const MAX_PREFIX: usize = 1_024;

impl Format {
    /// Detects the format: by the first bytes, then by the name's extension, then by the content.
    /// Text has no mark, so it is the last choice. Decoding decides later whether it is text at
    /// all.
    ///
    /// # Errors
    /// [`Unreadable::Unsupported`] for a known format that cannot be read,
    /// [`Unreadable::Encrypted`] for an encrypted Office document, [`Unreadable::Damaged`] for a
    /// truncated archive.
    pub fn detect(bytes: &[u8], name: &str) -> Result<Self, Unreadable> {
        let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        if start.starts_with(b"PK\x03\x04") {
            return detect_in_archive(start, extension.as_deref());
        }
        let picture = match start {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Some(Self::Tiff),
            _ if is_webp(start) => Some(Self::Webp),
            _ => None,
        };
        if let Some(picture) = picture {
            return Ok(picture);
        }
        if start.starts_with(b"\x1f\x8b") {
            return Ok(Self::Gzip);
        }
        if start.starts_with(b"\x28\xb5\x2f\xfd") {
            return Ok(Self::Zstd);
        }
        if archive::is_tar(start) {
            return Ok(Self::Tar);
        }
        // `%PDF-` may come after up to a kilobyte of other bytes. It does not count in a text
        // without the extension `pdf`, which may only mention it. Files with the marks above, such
        // as an archive that begins with a PDF, are recognized before.
        let is_mark = || !foreign::is_plain(start) || extension.as_deref() == Some("pdf");
        if start.trim_ascii_start().starts_with(b"%PDF-")
            || memmem::find(&start[..start.len().min(1_024)], b"%PDF-").is_some() && is_mark()
        {
            return Ok(Self::Pdf);
        }
        if start.starts_with(b"\xd0\xcf\x11\xe0") {
            let entries = compound::list_entries(start);
            let has = |name: &str| entries.iter().any(|entry| entry == name);
            if has("EncryptedPackage") {
                let format = extension.as_deref().and_then(office_format).unwrap_or(Self::Docx);
                return Err(Unreadable::Encrypted { format });
            }
            let known = foreign::describe_container(&entries);
            if has("Workbook") || known.is_none() && extension.as_deref() == Some("xls") {
                return Ok(Self::Xls);
            }
            let what = known.unwrap_or("an old Office document (DOC, PPT or MSG)").into();
            return Err(Unreadable::Unsupported { what });
        }
        if let Some(what) = foreign::describe_file(start) {
            return Err(Unreadable::Unsupported { what: what.into() });
        }
        // A download may begin with lines of its protocol. The directory of an archive is at its
        // end, so the reader finds it.
        if let Some(format) = extension.as_deref().and_then(office_format)
            && memmem::find(&start[..start.len().min(MAX_PREFIX)], b"PK\x03\x04").is_some()
            && detect_in_archive(start, extension.as_deref()) == Ok(format)
        {
            return Ok(format);
        }
        // A piece of rich text, which only its name tells from a text in braces.
        if extension.as_deref() == Some("rtf") && start.trim_ascii_start().starts_with(b"{\\") {
            return Err(Unreadable::Unsupported { what: foreign::RICH_TEXT.into() });
        }
        if xml_2003::is_xml_2003(start) {
            return Ok(Self::Xls);
        }
        if let Some(format) = flat::detect_format(start) {
            return Ok(format);
        }
        if let Some("xls" | "doc" | "xlt" | "dot") = extension.as_deref() {
            // Programs export HTML pages and messages under these names.
            if is_markup(start) {
                return Ok(Self::Html);
            }
            if looks_like_mail(start) {
                return Ok(Self::Eml);
            }
        }
        Ok(match extension.as_deref() {
            Some("md" | "markdown") => Self::Markdown,
            Some("html" | "htm" | "xhtml") => Self::Html,
            Some("csv" | "tsv") => Self::Csv,
            Some("jsonl" | "ndjson") => Self::Jsonl,
            Some("eml" | "emlx" | "mht" | "mhtml") => Self::Eml,
            Some("ipynb") => Self::Notebook,
            _ if notebook::is_notebook(start) => Self::Notebook,
            Some("txt" | "text" | "log" | "rst" | "xml" | "json" | "yaml" | "toml") => Self::Text,
            _ if archive::is_mailbox(start) => Self::Mbox,
            _ if looks_like_html(start) => Self::Html,
            _ if looks_like_mail(start) => Self::Eml,
            _ => Self::Text,
        })
    }
}

/// Returns the extension for a document: by its first bytes, else by its name.
pub(crate) fn detect_extension(bytes: &[u8], name: &str) -> Option<String> {
    const MARKS: [(&[u8], &str); 9] = [
        (b"%PDF-", "pdf"),
        (b"\x89PNG", "png"),
        (b"\xff\xd8\xff", "jpg"),
        (b"GIF8", "gif"),
        (b"II*\0", "tiff"),
        (b"MM\0*", "tiff"),
        (b"{\\rtf", "rtf"),
        (b"%!PS", "ps"),
        (b"ID3", "mp3"),
    ];
    let marked = MARKS.into_iter().find(|(mark, _)| bytes.starts_with(mark));
    let marked = marked.or_else(|| is_webp(bytes).then_some((b"RIFF", "webp")));
    let named = || name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let kind = marked.map(|(_, kind)| kind.to_owned()).or_else(named)?;
    Some(normal_extension(&kind).to_owned())
}

/// Returns whether a file is WebP. Sounds and films begin with `RIFF` too.
fn is_webp(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")
}

/// Returns one spelling for extensions that have several.
pub(crate) fn normal_extension(extension: &str) -> &str {
    match extension {
        "jpeg" => "jpg",
        "tif" => "tiff",
        "htm" => "html",
        other => other,
    }
}

/// Detects the format in a ZIP archive, by its directory and the part that names the type.
fn detect_in_archive(bytes: &[u8], extension: Option<&str>) -> Result<Format, Unreadable> {
    // No office document has so many parts, and opening the archive takes memory for each.
    if !archive::zipped::has_few_entries(bytes) {
        return Ok(Format::Zip);
    }
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        // The directory at the end is missing; names at the start are still there.
        let found = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        let format = if found(b"word/") {
            Some(Format::Docx)
        } else if found(b"xl/") {
            Some(Format::Xlsx)
        } else if found(b"ppt/") {
            Some(Format::Pptx)
        } else if found(b"application/epub+zip") {
            Some(Format::Epub)
        } else {
            extension.and_then(office_format)
        };
        return Err(match format {
            Some(format) => Unreadable::damaged(
                format,
                "it is cut off, or no archive: its table of contents is missing",
            ),
            None => Unreadable::damaged(
                Format::Zip,
                "it is cut off, or no archive: its table of contents is missing",
            ),
        });
    };
    let kind = read_part(&mut archive, "mimetype");
    let named = kind.as_ref().and_then(|kind| match kind.trim() {
        "application/epub+zip" => Some(Format::Epub),
        kind => Format::of_open_document(kind),
    });
    // Some programs separate folders by backslashes.
    let has = |name: &str| {
        [name, &name.replace('/', "\\")].iter().any(|it| archive.index_for_name(it).is_some())
    };
    let found = named
        .or_else(|| has("word/document.xml").then_some(Format::Docx))
        .or_else(|| (has("xl/workbook.xml") || has("xl/workbook.bin")).then_some(Format::Xlsx))
        .or_else(|| has("ppt/presentation.xml").then_some(Format::Pptx))
        .or_else(|| has("META-INF/container.xml").then_some(Format::Epub));
    // The main part may have any name; `[Content_Types].xml` has its type.
    let typed = found.or_else(|| {
        let types = read_part(&mut archive, "[Content_Types].xml")?;
        [
            ("wordprocessingml.", Format::Docx),
            ("spreadsheetml.", Format::Xlsx),
            ("presentationml.", Format::Pptx),
        ]
        .into_iter()
        .find_map(|(kind, format)| types.contains(kind).then_some(format))
    });
    match (typed, extension.and_then(office_format)) {
        (Some(format), _) => Ok(format),
        (None, Some(format)) => Err(Unreadable::damaged(format, "its main part is missing")),
        (None, None) => {
            match foreign_package(&archive)
                .map(str::to_owned)
                .or_else(|| describe_media_type(&kind?))
            {
                Some(what) => Err(Unreadable::Unsupported { what: what.into() }),
                None => Ok(Format::Zip),
            }
        }
    }
}

/// Describes another program's document by its media type. Returns `None` for a strange media type.
fn describe_media_type(kind: &str) -> Option<String> {
    let kind = kind.trim().strip_prefix("application/")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let is_short = kind.len() <= MAX_KIND && kind.chars().all(is_name);
    is_short.then(|| format!("a document of another program ({kind})"))
}

/// Describes another program's document by the names of its parts.
fn foreign_package(archive: &ZipArchive<Cursor<&[u8]>>) -> Option<&'static str> {
    let has = |name: &str| archive.index_for_name(name).is_some();
    if has("visio/document.xml") {
        Some("a drawing (Visio)")
    } else if has("Index/Document.iwa") || has("Index.zip") {
        Some("a document of Pages, Numbers or Keynote")
    } else if has("FixedDocumentSequence.fdseq") || has("FixedDocSeq.fdseq") {
        Some("a printed document (XPS): print it as PDF")
    } else if has("AndroidManifest.xml") || has("META-INF/MANIFEST.MF") {
        Some("a program (JAR or APK)")
    } else {
        None
    }
}

fn read_part(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Option<String> {
    let mut text = String::new();
    archive.by_name(name).ok()?.take(NAMING_PART).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the format of an office document or book by its extension.
fn office_format(extension: &str) -> Option<Format> {
    Some(match extension {
        "docx" | "docm" | "dotx" => Format::Docx,
        "xlsx" | "xlsm" | "xlsb" => Format::Xlsx,
        "pptx" | "pptm" | "ppsx" => Format::Pptx,
        "odt" => Format::Odt,
        "ods" => Format::Ods,
        "odp" => Format::Odp,
        "epub" => Format::Epub,
        _ => return None,
    })
}

/// Returns whether a page's name has the extension of XHTML.
pub(crate) fn is_xhtml(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("xhtml"))
}

/// Returns whether the first element is that of a page. Comments and an XML declaration may stand
/// before it.
fn looks_like_html(bytes: &[u8]) -> bool {
    let mut rest = bytes.trim_ascii_start();
    for (start, end) in [("<!--", "-->"), ("<?", "?>")].into_iter().cycle().take(MAX_COMMENTS) {
        if rest.starts_with(start.as_bytes())
            && let Some(at) = memmem::find(rest, end.as_bytes())
        {
            rest = rest[at + end.len()..].trim_ascii_start();
        }
    }
    let begins =
        |with: &[u8]| rest.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html")
}

/// Returns whether a file is a page of HTML or a part of one.
fn is_markup(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4 << 10)]).to_ascii_lowercase();
    let is_sheet =
        head.contains("urn:schemas-microsoft-com:office:spreadsheet") && !head.contains("<html");
    head.trim_start().starts_with('<')
        && !is_sheet
        && ["<table", "<html", "<div", "<body"].iter().any(|tag| head.contains(tag))
}

/// Returns whether a file begins with the header of a message.
fn looks_like_mail(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(16 << 10)];
    let header = head.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    let (mut lines, mut names) = (0, Vec::new());
    for line in header {
        lines += 1;
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            continue;
        }
        let Some(end) = line.iter().position(|byte| *byte == b':') else { return false };
        if !line[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            return false;
        }
        names.push(line[..end].to_ascii_lowercase());
    }
    let has = |name: &[u8]| names.iter().any(|known| known == name);
    // A page saved as a message has no sender.
    let is_saved = || {
        has(b"mime-version")
            && has(b"content-type")
            && head.windows(17).any(|window| window.eq_ignore_ascii_case(b"multipart/related"))
    };
    (lines > 1 && is_saved())
        || lines > 2
            && has(b"from")
            && (has(b"mime-version") || has(b"message-id") || has(b"received"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_before_the_name_and_the_name_before_a_look() {
        let cases: [(&[u8], &str, Format); 19] = [
            (b"%PDF-1.7", "a.txt", Format::Pdf),
            (b"\r\njunk %PDF-1.7", "a.pdf", Format::Pdf),
            (b"\r\njunk %PDF-1.7\n%\xe2\xe3\x01\n", "a", Format::Pdf),
            (b"A PDF begins with %PDF-1.7", "notes.md", Format::Markdown),
            (b"OTTO;Versand\n7;8\n", "a.csv", Format::Csv),
            (b"See ftype(3), or RIFF.", "a.txt", Format::Text),
            (b"{\"cells\": [], \"nbformat\": 4}", "a.json", Format::Notebook),
            (b"{\"nbformat\": 4}\n", "a.jsonl", Format::Jsonl),
            (b"plain", "a.MD", Format::Markdown),
            (b"a,b", "a.tsv", Format::Csv),
            (b"<!DOCTYPE html><p>", "page", Format::Html),
            (b"<!DOCTYPE html><p>", "source.txt", Format::Text),
            (b"<!-- saved from a --> <!-- b -->\n<HTML><p>", "page", Format::Html),
            (b"<?xml version='1.0'?><!-- a --><!DOCTYPE html><p>", "page", Format::Html),
            (b"<?xml version='1.0'?><!-- <html> --><feed/>", "feed", Format::Text),
            (b"{}", "a.ndjson", Format::Jsonl),
            (b"fn main() {}", "main.rs", Format::Text),
            (b"From: a@b\nTo: c@d\nMIME-Version: 1.0\n\nHi", "message", Format::Eml),
            (b"From: here\nTo: there\n\nno message", "note", Format::Text),
        ];
        for (bytes, name, format) in cases {
            assert_eq!(Format::detect(bytes, name), Ok(format), "{name}");
        }
        let piece = Format::detect(b"{\\pard Ebb\\par}", "a.rtf").unwrap_err().to_string();
        assert!(piece.contains(foreign::RICH_TEXT), "{piece}");
        assert_eq!(Format::detect(b"{\\pard Ebb\\par}", "a.txt"), Ok(Format::Text));
        // The directory is not opened, because that takes memory for each entry.
        let many = [&b"PK\x03\x04word/document.xml"[..], &b"PK\x01\x02".repeat(20_001)].concat();
        assert_eq!(Format::detect(&many, "a.docx"), Ok(Format::Zip));
        for (bytes, what) in [
            (&b"GIF89a\x01\0"[..], "an image (GIF)"),
            (b"\xd0\xcf\x11\xe0", "an old Office"),
            (b"\t\x08\x08\0\0\x05\x05\0", "an old workbook of Excel"),
            (b"\t\0\x04\0\x02\0\x10\0", "an old workbook of Excel"),
            (b"PK\x03\x04", "ZIP archive is damaged: it is cut off"),
            (b"PK\x03\x04word/document", "DOCX is damaged: it is cut off"),
        ] {
            let error = Format::detect(bytes, "a.txt").unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
    }
}
