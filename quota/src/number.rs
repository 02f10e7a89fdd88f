//! Between whole amounts and times and the floats that are reckoned with.

use std::time::Duration;

#[expect(clippy::cast_precision_loss, reason = "amounts and times lie far below 2^53")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

pub(crate) fn duration(micros: f64) -> Duration {
    Duration::from_micros(whole(micros.max(0.0).ceil()))
}
