//! Archives of documents, including hostile ones.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use common::{Dice, archive, docx, eml, pdf};
use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tidegate_documents::{
    Format, Limits, Reader, Unreadable,
    archive::{self as archives, open::Archive},
    extract,
};

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "link.txt", "/etc/passwd").unwrap();
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::default());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Makes an uncompressed archive.
fn stored(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let plain =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in files {
        writer.start_file(*name, plain).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const LONG: &str = "a-name-of-more-than-a-hundred-characters/as-they-come-from-other-systems/which-tar-keeps-in-an-entry-of-its-own/ebb.txt";

fn listed(bytes: &[u8], name: &str) -> Vec<(String, Option<String>)> {
    let members = archives::list_members(bytes, name, &Limits::default()).unwrap().unwrap();
    let shown = |member: &archives::Member| {
        (member.name.clone(), member.fault.as_ref().map(ToString::to_string))
    };
    members.iter().map(shown).collect()
}

fn member(bytes: &[u8], name: &str, member: &str) -> Result<(Vec<u8>, String), Unreadable> {
    archives::read_member(bytes, name, member, &Limits::default())
}

/// The `zip` crate refuses to write a repeated name, so the name is changed afterwards.
#[test]
fn members_of_one_name_are_all_documents() {
    let renamed = |mut bytes: Vec<u8>| {
        for at in 0..bytes.len() - 5 {
            if matches!(&bytes[at..at + 5], b"B.txt" | b"C.txt") {
                bytes[at] = b'a';
            }
        }
        bytes
    };
    let files: Vec<(&str, &[u8])> =
        vec![("a.txt", b"Ebb"), ("x/a.txt", b"Slack"), ("B.txt", b"Flow"), ("C.txt", b"Surge")];
    let outer = renamed(stored(&files));
    let within = archive(&[("in#.zip", &outer)]);
    let names = ["a.txt", "x/a.txt", "2%2Fa.txt", "3%2Fa.txt"];
    let mut tarred = tar(&[("a.txt", b"Ebb"), ("x/a.txt", b"Slack"), ("a.txt", b"Flow")]);
    tarred.truncate(tarred.len() - 1_024);
    tarred.extend(tar(&[("a.txt", b"Surge")]));
    let is_link = |name: &str| name.ends_with("link.txt");
    for (bytes, name, prefix) in
        [(&outer, "all.zip", ""), (&within, "all.zip", "in%23.zip#"), (&tarred, "all.tar", "")]
    {
        let mut found = listed(bytes, name);
        found.retain(|(name, _)| !is_link(name));
        let expected = names.map(|name| (format!("{prefix}{name}"), None));
        assert_eq!(found, expected, "{name}");
        for (at, text) in names.iter().zip(["Surge", "Slack", "Ebb", "Flow"]) {
            let at = format!("{prefix}{at}");
            let (read, named) = member(bytes, name, &at).unwrap();
            assert_eq!((read, named.as_str()), (text.into(), "a.txt"), "{at}");
        }
        let member = archives::Member { name: format!("{prefix}2%2Fa.txt"), fault: None };
        assert!(member.path().ends_with("a.txt") && !member.path().contains("2"));
    }
    let gone = member(&outer, "all.zip", "4%2Fa.txt").unwrap_err().to_string();
    assert_eq!(gone, "there is no a.txt in all.zip any more");
}

/// Streaming writers state a wrong size of the directory; its offset is enough to read it.
#[test]
fn a_directory_whose_size_is_wrong_is_read() {
    let mut bytes = stored(&[("a.txt", b"Ebb"), ("b.txt", b"Flow")]);
    let end = bytes.windows(4).rposition(|mark| mark == b"PK\x05\x06").unwrap();
    for size in [0_u32, 1, 90] {
        bytes[end + 12..end + 16].copy_from_slice(&size.to_le_bytes());
        assert_eq!(listed(&bytes, "a.zip").len(), 2, "{size}");
        assert_eq!(member(&bytes, "a.zip", "b.txt").unwrap().0, b"Flow", "{size}");
    }
}

#[test]
fn each_message_of_a_mailbox_is_a_document() {
    let message = |subject: &str| {
        format!(
            "From a@b.c Sun Nov 22 10:00:00 2026\nFrom: a@b.c\nSubject: {subject}\n\n{subject} text\n\n"
        )
    };
    let mailbox = format!("{}{}", message("Ebb"), message("Flow")).into_bytes();
    let names = ["00001.eml", "00002.eml"].map(|name| (name.to_owned(), None));
    assert_eq!(listed(&mailbox, "in.mbox"), names);
    let packed = archive(&[("in.mbox", &mailbox)]);
    assert_eq!(listed(&packed, "a.zip"), names.map(|(name, _)| (format!("in.mbox#{name}"), None)));
    let (second, name) = member(&mailbox, "in.mbox", "00002.eml").unwrap();
    let limits = Limits::default();
    let read = extract(&second, &name, &limits).unwrap();
    assert_eq!(read.text, "From: a@b.c\nSubject: Flow\n\nFlow text");
    // Without the extension of a mailbox, its messages are one document.
    let whole = extract(&mailbox, "Inbox", &limits).unwrap();
    assert_eq!(whole.format, Format::Mbox);
    assert!(
        whole.text.starts_with("## 00001.eml\n\nFrom: a@b.c\nSubject: Ebb\n\nEbb text\n\n## 00002")
    );
    assert_eq!(extract(&mailbox, "a.txt", &limits).unwrap().format, Format::Text);
    assert_eq!(archives::list_members(b"no messages", "a.mbox", &limits), Ok(None));
}

#[test]
fn each_member_is_a_document() {
    let inner = archive(&[("b#1%.txt", b"Flow"), (".hidden", b"x"), ("__MACOSX/b.txt", b"x")]);
    let files: Vec<(&str, &[u8])> =
        vec![("sub/a.txt", b"Ebb"), ("inner.zip", &inner), (LONG, b"Slack")];
    let names = ["sub/a.txt", "inner.zip#b%231%25.txt", LONG];
    let link =
        ("link.txt".to_owned(), Some("link.txt is a link or a device, and no file".to_owned()));
    let all: Vec<_> = names.iter().map(|name| ((*name).to_owned(), None)).collect();
    let with_link: Vec<_> = all.iter().cloned().chain([link]).collect();
    let tarred = tar(&files);
    for (bytes, name, expected) in [
        (archive(&files), "all.zip", &all),
        (tarred.clone(), "all.tar", &with_link),
        (gzip(&tarred), "all.tgz", &with_link),
        (zstd(&tarred), "all.tar.zst", &with_link),
    ] {
        assert_eq!(&listed(&bytes, name), expected, "{name}");
        for (place, text, file) in
            [(names[0], "Ebb", "a.txt"), (names[1], "Flow", "b#1%.txt"), (LONG, "Slack", "ebb.txt")]
        {
            let expected = (text.as_bytes().to_vec(), file.to_owned());
            assert_eq!(member(&bytes, name, place), Ok(expected), "{name}");
        }
        let error = member(&bytes, name, "c.txt").unwrap_err().to_string();
        assert_eq!(error, format!("there is no c.txt in {name} any more"));
    }
    // A compressed file is named after the archive; the second case has two frames and a skippable
    // one.
    let frames = [zstd(b"Eb"), b"\x50\x2a\x4d\x18\x02\0\0\0xx".to_vec(), zstd(b"b")].concat();
    for (bytes, name) in [(gzip(b"Ebb"), "a.txt.gz"), (frames, "a.txt.zst")] {
        assert_eq!(listed(&bytes, name), [("a.txt".to_owned(), None)]);
        assert_eq!(member(&bytes, name, "a.txt"), Ok((b"Ebb".to_vec(), "a.txt".to_owned())));
    }
    let path = archives::Member { name: "inner.zip#b%231%25.txt".to_owned(), fault: None }.path();
    assert_eq!(path, "inner.zip/b#1%.txt");
    // A document whose format is an archive, such as DOCX, is not listed, whatever its name.
    let whole = archives::list_members(&docx(&["x"]), "a.zip", &Limits::default());
    assert_eq!(whole, Ok(None));
}

/// The first document has a mark that may come late in a file.
#[test]
fn an_archive_of_pdfs_is_told_by_its_own_marks() {
    let tar = tar(&[("a.pdf", &pdf(&["Ebb"]))]);
    for (bytes, format) in [
        (tar.clone(), Format::Tar),
        (zstd(&tar), Format::Zstd),
        (stored(&[("a.pdf", &pdf(&["Ebb"]))]), Format::Zip),
    ] {
        assert_eq!(Format::detect(&bytes, "all"), Ok(format));
    }
}

#[test]
fn an_archive_in_a_message_is_read_in_its_place() {
    let files: Vec<(&str, &[u8])> = vec![("a.txt", b"Ebb"), ("p.bin", b"\0\x01\x02\xff\xfe")];
    let read = extract(&archive(&files), "all.zip", &Limits::default()).unwrap();
    assert_eq!(read.format, Format::Zip);
    assert!(
        read.text.starts_with("## a.txt\n\nEbb\n\n[p.bin: this is binary data"),
        "{}",
        read.text
    );
    let tarred = extract(&gzip(&tar(&files)), "x", &Limits::default()).unwrap();
    assert!(tarred.text.starts_with("## a.txt\n\nEbb"), "{}", tarred.text);
}

#[test]
fn bombs_go_off_in_none_of_their_sizes() {
    let limits = Limits { bytes: 1 << 20, members: 5, ..Limits::default() };
    let many: Vec<(String, &[u8])> = (0..6).map(|n| (format!("{n}.txt"), &b"x"[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(n, b)| (n.as_str(), *b)).collect();
    let nested = archive(&[("in.zip", &archive(&many))]);
    for bytes in [archive(&many), tar(&many), nested] {
        let error = archives::list_members(&bytes, "a.zip", &limits).unwrap_err();
        assert_eq!(error, Unreadable::TooManyMembers { most: 5 });
    }
    let zeros = vec![0; 40 << 20];
    let large = [("zeros", &zeros[..])];
    for (bytes, name) in
        [(archive(&large), "a.zip"), (gzip(&tar(&large)), "a.tgz"), (gzip(&zeros), "zeros.gz")]
    {
        let error = archives::read_member(&bytes, name, "zeros", &limits).unwrap_err();
        assert!(matches!(error, Unreadable::TooLarge { .. }), "{error}");
    }
    // Listing must unpack this one: 40 MB, above the bound of 5 members of 1 MiB.
    let error = archives::list_members(&gzip(&tar(&large)), "a.tgz", &limits).unwrap_err();
    assert!(matches!(error, Unreadable::TooLarge { .. }), "{error}");
    let mut deep = archive(&[("a.txt", b"x")]);
    for _ in 0..5 {
        deep = archive(&[("in.zip", &deep)]);
    }
    let members = listed(&deep, "a.zip");
    assert!(members[0].1.as_ref().unwrap().contains("too deep"), "{members:?}");
    assert!(extract(&deep, "a.zip", &Limits::default()).unwrap().text.contains("too deep"));
}

#[test]
fn what_is_damaged_is_named_and_costs_itself() {
    let good = archive(&[("a.txt", b"Ebb")]);
    let cut = &good[..good.len() / 2];
    let outer = archive(&[("cut.zip", cut), ("b.txt", b"Flow")]);
    let members = listed(&outer, "all.zip");
    assert_eq!(members[1], ("b.txt".to_owned(), None));
    assert!(members[0].1.as_ref().unwrap().contains("ZIP archive is damaged"), "{members:?}");
    let short = gzip(&tar(&[("a.txt", b"Ebb")]));
    let error = archives::list_members(&short[..short.len() - 30], "a.tgz", &Limits::default());
    assert!(error.unwrap_err().to_string().contains("gzip file is damaged"));
}

#[test]
fn damaged_archives() {
    let files: Vec<(&str, Vec<u8>)> =
        vec![("a.txt", b"Ebb".to_vec()), ("b.pdf", pdf(&["x"])), ("c.eml", eml())];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    let (zip, tar) = (archive(&files), tar(&files));
    let message = [b"From - Sun Nov 22 10:00:00 2026\r\n", &eml()[..], b"\r\n\r\n"].concat();
    let mailbox = [&message[..], &message].concat();
    let mut dice = Dice(15);
    for (name, whole) in [
        ("a.zip", zip),
        ("a.tgz", gzip(&tar)),
        ("a.tar.zst", zstd(&tar)),
        ("a.tar", tar),
        ("a.mbox", mailbox),
    ] {
        let mut listed = 0;
        for number in 0..500 {
            let mut bytes = whole.clone();
            dice.damage(&mut bytes);
            let limits = Limits::default();
            let read = catch_unwind(AssertUnwindSafe(|| {
                let members = archives::list_members(&bytes, name, &limits).ok().flatten();
                for member in members.iter().flatten() {
                    let _ = archives::read_member(&bytes, name, &member.name, &limits);
                }
                let _ = extract(&bytes, name, &limits);
                members
            }));
            let members = read.unwrap_or_else(|_| panic!("{name}, damaged file {number}"));
            listed += usize::from(members.is_some_and(|members| !members.is_empty()));
        }
        assert!((1..500).contains(&listed), "{name}: {listed}");
    }
}

#[test]
fn a_members_name_is_bounded_and_escaped_where_it_is_told() {
    let long = "n".repeat(5_000);
    let refused = archives::list_members(
        &tar(&[("a.txt", b"a"), (&long, b"b")]),
        "x.tar",
        &Limits::default(),
    );
    let Err(Unreadable::TooLarge { what, size, most }) = refused else { panic!("{refused:?}") };
    assert_eq!((what.as_ref(), size, most), ("name of a member", 5_000, 4_096));
    let mut builder = tar::Builder::new(Vec::new());
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "a\u{1b}[2Jb", "/etc/passwd").unwrap();
    let listed = listed(&builder.into_inner().unwrap(), "x.tar");
    let fault = listed[0].1.as_ref().unwrap();
    assert!(fault.contains("a\\u{1b}[2Jb") && !fault.contains('\u{1b}'), "{fault}");
}

/// Two directory entries refer to the same bytes.
#[test]
fn members_that_lie_over_each_other_are_refused() {
    let mut bytes = stored(&[("one.txt", b"some text here"), ("two.txt", b"some text here")]);
    let directory: Vec<usize> =
        (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"PK\x01\x02")).collect();
    // The offset of a member is at byte 42 of its entry.
    let first: Vec<u8> = bytes[directory[0] + 42..directory[0] + 46].to_vec();
    bytes[directory[1] + 42..directory[1] + 46].copy_from_slice(&first);
    let refused = archives::list_members(&bytes, "x.zip", &Limits::default()).unwrap_err();
    assert!(refused.to_string().contains("over each other"), "{refused}");
}

fn reader(limits: Limits) -> Reader {
    Reader::isolated(env!("CARGO_BIN_EXE_read-document"), [], limits)
}

/// Archives in an archive, each of which unpacks to as much as is allowed for one.
#[tokio::test]
async fn archives_within_an_archive_have_one_budget_together() {
    let inner = gzip(&tar(&[("zeros.txt", &vec![0; 12 << 20])]));
    let names: Vec<String> = (0..40).map(|number| format!("{number}.tgz")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &inner[..])).collect();
    let outer = tar(&files);
    // No single one is a bomb. All together unpack to 480 MB; 32 MiB are read.
    let limits = Limits { archive_bytes: 2 << 20, ..Limits::default() };
    for member in [&gzip(&outer)[..], &outer[..]] {
        let name = if member.len() == outer.len() { "all.tar" } else { "all.tar.gz" };
        let refused = archives::list_members(member, name, &limits).unwrap_err().to_string();
        assert!(refused.contains("unpacked"), "{name}: {refused}");
        let reader = reader(limits);
        let archive = reader.open_archive(member.to_vec().into(), name, &limits).await.into();
        let apart = reader.list_members(&archive, &limits).await;
        assert_eq!(apart.unwrap().unwrap_err().to_string(), refused);
    }
}

/// Each document is within the limits or fails alone, but all together unpack to gigabytes.
#[test]
fn documents_of_archives_within_an_archive_have_one_budget_together() {
    let limits = Limits::default();
    let listed_within = |inner: &[u8], extension: &str| {
        let names: Vec<String> = (0..400).map(|number| format!("{number}.{extension}")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), inner)).collect();
        archives::list_members(&archive(&files), "all.zip", &limits)
    };
    let (fits, large) = (vec![b'a'; 8 << 20], vec![b'a'; 17 << 20]);
    for (inner, extension) in [(archive(&[("a.txt", &fits)]), "zip"), (gzip(&fits), "gz")] {
        let refused = listed_within(&inner, extension).unwrap_err().to_string();
        assert!(refused.contains("the unpacked "), "{extension}: {refused}");
    }
    // Each of these is known to be too large, so that none is read.
    let members = listed_within(&archive(&[("a.txt", &large)]), "zip").unwrap().unwrap();
    assert_eq!(members.len(), 400);
    for member in members {
        let fault = member.fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(fault.contains("the file has 17825792 bytes"), "{}: {fault}", member.name);
    }
    // A file of records may be as large as an archive.
    assert_eq!(listed(&stored(&[("a.csv", &large)]), "all.zip"), [("a.csv".to_owned(), None)]);
}

