//! An archive in memory, with the places of its members, so that reading a member costs as much as
//! the member itself and not as the whole archive.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::bufread::DeflateDecoder;

use super::{
    MemberPath,
    entry::{Budget, Entry},
    index::Index,
    mailbox,
    place::{Packing, Place},
    read_member_within,
    repack::repack,
};
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Bytes that are unpacked in this process, over all levels.
pub(super) const MAX_UNPACKED_BYTES: u64 = 32 << 20;

/// An archive that is read several times.
#[derive(Debug)]
pub struct Archive {
    /// Its bytes.
    pub(crate) bytes: Bytes,
    /// Its file name.
    pub(crate) name: String,
    /// The bytes that hold the members: the archive's, or those that a compressed tar archive was
    /// packed into anew.
    members: Bytes,
    index: Index,
}

impl Archive {
    /// Opens an archive that is read several times: finds its members, and packs those of a compressed
    /// tar archive anew. Takes as long as one pass over the archive, so it is to be called where the
    /// thread may block. Any other file is taken as it is. `None` if it unpacks to too much for this
    /// process.
    pub(crate) fn open(bytes: Bytes, name: &str, limits: &Limits) -> Option<Self> {
        let budget = Budget::new(&bytes, limits).at_most(MAX_UNPACKED_BYTES);
        let (index, members) = match repack(&bytes, name, limits, &budget) {
            Some((index, members)) => (index, members.into()),
            None if budget.is_spent() => return None,
            None => (Index::build(&bytes, name, limits).unwrap_or_default(), bytes.clone()),
        };
        Some(Self { bytes, name: name.to_owned(), members, index })
    }

    /// Takes an archive as it is: each member is found by a search of the whole archive.
    pub fn unopened(bytes: Bytes, name: &str) -> Self {
        Self { bytes, name: name.to_owned(), members: Bytes::new(), index: Index::default() }
    }

    /// Adds what [`write_repacked`] wrote in another process.
    pub(crate) fn with_repacked(self, written: &[u8]) -> Option<Self> {
        let end = written.iter().position(|byte| *byte == b'\n')?;
        let index = serde_json::from_slice(&written[..end]).ok()?;
        Some(Self { index, members: Bytes::copy_from_slice(&written[end + 1..]), ..self })
    }

    /// Reads a member within a budget, if its place is known.
    pub(super) fn read_in_place(
        &self,
        member: &str,
        limits: &Limits,
        budget: &Budget,
    ) -> Option<Result<(Vec<u8>, String), Unreadable>> {
        let path = MemberPath::new(member);
        let place = self.index.place(&path)?;
        budget.count_entries(self.index.entries);
        let bytes = match place.read(&self.members, path.max_bytes(limits), budget)? {
            Ok(bytes) => bytes,
            Err(fault) => return Some(Err(fault)),
        };
        let name = path.name();
        Some(match path.rest {
            Some(rest) => read_member_within(&bytes, &name, rest, limits, budget),
            None => Ok((bytes, name)),
        })
    }
}

/// Packs the members of a compressed tar archive anew, and writes the places and them. Writes
/// nothing if that is not possible.
///
/// # Errors
/// Those of writing.
pub(crate) fn write_repacked(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    mut output: impl Write,
) -> std::io::Result<()> {
    let budget = Budget::new(bytes, limits);
    let Some((index, members)) = repack(bytes, name, limits, &budget) else { return Ok(()) };
    serde_json::to_writer(&mut output, &index)?;
    output.write_all(b"\n")?;
    output.write_all(&members)
}

impl Place {
    /// Reads at most `most` bytes. Returns `None` for a member that is not as the archive states it; a
    /// search of the archive reports the fault.
    fn read(
        &self,
        archive: &[u8],
        most: u64,
        budget: &Budget,
    ) -> Option<Result<Vec<u8>, Unreadable>> {
        let packed = archive.get(self.range.clone())?;
        let reader: Box<dyn Read + '_> = match self.packing {
            Packing::Plain => Box::new(packed),
            Packing::Message => Box::new(mailbox::Message::new(packed, self.range.start)),
            Packing::Zip { is_deflated: false, .. } => Box::new(packed),
            // One byte more shows that the stated size is wrong.
            Packing::Zip { size, .. } => {
                Box::new(DeflateDecoder::new(packed).take(size.saturating_add(1)))
            }
        };
        let mut reader = budget.bound(reader);
        let (format, budget) = (Format::Zip, budget.clone());
        let mut entry = Entry { format, size: None, place: None, reader: &mut reader, budget };
        match entry.read(most) {
            Ok(bytes) => self.packing.is_whole(&bytes).then_some(Ok(bytes)),
            Err(fault @ Unreadable::TooLarge { .. }) => Some(Err(fault)),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
