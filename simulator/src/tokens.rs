//! How tokens are counted: by a rule of the simulator's own, which callers can only estimate, as
//! with a real provider.

/// Bytes of UTF-8 for 10 tokens: English prose has about 4.3 bytes a token.
const BYTES_FOR_TEN: u64 = 43;

/// The tokens of a text: its bytes divided by 4.3, rounded up.
pub(crate) const fn count(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(BYTES_FOR_TEN)
}

/// The most bytes that so many tokens hold.
pub(crate) fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_FOR_TEN) / 10).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_tokens_agree() {
        for tokens in 1..2_000 {
            assert_eq!(count(bytes(tokens)), tokens);
            assert_eq!(count(bytes(tokens) + 1), tokens + 1);
        }
    }
}