/// The directory states fewer bytes than a file has.
#[test]
fn no_more_than_the_stated_size_is_unpacked() {
    let mut bytes = archive(&[("a.txt", &vec![b'a'; 1 << 20])]);
    let directory = bytes.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
    bytes[directory + 24..directory + 28].copy_from_slice(&9_u32.to_le_bytes());
    let fault = member(&bytes, "all.zip", "a.txt").unwrap_err().to_string();
    assert!(fault.contains("larger than its declared"), "{fault}");
}

/// A name of a gigabyte, of which the file contains a megabyte: the tar reader holds a name in
/// memory as a whole.
#[tokio::test]
async fn a_name_that_takes_all_memory_takes_a_process_of_its_own() {
    let mut header = tar::Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(1_400 << 20);
    header.set_cksum();
    let mut packed = gzip(header.as_bytes());
    packed.extend(gzip(&vec![b'a'; 1 << 20]).repeat(1_400));
    let bytes = bytes::Bytes::from(packed);
    assert!(bytes.len() < 8 << 20, "{}", bytes.len());
    let reader = reader(Limits::default());
    let limits = reader.limits();
    let archive = reader.open_archive(bytes, "name.tgz", limits).await.into();
    let listed = reader.list_members(&archive, limits).await.unwrap();
    assert!(listed.is_err(), "{listed:?}");
    let read = reader.read_member(&archive, "a.txt", limits).await.unwrap();
    assert!(read.is_err());
}

