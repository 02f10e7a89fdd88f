//! Failures of providers: refusals, faults, keys.

use std::time::Duration;

use tidegate_providers::{self as providers, Kind};
use tidegate_types::{CallCounts, FailureType, ModelId, WaitsFor};

use super::{
    AT_ONCE, Concerns, Failure, KEY_ELSEWHERE, KEY_REFUSED, MAX_FAULTS, Retry, SAME_REFUSALS,
};

impl Failure {
    /// The failure for a provider's error. `counts` includes it.
    pub fn from_provider(error: &providers::Error, counts: &CallCounts) -> Self {
        let kind = provider_failure(error.kind);
        let faults = counts.provider_calls.saturating_sub(counts.rate_limited);
        if !error.kind.is_retryable() {
            return Self::never(kind, &error.message);
        }
        if faults >= MAX_FAULTS {
            return Self::never(kind, format!("given up after {faults} calls: {}", error.message));
        }
        let so_far = if error.kind == Kind::RateLimited { counts.rate_limited } else { faults };
        let (before, at_least) = (so_far.saturating_sub(1), error.retry_after.unwrap_or_default());
        Self::new(kind, &error.message, Retry::ByFaults { before, at_least })
    }

    /// The failure for an output bound above the model's maximum; the next call's bound is `cap`.
    pub fn bound_too_large(words: &str, cap: u32) -> Self {
        let message = format!("{words}; it is asked again with {cap}");
        Self::new(FailureType::InvalidRequest, message, Retry::After(AT_ONCE))
    }

    /// The failure for a failed step of a provider's batch. Every such fault may pass; the step
    /// bounds its own retries.
    pub fn from_batch_api(error: &providers::Error, attempt: u32) -> Self {
        let provider_calls = attempt.min(MAX_FAULTS - 1);
        let failure =
            Self::from_provider(error, &CallCounts { provider_calls, ..CallCounts::default() });
        let retry = if failure.is_retried() { failure.retry } else { Retry::After(Duration::MAX) };
        Self { retry, ..failure }
    }

    /// The failure for a key that was just refused with this message; another worker may have a
    /// good one.
    pub fn key_refused(words: &str) -> Self {
        Self::new(FailureType::Unauthorized, words, Retry::AfterSpread(KEY_ELSEWHERE))
    }

    /// The failure for a refused key that may be good again soon: the document comes back after
    /// this long.
    pub fn key_may_pass(words: &str, after: Duration) -> Self {
        Self::new(FailureType::Unauthorized, words, Retry::AfterSpread(after.max(KEY_ELSEWHERE)))
    }

    /// The failure for a document that gets a 403 while the model answers others with the same key.
    /// It is tried again twice, in case the key is replaced.
    pub fn document_forbidden(model: &ModelId, words: &str, faults: u32) -> Self {
        let message =
            format!("{model} answers others with this key, but not this document: {words}");
        if faults < SAME_REFUSALS {
            return Self::new(
                FailureType::Unauthorized,
                message,
                Retry::AfterSpread(KEY_ELSEWHERE),
            );
        }
        Self::never(FailureType::Unauthorized, message)
    }

    /// The failure for an account that the provider reports as spent, which may be a passing fault:
    /// the document comes back when one call has tested it.
    pub fn account_may_pass(words: &str, after: Duration) -> Self {
        Self::new(FailureType::QuotaExhausted, words, Retry::AfterSpread(after))
    }

    /// The failure for a model that does not exist by the provider's report, which may be a passing
    /// fault: the document comes back when one call has tested it.
    pub fn model_may_come(words: &str, after: Duration) -> Self {
        Self::new(FailureType::InvalidRequest, words, Retry::AfterSpread(after))
    }

    /// The failure for a key that was refused before, so no call was made.
    pub fn handed_back(model: &ModelId, words: &str) -> Self {
        let message =
            format!("this worker's key for {model} is refused, another worker may do it: {words}");
        Self { benign: true, ..Self::key_refused(&message) }
    }

    /// Like [`Self::handed_back`], before this run of the batch has seen a refusal: only other
    /// runs' calls were refused, and the key may be good by now.
    pub fn key_is_tried(model: &ModelId, words: &str, after: Duration) -> Self {
        let message = format!(
            "the key for {model} was refused before; one call tests it again within {KEY_REFUSED:?}: {words}"
        );
        Self { benign: true, ..Self::key_may_pass(&message, after) }
    }

    /// The failure for a model that the provider does not know; `words` is its message.
    pub fn unknown_model(model: &ModelId, words: &str) -> Self {
        let (provider, name) = (model.provider(), model.model());
        let message = format!(
            "{provider} does not know the model {name}: correct its name in the batch or its route, and in [models.\"{model}\"], or base-url of {provider} (`tidegate doctor` compares names with the provider's list); it said: {words}"
        );
        let failure = Self::never(FailureType::InvalidRequest, message);
        Self { concerns: Concerns::TheModel, ..failure }
    }

    /// The failure for a model that does not support a feature that every document uses; `words` is
    /// the provider's message.
    pub fn unsupported(model: &ModelId, words: &str) -> Self {
        let message = format!(
            "{model} does not take what is asked of it: change the request (its parameters, its schema) or the model; it said: {words}"
        );
        let failure = Self::never(FailureType::InvalidRequest, message);
        Self { concerns: Concerns::TheModel, ..failure }
    }

    /// The failure for a model for which no live worker has an accepted key.
    pub fn keys_gone(model: &ModelId, words: &str) -> Self {
        let message = format!("no worker has a key that is accepted for {model}: {words}");
        Self::never(FailureType::Unauthorized, message)
    }

    /// Whether the model cannot be asked at present, so that another one should be.
    pub fn model_is_gone(&self) -> bool {
        let is_gone = matches!(self.kind, FailureType::QuotaExhausted | FailureType::Unauthorized)
            || self.concerns == Concerns::TheModel;
        is_gone && !self.is_retried()
    }

    /// Whether the model had no room or failed, so that after several of these another should be
    /// asked.
    pub fn model_is_short(&self) -> bool {
        let kind = matches!(
            self.kind,
            FailureType::RateLimited
                | FailureType::QuotaWait
                | FailureType::Overloaded
                | FailureType::Transient
        );
        kind && self.waits_for != Some(WaitsFor::Paused)
    }
}

/// The failure type of a provider's error.
pub fn provider_failure(kind: Kind) -> FailureType {
    match kind {
        Kind::RateLimited => FailureType::RateLimited,
        Kind::Overloaded => FailureType::Overloaded,
        Kind::Transient | Kind::Timeout | Kind::Unreachable => FailureType::Transient,
        Kind::QuotaExhausted => FailureType::QuotaExhausted,
        Kind::Unauthorized => FailureType::Unauthorized,
        Kind::InvalidRequest | Kind::UnknownModel | Kind::Unsupported | Kind::OutputCapTooLarge => {
            FailureType::InvalidRequest
        }
        Kind::TooLarge => FailureType::TooLarge,
        Kind::ContentRefused => FailureType::ContentRefused,
        Kind::InvalidOutput => FailureType::InvalidOutput,
    }
}
