//! All metrics of this crate; no other module contains a metric's name.

use metrics::{counter, describe_counter, describe_gauge, gauge};
use parking_lot::Mutex;
use tidegate_providers::Kind;
use tidegate_types::{ModelId, Tenant, Usage};

const DOCUMENTS: &str = "tidegate_documents_total";
const COST: &str = "tidegate_cost_usd_total";
const UNWRITTEN_ANSWERS: &str = "tidegate_unwritten_answers";
const SPOOLED_ANSWERS: &str = "tidegate_spooled_answers";
const CALLS_PER_DOCUMENT: &str = "tidegate_calls_per_document";

/// Gives each metric its help text.
pub fn describe() {
    describe_counter!(
        DOCUMENTS,
        "Documents that have ended; outcome: succeeded, skipped, or the failure"
    );
    describe_gauge!(
        COST,
        "US dollars, of calls whose price is known: a sum that only grows, in a gauge because a counter holds whole numbers"
    );
    describe_gauge!(
        UNWRITTEN_ANSWERS,
        "Answers that this worker holds because their store does not accept them; their batches buy nothing more"
    );
    describe_gauge!(
        SPOOLED_ANSWERS,
        "Bought answers in this worker's spool that are not yet in their store"
    );
    describe_gauge!(
        CALLS_PER_DOCUMENT,
        "Provider calls of this worker per answered document; 1 is best"
    );
}

/// Documents of this process that have an answer.
static ANSWERED: Mutex<f64> = Mutex::new(0.0);

/// Counts an answer out of a provider's batch.
pub(crate) fn count_batch_answer(
    model: &ModelId,
    usage: Option<&Usage>,
    failed: Option<Kind>,
    cost_usd: Option<f64>,
    tenant: &Tenant,
) {
    tidegate_calls::metrics::count_batch_call(model, usage, failed);
    count_documents(1, failed.map_or("succeeded", Kind::label));
    if failed.is_none() {
        count_answer(model, cost_usd, tenant);
    }
}

/// Counts a document's answer, at this price.
pub(crate) fn count_answer(model: &ModelId, cost_usd: Option<f64>, tenant: &Tenant) {
    if let Some(cost) = cost_usd {
        gauge!(COST, "model" => model.to_string(), "tenant" => tenant.to_string()).increment(cost);
    }
    let mut answered = ANSWERED.lock();
    *answered += 1.0;
    gauge!(CALLS_PER_DOCUMENT).set(tidegate_calls::metrics::calls() / *answered);
}

/// Changes the number of attempts that hold an answer which cannot be written.
pub(crate) fn change_held_answers(change: f64) {
    gauge!(UNWRITTEN_ANSWERS).increment(change);
}

/// Sets the number of files in the spool.
pub(crate) fn set_spooled_answers(count: usize) {
    gauge!(SPOOLED_ANSWERS).set(count as f64);
}

/// Counts a document that has ended.
pub(crate) fn count_document(outcome: &'static str) {
    count_documents(1, outcome);
}

/// Counts several documents that have ended.
pub(crate) fn count_documents(count: u64, outcome: &'static str) {
    counter!(DOCUMENTS, "outcome" => outcome).increment(count);
}