/// A child process reads a large archive with the same result as this process.
#[tokio::test]
async fn a_large_archive_is_read_by_a_process_as_a_small_one_is_here() {
    // Without the noise the archive is refused as a bomb, by its ratio.
    let mut noise = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    })
    .take(200 << 10)
    .collect();
    let large = [&noise[..], &vec![b'x'; 5 << 20]].concat();
    let texts: Vec<(String, &[u8])> =
        (0..8).map(|number| (format!("{number}.txt"), &large[..])).collect();
    let files: Vec<(&str, &[u8])> = texts.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    let packed: bytes::Bytes = gzip(&tar(&files)).into();
    let here = archives::list_members(&packed, "a.tgz", &Limits::default()).unwrap();
    let none = Reader::isolated("/no/such/program", [], Limits::default());
    let reader = reader(Limits::default());
    let opened = reader.open_archive(packed.clone(), "a.tgz", reader.limits()).await;
    let (opened, packed) = (Arc::new(opened), Arc::new(Archive::unopened(packed, "a.tgz")));
    let failed = none.list_members(&packed, none.limits()).await;
    assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::NotFound, "it takes a process");
    let failed = none.read_member(&packed, "7.txt", none.limits()).await;
    assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::NotFound, "it takes a process");
    // An opened one is not unpacked again for a member.
    let read = none.read_member(&opened, "7.txt", none.limits()).await.unwrap().unwrap();
    assert_eq!(read.0.len(), large.len());
    for archive in [packed, opened] {
        let apart = reader.list_members(&archive, reader.limits()).await;
        assert_eq!(apart.unwrap().unwrap(), here);
        let (bytes, name) =
            reader.read_member(&archive, "7.txt", reader.limits()).await.unwrap().unwrap();
        assert_eq!((&bytes[..], name.as_str()), (&large[..], "7.txt"));
    }
}

