//! A seeded random-number generator: each draw is a hash of the seed and of what it decides, so a
//! run can be repeated.

/// Well-mixed bits from a number (the finaliser of SplitMix64).
pub(crate) const fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Well-mixed bits from several numbers; their order counts.
pub(crate) fn draw(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |bits, number| mix(bits ^ mix(*number)))
}

/// The same text gives the same bits on every machine (FNV-1a, mixed).
pub(crate) fn hash(text: &str) -> u64 {
    let fold = |bits: u64, byte: &u8| (bits ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix(text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// A number in 0..1, evenly.
pub(crate) fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A number around 0 with variance 1, normally distributed (Box and Muller).
pub(crate) fn normal(bits: u64) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(bits)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(mix(bits))).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_repeat_themselves() {
        let draws: Vec<f64> = (0..10_000).map(|n| uniform(draw(&[7, n]))).collect();
        assert!((draws.iter().sum::<f64>() / 10_000.0 - 0.5).abs() < 0.02);
        assert_eq!(draw(&[7, 3]), draw(&[7, 3]));
        assert_ne!(draw(&[7, 3]), draw(&[3, 7]));
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let numbers: Vec<f64> = (0..10_000).map(|n| normal(draw(&[n]))).collect();
        assert!((numbers.iter().sum::<f64>() / 10_000.0).abs() < 0.04);
        assert!((numbers.iter().map(|n| n * n).sum::<f64>() / 10_000.0 - 1.0).abs() < 0.06);
    }
}
