//! Every format, good and bad.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{archive, compound, docx, pdf, pdf_of};
use proptest::{prelude::*, test_runner::RngSeed};
use tidegate_documents::{Format, Limits, Reader, Unreadable, extract};

fn text(bytes: &[u8], name: &str) -> Result<(Format, String), String> {
    extract(bytes, name, &Limits::default())
        .map(|read| (read.format, read.text))
        .map_err(|error| error.to_string())
}

#[test]
fn good_documents() {
    let expect = |format, text: &str| Ok((format, text.to_owned()));
    assert_eq!(
        text("Grüße\n".as_bytes(), "a.txt"),
        expect(Format::Text, "Grüße\n"),
        "byte for byte"
    );
    assert_eq!(text("\u{feff}# Title".as_bytes(), "a.md"), expect(Format::Markdown, "# Title"));
    assert_eq!(text(b"a,b\n1,2", "a.csv"), expect(Format::Csv, "a,b\n1,2"));
    assert_eq!(
        text(&docx(&["The tide", "turns."]), "a.docx"),
        expect(Format::Docx, "The tide\nturns.")
    );
    assert_eq!(text(&docx(&["The tide"]), "renamed.txt"), expect(Format::Docx, "The tide"));
    let read = extract(&pdf(&["The tide", "", "turns."]), "a.pdf", &Limits::default()).unwrap();
    assert_eq!((read.text.as_str(), read.pages), ("The tide\n\nturns.", Some(3)));
}

