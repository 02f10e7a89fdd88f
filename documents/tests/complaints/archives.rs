//! Archives, and formats that are known but not read.

use super::{Right, Row, row};
use crate::common::archive;

/// Makes an archive in which a file's name has the bytes of an older encoding.
fn named(bytes: &[u8]) -> Vec<u8> {
    let stand_in = "x".repeat(bytes.len());
    let made = archive(&[(&stand_in, b"words")]);
    let mut named = Vec::new();
    let mut rest = &made[..];
    while let Some(at) = rest.windows(bytes.len()).position(|it| it == stand_in.as_bytes()) {
        named.extend(&rest[..at]);
        named.extend(bytes);
        rest = &rest[at + bytes.len()..];
    }
    named.extend(rest);
    named
}

fn refused(name: &'static str, document: impl Into<Vec<u8>>, words: &'static str) -> Row {
    Row { kind: "named and refused", name, document: document.into(), right: Right::Refused(words) }
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row(
            "Japanese names",
            "a.zip",
            named(b"\x8c\x5f\x96\xf1\x8f\x91.txt"),
            &["契約書.txt", "words"],
            &[],
        ),
        row(
            "Chinese names",
            "a.zip",
            named(b"\xba\xcf\xcd\xac\xb8\xbd\xbc\xfe.txt"),
            &["合同附件.txt", "words"],
            &[],
        ),
        row(
            "names of DOS",
            "a.zip",
            named(b"M\x81hle Gr\x94\xe1e.txt"),
            &["Mühle Größe.txt", "words"],
            &[],
        ),
        refused("a.rar", b"Rar!\x1a\x07\x01\0", "an archive (RAR)"),
        refused("a.pages", archive(&[("Index/Document.iwa", b"x")]), "Pages"),
        refused("a.vsdx", archive(&[("visio/document.xml", b"<x/>")]), "Visio"),
        refused("a.xps", archive(&[("FixedDocumentSequence.fdseq", b"<x/>")]), "XPS"),
        refused(
            "a.idml",
            archive(&[
                ("mimetype", b"application/vnd.adobe.indesign-idml-package"),
                ("a.xml", b"<x/>"),
            ]),
            "indesign",
        ),
        refused("a.bmp", b"BM\x10\x10\0\0\0\0\0\0\0\0", "BMP"),
        refused("a.heic", b"\0\0\0\x18ftypheic", "HEIC"),
        refused("a.one", b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1", "OneNote"),
        refused("a.wpd", b"\xffWPC\x10\0", "WordPerfect"),
        refused("a.djvu", b"AT&TFORM\0\0", "DjVu"),
        refused("a.psd", b"8BPS\0\x01", "Photoshop"),
    ]
}
