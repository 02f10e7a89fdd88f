//! Names of errors that say nothing of what a retry would bring, and are known all the same.
//!
//! A provider's sentence is kept where its error is known by name or by words. An error that is not
//! may quote anything, in any form: a key in halves, a prompt backwards.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::envelope::Envelope;

/// As vendors, servers and gateways call their errors, beside the names that decide something.
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

/// Parts of the sentences of those that have no name.
const PHRASES: &[&str] =
    &["exceeded token rate limit", "exceeded call rate limit", "overloaded", "rate limit"];

/// Sentences that are these and nothing more.
const SENTENCES: &[&str] = &[
    "internal server error",
    "not found",
    "resource not found",
    "service unavailable",
    "too many requests",
    "unauthorized",
];

/// Whether an error has such a name, or says such words.
pub(crate) fn has_one(envelope: &Envelope) -> bool {
    let mut names = envelope.codes.iter().chain(&envelope.types);
    let is_sentence = |message: &String| {
        let message = message.trim().trim_end_matches('.');
        SENTENCES.iter().any(|known| known.eq_ignore_ascii_case(message))
    };
    names.any(|name| NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)))
        || envelope.messages.iter().any(is_sentence)
        || PHRASES.iter().any(|phrase| envelope.says(&[phrase]))
}

/// What is said in the place of words that are not kept. The same words have the same number, so that
/// refusals can be told from each other.
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
