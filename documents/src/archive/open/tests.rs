#![allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]

use std::io::{Cursor, Write as _};

use flate2::{Compression, write::GzEncoder};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::*;

const FILES: [(&str, &str); 4] =
    [("a.txt", "Ebb"), ("x/100%.txt", "Slack"), ("in.zip", ""), ("c.txt", "Flow, flow, flow")];

fn zip(files: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open(bytes: &[u8], name: &str) -> Archive {
    Archive::open(bytes.to_vec().into(), name, &Limits::default()).unwrap()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let inner = zip(&[("b.txt", b"Surge".to_vec())], CompressionMethod::Deflated);
    let bytes = |text: &str| if text.is_empty() { inner.clone() } else { text.into() };
    FILES.into_iter().map(|(name, text)| (name, bytes(text))).collect()
}

fn mailbox() -> Vec<u8> {
    let message = |text: &str| {
        format!("From a@b.c Sun Nov 22 10:00:00 2026\nSubject: {text}\n\n>From {text}\n\n")
    };
    ["Ebb", "Slack", "Flow"].map(message).concat().into()
}

fn archives() -> Vec<(Vec<u8>, &'static str)> {
    vec![
        (zip(&files(), CompressionMethod::Stored), "all.zip"),
        (zip(&files(), CompressionMethod::Deflated), "all.zip"),
        (tar(&files()), "all.tar"),
        (gzip(&tar(&files())), "all.tgz"),
        (mailbox(), "all.mbox"),
    ]
}

fn in_place(archive: &Archive, member: &str) -> Option<Result<(Vec<u8>, String), Unreadable>> {
    let limits = Limits::default();
    archive.read_in_place(member, &limits, &Budget::new(&archive.bytes, &limits))
}

/// Everything but the member's own bytes is destroyed before it is read.
#[test]
fn a_member_is_read_from_its_own_place_alone() {
    let limits = Limits::default();
    for (bytes, name) in archives() {
        let members = super::super::list_members(&bytes, name, &limits).unwrap().unwrap();
        assert!(members.len() >= 3, "{name}: {members:?}");
        let archive = open(&bytes, name);
        for member in members {
            let expected = super::super::read_member(&bytes, name, &member.name, &limits);
            let place = archive.index.place(&MemberPath::new(&member.name)).unwrap();
            let mut rest = vec![0; archive.members.len()];
            rest[place.range.clone()].copy_from_slice(&archive.members[place.range.clone()]);
            let alone = Archive { members: rest.into(), ..open(&bytes, name) };
            assert_eq!(in_place(&alone, &member.name), Some(expected), "{}", member.name);
        }
        assert!(in_place(&archive, "gone.txt").is_none() && in_place(&archive, "2%2Fa").is_none());
    }
}

#[test]
fn a_member_that_is_not_as_stated_is_left_to_the_search() {
    let limits = Limits::default();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = zip(&files(), method);
        let archive = open(&bytes, "all.zip");
        let place = archive.index.place(&MemberPath::new("c.txt")).unwrap();
        let mut damaged = bytes;
        damaged[place.range.start + 1] ^= 1;
        let damaged = bytes::Bytes::from(damaged);
        let archive = Archive { bytes: damaged.clone(), members: damaged, ..archive };
        assert!(in_place(&archive, "c.txt").is_none(), "{method}");
        let read = super::super::in_process::try_read_member(&archive, "c.txt", &limits).unwrap();
        assert!(matches!(read, Err(Unreadable::Damaged { .. })), "{read:?}");
    }
}

#[test]
fn members_of_one_path_have_their_places() {
    let files = ["Ebb", "Flow", "Surge"].map(|text| ("a.txt", text.as_bytes().to_vec()));
    for archive in [open(&tar(&files), "all.tar"), open(&gzip(&tar(&files)), "all.tgz")] {
        for (member, text) in [("a.txt", "Surge"), ("2%2Fa.txt", "Ebb"), ("3%2Fa.txt", "Flow")] {
            let read = in_place(&archive, member).unwrap().unwrap();
            assert_eq!(read, (text.into(), "a.txt".to_owned()), "{member}");
        }
        for none in ["0%2Fa.txt", "1%2Fb.txt", "4%2Fa.txt"] {
            assert!(in_place(&archive, none).is_none(), "{none}");
        }
    }
}

#[test]
fn the_bounds_of_a_member_are_those_of_a_search() {
    for (bytes, name) in archives() {
        let limits = Limits { bytes: 4, ..Limits::default() };
        let archive = Archive::open(bytes.clone().into(), name, &limits).unwrap();
        for (path, places) in &archive.index.places {
            assert!(places.iter().all(Option::is_some), "{name}: {path}");
            let member = super::super::encode_path(path);
            let read =
                super::super::in_process::try_read_member(&archive, &member, &limits).unwrap();
            assert_eq!(read, super::super::read_member(&bytes, name, &member, &limits), "{path}");
        }
    }
}

#[test]
fn what_cannot_be_packed_anew_is_taken_as_it_is() {
    let cut = gzip(&tar(&files()));
    let cut = &cut[..cut.len() / 2];
    for (bytes, name) in [(cut, "all.tgz"), (&gzip(b"Ebb"), "a.txt.gz")] {
        let archive = open(bytes, name);
        assert!(archive.index.places.is_empty() && archive.members == bytes, "{name}");
    }
    // Digits do not pack to less than two fifths.
    let digits: String =
        (0..2_000_u32).map(|number| (number * 7_919 % 9_973).to_string()).collect();
    let limits = Limits { archive_bytes: 1_500, ..Limits::default() };
    let members = [("a.txt", digits[..1_400].into()), ("b.txt", digits[3_000..4_400].into())];
    let one = Archive::open(gzip(&tar(&members[..1])).into(), "all.tgz", &limits).unwrap();
    assert!(one.index.place(&MemberPath::new("a.txt")).is_some());
    let three = [&members[..], &[("c.txt", digits[5_000..6_400].into())]].concat();
    let three = Archive::open(gzip(&tar(&three)).into(), "all.tgz", &limits).unwrap();
    assert!(three.index.places.is_empty(), "its members take more than an archive may");
}

/// Such an archive takes a process of its own.
#[test]
fn an_archive_that_unpacks_to_much_is_not_opened_here() {
    let packed = gzip(&tar(&[("zeros.txt", vec![0; 33 << 20])]));
    assert!(Archive::open(packed.into(), "all.tgz", &Limits::default()).is_none());
}
