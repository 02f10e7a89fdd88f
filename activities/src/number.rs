//! Between counts and the floats that are reckoned with.

/// A count as it is reckoned with.
// Counts and tokens lie far below 2^53.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// The nearest count.
// A cast of a float saturates; what is below 0 is 0.
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}
