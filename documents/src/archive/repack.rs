//! Compressed tar archives whose members are packed anew, each for itself: reading one unpacks no
//! other.

use std::{
    io::{self, Write as _},
    ops::ControlFlow,
};

use flate2::{Compression, CrcReader, write::DeflateEncoder};

use super::{
    entry::{Budget, Entry},
    index::Index,
    is_hidden,
    place::{Packing, Place},
    visit_entries,
};
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Packs the members of a compressed tar archive, and returns them with their places. `None` for
/// any other file, and for an archive that is damaged, exceeds the budget, or whose members take
/// more than [`Limits::archive_bytes`].
pub(super) fn repack(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    budget: &Budget,
) -> Option<(Index, Vec<u8>)> {
    let format = Format::detect(bytes, name).ok()?;
    if !matches!(format, Format::Gzip | Format::Zstd) {
        return None;
    }
    let most = limits.archive_bytes;
    let (mut index, mut packed) = (Index::default(), Vec::new());
    let visited = visit_entries(bytes, name, format, budget, |path, entry| {
        let place = match entry {
            _ if is_hidden(path) => None,
            // The only file of a compressed one has no stated size; it is read once.
            Ok(mut entry) if entry.size.is_some_and(|size| size <= most) => {
                Some(pack(&mut entry, &mut packed)?)
            }
            _ => None,
        };
        index.add(path, place);
        match packed.len() as u64 {
            size if size > most => Err(Unreadable::TooLarge { what: "archive".into(), size, most }),
            _ => Ok(ControlFlow::Continue(())),
        }
    });
    visited.ok()?;
    index.entries = budget.entries();
    (!packed.is_empty()).then_some((index, packed))
}

/// Appends a packed member.
fn pack(entry: &mut Entry<'_>, packed: &mut Vec<u8>) -> Result<Place, Unreadable> {
    let start = packed.len();
    let mut read = CrcReader::new(&mut *entry.reader);
    let mut encoder = DeflateEncoder::new(&mut *packed, Compression::fast());
    let copied = io::copy(&mut read, &mut encoder).and_then(|size| {
        encoder.flush()?;
        encoder.finish()?;
        Ok(size)
    });
    let checksum = read.crc().sum();
    let size = copied.map_err(|error| entry.budget.fault(entry.format, &error))?;
    let packing = Packing::Zip { is_deflated: true, size, checksum };
    Ok(Place { range: start..packed.len(), packing })
}
