//! Error names that are known, but do not affect a retry.
//!
//! A provider's message is kept if its error is known by name or by wording. An unknown error may
//! quote anything in any form: half a key, a reversed prompt.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::envelope::Envelope;

/// Error names of vendors, servers and gateways, in addition to those that affect a retry.
const NAMES: &[&str] = &[
    "AccessDeniedException",
    "BadRequestError",
    "InternalServerException",
    "ModelErrorException",
    "ModelNotReadyException",
    "ModelTimeoutException",
    "NotFoundError",
    "PRECONDITION_FAILED",
    "RateLimitReached",
    "ResourceNotFoundException",
    "ServiceUnavailableException",
    "ThrottlingException",
    "UnprocessableEntityError",
    "ValidationException",
    "api_error",
    "bad_request",
    "conflict",
    "exceeded_current_quota_error",
    "internal_error",
    "internal_server_error",
    "invalid_parameter_error",
    "invalid_request",
    "invalid_request_error",
    "invalid_request_prompt",
    "invalid_type",
    "invalid_value",
    "limit_burst_rate",
    "missing_required_parameter",
    "model_rate_limit",
    "not_found_error",
    "permission_denied",
    "queue_exceeded",
    "rate_limit_reached_error",
    "rate_limited",
    "request_forbidden",
    "server_error",
    "service_unavailable",
    "timeout",
    "token_quota_exceeded",
    "too_many_requests",
    "too_many_requests_error",
    "too_many_tokens_error",
    "unavailable_error",
    "unknown_error",
    "unsupported_country_region_territory",
    "upstream_error",
];

/// Parts of messages without a name.
const PHRASES: &[&str] =
    &["exceeded token rate limit", "exceeded call rate limit", "overloaded", "rate limit"];

/// Whole messages without a name.
const SENTENCES: &[&str] = &[
    "internal server error",
    "not found",
    "resource not found",
    "service unavailable",
    "too many requests",
    "unauthorized",
];

/// Whether an error has a known name or wording.
pub(crate) fn has_one(envelope: &Envelope) -> bool {
    let mut names = envelope.codes.iter().chain(&envelope.types);
    let is_sentence = |message: &String| {
        let message = message.trim().trim_end_matches('.');
        SENTENCES.iter().any(|known| known.eq_ignore_ascii_case(message))
    };
    names.any(|name| NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)))
        || envelope.messages.iter().any(is_sentence)
        || PHRASES.iter().any(|phrase| envelope.has_message(&[phrase]))
}

/// Replaces a message that is not kept. Equal messages get the same number, so that refusals can be
/// told apart.
pub(crate) fn instead_of(envelope: &Envelope) -> String {
    let Some(words) = envelope.messages.first().or_else(|| envelope.codes.first()) else {
        return String::new();
    };
    let mut hasher = DefaultHasher::new();
    (words, &envelope.codes, &envelope.types).hash(&mut hasher);
    let number = hasher.finish() >> 40;
    format!(
        ": an error that is not known here; its words (number {number:06x}) are not kept, for they may quote the request or the key"
    )
}
