//! The time that a call waits in place.

use std::time::{Duration, Instant};

use axum::http::HeaderMap;

use super::problem::Problem;
use crate::config::duration::HumanDuration;

/// The longest wait that a client may ask for. It exceeds the longest time-out of the vendors' SDKs.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The wait at the last try of a client that does not state its time-out.
const LAST_TRY: Duration = Duration::from_secs(300);

/// The vendors' SDKs try a call three times: after this many tries, the next is the last.
const TRIES_BEFORE_THE_LAST: u64 = 2;

/// The header with the wait that a client asks for.
const MAX_WAIT: &str = "x-tidegate-max-wait";

/// The time that a call may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) until: Instant,
    /// Whether the client may have come before with an identical body.
    pub(super) may_be_back: bool,
}

impl Wait {
    /// Reads a request's headers. Without any, the call waits for `usual`.
    ///
    /// # Errors
    /// `x-tidegate-max-wait` is no duration.
    pub(super) fn from_headers(
        headers: &HeaderMap,
        usual: Duration,
        now: Instant,
    ) -> Result<Self, Problem> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let seconds = |name: &str| seconds(text(name)?);
        let tries =
            text("x-stainless-retry-count").and_then(|count| count.trim().parse::<u64>().ok());
        let stated = text(MAX_WAIT).map(|stated| {
            let span = || stated.parse::<HumanDuration>().ok().map(|span| span.0);
            let what = "must be seconds, or a length of time such as 30s";
            seconds(MAX_WAIT).or_else(span).ok_or_else(|| Problem::invalid(MAX_WAIT, what))
        });
        let stated = stated.transpose()?;
        let is_last = tries.is_some_and(|tries| tries >= TRIES_BEFORE_THE_LAST);
        let own = || seconds("x-stainless-read-timeout").or_else(|| seconds("x-stainless-timeout"));
        let wait = match stated {
            Some(stated) => stated,
            None if is_last => own().unwrap_or(LAST_TRY).max(usual),
            None => usual,
        };
        let may_be_back = tries != Some(0);
        Ok(Self { until: now + wait.min(LONGEST_WAIT), may_be_back })
    }

    pub(super) fn time_left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_try_waits_as_long_as_its_client_does() {
        let now = Instant::now();
        let wait = |headers: &[(&'static str, &str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (axum::http::HeaderName::from_static(name), value.parse().unwrap())
            });
            let wait = Wait::from_headers(&headers.collect(), Duration::from_secs(30), now)?;
            Ok::<_, Problem>(((wait.until - now).as_secs(), wait.may_be_back))
        };
        let count = |count| ("x-stainless-retry-count", count);
        #[rustfmt::skip]
        let cases: [(&[_], _); 9] = [
            (&[],                                                            (30, true)),
            (&[count("0"), ("x-stainless-read-timeout", "600.0")],           (30, false)),
            (&[count("1"), ("x-stainless-timeout", "600")],                  (30, true)),
            (&[count("2"), ("x-stainless-timeout", "600")],                  (600, true)),
            (&[count("2"), ("x-stainless-read-timeout", "90.5")],            (90, true)),
            (&[count("3")],                                                  (300, true)),
            (&[count("2"), ("x-tidegate-max-wait", "5")],                    (5, true)),
            (&[("x-tidegate-max-wait", "2m")],                               (120, true)),
            (&[("x-tidegate-max-wait", "9999999")],                          (3_600, true)),
        ];
        for (headers, expected) in cases {
            assert_eq!(wait(headers).ok(), Some(expected), "{headers:?}");
        }
        for wrong in ["soon", "-1", "nan"] {
            assert!(wait(&[("x-tidegate-max-wait", wrong)]).is_err(), "{wrong}");
        }
    }
}
