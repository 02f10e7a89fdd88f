//! Archives that take little may be read in the process that asks; the others are read in a process
//! of their own.

use std::io::Cursor;

use memchr::memmem;

use super::{Budget, Member, members_within, read_within, tarred};
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Bytes that are unpacked here, of all levels together.
const MOST: u64 = 32 << 20;

/// Entries of a ZIP archive that are looked at here: each takes some hundred bytes of memory.
const MOST_ENTRIES: usize = 20_000;

/// A name or an attribute in a tar archive is held in memory as a whole.
const MOST_OF_A_NAME: u64 = 64 << 10;

/// [`super::members`], where that takes little.
pub(crate) fn members(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
) -> Option<Result<Option<Vec<Member>>, Unreadable>> {
    let Ok(format) = Format::of(bytes, name) else {
        return Some(super::members(bytes, name, limits));
    };
    if format == Format::Zip && !has_few_entries(bytes) {
        return None;
    }
    let budget = Budget::of(bytes, limits).at_most(MOST);
    let listed = members_within(bytes, name, limits, &budget);
    (!budget.is_spent()).then_some(listed)
}

/// [`super::read`], where that takes little.
pub(crate) fn read(
    bytes: &[u8],
    archive: &str,
    member: &str,
    limits: &Limits,
) -> Option<Result<(Vec<u8>, String), Unreadable>> {
    let Ok(format) = Format::of(bytes, archive) else {
        return Some(super::read(bytes, archive, member, limits));
    };
    let whole = Budget::of(bytes, limits);
    let budget = match format {
        _ if member.contains('#') => whole.at_most(MOST),
        Format::Zip if !has_few_entries(bytes) => return None,
        // All of it is in memory already.
        Format::Zip | Format::Mbox => whole,
        Format::Tar if has_short_names(bytes) => whole,
        _ => whole.at_most(MOST),
    };
    let read = read_within(bytes, archive, member, limits, &budget);
    (!budget.is_spent()).then_some(read)
}

/// Its readers make something of each entry of its directory before they give one.
pub(crate) fn has_few_entries(zip: &[u8]) -> bool {
    memmem::find_iter(zip, b"PK\x01\x02").nth(MOST_ENTRIES).is_none()
}

/// Each header as it stands there. Attributes may give the entry that follows another size: then
/// these are not the headers that its reader sees.
fn has_short_names(tar: &[u8]) -> bool {
    let mut archive = tar::Archive::new(Cursor::new(tar));
    let Ok(entries) = archive.entries_with_seek() else { return false };
    entries.raw(true).all(|entry| {
        let Ok(mut entry) = entry else { return false };
        let kind = entry.header().entry_type();
        if kind.is_pax_local_extensions() || kind.is_pax_global_extensions() {
            return tarred::has_no_size(&mut entry, MOST_OF_A_NAME);
        }
        !(kind.is_gnu_longname() || kind.is_gnu_longlink()) || entry.size() <= MOST_OF_A_NAME
    })
}
