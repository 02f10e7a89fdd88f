//! Whether two answers are the same but for the last digits of their times.

/// The same, but for a microsecond in times, the last places of fractions and one of those who wait,
/// about: sums are made in another order.
pub(super) fn nearly_equal(one: &str, other: &str) -> bool {
    let (mut one, mut other, mut before) = (one, other, "");
    while !one.is_empty() && !other.is_empty() {
        let ((first, rest), (second, other_rest)) = (piece(one), piece(other));
        let is_alike = match (number(first), number(second)) {
            (Some((first, is_time)), Some((second, _))) if is_time => {
                (first - second).abs() < 1.001
            }
            (Some((first, _)), Some((second, _))) => (first - second).abs() <= 1e-9 * first.abs(),
            _ if before.ends_with("waiting: ") => {
                let count = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
                count(first).abs_diff(count(second)) <= 1
            }
            _ => first == second,
        };
        if !is_alike {
            return false;
        }
        (one, other, before) = (rest, other_rest, first);
    }
    one.is_empty() && other.is_empty()
}

/// A number with its unit, or what is before the next.
fn piece(text: &str) -> (&str, &str) {
    let is_number = |c: char| c.is_ascii_digit();
    let end = if text.starts_with(is_number) {
        text.find(|c: char| !c.is_ascii_digit() && !".e-nµms".contains(c))
    } else {
        text.find(is_number)
    };
    text.split_at(end.unwrap_or(text.len()))
}

/// A number that is no count: a time in microseconds, or a fraction.
fn number(text: &str) -> Option<(f64, bool)> {
    for (unit, micros) in [("ns", 1e-3), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Some((number.parse::<f64>().ok()? * micros, true));
        }
    }
    text.contains('.').then(|| text.parse().ok()).flatten().map(|number| (number, false))
}

#[test]
fn what_differs_is_seen() {
    assert!(nearly_equal("a 41.0738s, 3µs, 1.0, 5", "a 41.073801s, 3µs, 1.0000000000000002, 5"));
    for other in [
        "a 41.073802s, 3µs, 1.0, 5",
        "a 41.0738s, 3ms, 1.0, 5",
        "a 41.0738s, 3µs, 1.1, 5",
        "a 41.0738s, 3µs, 1.0, 6",
        "a 41.0738s, 3µs, 1.0",
    ] {
        assert!(!nearly_equal("a 41.0738s, 3µs, 1.0, 5", other), "{other}");
    }
}
