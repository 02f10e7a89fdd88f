//! Anthropic's error names (`details.error_code`, then wording and `type`), and its limits in
//! headers.

use chrono::DateTime;
use http::HeaderMap;

use crate::{
    classify::ErrorNames,
    envelope::Envelope,
    error::Kind,
    observed::{Observed, Window},
    wait_hint,
};

pub(crate) const NAMES: ErrorNames = ErrorNames::Read { by_code, by_type };

fn by_code(_status: u16, code: &str, _envelope: &Envelope) -> Option<Kind> {
    Some(match code {
        // Two kinds of 429 that waiting does not resolve: a tier's cap and a contract's.
        "enforced_spend_limit_reached" | "contract_spend_limit_reached" => Kind::QuotaExhausted,
        _ if code.starts_with("linked_organization_") => Kind::QuotaExhausted,
        "ramp_limit_exceeded" => Kind::RateLimited,
        "organization_on_hold" => Kind::Unauthorized,
        _ if code.starts_with("user_profile_") || code.starts_with("sandbox_") => {
            Kind::Unauthorized
        }
        "request_body_too_large_after_decoding" => Kind::TooLarge,
        // A 400: the body arrived too slowly.
        "request_body_timeout" => Kind::Transient,
        "concurrent_membership_change" => Kind::Transient,
        // 503s that concern the customer's own key service.
        "cmek_key_unreachable" | "cmek_context_unavailable" => Kind::Transient,
        "compaction_unavailable" => Kind::Overloaded,
        _ => return None,
    })
}

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    let is = |class: &str| envelope.types.iter().any(|given| given == class);
    if is("invalid_request_error") || status == 400 {
        // A user's spend limit, and an empty account: 400s that only their wording distinguishes
        // from a bad request.
        if envelope.has_message(&["you have reached your specified", "usage limits"])
            || envelope.has_message(&["credit balance is too low"])
        {
            return Some(Kind::QuotaExhausted);
        }
    }
    envelope.types.iter().find_map(|class| {
        Some(match class.as_str() {
            "authentication_error" | "permission_error" => Kind::Unauthorized,
            "billing_error" => Kind::QuotaExhausted,
            "rate_limit_error" => Kind::RateLimited,
            "overloaded_error" => Kind::Overloaded,
            "timeout_error" => Kind::Timeout,
            "request_too_large" => Kind::TooLarge,
            "not_found_error" => Kind::InvalidRequest,
            "conflict_error" => Kind::Transient,
            // Gateways pass bad requests on as their own failure. OpenAI uses this type with every
            // 4xx, where the status is more exact.
            "invalid_request_error" if status >= 500 || status == 400 => Kind::InvalidRequest,
            "api_error" if status >= 500 => match status {
                503 | 529 => Kind::Overloaded,
                504 => Kind::Timeout,
                _ => Kind::Transient,
            },
            _ => return None,
        })
    })
}

/// Reads the headers `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,
/// remaining,reset}`, which come with successes and 429s.
pub(crate) fn observed(headers: &HeaderMap) -> Observed {
    let now = wait_hint::middle_of_second(headers);
    let window = |what| {
        let header = |end| wait_hint::text(headers, &format!("anthropic-ratelimit-{what}-{end}"));
        let reset = header("reset").and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        let reset = reset.and_then(|reset| wait_hint::until(reset.to_utc(), now));
        Window::read(header("limit"), header("remaining"), reset)
    };
    Observed {
        requests: window("requests"),
        tokens: window("tokens"),
        input_tokens: window("input-tokens"),
        output_tokens: window("output-tokens"),
        resets_are_moments: true,
        request_id: wait_hint::text(headers, "request-id").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing;

    #[test]
    fn limits_stand_in_headers() {
        let headers = testing::headers(&[
            ("date", "Fri, 20 Nov 2026 12:00:01 GMT"),
            ("anthropic-ratelimit-requests-limit", "1000"),
            ("anthropic-ratelimit-requests-remaining", "999"),
            ("anthropic-ratelimit-requests-reset", "2026-11-20T12:00:03Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "1998000"),
            ("anthropic-ratelimit-output-tokens-limit", "many"),
            ("request-id", "req_1"),
        ]);
        let observed = observed(&headers);
        let reset = Some(Duration::from_millis(1_500));
        let requests = Window { limit: Some(1000), remaining: Some(999), reset };
        assert_eq!(observed.requests, Some(requests));
        assert_eq!(
            observed.input_tokens,
            Some(Window { remaining: Some(1_998_000), ..Window::default() })
        );
        assert_eq!((observed.tokens, observed.output_tokens), (None, None));
        assert_eq!(observed.request_id.as_deref(), Some("req_1"));
    }
}
