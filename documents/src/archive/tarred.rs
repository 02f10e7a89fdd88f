//! Tar archives.

use std::io::Read;

use tar::EntryType;

use super::entry::{Budget, Entry, Visit, no_file};
use crate::{format::Format, unreadable::Unreadable};

/// Returns whether the first bytes of a file are those of a tar archive.
pub(super) fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

/// Calls `visit` for each file.
pub(super) fn each(
    reader: &mut dyn Read,
    format: Format,
    budget: &Budget,
    visit: &mut Visit<'_>,
) -> Result<(), Unreadable> {
    let mut archive = tar::Archive::new(reader);
    let entries = archive.entries().map_err(|error| budget.fault(format, &error))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| budget.fault(format, &error))?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.strip_prefix("./").unwrap_or(&path);
        let flow = match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let entry = Entry { format, reader: &mut entry, budget: budget.clone() };
                visit(path, Ok(entry))?
            }
            _ => visit(path, Err(no_file(path)))?,
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns whether attributes have at most `most` bytes and state no size.
pub(super) fn has_no_size(attributes: &mut dyn Read, most: u64) -> bool {
    let mut bytes = Vec::new();
    let read = attributes.take(most + 1).read_to_end(&mut bytes);
    read.is_ok_and(|read| read as u64 <= most) && memchr::memmem::find(&bytes, b"size=").is_none()
}
