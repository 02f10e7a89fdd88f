//! Gemini's error names (`quotaId` of a violated quota and `reason`, then wording and `status`). No
//! header states limits, and a day's quota returns at midnight Pacific time.

use std::time::Duration;

use chrono::{DateTime, Days, NaiveTime, Utc};
use http::HeaderMap;

use crate::{
    classify::ErrorNames,
    envelope::Envelope,
    error::{Error, Kind, Span},
    observed::Observed,
    rules, wait_hint,
};

pub(crate) const NAMES: ErrorNames = ErrorNames::Read { by_code, by_type };

fn by_code(status: u16, code: &str, envelope: &Envelope) -> Option<Kind> {
    match code {
        // `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. Such a 429 still carries a RetryInfo
        // of seconds, and may also name a violated limit of a minute.
        _ if envelope.codes.iter().any(|code| code.contains("PerDay")) => {
            Some(Kind::QuotaExhausted)
        }
        // A limit of zero: the model is not part of this tier.
        _ if code.contains("PerMinute") && envelope.limit_is_zero => Some(Kind::QuotaExhausted),
        // Comes with a 400.
        "API_KEY_INVALID" => Some(Kind::Unauthorized),
        // The quota in the same error, or the status, gives `RATE_LIMIT_EXCEEDED` its meaning.
        _ if status == 429 && code.contains("PerMinute") => Some(Kind::RateLimited),
        _ => None,
    }
}

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    let says = |parts: &[&str]| envelope.has_message(parts);
    if says(&["input token count", "exceeds the maximum number of tokens"]) {
        return Some(Kind::TooLarge);
    }
    if status == 400 && says(&["api key not valid"]) {
        return Some(Kind::Unauthorized);
    }
    envelope.types.iter().find_map(|class| {
        Some(match class.as_str() {
            // Prepaid credit is empty.
            "RESOURCE_EXHAUSTED" if status == 402 => Kind::QuotaExhausted,
            "RESOURCE_EXHAUSTED" if says(&["limit: 0"]) || says(&["per day"]) => {
                Kind::QuotaExhausted
            }
            "RESOURCE_EXHAUSTED" => Kind::RateLimited,
            // The free tier is not offered in every country.
            "FAILED_PRECONDITION" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => Kind::Unauthorized,
            "INVALID_ARGUMENT" | "NOT_FOUND" | "OUT_OF_RANGE" => Kind::InvalidRequest,
            "UNAVAILABLE" => Kind::Overloaded,
            "DEADLINE_EXCEEDED" => Kind::Timeout,
            "INTERNAL" | "CANCELLED" | "ABORTED" => Kind::Transient,
            _ => return None,
        })
    })
}

/// Midnight Pacific time is 07:00 UTC in summer and 08:00 in winter. The later hour is never too
/// early.
const RESET_HOUR: u32 = 8;

pub(crate) fn observed(headers: &HeaderMap) -> Observed {
    Observed {
        request_id: wait_hint::text(headers, "x-goog-request-id").map(str::to_owned),
        ..Observed::default()
    }
}

/// A used-up quota is told with an advice to retry in seconds, which is no hint; one of hours is. A day's
/// quota returns at the end of the day; when money or a limit of zero returns is unknown.
pub(crate) fn with_reset(error: Error, headers: &HeaderMap) -> Error {
    if error.kind != Kind::QuotaExhausted {
        return error;
    }
    let told = error.retry_after.filter(|wait| *wait >= rules::LONG_WAIT);
    let is_of_a_day = error.span == Some(Span::Day);
    let end_of_day = is_of_a_day.then(|| until_reset(wait_hint::clock(headers)));
    Error { retry_after: told.max(end_of_day), ..error }
}

fn until_reset(now: DateTime<Utc>) -> Duration {
    let reset = NaiveTime::from_hms_opt(RESET_HOUR, 0, 0).unwrap_or_default();
    let today = now.date_naive().and_time(reset).and_utc();
    let next = if today > now { Some(today) } else { today.checked_add_days(Days::new(1)) };
    next.and_then(|next| wait_hint::until(next, now)).unwrap_or(Duration::from_secs(3_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_ends_at_midnight_pacific() {
        let until =
            |now: &str| until_reset(DateTime::parse_from_rfc3339(now).unwrap().to_utc()).as_secs();
        assert_eq!(until("2026-11-20T07:00:00Z"), 3_600);
        assert_eq!(until("2026-11-20T08:00:00Z"), 86_400);
        assert_eq!(until("2026-12-31T20:00:00Z"), 12 * 3_600);
    }
}
