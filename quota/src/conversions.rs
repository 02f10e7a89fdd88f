//! Conversions between integers, durations and floats, and a wait for people.

use std::time::Duration;

/// The largest limit, and the scripts' largest number: up to here whole numbers are exact.
pub const EXACT: u64 = 1 << 53;

// Amounts and times lie far below `EXACT`.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

// The cast saturates, as it should.
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// Converts to an index or a count.
// The cast saturates, as it should.
pub(crate) fn index(number: f64) -> usize {
    number as usize
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A wait for people, in two units at most, the smaller one rounded up: `0.4s`, `37s`, `2m 5s`,
/// `5h 10m`.
pub(crate) fn format_wait(wait: Duration) -> String {
    let tenths = wait.as_millis().div_ceil(100);
    if tenths <= 100 {
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    let seconds = tenths.div_ceil(10);
    let two = |whole: u128, unit: &str, rest: u128, of_rest: &str| match rest {
        0 => format!("{whole}{unit}"),
        _ => format!("{whole}{unit} {rest}{of_rest}"),
    };
    match seconds {
        0..=120 => format!("{seconds}s"),
        121..7_200 => two(seconds / 60, "m", seconds % 60, "s"),
        _ => {
            let minutes = seconds.div_ceil(60);
            two(minutes / 60, "h", minutes % 60, "m")
        }
    }
}

pub(crate) fn duration(micros: f64) -> Duration {
    Duration::from_micros(whole(micros.max(0.0).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_two_units_and_never_too_short() {
        let millis =
            [1, 350, 9_999, 37_123, 120_000, 120_001, 121_000, 180_000, 7_200_000, 80_000_001];
        let said = millis.map(|millis| format_wait(Duration::from_millis(millis)));
        assert_eq!(
            said,
            ["0.1s", "0.4s", "10.0s", "38s", "120s", "2m 1s", "2m 1s", "3m", "2h", "22h 14m"]
        );
    }
}
