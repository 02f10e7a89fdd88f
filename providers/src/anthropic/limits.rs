//! Rate-limit headers:
//! `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}`, on
//! successes and on 429s. Reset is an RFC 3339 time of full replenishment.

use chrono::{DateTime, Utc};
use http::HeaderMap;

use crate::{
    observed::{Observed, Window},
    wait_hint,
};

pub(super) fn observed(headers: &HeaderMap) -> Observed {
    let now = wait_hint::clock(headers);
    let window = |what| window(headers, what, now);
    Observed {
        requests: window("requests"),
        tokens: window("tokens"),
        input_tokens: window("input-tokens"),
        output_tokens: window("output-tokens"),
        request_id: wait_hint::text(headers, "request-id").map(str::to_owned),
    }
}

fn window(headers: &HeaderMap, what: &str, now: DateTime<Utc>) -> Option<Window> {
    let header = |end| wait_hint::text(headers, &format!("anthropic-ratelimit-{what}-{end}"));
    let reset = || DateTime::parse_from_rfc3339(header("reset")?).ok();
    Window {
        limit: header("limit").and_then(|text| text.parse().ok()),
        remaining: header("remaining").and_then(|text| text.parse().ok()),
        full_in: reset().map(|reset| wait_hint::until(reset.to_utc(), now).unwrap_or_default()),
    }
    .known()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing;

    #[test]
    fn resets_are_told_by_the_providers_clock() {
        let headers = testing::headers(&[
            ("date", "Fri, 20 Nov 2026 12:00:00 GMT"),
            ("anthropic-ratelimit-requests-limit", "1000"),
            ("anthropic-ratelimit-requests-remaining", "999"),
            ("anthropic-ratelimit-requests-reset", "2026-11-20T12:00:03Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "1998000"),
            ("anthropic-ratelimit-output-tokens-limit", "many"),
            ("request-id", "req_1"),
        ]);
        let observed = observed(&headers);
        let requests = Window {
            limit: Some(1000),
            remaining: Some(999),
            full_in: Some(Duration::from_secs(3)),
        };
        assert_eq!(observed.requests, Some(requests));
        assert_eq!(
            observed.input_tokens,
            Some(Window { remaining: Some(1_998_000), ..Window::default() })
        );
        assert_eq!((observed.tokens, observed.output_tokens), (None, None));
        assert_eq!(observed.request_id.as_deref(), Some("req_1"));
    }
}
