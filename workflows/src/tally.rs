//! Adding up what documents came to.

use std::time::{Duration, SystemTime};

use temporalio_common::error::IncomingError;
use temporalio_workflow::ActivityExecutionError;

use crate::contract::{CallCounts, DocumentOutcome, FailedDocument, Totals};

/// Longest message of a failure that is carried along.
const MAX_MESSAGE_CHARS: usize = 500;

impl DocumentOutcome {
    /// Adds what another step of the same document took.
    pub fn add(&mut self, other: &Self) {
        let CallCounts { provider_calls, rate_limited, deferrals } = other.effort;
        self.effort.provider_calls += provider_calls;
        self.effort.rate_limited += rate_limited;
        self.effort.deferrals += deferrals;
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost_usd += other.cost_usd;
    }
}

impl Totals {
    /// Documents that have ended, in whichever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.skipped
    }

    /// A document has an outcome.
    pub fn add(&mut self, outcome: &DocumentOutcome) {
        if outcome.skipped {
            self.skipped += 1;
        } else {
            self.succeeded += 1;
        }
        self.add_spent(outcome);
    }

    /// Adds what something took that is no document's outcome.
    pub fn add_spent(&mut self, spent: &DocumentOutcome) {
        self.add_effort(&spent.effort);
        self.input_tokens += spent.input_tokens;
        self.cached_input_tokens += spent.cached_input_tokens;
        self.output_tokens += spent.output_tokens;
        self.cost_usd += spent.cost_usd;
    }

    /// A document was given up.
    pub fn add_failed(&mut self, effort: &CallCounts) {
        self.failed += 1;
        self.add_effort(effort);
    }

    fn add_effort(&mut self, effort: &CallCounts) {
        self.provider_calls += u64::from(effort.provider_calls);
        self.rate_limited += u64::from(effort.rate_limited);
        self.deferrals += u64::from(effort.deferrals);
    }

    /// Adds another sum.
    pub fn add_totals(&mut self, other: &Self) {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            succeeded,
            failed,
            skipped,
            in_flight,
            provider_calls,
            rate_limited,
            deferrals,
            input_tokens,
            cached_input_tokens,
            output_tokens,
            cost_usd,
        } = other;
        self.succeeded += succeeded;
        self.failed += failed;
        self.skipped += skipped;
        self.in_flight += in_flight;
        self.provider_calls += provider_calls;
        self.rate_limited += rate_limited;
        self.deferrals += deferrals;
        self.input_tokens += input_tokens;
        self.cached_input_tokens += cached_input_tokens;
        self.output_tokens += output_tokens;
        self.cost_usd += cost_usd;
    }
}

/// What a failed activity says about its document.
#[must_use]
pub fn failed_document(index: u32, error: &ActivityExecutionError) -> (FailedDocument, CallCounts) {
    let (error_type, message, effort) = match error.reason() {
        Some(IncomingError::Application(failure)) => (
            failure.type_name().unwrap_or("Unknown").to_owned(),
            failure
                .failure()
                .map_or_else(|| failure.to_string(), |failure| failure.message.clone()),
            failure.details::<CallCounts>().ok().flatten().unwrap_or_default(),
        ),
        Some(IncomingError::Timeout(timeout)) => {
            ("Timeout".to_owned(), timeout.failure().message.clone(), CallCounts::default())
        }
        _ => ("Unknown".to_owned(), error.to_string(), CallCounts::default()),
    };
    let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
    (FailedDocument { index, error_type, message, provider_calls: effort.provider_calls }, effort)
}

/// The sentence at the bottom of a failure: those above it only say that something below has
/// failed.
#[must_use]
pub fn root_message(error: &IncomingError) -> String {
    let mut root = error;
    while let Some(cause) = root.cause() {
        root = cause;
    }
    root.failure().message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// RFC 3339, in whole seconds.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// When the rest will be done at the pace so far.
#[must_use]
pub fn eta(started: SystemTime, now: SystemTime, worked: u64, left: u64) -> Option<SystemTime> {
    let elapsed = now.duration_since(started).ok()?;
    if worked == 0 || left == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of documents lie far below 2^53")]
    let rest = elapsed.as_secs_f64() * left as f64 / worked as f64;
    now.checked_add(Duration::try_from_secs_f64(rest).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_pace_says() {
        let start = SystemTime::UNIX_EPOCH;
        let now = start + Duration::from_secs(100);
        assert_eq!(eta(start, now, 50, 25), Some(now + Duration::from_secs(50)));
        assert_eq!(eta(start, now, 0, 25), None);
        assert_eq!(eta(start, now, 50, 0), None);
        assert_eq!(eta(now, start, 1, 1), None);
        assert_eq!(rfc3339(now), "1970-01-01T00:01:40Z");
    }
}
