//! Tar archives.

use std::{
    borrow::Cow,
    io::{Cursor, Read},
};

use tar::EntryType;

use super::{
    entry::{Budget, Entry, Visit, not_a_file},
    place::{Packing, Place},
};
use crate::{code_page::CodePage, encoding, format::Format, unreadable::Unreadable};

/// Longest name or attribute of a tar archive, in bytes: the tar reader holds each in memory as a
/// whole.
const MAX_NAME_BYTES: u64 = 64 << 10;

/// Returns whether the first bytes of a file are those of a tar archive.
pub(crate) fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar") || has_checksum(start)
}

/// Returns whether a header has its checksum, the only mark of archives older than POSIX.
fn has_checksum(start: &[u8]) -> bool {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let Some(header) = start.get(..512) else { return false };
    let Ok(digits) = std::str::from_utf8(&header[CHECKSUM]) else { return false };
    let digits = digits.trim_matches([' ', '\0']);
    let byte =
        |(at, byte): (usize, &u8)| u32::from(if CHECKSUM.contains(&at) { b' ' } else { *byte });
    header[0] != 0
        && u32::from_str_radix(digits, 8)
            .is_ok_and(|sum| sum == header.iter().enumerate().map(byte).sum::<u32>())
}

/// Decodes a path: as UTF-8, else in the likeliest older encoding.
fn decode_path(path: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(path) => Cow::Borrowed(path),
        Err(_) => CodePage::new(encoding::detect_encoding(path), path).decode(path),
    }
}

/// Calls `visit` for each file.
pub(super) fn visit_entries(
    reader: &mut dyn Read,
    format: Format,
    budget: &Budget,
    visit: &mut Visit<'_>,
) -> Result<(), Unreadable> {
    let mut archive = tar::Archive::new(reader);
    let entries = archive.entries().map_err(|error| budget.fault(format, &error))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| budget.fault(format, &error))?;
        let path = decode_path(&entry.path_bytes()).into_owned();
        let path = path.strip_prefix("./").unwrap_or(&path);
        let flow = match entry.header().entry_type() {
            EntryType::Directory => continue,
            kind @ (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse) => {
                let size = Some(entry.size());
                // A sparse file is in several pieces; a compressed archive is not in memory.
                let is_in_memory = format == Format::Tar && kind != EntryType::GNUSparse;
                let place = is_in_memory.then(|| place_of(&entry)).flatten();
                let budget = budget.clone();
                let entry = Entry { format, size, place, reader: &mut entry, budget };
                visit(path, Ok(entry))?
            }
            _ => visit(path, Err(not_a_file(path)))?,
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns where the bytes of a file lie.
fn place_of<R: Read>(entry: &tar::Entry<'_, R>) -> Option<Place> {
    let start = usize::try_from(entry.raw_file_position()).ok()?;
    let end = start.checked_add(usize::try_from(entry.size()).ok()?)?;
    Some(Place { range: start..end, packing: Packing::Plain })
}

/// Returns whether all names and attributes are short. An attribute may state another size for the
/// next entry; then the tar reader sees other headers than this function, so that counts as not
/// short.
pub(super) fn has_short_names(tar: &[u8]) -> bool {
    let mut archive = tar::Archive::new(Cursor::new(tar));
    let Ok(entries) = archive.entries_with_seek() else { return false };
    entries.raw(true).all(|entry| {
        let Ok(mut entry) = entry else { return false };
        let kind = entry.header().entry_type();
        if kind.is_pax_local_extensions() || kind.is_pax_global_extensions() {
            return has_no_size(&mut entry, MAX_NAME_BYTES);
        }
        !(kind.is_gnu_longname() || kind.is_gnu_longlink()) || entry.size() <= MAX_NAME_BYTES
    })
}

/// Returns whether attributes have at most `most` bytes and state no size.
fn has_no_size(attributes: &mut dyn Read, most: u64) -> bool {
    let mut bytes = Vec::new();
    let read = attributes.take(most + 1).read_to_end(&mut bytes);
    read.is_ok_and(|read| read as u64 <= most) && memchr::memmem::find(&bytes, b"size=").is_none()
}
