//! Reading of archives in the calling process, if that takes little memory and time. Other archives
//! are read in a child process.

use super::{
    Budget, Member, list_members_within,
    open::{Archive, MAX_UNPACKED_BYTES},
    read_member_within,
    tarred::has_short_names,
    zipped::has_few_entries,
};
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Calls [`super::list_members`]; returns `None` if that takes too much.
pub(crate) fn try_list_members(
    archive: &Archive,
    limits: &Limits,
) -> Option<Result<Option<Vec<Member>>, Unreadable>> {
    let Archive { bytes, name, .. } = archive;
    let Ok(format) = Format::detect(bytes, name) else {
        return Some(super::list_members(bytes, name, limits));
    };
    if format == Format::Zip && !has_few_entries(bytes) {
        return None;
    }
    let budget = Budget::new(bytes, limits).at_most(MAX_UNPACKED_BYTES);
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
