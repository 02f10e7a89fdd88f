//! Settles a call: the provider's reply in the limiter's terms.

use std::time::Duration;

use tidegate_providers::{Charged, Error, Kind, Observed};
use tidegate_quota::{PerDimension, Permit, snapshot::RATE_LIMITED, store::Meter};
use tidegate_types::Usage;

/// Pause after a refusal for a spent account that names no reset. Then one call tests the account,
/// unless an operator opens the gate sooner.
pub const UNKNOWN_RESET: Duration = Duration::from_secs(900);

/// Settles an answered call, which took so long. If the use is unknown, all that was reserved stays
/// charged.
pub async fn answered(
    mut permit: Permit,
    usage: Option<&Usage>,
    observed: &Observed,
    took: Duration,
) {
    permit.observed(meter(observed, took));
    match usage {
        Some(usage) => permit.settle(usage).await,
        None => permit.keep_charged().await,
    }
}

/// Settles a call that the provider refused or failed. The call's charge and the effect on the
/// fleet are settled in one step: a 429 closes the gate, for at least `least_pause` if it names no
/// wait; an overload lowers the number of calls in flight; a spent account or day closes the gate
/// until its reset.
pub async fn failed(mut permit: Permit, error: &Error, least_pause: Duration) {
    // A refusal comes at once.
    permit.observed(meter(&error.observed, Duration::ZERO));
    match (error.kind, &error.charged) {
        (Kind::RateLimited, _) => {
            permit.rate_limited(error.retry_after.unwrap_or(least_pause), RATE_LIMITED).await;
        }
        (Kind::Overloaded, _) => permit.overloaded().await,
        (Kind::QuotaExhausted, _) => {
            permit.exhausted(error.retry_after.unwrap_or(UNKNOWN_RESET), &error.message).await;
        }
        (_, Charged::No) => permit.settle_unused().await,
        (_, Charged::Usage(usage)) => permit.settle(usage).await,
        (_, Charged::Unknown) => permit.keep_charged().await,
    }
}

/// The provider's own count, from a reply that came after `took`. If Anthropic reports input and
/// output separately, its `tokens` repeats the tighter of them, and is left out.
pub fn meter(observed: &Observed, took: Duration) -> Meter {
    let combined = if observed.input_tokens.is_some() { None } else { observed.tokens };
    let windows = PerDimension {
        requests: observed.requests,
        input: observed.input_tokens,
        output: observed.output_tokens,
        combined,
    };
    let before = if observed.resets_are_moments { took } else { Duration::ZERO };
    Meter {
        used: windows.map(|window| {
            window.and_then(|window| Some(window.limit?.saturating_sub(window.remaining?)))
        }),
        limits: windows.map(|window| window.and_then(|window| window.limit)),
        resets: windows.map(|window| window?.reset_before(before)),
    }
}
