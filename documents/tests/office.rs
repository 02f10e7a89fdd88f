//! Office documents, books and messages, whole and damaged.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{Dice, Parts, docx, eml, epub, odt, package, pdf, pptx, xlsx};
use tidegate_documents::{Extracted, Format, Limits, Unreadable, extract};

/// Damaged files of each format.
const DAMAGED: u64 = 500;

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Unreadable> {
    extract(bytes, name, &Limits::default())
}

#[test]
fn what_is_in_them() {
    let sheets = "## Ports\n\nPort | Metres\nBrest | 7.5 | 2026-11-22\n\n## Notes\n\nTRUE";
    let slides = "## Tides\n\nfirst\n- below\n\nNotes: Say it slowly.\n\n## Slide 2\n\nPort | Metres\nBrest | 7";
    let text = "above\n\n## Tides\nHigh  at six,\nlow at noon.[^1]\n1. one\n2. two\n  - deep\nPort |  | Metres\nBrest | 7 | 8\n\n[^1]: at the foot";
    let book = "# Ebb\n\nIt goes.\n\n# Flow\n\nIt comes.";
    for (parts, format, expected) in [
        (xlsx(), Format::Xlsx, sheets),
        (pptx(), Format::Pptx, slides),
        (odt(), Format::Odt, text),
        (epub(), Format::Epub, book),
    ] {
        // Told by what is in it: the name says nothing.
        let read = read(&package(&parts), "a").unwrap();
        assert_eq!((read.format, read.text.as_str()), (format, expected));
        assert_eq!(read.missing_pages, if format == Format::Epub { vec![2] } else { vec![] });
    }
}

#[test]
fn a_cell_far_off_costs_no_more_than_its_place() {
    let mut parts = xlsx();
    let sheet = parts.iter_mut().find(|(name, _)| name.ends_with("sheet2.xml")).unwrap();
    sheet.1 = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>\
        <row r=\"1\"><c r=\"A1\"><v>1</v></c><c r=\"C1\"><v>2</v></c></row>\
        <row r=\"1048576\"><c r=\"C1048576\"><v>3</v></c><c r=\"XFD1048576\"><v>4</v></c></row></sheetData></worksheet>"
        .to_owned();
    let text = read(&package(&parts), "a.xlsx").unwrap().text;
    assert!(text.ends_with("## Notes\n\n1 | 2\n | 3 | 4"), "{text}");
}

#[test]
fn a_message_with_what_is_attached() {
    let read = read(&eml(), "message").unwrap();
    assert_eq!(read.format, Format::Eml);
    let (before, after) = read.text.split_once("## Ports").unwrap();
    assert_eq!(
        before,
        "From: Ada <ada@example.org>\nTo: bob@example.org, Cy <cy@example.org>\nDate: 2026-11-22T10:00:00+01:00\nSubject: Größe\n\nThe tide 潮 turns.\n\n## Attachment: ports.xlsx\n\n"
    );
    assert!(after.contains("[Attachment p.png: this is a PNG image"), "{after}");
    assert!(after.ends_with("From: cy@example.org\nSubject: Inner\n\nOnly HTML"), "{after}");
}

#[test]
fn what_is_locked_is_named() {
    let mut book = epub();
    book.push((
        "META-INF/encryption.xml",
        "<encryption><CipherReference URI=\"OEBPS/one.xhtml\"/></encryption>".to_owned(),
    ));
    let mut text = odt();
    text.push(("META-INF/manifest.xml", "<m><encryption-data/></m>".to_owned()));
    for (parts, format) in [(book, Format::Epub), (text, Format::Odt)] {
        assert_eq!(read(&package(&parts), "a").unwrap_err(), Unreadable::Encrypted { format });
    }
}

/// Half of them damaged as a whole, half in a part, where no checksum guards it.
fn damaged(parts: &Parts, dice: &mut Dice) -> Vec<u8> {
    if dice.below(2) == 0 {
        let mut bytes = package(parts);
        dice.damage(&mut bytes);
        return bytes;
    }
    let chosen = dice.below(parts.len());
    let mut parts: Vec<(&str, Vec<u8>)> =
        parts.iter().map(|(name, text)| (*name, text.clone().into_bytes())).collect();
    dice.damage(&mut parts[chosen].1);
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, b)| (*name, b.as_slice())).collect();
    common::archive(&parts)
}

/// Each is read or named. A panic would be one document's loss, for the reader is a process of its
/// own; but there is none.
fn all_are_read_or_named(name: &str, mut make: impl FnMut(&mut Dice) -> Vec<u8>) {
    let mut dice = Dice(15);
    let mut read_well = 0;
    for number in 0..DAMAGED {
        let bytes = make(&mut dice);
        let read = catch_unwind(AssertUnwindSafe(|| read(&bytes, name)));
        match read.unwrap_or_else(|_| panic!("{name}, damaged file {number}")) {
            Ok(read) => {
                assert!(!read.text.trim().is_empty());
                read_well += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // Not so damaged that nothing is left to read, nor so little that nothing is lost.
    assert!((1..DAMAGED).contains(&read_well), "{name}: {read_well}");
}

#[test]
fn damaged_sheets() {
    all_are_read_or_named("a.xlsx", |dice| damaged(&xlsx(), dice));
}

#[test]
fn damaged_slides() {
    all_are_read_or_named("a.pptx", |dice| damaged(&pptx(), dice));
}

#[test]
fn damaged_texts() {
    all_are_read_or_named("a.odt", |dice| damaged(&odt(), dice));
    let body = "<w:document><w:body><w:p><w:pPr><w:numPr><w:ilvl w:val=\"1\"/><w:numId w:val=\"7\"/></w:numPr></w:pPr><w:r><w:t>The tide</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"2\"/></w:tcPr><w:p><w:r><w:t>turns</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>";
    let parts = vec![("word/document.xml", body.to_owned())];
    all_are_read_or_named("a.docx", |dice| damaged(&parts, dice));
    all_are_read_or_named("b.docx", |dice| {
        let mut bytes = docx(&["The tide", "turns."]);
        dice.damage(&mut bytes);
        bytes
    });
}

#[test]
fn damaged_books() {
    all_are_read_or_named("a.epub", |dice| damaged(&epub(), dice));
}

#[test]
fn damaged_messages() {
    let whole = eml();
    all_are_read_or_named("a.eml", |dice| {
        let mut bytes = whole.clone();
        dice.damage(&mut bytes);
        bytes
    });
}

#[test]
fn damaged_pages() {
    let whole = pdf(&["The tide", "turns."]);
    all_are_read_or_named("a.pdf", |dice| {
        let mut bytes = whole.clone();
        dice.damage(&mut bytes);
        bytes
    });
    let page = b"<!doctype html><form><table><tr><td colspan=2 rowspan=3>The<th>tide</table><select><option>a<option selected>b</select><ol start=3><li style='display:none'>x<li>y</ol><pre>\n a</pre></form>";
    all_are_read_or_named("a.html", |dice| {
        let mut bytes = page.to_vec();
        dice.damage(&mut bytes);
        bytes
    });
}
