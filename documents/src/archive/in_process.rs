//! Reading of archives in the calling process, if that takes little memory and time. Other archives
//! are read in a child process.

use std::io::Cursor;

use memchr::memmem;

use super::{Archive, Budget, Member, list_members_within, read_member_within, tarred};
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Bytes that are unpacked in this process, over all levels.
const MAX_UNPACKED_BYTES: u64 = 32 << 20;

/// Entries of a ZIP archive that are listed in this process. Each takes some hundred bytes of
/// memory.
const MAX_ENTRIES: usize = 20_000;

/// Longest name or attribute of a tar archive, in bytes: the tar reader holds each in memory as a
/// whole.
const MAX_NAME_BYTES: u64 = 64 << 10;

/// Calls [`super::list_members`]; returns `None` if that takes too much.
pub(crate) fn try_list_members(
    archive: &Archive,
    limits: &Limits,
) -> Option<Result<Option<Vec<Member>>, Unreadable>> {
    let Archive { bytes, name, packed, .. } = archive;
    let Ok(format) = Format::detect(bytes, name) else {
        return Some(super::list_unpacked(bytes, *packed, name, limits));
    };
    if format == Format::Zip && !has_few_entries(bytes) {
        return None;
    }
    let budget = Budget::of_size(*packed, limits).at_most(MAX_UNPACKED_BYTES);
    let listed = list_members_within(bytes, name, limits, &budget);
    (!budget.is_spent()).then_some(listed)
}

/// Calls [`super::read_member`]; returns `None` if that takes too much.
pub(crate) fn try_read_member(
    archive: &Archive,
    member: &str,
    limits: &Limits,
) -> Option<Result<(Vec<u8>, String), Unreadable>> {
    let whole = Budget::new(&archive.bytes, limits);
    let budget = if member.contains('#') { whole.at_most(MAX_UNPACKED_BYTES) } else { whole };
    if let Some(read) = archive.read_in_place(member, limits, &budget) {
        return (!budget.is_spent()).then_some(read);
    }
    let Archive { bytes, name: archive, .. } = archive;
    let Ok(format) = Format::detect(bytes, archive) else {
        return Some(super::read_member(bytes, archive, member, limits));
    };
    let whole = Budget::new(bytes, limits);
    let budget = match format {
        _ if member.contains('#') => whole.at_most(MAX_UNPACKED_BYTES),
        Format::Zip if !has_few_entries(bytes) => return None,
        // The whole archive is in memory already.
        Format::Zip | Format::Mbox => whole,
        Format::Tar if has_short_names(bytes) => whole,
        _ => whole.at_most(MAX_UNPACKED_BYTES),
    };
    let read = read_member_within(bytes, archive, member, limits, &budget);
    (!budget.is_spent()).then_some(read)
}

/// Returns whether a ZIP archive has at most [`MAX_ENTRIES`] entries. Its readers allocate memory
/// for all of them when they open it.
pub(crate) fn has_few_entries(zip: &[u8]) -> bool {
    memmem::find_iter(zip, b"PK\x01\x02").nth(MAX_ENTRIES).is_none()
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
            return tarred::has_no_size(&mut entry, MAX_NAME_BYTES);
        }
        !(kind.is_gnu_longname() || kind.is_gnu_longlink()) || entry.size() <= MAX_NAME_BYTES
    })
}
