//! A hash that outlives the process: it names objects in the store and templates in Redis.

/// FNV-1a.
#[must_use]
pub(crate) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let bytes = pieces.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
