//! A hash that is equal in every process and version, which `DefaultHasher` does not guarantee.

/// FNV-1a, 64 bit (<http://www.isthe.com/chongo/tech/comp/fnv/>).
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    fnv1a_onto(0, bytes)
}

/// FNV-1a that begins with another number, to get several hashes of the same bytes.
pub fn fnv1a_onto(number: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(number ^ 0xcbf2_9ce4_8422_2325, add)
}
