//! The names of Gemini's errors: `quotaId` of a violated quota and `reason`, then wording and
//! `status`.

use crate::{classify::Names, envelope::Envelope, error::Kind};

pub(crate) static NAMES: Names = Names { by_code, by_type };

fn by_code(status: u16, code: &str, envelope: &Envelope) -> Option<Kind> {
    match code {
        // `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. Such a 429 carries a RetryInfo of
        // seconds all the same.
        _ if code.contains("PerDay") => Some(Kind::QuotaExhausted),
        // A limit of nothing: the model is not part of this tier.
        _ if code.contains("PerMinute") && envelope.limit_is_zero => Some(Kind::QuotaExhausted),
        // With a 400.
        "API_KEY_INVALID" => Some(Kind::Unauthorized),
        // `RATE_LIMIT_EXCEEDED` is told apart by the quota beside it, or by the status.
        _ if status == 429 && code.contains("PerMinute") => Some(Kind::RateLimited),
        _ => None,
    }
}

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    let says = |parts: &[&str]| envelope.says(parts);
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
