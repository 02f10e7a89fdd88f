//! Conversions between counts and floats.

/// A count as a float.
// Exact: counts and tokens lie far below 2^53.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// The nearest count.
// A cast of a float saturates; a negative number gives 0.
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}
