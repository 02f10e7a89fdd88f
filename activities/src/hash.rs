//! A hash that is equal in every process: it names objects in the store and templates in Redis.

use tidegate_types::fnv1a;

/// FNV-1a of all pieces, concatenated.
pub(crate) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    fnv1a(pieces.into_iter().flatten().copied())
}
