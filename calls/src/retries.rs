//! A batch's retry budget: provider calls beyond the first of each document.

use tidegate_quota::{Quota, Retries};
use tidegate_types::{FailureType, ModelId};

use crate::{
    attempt::Attempt,
    failure::{Failure, RETRIES_PER_DOCUMENT},
    health::Health,
};

/// Maximum number of retries of one run of a batch.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    /// Unique name of the run: two runs of one workflow id differ.
    pub run: String,
    /// Retries of all its documents together.
    pub calls: u64,
    /// Whether no number was configured: a document in parts then adds the budget of as many
    /// documents as it has calls.
    pub parts_add: bool,
}

impl RetryBudget {
    /// Pays for the next call, if it is a retry. An attempt that only waits for quota has paid
    /// already, so it pays again only after a call.
    ///
    /// # Errors
    /// The failure of the document's last call, if the budget is spent.
    pub async fn pay(
        &self,
        quota: &Quota,
        health: &Health,
        attempt: &Attempt,
        model: &ModelId,
    ) -> Result<(), Failure> {
        if !attempt.must_pay_for_retry() {
            return Ok(());
        }
        let adds = attempt.of_document.as_ref().filter(|_| self.parts_add);
        let adds = adds.map(|(document, calls)| {
            let more = calls.saturating_sub(1);
            (document.as_str(), more.saturating_mul(RETRIES_PER_DOCUMENT))
        });
        match quota.count_retry(&self.run, adds).await {
            Some(Retries { spent, added }) if spent > self.calls.saturating_add(added) => {
                let budget = self.calls.saturating_add(added);
                let last_failure = health.words(model);
                let last_failure =
                    last_failure.map_or_else(String::new, |it| format!("; the last failure: {it}"));
                let last = attempt.state().failed_as;
                let calls = if budget == 1 { "call" } else { "calls" };
                Err(Failure::never(
                    last.unwrap_or(FailureType::BudgetExceeded),
                    format!(
                        "the batch's retry budget of {budget} provider {calls} beyond the first of each document is spent{last_failure}"
                    ),
                ))
            }
            // While Redis is away, only the bound on each document's own faults applies.
            _ => {
                attempt.mark_retry_paid();
                Ok(())
            }
        }
    }
}
