//! The names of Anthropic's errors: `details.error_code`, then wording and `type`.

use crate::{classify::Names, envelope::Envelope, error::Kind};

pub(crate) static NAMES: Names = Names { by_code, by_type };

fn by_code(_status: u16, code: &str, _envelope: &Envelope) -> Option<Kind> {
    Some(match code {
        // Two kinds of 429 that no waiting cures: a tier's cap and a contract's.
        "enforced_spend_limit_reached" | "contract_spend_limit_reached" => Kind::QuotaExhausted,
        _ if code.starts_with("linked_organization_") => Kind::QuotaExhausted,
        "ramp_limit_exceeded" => Kind::RateLimited,
        "organization_on_hold" => Kind::Unauthorized,
        _ if code.starts_with("user_profile_") || code.starts_with("sandbox_") => {
            Kind::Unauthorized
        }
        "request_body_too_large_after_decoding" => Kind::TooLarge,
        // A 400: the body came in too slowly.
        "request_body_timeout" => Kind::Transient,
        "concurrent_membership_change" => Kind::Transient,
        // 503s that are about the customer's own key service.
        "cmek_key_unreachable" | "cmek_context_unavailable" => Kind::Transient,
        "compaction_unavailable" => Kind::Overloaded,
        _ => return None,
    })
}

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    let is = |class: &str| envelope.types.iter().any(|given| given == class);
    if is("invalid_request_error") || status == 400 {
        // A spend limit set by the user, and an empty account: 400s that only their wording tells
        // from a bad request.
        if envelope.says(&["you have reached your specified", "usage limits"])
            || envelope.says(&["credit balance is too low"])
        {
            return Some(Kind::QuotaExhausted);
        }
        if envelope.says(&["prompt is too long"]) || envelope.says(&["exceed", "context limit"]) {
            return Some(Kind::TooLarge);
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
            // Gateways pass bad requests on as their own failure; OpenAI uses this type with every
            // 4xx, where the status knows better.
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
