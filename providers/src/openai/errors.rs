//! OpenAI's error names (`code`, then wording and `type`), and its limits in headers. Codes come
//! first because they are exact: billing codes share the type `insufficient_quota`, and a
//! rate-limit code may carry the type `tokens`.

use http::HeaderMap;

use crate::{
    classify::ErrorNames,
    envelope::Envelope,
    error::{Error, Kind, Span},
    observed::{Observed, Window},
    wait_hint,
};

pub(crate) const NAMES: ErrorNames = ErrorNames::Read { by_code, by_type };

fn by_code(status: u16, code: &str, envelope: &Envelope) -> Option<Kind> {
    Some(match code {
        // 429s that waiting does not resolve.
        "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "insufficient_quota"
        | "billing_hard_limit_reached" => Kind::QuotaExhausted,
        "rate_limit_exceeded" => rate_limit(envelope),
        // Traffic grew too fast. Some endpoints used to send it with a 503.
        "slow_down" if status == 503 => Kind::Overloaded,
        "slow_down" => Kind::RateLimited,
        "invalid_prompt" | "bio_policy" | "cyber_policy" | "misalignment_policy_violation" => {
            Kind::ContentRefused
        }
        // Codes of a failed response, about its picture.
        "empty_image_file"
        | "image_file_too_large"
        | "image_parse_error"
        | "image_too_large"
        | "image_too_small"
        | "invalid_base64_image"
        | "invalid_image"
        | "invalid_image_format"
        | "invalid_image_mode"
        | "invalid_image_url"
        | "unsupported_image_media_type" => Kind::InvalidRequest,
        "invalid_api_key" => Kind::Unauthorized,
        "model_not_found" => Kind::InvalidRequest,
        "conversation_locked" => Kind::Transient,
        "server_is_overloaded" => Kind::Overloaded,
        "server_error" if !matches!(status, 503 | 529) => Kind::Transient,
        _ => return None,
    })
}

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    // The model has no embeddings; the key is good for other requests.
    if status == 403 && envelope.has_message(&["not allowed to generate embeddings"]) {
        return Some(Kind::InvalidRequest);
    }
    envelope.types.iter().find_map(|class| {
        Some(match class.as_str() {
            "insufficient_quota" => Kind::QuotaExhausted,
            "rate_limit_error" => Kind::RateLimited,
            "requests" | "tokens" if status == 429 => rate_limit(envelope),
            "service_unavailable_error" => Kind::Overloaded,
            "server_error" if status >= 500 && !matches!(status, 503 | 529) => Kind::Transient,
            _ => return None,
        })
    })
}

/// The kind of a hit limit. Its wording distinguishes the two kinds that a minute's wait does not
/// resolve.
fn rate_limit(envelope: &Envelope) -> Kind {
    if envelope.messages.iter().any(|message| is_larger_than_limit(message)) {
        Kind::TooLarge
    } else if envelope.has_message(&["per day"]) {
        Kind::QuotaExhausted
    } else {
        Kind::RateLimited
    }
}

/// "Request too large for …: Limit 30000, Requested 41234.": more than the whole limit, so it never
/// fits. Without readable numbers the wording counts.
fn is_larger_than_limit(message: &str) -> bool {
    if !message.contains("Request too large") {
        return false;
    }
    let number = |name: &str| -> Option<u64> {
        let digits: String = message[message.find(name)? + name.len()..]
            .chars()
            .skip_while(|c| *c == ' ' || *c == ':')
            .filter(|c| *c != ',')
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    };
    match (number("Limit"), number("Requested")) {
        (Some(limit), Some(requested)) => requested > limit,
        _ => true,
    }
}

/// The end of Mistral's headers about requests.
const REQUESTS_OF_MISTRAL: &str = "req-minute";

/// Mistral refuses each call to a model that the account's plan does not include as a hit limit of a
/// minute, of no requests.
pub(crate) fn not_in_plan(error: Error, headers: &HeaderMap) -> Error {
    let limit = wait_hint::text(headers, &format!("x-ratelimit-limit-{REQUESTS_OF_MISTRAL}"));
    match (error.kind, limit) {
        (Kind::RateLimited, Some("0")) => Error {
            kind: Kind::QuotaExhausted,
            span: Some(Span::Credit),
            retry_after: None,
            ..error
        },
        _ => error,
    }
}

