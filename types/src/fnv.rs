//! A hash that every process of every version comes to, which `DefaultHasher` does not promise.

/// FNV-1a, 64 bit (<http://www.isthe.com/chongo/tech/comp/fnv/>).
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    fnv1a_onto(0, bytes)
}

/// The same, begun from another number, so that what has one hash has as many as there are numbers.
pub fn fnv1a_onto(number: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(number ^ 0xcbf2_9ce4_8422_2325, add)
}
