//! Rate-limit headers: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, on successes and on
//! 429s. Reset is a Go-style duration until the limit is full.

use http::HeaderMap;

use crate::{
    observed::{Observed, Window},
    wait_hint,
};

pub(crate) fn observed(headers: &HeaderMap) -> Observed {
    let window = |what| window(headers, what);
    Observed {
        requests: window("requests"),
        tokens: window("tokens"),
        request_id: wait_hint::text(headers, "x-request-id").map(str::to_owned),
        ..Observed::default()
    }
}

fn window(headers: &HeaderMap, what: &str) -> Option<Window> {
    let header = |begin| wait_hint::text(headers, &format!("x-ratelimit-{begin}-{what}"));
    Window {
        limit: header("limit").and_then(|text| text.parse().ok()),
        remaining: header("remaining").and_then(|text| text.parse().ok()),
        full_in: header("reset").and_then(wait_hint::go_duration),
    }
    .known()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing;

    #[test]
    fn resets_are_durations() {
        let observed = observed(&testing::headers(&[
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("x-ratelimit-reset-requests", "12ms"),
        ]));
        let tokens = Window {
            limit: Some(150_000),
            remaining: Some(149_984),
            full_in: Some(Duration::from_secs(360)),
        };
        assert_eq!(observed.tokens, Some(tokens));
        assert_eq!(
            observed.requests,
            Some(Window { full_in: Some(Duration::from_millis(12)), ..Window::default() })
        );
    }
}