/// Reads the headers `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, which come with
/// successes and 429s; Cerebras and Mistral add `-minute` to their names, and Mistral shortens
/// `requests` to `req`. Groq's headers of requests are daily (console.groq.com/docs/rate-limits); they
/// are ignored, because limits per minute are needed.
pub(crate) fn observed(headers: &HeaderMap) -> Observed {
    let window = |names: &[&str]| {
        let header = |begin| {
            let mut names = names.iter().map(|what| format!("x-ratelimit-{begin}-{what}"));
            names.find_map(|name| wait_hint::text(headers, &name))
        };
        let reset = header("reset");
        let reset = reset
            .and_then(|reset| wait_hint::units(reset).or_else(|| wait_hint::decimal(reset, 1.0)));
        let window = Window::read(header("limit"), header("remaining"), reset)?;
        (!window.is_of_a_day()).then_some(window)
    };
    Observed {
        requests: window(&["requests", "requests-minute", REQUESTS_OF_MISTRAL]),
        tokens: window(&["tokens", "tokens-minute"]),
        request_id: wait_hint::text(headers, "x-request-id").map(str::to_owned),
        ..Observed::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{testing, vendor::Vendor};

    /// Groq's documented headers: 30 of the day's 14,400 requests come back in 3 minutes.
    #[test]
    fn a_days_limit_is_no_minutes() {
        let observed = observed(&testing::headers(&[
            ("x-ratelimit-limit-requests", "14400"),
            ("x-ratelimit-remaining-requests", "14370"),
            ("x-ratelimit-reset-requests", "2m59.56s"),
            ("x-ratelimit-limit-tokens", "18000"),
            ("x-ratelimit-remaining-tokens", "17997"),
            ("x-ratelimit-reset-tokens", "7.66ms"),
        ]));
        let tokens = Window {
            limit: Some(18_000),
            remaining: Some(17_997),
            reset: Some(Duration::from_micros(7_660)),
        };
        assert_eq!((observed.tokens, observed.requests), (Some(tokens), None));
    }

    /// Cerebras's documented headers.
    #[test]
    fn a_limits_name_may_say_that_it_is_of_a_minute() {
        let observed = observed(&testing::headers(&[
            ("x-ratelimit-limit-requests-day", "1000000000"),
            ("x-ratelimit-limit-tokens-minute", "60000"),
            ("x-ratelimit-remaining-tokens-minute", "59000"),
            ("x-ratelimit-reset-tokens-minute", "1.5"),
        ]));
        let reset = Some(Duration::from_millis(1_500));
        let tokens = Window { limit: Some(60_000), remaining: Some(59_000), reset };
        assert_eq!((observed.tokens, observed.requests), (Some(tokens), None));
    }

    /// Mistral's headers (github.com/mistralai/client-ts/issues/169).
    #[test]
    fn a_limit_of_no_requests_is_told_from_one_that_refills() {
        let read = |limit| {
            let headers = testing::headers(&[
                ("x-ratelimit-limit-req-minute", limit),
                ("x-ratelimit-remaining-req-minute", "0"),
                ("x-ratelimit-limit-tokens-minute", "500000"),
            ]);
            let body = br#"{"object":"error","message":"Rate limit exceeded","type":"rate_limited","code":"1300"}"#;
            Vendor::MISTRAL.read_reply(429, &headers, body).unwrap_err()
        };
        let (refills, none) = (read("720"), read("0"));
        let requests = Window { limit: Some(720), remaining: Some(0), reset: None };
        assert_eq!((refills.kind, refills.observed.requests), (Kind::RateLimited, Some(requests)));
        assert_eq!(refills.observed.tokens.and_then(|tokens| tokens.limit), Some(500_000));
        assert_eq!((none.kind, none.span), (Kind::QuotaExhausted, Some(Span::Credit)));
    }

    /// A limit of zero does not apply.
    #[test]
    fn a_limit_of_nothing_is_none() {
        let headers = [("x-ratelimit-limit-tokens", "0"), ("x-ratelimit-remaining-tokens", "0")];
        assert_eq!(observed(&testing::headers(&headers)).tokens, None);
    }

    #[test]
    fn limits_stand_in_headers() {
        let observed = observed(&testing::headers(&[
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("x-ratelimit-reset-requests", "12ms"),
        ]));
        let reset = Some(Duration::from_mins(6));
        let tokens = Window { limit: Some(150_000), remaining: Some(149_984), reset };
        assert_eq!((observed.tokens, observed.requests), (Some(tokens), None));
    }
}
