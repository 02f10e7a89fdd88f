//! Between whole amounts and times and the floats that the scripts reckon with.

use std::time::Duration;

use crate::amounts::Amounts;

#[expect(clippy::cast_precision_loss, reason = "amounts and times lie far below 2^53")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}

pub(super) fn floor(number: f64) -> f64 {
    number.floor()
}

pub(super) fn floats(amounts: Amounts) -> [f64; 4] {
    amounts.0.map(float)
}

pub(super) fn wholes(amounts: &[f64; 4]) -> Amounts {
    Amounts(amounts.map(|amount| whole(amount.ceil())))
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

pub(super) fn duration(micros: f64) -> Duration {
    Duration::from_micros(whole(micros.max(0.0).ceil()))
}
