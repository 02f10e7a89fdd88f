//! All metrics of this crate; no other file contains a metric's name.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use tidegate_types::{Lane, ModelId};

use crate::{conversions::float, dimension::Dimension, model::ModelQuota, snapshot::Snapshot};

const IN_FLIGHT: &str = "tidegate_in_flight";
const QUOTA_USED: &str = "tidegate_quota_used";
const QUOTA_LIMIT: &str = "tidegate_quota_limit";
const QUOTA_WAIT: &str = "tidegate_quota_wait_seconds";
const QUESTIONS: &str = "tidegate_quota_questions_total";
const DENIALS: &str = "tidegate_denials_total";
const PAUSES: &str = "tidegate_pauses_total";
const GATE_CLOSED: &str = "tidegate_gate_closed";
const QUEUE_DEPTH: &str = "tidegate_queue_depth";
const WORKERS: &str = "tidegate_workers";
const DEGRADED: &str = "tidegate_redis_degraded";
const ADMISSIBLE: &str = "tidegate_admissible_documents";

/// Gives each metric its help text.
pub fn describe() {
    describe_gauge!(IN_FLIGHT, "Admitted calls of this worker that have not ended");
    describe_gauge!(QUOTA_USED, "Use and reservations of the whole fleet in the window");
    describe_gauge!(QUOTA_LIMIT, "Limit in force for one window, with margin and corrections");
    describe_histogram!(
        QUOTA_WAIT,
        metrics::Unit::Seconds,
        "Wait for admission within one attempt"
    );
    describe_counter!(
        QUESTIONS,
        "Script calls that ask for admission; one may be about several calls"
    );
    describe_counter!(DENIALS, "Times that a call had to wait, by the dimension that held it");
    describe_counter!(PAUSES, "Pauses that this worker set");
    describe_gauge!(GATE_CLOSED, "Seconds until the model's gate opens; 0 while it is open");
    describe_gauge!(
        QUEUE_DEPTH,
        "Approximate number of calls of the whole fleet that wait for their turn"
    );
    describe_gauge!(WORKERS, "Live workers");
    describe_gauge!(DEGRADED, "1 while Redis is away and this worker keeps to its own share");
    describe_gauge!(
        ADMISSIBLE,
        "Documents that this worker's share of the limits allows in flight if more wait than it has slots, else those in flight. The fleet's sum divided by max-concurrent-documents is the useful number of workers"
    );
    gauge!(DEGRADED).set(0.0);
}

pub(crate) fn record_admission(model: &ModelId, lane: &Lane, waited: Duration) {
    gauge!(IN_FLIGHT, "model" => model.to_string(), "lane" => lane.to_string()).increment(1.0);
    histogram!(QUOTA_WAIT, "model" => model.to_string(), "lane" => lane.to_string())
        .record(waited.as_secs_f64());
}

pub(crate) fn record_end(model: &ModelId, lane: &Lane) {
    gauge!(IN_FLIGHT, "model" => model.to_string(), "lane" => lane.to_string()).decrement(1.0);
}

pub(crate) fn count_question(model: &ModelId) {
    counter!(QUESTIONS, "model" => model.to_string()).increment(1);
}

/// `bound` is a hold's name, `day` or `redis_away`.
pub(crate) fn count_denial(model: &ModelId, bound: &'static str) {
    counter!(DENIALS, "model" => model.to_string(), "dimension" => bound).increment(1);
}

pub(crate) fn count_pause(model: &ModelId, reason: &str) {
    counter!(PAUSES, "model" => model.to_string(), "reason" => reason.to_owned()).increment(1);
}

pub(crate) fn set_degraded(away: bool) {
    gauge!(DEGRADED).set(f64::from(u8::from(away)));
}

pub(crate) fn set_workers(live: u64) {
    gauge!(WORKERS).set(float(live));
}

/// Sets the number of documents that this worker's part of the limits could hold at once.
pub fn set_admissible(documents: f64) {
    gauge!(ADMISSIBLE).set(documents);
}

pub(crate) fn record_snapshot(model: &ModelQuota, snapshot: &Snapshot) {
    gauge!(GATE_CLOSED, "model" => model.id.to_string()).set(snapshot.pause.as_secs_f64());
    for lane in &snapshot.lanes {
        gauge!(QUEUE_DEPTH, "model" => model.id.to_string(), "lane" => lane.lane.to_string())
            .set(float(lane.waiting));
    }
    for dimension in Dimension::ALL {
        let state = snapshot.get(dimension);
        if state.limit > 0 {
            let (used, limit) = (float(state.used), float(state.limit));
            gauge!(QUOTA_USED, "model" => model.id.to_string(), "dimension" => dimension.name())
                .set(used);
            gauge!(QUOTA_LIMIT, "model" => model.id.to_string(), "dimension" => dimension.name())
                .set(limit);
        }
    }
}
