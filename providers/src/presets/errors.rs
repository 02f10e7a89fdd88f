//! Errors that these vendors say otherwise than OpenAI.

use crate::{envelope::Envelope, error::Kind};

pub(super) fn no_code(_: u16, _: &str, _: &Envelope) -> Option<Kind> {
    None
}

pub(super) fn no_type(_: u16, _: &Envelope) -> Option<Kind> {
    None
}

fn has_type(envelope: &Envelope, name: &str) -> bool {
    envelope.types.iter().any(|class| class == name)
}

/// 429 `service_tier_capacity_exceeded`: everybody's, not ours
/// (help.mistral.ai, "Why am I getting a 429").
pub(super) fn mistral(_: u16, envelope: &Envelope) -> Option<Kind> {
    has_type(envelope, "service_tier_capacity_exceeded").then_some(Kind::Overloaded)
}

/// 498: the flexible tier has no capacity left; 424: a fault of a service behind it
/// (console.groq.com/docs/errors). Limits of a day are said in words.
pub(super) fn groq(status: u16, envelope: &Envelope) -> Option<Kind> {
    match status {
        498 => Some(Kind::Overloaded),
        424 => Some(Kind::Transient),
        413 if envelope.says(&["tokens per minute"]) => Some(Kind::TooLarge),
        _ => None,
    }
}

/// docs.together.ai/docs/error-codes.
pub(super) fn together_code(_: u16, code: &str, _: &Envelope) -> Option<Kind> {
    match code {
        // Traffic grew faster than the machines behind it.
        "dynamic_request_limited" | "dynamic_token_limited" => Some(Kind::RateLimited),
        _ => None,
    }
}

/// 412: the account is suspended, mostly for a bill or a spending limit
/// (docs.fireworks.ai/guides/inference-error-codes).
pub(super) fn fireworks(status: u16, _: &Envelope) -> Option<Kind> {
    (status == 412).then_some(Kind::QuotaExhausted)
}

/// A 429 for a limit of rate, and one, in the same words otherwise, for credit that is used up.
pub(super) fn xai(status: u16, envelope: &Envelope) -> Option<Kind> {
    let spent = envelope.says(&["used all available credits"])
        || envelope.says(&["monthly spending limit"]);
    (matches!(status, 403 | 429) && spent).then_some(Kind::QuotaExhausted)
}

/// 403: the vendor behind it moderates, and the text was flagged; a day's limit of free models is
/// said in words (openrouter.ai/docs/api-reference/errors, .../limits).
pub(super) fn openrouter(status: u16, envelope: &Envelope) -> Option<Kind> {
    match status {
        403 if envelope.says(&["flagged"]) || envelope.says(&["moderation"]) => {
            Some(Kind::ContentRefused)
        }
        429 if envelope.says(&["free-models-per-day"]) => Some(Kind::QuotaExhausted),
        _ => None,
    }
}

/// platform.moonshot.ai/docs: "exceeded_current_quota_error" is money,
/// "engine_overloaded_error" everybody's.
pub(super) fn moonshot(_: u16, envelope: &Envelope) -> Option<Kind> {
    if has_type(envelope, "exceeded_current_quota_error") {
        Some(Kind::QuotaExhausted)
    } else if has_type(envelope, "engine_overloaded_error") {
        Some(Kind::Overloaded)
    } else {
        None
    }
}
