//! Where a member lies in an archive that is in memory.

use std::ops::Range;

use flate2::Crc;
use serde::{Deserialize, Serialize};

/// The part of an archive's bytes that holds one member.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    pub(super) packing: Packing,
}

/// How a member's bytes are made from a part of the archive.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Packing {
    /// They are that part.
    Plain,
    /// They are a message of a mailbox.
    Message,
    /// They are packed, and have this size and checksum.
    Zip { is_deflated: bool, size: u64, checksum: u32 },
}

impl Packing {
    /// Whether these are all bytes of the member, as far as the archive states them.
    pub(super) fn is_whole(self, bytes: &[u8]) -> bool {
        let Self::Zip { size, checksum, .. } = self else { return true };
        let mut crc = Crc::new();
        crc.update(bytes);
        bytes.len() as u64 == size && crc.sum() == checksum
    }
}
