//! Formats numbers, times and rates for people.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use tidegate_activities::output::forecast::Range;
use tidegate_types::Spend;

pub(super) use tidegate_activities::number::{count, ratio};

/// `1 document`, `2 documents`.
pub(super) fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `4.2s`, `1m 5s`, `2h 3m`: two units at most.
pub(super) fn duration(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    if seconds < 9.95 {
        return format!("{seconds:.1}s");
    }
    let whole = length.as_secs() + u64::from(length.subsec_millis() >= 500);
    match whole {
        0..60 => format!("{whole}s"),
        60..3_600 => format!("{}m {}s", whole / 60, whole % 60),
        3_600..86_400 => format!("{}h {}m", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{}d {}h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

/// A number of seconds as a time; 0 if it is none.
pub(super) fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}

/// Documents per time: `3.2/s`, `40/min`.
pub(super) fn rate(documents: u64, time: Duration) -> Option<String> {
    if documents == 0 || time.is_zero() {
        return None;
    }
    let per_second = ratio(documents, 1) / time.as_secs_f64();
    Some(if per_second >= 1.0 {
        format!("{per_second:.1}/s")
    } else {
        format!("{:.0}/min", per_second * 60.0)
    })
}

/// A fraction as a percentage, `97.2 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// `$0.0132`, `$12.30`.
pub(super) fn dollars(amount: f64) -> String {
    if amount >= 1.0 || amount == 0.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// A cost: `$0.0132`, `unknown`, or `$0.0132 and more` if some prices are unknown.
pub(super) fn cost(spend: &Spend) -> String {
    match spend.known_usd().map(dollars) {
        Some(known) if spend.unpriced_calls > 0 => format!("{known} and more"),
        known => known.unwrap_or_else(|| "unknown".to_owned()),
    }
}

/// An expected number: `1,000 to 2,000`.
pub(super) fn between(range: Range) -> String {
    let [from, to] = [range.from, range.to].map(|number| count(number.round() as u64));
    format!("{from} to {to}")
}

/// An expected price: `$0.50 to $1.00`.
pub(super) fn price(range: Option<Range>) -> String {
    range.map_or_else(
        || "unknown (no price for this model)".to_owned(),
        |range| format!("{} to {}", dollars(range.from), dollars(range.to)),
    )
}

/// Parses an RFC 3339 time.
pub(super) fn parse_time(text: Option<&str>) -> Option<SystemTime> {
    text.and_then(|text| DateTime::parse_from_rfc3339(text).ok()).map(SystemTime::from)
}

/// An RFC 3339 time, to the second.
pub(super) fn rfc3339(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// The time until then; `None` if it has passed.
pub(super) fn time_until(time: SystemTime) -> Option<Duration> {
    time.duration_since(SystemTime::now()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let spans = [0.04, 4.25, 9.96, 59.6, 65.0, 7_400.0, 180_000.0]
            .map(|seconds| duration(Duration::from_secs_f64(seconds)));
        assert_eq!(spans, ["0.0s", "4.2s", "10s", "1m 0s", "1m 5s", "2h 3m", "2d 2h"]);
        assert_eq!(rate(64, Duration::from_secs(20)).as_deref(), Some("3.2/s"));
        assert_eq!(rate(20, Duration::from_secs(30)).as_deref(), Some("40/min"));
        assert_eq!(rate(0, Duration::from_secs(30)), None);
        assert_eq!([0.0, 0.0132, 12.3].map(dollars), ["$0.00", "$0.0132", "$12.30"]);
        assert_eq!(percent(0.9721), "97.2 %");
        assert_eq!([1, 2_000].map(|n| plural(n, "document")), ["1 document", "2,000 documents"]);
    }
}