#[test]
fn bad_documents_say_why() {
    let whole = pdf(&["The tide turns."]);
    let bomb = docx(&[&"x".repeat(100 << 20)]);
    let zeros = vec![b' '; 100 << 20];
    let sheets = archive(&[("xl/workbook.xml", &zeros)]);
    assert!(bomb.len() < 1 << 20 && sheets.len() < 1 << 20, "they are bombs");
    let encrypted = pdf_of(
        &[
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Count 0 /Kids [] >>".to_owned(),
            "<< /Filter /Standard /V 1 /R 2 /O (01234567890123456789012345678901) /U (01234567890123456789012345678901) /P -4 >>"
                .to_owned(),
        ],
        "/Encrypt 3 0 R /ID [<00><00>]",
    );
    let wide = "Workbook, EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes);
    let speaks_of_books: Vec<u8> = compound(&["WordDocument"]).into_iter().chain(wide).collect();
    let cases: [(&str, Vec<u8>, &str); 22] = [
        ("a.txt", Vec::new(), "empty"),
        ("a.txt", b" \n\t\r\n".to_vec(), "empty"),
        ("a.html", b"<html><script>x()</script>".to_vec(), "empty"),
        ("a.txt", b"abc\0\x01\x02".to_vec(), "binary data"),
        ("a.pdf", whole[..whole.len() / 5].to_vec(), "PDF is damaged"),
        ("a.docx", docx(&["cut off"])[..200].to_vec(), "DOCX is damaged: it is cut off"),
        ("a.pdf", b"%PDF-1.7\n%%EOF".to_vec(), "PDF is damaged"),
        ("a.pdf", pdf(&["", ""]), "none of the PDF's 2 pages holds text"),
        ("a.pdf", pdf(&[]), "no pages"),
        ("a.pdf", encrypted, "PDF is encrypted"),
        ("a.docx", bomb, "at most 67108864 are read"),
        ("a.xlsx", sheets, "unpacked XLSX has"),
        ("a.docx", archive(&[("mimetype", b"x")]), "DOCX is damaged: its main part is missing"),
        ("a.docx", archive(&[("word/document.xml", b"<w:p><w:t>open")]), "breaks off"),
        ("a.docx", archive(&[("word/document.xml", b"<w:p></w:p>")]), "empty"),
        ("a.docx", archive(&[("word/document.xml", b"<w:p></w:t>")]), "DOCX is damaged"),
        ("a.docx", compound(&["EncryptionInfo", "EncryptedPackage"]), "DOCX is encrypted"),
        ("a.doc", speaks_of_books.clone(), "document of Word (DOC)"),
        ("a.xls", speaks_of_books, "document of Word (DOC)"),
        ("a.xls", compound(&["else", "Workbook"]), "XLS is damaged"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1".to_vec(), "an old Office document"),
        ("a.jpg", b"\xff\xd8\xff\xe0".to_vec(), "JPEG image is damaged"),
    ];
    for (name, bytes, expected) in cases {
        let error = text(&bytes, name).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn limits_are_kept() {
    let limits = Limits { bytes: 1_000_000, pages: 2, text_bytes: 100, ..Limits::default() };
    let error = |bytes: &[u8]| extract(bytes, "a", &limits).unwrap_err();
    assert_eq!(
        error(&vec![b'x'; 1_000_001]),
        Unreadable::TooLarge { what: "file".into(), size: 1_000_001, most: 1_000_000 }
    );
    assert_eq!(
        error(&[b'x'; 101]),
        Unreadable::TooLarge { what: "text".into(), size: 101, most: 100 }
    );
    assert_eq!(error(&pdf(&["a", "b", "c"])), Unreadable::TooManyPages { pages: 3, most: 2 });
}

/// Makes a reader with this crate's program for child processes.
fn reader(limits: Limits) -> Reader {
    Reader::isolated(env!("CARGO_BIN_EXE_read-document"), [], limits)
}

#[tokio::test]
async fn an_isolated_reader_says_the_same() {
    let reader = reader(Limits::default());
    for (bytes, name) in [
        (pdf(&["The tide"]), "a.pdf"),
        (docx(&["The tide"]), "a.docx"),
        (b"<p>The tide".to_vec(), "a.html"),
        (pdf(&[""]), "b"),
    ] {
        let read = reader.read(Bytes::from(bytes.clone()), name).await.unwrap();
        assert_eq!(read, extract(&bytes, name, &Limits::default()));
    }
    assert!(
        Reader::isolated("/no/such/program", [], Limits::default())
            .read(Bytes::from(pdf(&["x"])), "a")
            .await
            .is_err()
    );
}

/// A page tree that contains itself, a page whose content is itself (its parser overflows the
/// stack), and a cross-reference table that points back.
#[tokio::test]
async fn what_never_ends_ends() {
    let catalogue = "<< /Type /Catalog /Pages 2 0 R >>".to_owned();
    let itself = pdf_of(
        &[catalogue.clone(), "<< /Type /Pages /Count 1 /Kids [2 0 R] /Parent 2 0 R >>".to_owned()],
        "",
    );
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >> /Length 5 >>\nstream\n/X Do\nendstream";
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >> /Contents 5 0 R >>";
    let recursive = pdf_of(
        &[
            catalogue,
            "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
            page.to_owned(),
            form.to_owned(),
            "<< /Length 5 >>\nstream\n/X Do\nendstream".to_owned(),
        ],
        "",
    );
    let previous =
        String::from_utf8(pdf(&["x"])).unwrap().replace("/Root 1 0 R", "/Root 1 0 R /Prev 9");
    let none = Err("the PDF is damaged: it has no pages".to_owned());
    let blank = Err(Unreadable::NoTextLayer { pages: 1 }.to_string());
    for (bytes, expected) in
        [(itself, none), (recursive, blank), (previous.into_bytes(), Ok("x".to_owned()))]
    {
        // Long before the time limit: no process has to be killed.
        let read = reader(Limits::default()).read(Bytes::from(bytes), "a.pdf").await.unwrap();
        assert_eq!(read.map(|read| read.text).map_err(|error| error.to_string()), expected);
    }
}

/// A parser that never ends loses its document: the process is killed.
#[tokio::test]
async fn a_parser_that_never_ends_is_killed() {
    let file = tempfile_path();
    let script = format!("echo $$ > {}; exec sleep 600", file.display());
    let shell = |script: &str, time: Duration| {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Reader::isolated("/bin/sh", arguments, Limits { time, ..Limits::default() })
    };
    // Long enough for a shell to start on a busy machine.
    let limit = Duration::from_secs(3);
    let read = shell(&script, limit).read(Bytes::from(pdf(&["x"])), "a.pdf").await.unwrap();
    assert_eq!(read.unwrap_err(), Unreadable::TooSlow(limit));
    let process = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    std::fs::remove_file(&file).unwrap();
    // Killed, and at most a zombie.
    let gone = || {
        std::process::Command::new("ps").args(["-o", "stat=", "-p", &process]).output().map_or(
            true,
            |output| {
                let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                state.is_empty() || state.starts_with('Z')
            },
        )
    };
    for _ in 0..200 {
        if gone() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(gone(), "process {process} lives");

    let crash = shell("kill -SEGV $$", Duration::from_secs(60));
    let read = crash.read(Bytes::from(pdf(&["x"])), "a.pdf").await.unwrap();
    assert_eq!(read.unwrap_err().to_string(), "the PDF is damaged: its parser crashed");
    let full = shell(
        "echo memory allocation of 9 bytes failed >&2; kill -ABRT $$",
        Duration::from_secs(60),
    );
    let read = full.read(Bytes::from(pdf(&["x"])), "a.pdf").await.unwrap();
    assert_eq!(
        read.unwrap_err().to_string(),
        "the PDF needs more than 1024 MiB of memory to read; split it"
    );
    let zeros = extract(&[0; 99], "zeros.txt", &Limits::default()).unwrap_err();
    assert_eq!(zeros, Unreadable::Zeros);
}

fn tempfile_path() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tidegate-documents-{}", std::process::id()))
}

/// In a process that cannot be killed, the parser checks the time.
#[test]
fn time_runs_out() {
    let limits = Limits { time: Duration::ZERO, ..Limits::default() };
    assert_eq!(
        extract(&pdf(&["x"]), "a.pdf", &limits).unwrap_err(),
        Unreadable::TooSlow(Duration::ZERO)
    );
}

/// Requires that a document is read or refused; a crash or a timeout fails.
fn read_now(bytes: Vec<u8>, name: &str) {
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(reader(limits).read(Bytes::from(bytes), name)).unwrap() {
        Ok(read) => assert!(!read.text.trim().is_empty()),
        Err(Unreadable::TooSlow(time)) => panic!("{name} takes more than {time:?}"),
        Err(error) => assert!(!error.to_string().contains("crashed"), "{name}: {error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(15), ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600), name in "a\\.(txt|md|html|csv|jsonl|pdf|docx|xlsx|eml)") {
        for start in [&b""[..], b"%PDF-1.4\n", b"PK\x03\x04", b"<html>"] {
            read_now([start, &bytes].concat(), &name);
        }
    }

    #[test]
    fn no_damage_does_harm(at in 0_usize..2_000, byte: u8, cut in 0_usize..2_000) {
        for whole in [pdf(&["The tide", "turns."]), docx(&["The tide", "turns."])] {
            let mut bytes = whole.clone();
            let length = bytes.len();
            bytes[at % length] = byte;
            read_now(bytes.clone(), "a");
            bytes.truncate(cut % length);
            read_now(bytes, "a");
        }
    }
}
