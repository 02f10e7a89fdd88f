//! Conversions between integers, durations and floats, and a wait for people.

use std::time::Duration;

// Amounts and times lie far below 2^53.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

// The cast saturates, as it should.
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// As an index or a count.
// The cast saturates, as it should.
pub(crate) fn index(number: f64) -> usize {
    number as usize
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A wait for people, rounded up: `0.4s`, `37s`, `12m`, `5h`.
pub(crate) fn format_wait(wait: Duration) -> String {
    let seconds = wait.as_secs_f64();
    match seconds {
        ..10.0 => format!("{:.1}s", (seconds * 10.0).ceil() / 10.0),
        ..120.0 => format!("{:.0}s", seconds.ceil()),
        ..7_200.0 => format!("{:.0}m", (seconds / 60.0).ceil()),
        _ => format!("{:.0}h", (seconds / 3_600.0).ceil()),
    }
}

pub(crate) fn duration(micros: f64) -> Duration {
    Duration::from_micros(whole(micros.max(0.0).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shown_in_one_unit_and_rounded_up() {
        let millis = [1, 350, 9_999, 37_123, 119_001, 120_000, 121_000, 7_200_000, 80_000_001];
        let said = millis.map(|millis| format_wait(Duration::from_millis(millis)));
        assert_eq!(said, ["0.1s", "0.4s", "10.0s", "38s", "120s", "2m", "3m", "2h", "23h"]);
    }
}
