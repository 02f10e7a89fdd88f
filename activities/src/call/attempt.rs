//! What one attempt at a document tells the next, through Temporal's heartbeat details.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tidegate_quota::Ticket;
use tidegate_workflows::contract::CallCounts;

/// Carried from attempt to attempt: a heartbeat's details outlive the worker that sent them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptState {
    /// How often the document asked so far.
    #[serde(flatten)]
    pub effort: CallCounts,
    /// Its turn in the queue for quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// Calls that the batch's retry budget has paid for.
    pub paid_retries: u32,
    /// The step of its route that the document is on.
    pub step: u32,
    /// Refusals in a row on that step.
    pub refusals: u32,
    /// The model, by its place in the route, that was asked last: the turn belongs to it.
    pub asked: u32,
    /// Answers that did not satisfy the schema.
    #[serde(rename = "amiss")]
    pub invalid_outputs: u32,
}

/// One attempt at one document. Clones share the notes: one works, the other beats.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Names this attempt and no other, for the limiter.
    pub reservation: String,
    /// Names the batch, for its retry budget.
    pub batch: String,
    /// When the document's activity was scheduled, in milliseconds since 1970: results are ours
    /// from then on.
    pub scheduled_millis: i64,
    notes: Arc<Mutex<AttemptState>>,
}

impl Attempt {
    /// Begins with what the attempt before left.
    #[must_use]
    pub fn new(
        reservation: String,
        batch: String,
        scheduled_millis: i64,
        notes: AttemptState,
    ) -> Self {
        Self { reservation, batch, scheduled_millis, notes: Arc::new(Mutex::new(notes)) }
    }

    /// Names the document's step, whatever the attempt.
    #[must_use]
    pub fn document(&self) -> &str {
        self.reservation.rsplit_once('.').map_or(&self.reservation, |(document, _)| document)
    }

    /// A copy of the notes.
    #[must_use]
    pub fn notes(&self) -> AttemptState {
        *self.lock()
    }

    /// How often the document asked so far.
    #[must_use]
    pub fn effort(&self) -> CallCounts {
        self.lock().effort
    }

    /// A call is about to leave. Counted before, so that a crash cannot hide it.
    pub fn calling(&self) {
        let mut notes = self.lock();
        notes.effort.provider_calls += 1;
        notes.ticket = None;
    }

    /// The call was answered 429.
    pub fn rate_limited(&self) {
        self.lock().effort.rate_limited += 1;
    }

    /// The document goes back to Temporal to wait, and keeps its turn.
    pub fn deferred(&self, ticket: Option<Ticket>) {
        let mut notes = self.lock();
        notes.effort.deferrals += 1;
        notes.ticket = ticket;
    }

    /// The model at this place of the route is asked; a turn at another is given up.
    pub fn asks(&self, place: u32) {
        let mut notes = self.lock();
        if notes.asked != place {
            notes.asked = place;
            notes.ticket = None;
        }
    }

    /// The document was refused once more; the step of its route that it is on, and how often in a
    /// row.
    #[must_use]
    pub fn refused(&self) -> (u32, u32) {
        let mut notes = self.lock();
        notes.refusals += 1;
        (notes.step, notes.refusals)
    }

    /// The document goes on to the next step of its route.
    pub fn goes_on(&self) {
        let mut notes = self.lock();
        notes.step += 1;
        notes.refusals = 0;
        notes.ticket = None;
    }

    /// An answer did not satisfy the schema; how many did not.
    #[must_use]
    pub fn answered_invalidly(&self) -> u32 {
        let mut notes = self.lock();
        notes.invalid_outputs += 1;
        notes.invalid_outputs
    }

    /// Whether the next call is one beyond the first that nobody has paid for yet.
    #[must_use]
    pub fn must_pay_for_retry(&self) -> bool {
        let notes = self.lock();
        notes.effort.provider_calls > notes.paid_retries
    }

    /// The retry budget has paid for the next call.
    pub fn paid_for_retry(&self) {
        let mut notes = self.lock();
        notes.paid_retries = notes.effort.provider_calls;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AttemptState> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
