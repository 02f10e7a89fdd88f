//! Five hundred damaged files of each format, random from a seed. Each is read or refused with a
//! reason, within the memory and time of the process that reads documents.
//!
//! The tests for archives, pictures and Parquet are in `archives.rs`, `pictures.rs` and
//! `tables.rs`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
    time::{Duration, Instant},
};

use common::{
    Dice, Parts, archive, docx, eml, epub, odp, ods, odt, package, pdf, pptx, xlsb, xlsx,
};
use tidegate_documents::{Limits, Unreadable, extract};

/// Damaged files of each format.
const DAMAGED: u64 = 500;

/// Longest time for a file, even on a busy machine. Normally it takes milliseconds.
const LONGEST: Duration = Duration::from_secs(30);

/// Damages a package: half of the files as a whole, half in one part, without breaking its
/// checksum.
fn damaged(parts: &Parts, dice: &mut Dice) -> Vec<u8> {
    if dice.below(2) == 0 {
        let mut bytes = package(parts);
        dice.damage(&mut bytes);
        return bytes;
    }
    let chosen = dice.below(parts.len());
    let mut parts = parts.clone();
    dice.damage(&mut parts[chosen].1);
    package(&parts)
}

/// Reads damaged files. A panic would lose only its document, because the reader has its own
/// process; but none is expected.
fn all_are_read_or_named(name: &str, mut make: impl FnMut(&mut Dice) -> Vec<u8>) {
    static BOUND: Once = Once::new();
    // An allocation beyond the bound ends this process, as it would end the reader's.
    BOUND.call_once(|| {
        let most = Limits::default().memory;
        rlimit::Resource::AS.set(most, most).unwrap();
    });
    let mut dice = Dice(15);
    let mut read_well = 0;
    for number in 0..DAMAGED {
        let bytes = make(&mut dice);
        let start = Instant::now();
        let read = catch_unwind(AssertUnwindSafe(|| extract(&bytes, name, &Limits::default())));
        match read.unwrap_or_else(|_| panic!("{name}, damaged file {number}")) {
            Ok(read) => {
                assert!(!read.text.trim().is_empty());
                read_well += 1;
            }
            Err(Unreadable::TooSlow(time)) => panic!("{name}, damaged file {number}: {time:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let took = start.elapsed();
        assert!(took < LONGEST, "{name}, damaged file {number} took {took:?}");
    }
    // Some files are still readable, and some are not.
    assert!((1..DAMAGED).contains(&read_well), "{name}: {read_well}");
}

/// Damages a file that is no archive, and reads it.
fn all_of_one_are_read_or_named(name: &str, whole: &[u8]) {
    all_are_read_or_named(name, |dice| {
        let mut bytes = whole.to_vec();
        dice.damage(&mut bytes);
        bytes
    });
}

#[test]
fn sheets() {
    for (name, parts) in [("a.xlsx", xlsx()), ("a.xlsb", xlsb()), ("a.ods", ods())] {
        all_are_read_or_named(name, |dice| damaged(&parts, dice));
    }
    all_of_one_are_read_or_named("a.xls", include_bytes!("fixtures/ports.xls"));
}

#[test]
fn slides() {
    for (name, parts) in [("a.pptx", pptx()), ("a.odp", odp())] {
        all_are_read_or_named(name, |dice| damaged(&parts, dice));
    }
}

#[test]
fn texts() {
    all_are_read_or_named("a.odt", |dice| damaged(&odt(), dice));
    let body = "<w:document><w:body><w:p><w:pPr><w:numPr><w:ilvl w:val=\"1\"/><w:numId w:val=\"7\"/></w:numPr></w:pPr><w:r><w:t>The tide</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"2\"/></w:tcPr><w:p><w:r><w:t>turns</w:t></w:r><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num></m:f></m:oMath></w:p></w:tc></w:tr></w:tbl></w:body></w:document>";
    let parts = vec![("word/document.xml", body.into())];
    all_are_read_or_named("a.docx", |dice| damaged(&parts, dice));
    all_of_one_are_read_or_named("b.docx", &docx(&["The tide", "turns."]));
}

#[test]
fn books_and_messages() {
    all_are_read_or_named("a.epub", |dice| damaged(&epub(), dice));
    all_of_one_are_read_or_named("a.eml", &eml());
    let nested = "Content-Type: multipart/mixed; boundary=12\n\n--12\nContent-Type: multipart/mixed; boundary=1\n\n--1\nContent-Transfer-Encoding: x-uuencode\nContent-Disposition: attachment\n\nbegin 644 a\n#0V%T\nend\n--1--\n--12--\n";
    all_of_one_are_read_or_named("b.eml", nested.as_bytes());
}

#[test]
fn pages() {
    all_of_one_are_read_or_named("a.pdf", &pdf(&["The tide", "turns."]));
    let page = b"<!doctype html><form><table><tr><td colspan=2 rowspan=3>The<th>tide</table><select><option>a<option selected>b</select><ol start=3><li style='display:none'>x<li>y</ol><pre>\n a</pre></form>";
    all_of_one_are_read_or_named("a.html", page);
}

#[test]
fn plain_text() {
    let words = "Größe, 潮, 5 µm\n\"quoted, twice\",2,3\n";
    let utf16: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xff\xfe"[..], &utf16].concat();
    for name in ["a.txt", "a.md", "a.csv", "a.jsonl"] {
        for whole in [words.as_bytes(), &utf16, &marked] {
            all_of_one_are_read_or_named(name, whole);
        }
    }
}

/// Files within an archive are damaged too.
#[test]
fn archives_of_documents() {
    let parts = vec![("a.xls", include_bytes!("fixtures/ports.xls").to_vec()), ("b.eml", eml())];
    all_are_read_or_named("a.zip", |dice| damaged(&parts, dice));
    let nested = archive(&[("in.zip", &package(&parts)), ("c.txt", b"Ebb")]);
    all_of_one_are_read_or_named("b.zip", &nested);
}
