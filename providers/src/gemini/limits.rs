//! Limits: none are told in headers, and a day's quota returns at midnight Pacific time.

use std::time::Duration;

use chrono::{DateTime, Days, NaiveTime, Utc};
use http::HeaderMap;

use crate::{
    error::{Error, Kind},
    exchange::Reply,
    observed::Observed,
    wait_hint,
};

/// Midnight Pacific time is 07:00 UTC in summer and 08:00 in winter. The later one is never too
/// early.
const RESET_HOUR: u32 = 8;

pub(super) fn observed(headers: &HeaderMap) -> Observed {
    Observed {
        request_id: wait_hint::text(headers, "x-goog-request-id").map(str::to_owned),
        ..Observed::default()
    }
}

/// A 429 for a day's quota advises to retry in seconds; the day's end is what it means.
pub(super) fn with_reset(error: Error, reply: &Reply) -> Error {
    if error.kind == Kind::QuotaExhausted && reply.status == 429 {
        return Error { retry_after: Some(until_reset(wait_hint::clock(&reply.headers))), ..error };
    }
    error
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
