//! Known formats that are not read: an error names the format to the user.

pub(crate) const RICH_TEXT: &str = "rich text (RTF)";

/// First bytes of formats that consist of text.
const MARKS_OF_TEXT: &[(&[u8], &str)] =
    &[(b"{\\rtf", RICH_TEXT), (b"%!PS", "PostScript"), (b"!<arch>\n", "an archive (ar or deb)")];

/// A workbook that is no compound file: Excel 2 to 5.
const OLD_EXCEL: &str = "an old workbook of Excel (2.0 to 5.0): save it as XLSX";

/// First bytes of other formats.
const MARKS: &[(&[u8], &str)] = &[
    (b"Rar!\x1a\x07", "an archive (RAR)"),
    (b"GIF8", "an image (GIF)"),
    (b"8BPS", "an image (Photoshop)"),
    (b"\0\0\0\x0cjP  ", "an image (JPEG 2000)"),
    (b"\xff\x4f\xff\x51", "an image (JPEG 2000)"),
    (b"\0\0\0\x0cJXL ", "an image (JPEG XL)"),
    (b"\xd7\xcd\xc6\x9a", "an image (WMF)"),
    (b"\0\0\x01\0", "an image (ICO)"),
    (b"gimp xcf", "an image (GIMP)"),
    (b"AT&TFORM", "a scanned document (DjVu)"),
    (b"RIFF", "a picture, sound or film"),
    (b"ID3", "sound (MP3)"),
    (b"fLaC", "sound (FLAC)"),
    (b"OggS", "sound or a film (Ogg)"),
    (b"\x1aE\xdf\xa3", "a film (Matroska or WebM)"),
    (b"BZh", "a compressed file (bzip2)"),
    (b"\xfd7zXZ", "a compressed file (xz)"),
    (b"LZIP\x01", "a compressed file (lzip)"),
    (b"\x04\x22M\x18", "a compressed file (LZ4)"),
    (b"\x1f\x9d", "a compressed file (compress)"),
    (b"7z\xbc\xaf", "an archive (7z)"),
    (b"MSCF\0\0\0\0", "an archive (CAB)"),
    (b"SIT!", "an archive (StuffIt)"),
    (b"StuffIt (c)", "an archive (StuffIt)"),
    (b"PK\x05\x06", "an empty archive (ZIP)"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"SQLite format 3", "a database (SQLite)"),
    (b"\0\x01\0\0Standard ", "a database (Access)"),
    (b"PAR1", "a table (Parquet)"),
    (b"ARROW1\0", "a table (Arrow)"),
    (b"Obj\x01", "a table (Avro)"),
    (b"\x89HDF\r\n", "data (HDF5)"),
    (b"\t\0\x04\0", OLD_EXCEL),
    (b"\t\x02\x06\0", OLD_EXCEL),
    (b"\t\x04\x06\0", OLD_EXCEL),
    (b"\t\x08\x06\0", OLD_EXCEL),
    (b"\t\x08\x08\0", OLD_EXCEL),
    (b"\xffWPC", "a document of WordPerfect"),
    (b"\xdb\xa5\x2d\0", "a document of Word 2"),
    (b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d", "a notebook of OneNote"),
    (b"ITSF\x03", "a help file (CHM)"),
    (b"!BDN", "a mailbox of Outlook (PST)"),
    (b"AC10", "a drawing (DWG)"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"OTTO", "a font"),
    (b"\0\x01\0\0\0", "a font"),
    (b"\x78\x9f\x3e\x22", "an attachment of Outlook (TNEF, winmail.dat)"),
];

/// Marks at a later position.
const INNER_MARKS: &[(usize, &[u8], &str)] = &[
    (4, b"ftypheic", "an image (HEIC)"),
    (4, b"ftypheix", "an image (HEIC)"),
    (4, b"ftypmif1", "an image (HEIC or AVIF)"),
    (4, b"ftypavif", "an image (AVIF)"),
    (4, b"ftypM4A", "sound (M4A)"),
    (4, b"ftyp", "a film (MP4 or QuickTime)"),
    (2, b"-lh", "an archive (LHA)"),
    (60, b"BOOKMOBI", "a book (MOBI or AZW): save it as EPUB"),
    (40, b" EMF", "an image (EMF)"),
    (32_769, b"CD001", "an image of a disc (ISO)"),
];

/// Entries of compound files, by the start of their names: documents of older programs.
const ENTRIES: &[(&str, &str)] = &[
    ("__substg1.0_", "an e-mail of Outlook (MSG): save it as EML"),
    ("VisioDocument", "a drawing (Visio)"),
    ("PowerPoint Document", "an old presentation (PPT): save it as PPTX"),
    ("WordDocument", "an old document of Word (DOC): save it as DOCX"),
    ("Quill", "a document of Publisher"),
];

/// Names the format of a file, if known.
pub(crate) fn describe_file(bytes: &[u8]) -> Option<&'static str> {
    let is_plain = is_plain(bytes);
    let marked = |marks: &[(&[u8], &'static str)], is_words: bool| {
        let is = |mark: &[u8]| bytes.starts_with(mark) && !(is_words && mark.is_ascii());
        marks.iter().find(|(mark, _)| is(mark)).map(|(_, what)| *what)
    };
    let inner = || {
        let is = |at: &usize, mark: &[u8]| bytes.get(*at..).is_some_and(|it| it.starts_with(mark));
        let found = INNER_MARKS.iter().find(|(at, mark, _)| !is_plain && is(at, mark));
        found.map(|(_, _, what)| *what)
    };
    let known = marked(MARKS_OF_TEXT, false).or_else(|| marked(MARKS, is_plain));
    known.or_else(inner).or_else(|| describe_by_two_letters(bytes))
}

/// Names the format of a compound file by the names of its entries.
pub(crate) fn describe_container(entries: &[String]) -> Option<&'static str> {
    let has = |name: &str| entries.iter().any(|entry| entry.starts_with(name));
    ENTRIES.iter().find(|(entry, _)| has(entry)).map(|(_, what)| *what)
}

/// Recognizes marks of two letters. A text may begin with them too, so zeros must follow.
fn describe_by_two_letters(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'B', b'M', ..] if bytes.get(6..10) == Some(&[0; 4]) => Some("an image (BMP)"),
        [b'M', b'Z', ..] if bytes.get(..64)?.contains(&0) => Some("a program (EXE or DLL)"),
        _ => None,
    }
}

/// Returns whether the first 4 KiB have no control characters except white space. Such a file is
/// text, and its words may equal the mark of a format.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    !bytes[..bytes.len().min(4 << 10)].iter().any(control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        let disc = [&[0; 32_769][..], b"CD001"].concat();
        for (bytes, what) in [
            (&b"\0\0\0\x18ftypheic"[..], "HEIC"),
            (b"\0\0\0\x18ftypisom", "MP4"),
            (&[&b"MZ"[..], &[0; 70]].concat(), "program"),
            (b"BM\x10\x10\0\0\0\0\0\0", "BMP"),
            (&disc, "ISO"),
        ] {
            assert!(describe_file(bytes).unwrap().contains(what), "{what}");
        }
        for (entry, what) in [("__substg1.0_0037001F", "MSG"), ("PowerPoint Document", "PPT")] {
            assert!(describe_container(&[entry.to_owned()]).unwrap().contains(what), "{what}");
        }
        assert_eq!(describe_container(&["else".to_owned()]), None);
        for text in ["MZ is a postal area", "BMW 320", "AC10 0AB", "ID3;x", "See ftype", "BZh"] {
            assert_eq!(describe_file(text.as_bytes()), None, "{text}");
        }
    }
}