/// Folders and hidden files are no documents, but their number is bounded.
#[test]
fn folders_and_hidden_files_are_counted_too() {
    let files: Vec<String> = (0..300).map(|number| format!(".hidden/{number}")).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let limits = Limits { members: 10, ..Limits::default() };
    let refused = archives::list_members(&tar(&files), "a.tar", &limits).unwrap_err();
    assert_eq!(refused, Unreadable::TooManyMembers { most: 200 });
}

#[test]
fn names_and_methods_of_older_programs_are_read() {
    // The `zip` crate writes UTF-8 alone, so the name is changed afterwards.
    let renamed = |placeholder: &str, name: &[u8]| {
        let mut bytes = stored(&[(placeholder, b"Ebb")]);
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(placeholder.as_bytes()) {
                bytes[at..at + name.len()].copy_from_slice(name);
            }
        }
        bytes
    };
    for (name, expected) in [
        (&b"\x8e\x91\x97\xbf.txt"[..], "資料.txt"),
        (b"\x9abung \x81ber\x81s.txt", "Übung überüs.txt"),
        (b"\xa6lu\x9cou\x9fk\xec.txt", "Žluťoučký.txt"),
    ] {
        let zip = renamed(&"n".repeat(name.len()), name);
        assert_eq!(listed(&zip, "a.zip"), [(expected.to_owned(), None)]);
        assert_eq!(member(&zip, "a.zip", expected).unwrap().0, b"Ebb");
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.set_size(3);
        header.set_mode(0o644);
        header.set_cksum();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append(&header, &b"Ebb"[..]).unwrap();
        let tar = tar.into_inner().unwrap();
        assert_eq!(extract(&tar, "a", &Limits::default()).unwrap().format, Format::Tar);
        assert!(!listed(&tar, "a.tar")[0].0.contains('\u{fffd}'));
    }
    let mut packed = stored(&[("a.txt", b"Ebb")]);
    let directory = packed.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
    for method in [8, directory + 10] {
        packed[method] = 12;
    }
    let listed = extract(&packed, "a.zip", &Limits::default()).unwrap().text;
    assert!(listed.contains("packed by a method"), "{listed}");
}
