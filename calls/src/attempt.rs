//! One attempt at a call. The caller (an activity, a request at a door, a program) passes it to the
//! guard.
//!
//! It holds the call's names, the limits of its waits, and the state of the attempts before it; the
//! guard updates that state for the next attempt. A cancelled attempt is dropped, and its
//! reservation is released. Heartbeats are sent at the same time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_providers::ReplyShare;
use tidegate_quota::{Request, Ticket};
use tidegate_types::{CallCounts, FailureType, ModelId, Spend};

/// State that each attempt passes to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallState {
    /// Calls and waits so far.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Progress of the attempt, and the number of lost attempts before it.
    #[serde(flatten)]
    pub progress: AttemptProgress,
    /// Its turn in the queue for quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// Calls that the batch's retry budget has paid for.
    pub paid_retries: u32,
    /// Failure type of the last call that gave no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_as: Option<FailureType>,
    /// The current step of the route.
    pub step: u32,
    /// Refusals in a row on that step.
    pub refusals: u32,
    /// Index in the route of the model that was asked last. The ticket belongs to that model.
    #[serde(rename = "asked")]
    pub model: u32,
    /// Calls that were made for earlier questions of this document.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub earlier: u32,
    /// Tokens of answers that gave no result (refusals and broken answers among them); calls are
    /// not counted in it.
    pub discarded: Spend,
    /// Time from the last answered call of this attempt to its answer.
    #[serde(skip)]
    pub answered_in: Option<Duration>,
}

/// Kind of wait for a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    /// Waits in place for a near turn. For a far one the attempt gets a ticket and comes back.
    #[default]
    Near,
    /// Waits in place for any time, if the waiting room has a slot for it.
    Whole,
}

/// One attempt. Clones share the state: one makes the call, another sends heartbeats.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Unique name of this attempt, for the limiter.
    pub reservation: String,
    /// Name of the batch, for its budgets.
    pub batch: String,
    /// Unique name of this run of the batch: two runs of one workflow id differ.
    pub run: String,
    /// How it waits for its turn.
    pub patience: Patience,
    /// Time after which the answer is useless: the attempt does not wait for a turn beyond it.
    pub deadline: Option<Instant>,
    /// The document was asked before together with others, so that its first call here is a retry.
    asked: bool,
    /// The step's document, and the number of calls that it takes without a failure.
    pub(crate) of_document: Option<(String, u64)>,
    state: Arc<Mutex<CallState>>,
    held_beside_usd: Arc<Mutex<f64>>,
    /// The share of memory that a large answer takes, until this and its clones are dropped.
    pub(crate) reply_share: ReplyShare,
}

impl Attempt {
    /// Creates the attempt with the state of the attempt before.
    pub fn new(reservation: String, batch: String, state: CallState) -> Self {
        Self {
            reservation,
            run: batch.clone(),
            batch,
            patience: Patience::default(),
            deadline: None,
            asked: false,
            of_document: None,
            state: Arc::new(Mutex::new(state)),
            held_beside_usd: Arc::default(),
            reply_share: ReplyShare::default(),
        }
    }

    /// Creates the only attempt at a call outside of batches, under a random name.
    pub fn once() -> Self {
        Self::alone(format!("once:{:032x}", rand::random::<u128>()))
    }

    /// Creates an attempt at a call outside of batches, under this name. Each such call counts as a
    /// run of its own, so that its invalid request holds no other call.
    pub fn alone(reservation: String) -> Self {
        Self {
            run: reservation.clone(),
            ..Self::new(reservation, String::new(), CallState::default())
        }
    }

    /// Creates the next attempt at the call in this process: it has this one's state and a new
    /// name.
    #[must_use]
    pub fn next(&self) -> Self {
        self.end();
        let reservation = Self::once().reservation;
        let state = Arc::new(Mutex::new(self.state()));
        Self { reservation, state, reply_share: ReplyShare::default(), ..self.clone() }
    }

    /// Sets the batch (its workflow's id) and its run (the folder of its job).
    pub fn of_batch(self, workflow: &str, job: &str) -> Self {
        Self { batch: workflow.to_owned(), run: job.to_owned(), ..self }
    }

    /// Sets how it waits for its turn.
    pub fn patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Sets the time beyond which it waits for no turn.
    pub fn deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// Sets whether the document was asked before in a provider's batch or a pack.
    pub fn asked_before(self, asked: bool) -> Self {
        Self { asked, ..self }
    }

    /// Sets the step's document, and the number of calls that it takes without a failure.
    pub fn in_parts(self, document: String, calls: u64) -> Self {
        Self { of_document: Some((document, calls)), ..self }
    }

    /// A limiter request for `model`, with the ticket of the attempt before.
    pub fn request(&self, model: ModelId) -> Request {
        Request::new(model, self.reservation.clone()).ticket(self.state().ticket)
    }

    /// Name of the document's step, which all its attempts share.
    pub fn document(&self) -> &str {
        self.reservation.rsplit_once('.').map_or(&self.reservation, |(document, _)| document)
    }

    /// Copies the state.
    pub fn state(&self) -> CallState {
        self.state.lock().clone()
    }

    /// Calls and waits so far.
    pub fn counts(&self) -> CallCounts {
        self.state.lock().counts
    }

    /// Its calls so far that failed for another reason than a limit that refills.
    pub fn faults(&self) -> u32 {
        let CallCounts { provider_calls, rate_limited, .. } = self.question_counts();
        provider_calls.saturating_sub(rate_limited)
    }

    /// Calls and waits so far for the current question.
    pub fn question_counts(&self) -> CallCounts {
        let CallState { counts, earlier, .. } = self.state();
        CallCounts { provider_calls: counts.provider_calls.saturating_sub(earlier), ..counts }
    }

    /// Begins another question of the document: it has its own turn, route and faults, and its
    /// first call is no retry.
    pub fn begin_next_question(&self) {
        let mut state = self.state.lock();
        *state = CallState {
            counts: state.counts,
            progress: state.progress,
            discarded: state.discarded,
            earlier: state.counts.provider_calls.saturating_sub(state.counts.rate_limited),
            paid_retries: self.calls_of(&state),
            ..CallState::default()
        };
    }

    /// Restores counts that earlier attempts stored beside their answers, because their last
    /// heartbeat may be lost.
    pub fn recall(&self, counts: CallCounts, discarded: Spend) {
        let mut state = self.state.lock();
        if state.counts.provider_calls < counts.provider_calls {
            (state.counts, state.discarded) = (counts, discarded);
        }
    }

    /// Counts a call that is about to leave. It is counted before it leaves, so that a crash cannot
    /// hide it.
    pub fn count_call(&self) {
        let mut state = self.state.lock();
        state.counts.provider_calls += 1;
        state.progress.stage = Stage::Sent;
        state.ticket = None;
    }

    /// Records the time that an answered call took.
    pub(crate) fn record_answer(&self, took: Duration) {
        self.state.lock().answered_in = Some(took);
    }

    /// Whether an earlier attempt has made a call, or may have made one.
    pub fn has_called(&self) -> bool {
        let state = self.state.lock();
        state.counts.provider_calls + state.progress.lost > 0
    }

    /// Whether a call of this attempt has left, so that its answer must be paid for.
    pub fn has_sent(&self) -> bool {
        self.state.lock().progress.stage == Stage::Sent
    }

    /// Counts an answer with status 429.
    pub fn count_rate_limited(&self) {
        self.state.lock().counts.rate_limited += 1;
    }

    /// Takes back a counted call: no connection was made.
    pub fn take_back_call(&self) {
        let mut state = self.state.lock();
        state.counts.provider_calls = state.counts.provider_calls.saturating_sub(1);
        state.progress.stage = Stage::Unsent;
    }

    /// Records the failure type of the call.
    pub fn record_failure(&self, kind: FailureType) {
        self.state.lock().failed_as = Some(kind);
    }

    /// Counts a return to the queue; the attempt keeps its ticket.
    pub fn defer(&self, ticket: Option<Ticket>) {
        let mut state = self.state.lock();
        state.counts.deferrals += 1;
        state.ticket = ticket;
    }

    /// Sets how many US dollars the attempt itself holds in each budget beside its call.
    pub fn hold_beside(&self, usd: f64) {
        *self.held_beside_usd.lock() = usd;
    }

    pub(crate) fn held_beside_usd(&self) -> f64 {
        *self.held_beside_usd.lock()
    }

    /// Marks the attempt as ended in an orderly way.
    pub fn end(&self) {
        self.state.lock().progress.stage = Stage::Ended;
    }

    /// Sets the model that is asked, by its index in the route. A ticket for another model is
    /// dropped.
    pub fn choose_model(&self, place: u32) {
        let mut state = self.state.lock();
        if state.model != place {
            state.model = place;
            state.ticket = None;
        }
    }

    /// Counts a refusal; returns the current step of the route and the refusals in a row on it.
    pub fn count_refusal(&self) -> (u32, u32) {
        let mut state = self.state.lock();
        state.refusals += 1;
        (state.step, state.refusals)
    }

    /// Goes on to the next step of the route.
    pub fn next_step(&self) {
        let mut state = self.state.lock();
        state.step += 1;
        state.refusals = 0;
        state.ticket = None;
    }

    /// Adds the tokens of an answer that gave no result.
    pub fn discard(&self, spend: Spend) {
        self.state.lock().discarded += spend;
    }

    /// Whether the next call is a retry that the retry budget has not paid for yet.
    pub fn must_pay_for_retry(&self) -> bool {
        let state = self.state.lock();
        self.calls_of(&state) > state.paid_retries
    }

    /// Marks the next call as paid for by the retry budget.
    pub fn mark_retry_paid(&self) {
        let mut state = self.state.lock();
        state.paid_retries = self.calls_of(&state);
    }

    /// Calls that were made, or may have been made.
    fn calls_of(&self, state: &CallState) -> u32 {
        state.counts.provider_calls + state.progress.lost + u32::from(self.asked)
    }
}

/// The progress of an attempt.
///
/// ```text
///              ┌─────────── not reached ───────────┐
///              ▼                                   │
/// begins ─► Unsent ── admitted, and it leaves ──► Sent
///              │                                   │
///              │ told its turn, refused, failed    │ answered, failed
///              └──────────────► Ended ◄────────────┘
/// ```
///
/// An attempt that is admitted and not sent yet is still `Unsent`: the guard's `Admitted` holds the
/// reservation, and releases it when it is dropped. [`AttemptProgress::resumed_by`] interprets the last
/// recorded stage for the next attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// None of its calls has left.
    #[default]
    Unsent,
    /// A call of it has left, so that its answer must be paid for.
    Sent,
    /// It ended in an orderly way: its process did not die.
    Ended,
}

/// The progress that one attempt recorded, and the attempts that were lost before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptProgress {
    /// The number of the attempt that recorded this, counted from 1; 0 for none.
    pub by: u32,
    /// Its progress.
    pub stage: Stage,
    /// Attempts whose process died before they recorded a call that they may have made.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub lost: u32,
    /// Attempts in a row, up to this one, whose process died.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub deaths: u32,
}

impl AttemptProgress {
    /// Returns the progress with which attempt `number` begins. The attempt before it may have died
    /// and recorded nothing.
    ///
    /// | last recorded stage | the attempt before | a call may be lost |
    /// |---|---|---|
    /// | `Ended` | came to its end | no |
    /// | `Sent` | died | no: its call is counted |
    /// | `Unsent` | died | yes: it may have left since |
    /// | nothing | died | yes |
    pub fn resumed_by(self, number: u32) -> Self {
        let is_counted = self.is_of_the_last(number) && self.stage == Stage::Sent;
        let lost = self.has_died(number) && !is_counted;
        let (lost, deaths) = (self.lost + u32::from(lost), self.deaths_before(number));
        Self { by: number, stage: Stage::default(), lost, deaths }
    }

    /// Whether the attempt before `number` died before it recorded anything.
    pub fn died_silently(&self, number: u32) -> bool {
        self.has_died(number) && !self.is_of_the_last(number)
    }

    /// Attempts in a row that died. An attempt that fails records it, so those after the last
    /// record died.
    fn deaths_before(&self, number: u32) -> u32 {
        let silent = number.saturating_sub(1).saturating_sub(self.by);
        match (self.by, self.stage) {
            (0, _) | (_, Stage::Ended) => silent,
            _ => self.deaths + 1 + silent,
        }
    }

    fn is_of_the_last(&self, number: u32) -> bool {
        self.by + 1 == number
    }

    fn has_died(&self, number: u32) -> bool {
        number > 1 && !(self.is_of_the_last(number) && self.stage == Stage::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_calls_are_paid_for_by_the_retry_budget() {
        let attempt = |lost| {
            let progress = AttemptProgress { lost, ..AttemptProgress::default() };
            let state = CallState { progress, ..CallState::default() };
            Attempt::new("r".to_owned(), "b".to_owned(), state)
        };
        assert!(!attempt(0).must_pay_for_retry());
        let second = attempt(1);
        assert!(second.must_pay_for_retry());
        second.mark_retry_paid();
        assert!(!second.must_pay_for_retry());
        assert_eq!(second.counts().provider_calls, 0, "what is reported is what is known");
    }
}

#[cfg(test)]
mod stage_tests {
    use super::*;

    /// The progress that attempt `by` recorded last.
    fn recorded(by: u32, stage: Stage) -> AttemptProgress {
        AttemptProgress { by, stage, ..AttemptProgress::default() }
    }

    #[test]
    fn a_call_that_a_dead_worker_may_have_made_counts_against_the_bounds_once() {
        let lost = |progress: AttemptProgress, number| progress.resumed_by(number).lost;
        assert_eq!(lost(AttemptProgress::default(), 1), 0, "nothing was before it");
        assert_eq!(lost(recorded(1, Stage::Ended), 2), 0, "it went back in order");
        assert_eq!(lost(AttemptProgress::default(), 2), 1, "it died before it recorded anything");
        assert_eq!(lost(recorded(1, Stage::Ended), 3), 1, "the second one did");
        assert_eq!(lost(recorded(1, Stage::Unsent), 2), 1, "it may have left after its last beat");
        assert_eq!(lost(recorded(1, Stage::Sent), 2), 0, "the call is counted");
        let died = AttemptProgress { lost: 2, ..recorded(1, Stage::Unsent) }.resumed_by(2);
        assert_eq!((died.lost, died.by, died.stage), (3, 2, Stage::Unsent));
    }

    #[test]
    fn deaths_are_counted_in_a_row() {
        let deaths = |progress: AttemptProgress, number| progress.resumed_by(number).deaths;
        assert_eq!(deaths(AttemptProgress::default(), 1), 0);
        assert_eq!(deaths(AttemptProgress::default(), 3), 2, "no attempt recorded anything");
        let recorded_at = |stage| AttemptProgress { deaths: 2, ..recorded(3, stage) };
        assert_eq!(deaths(recorded_at(Stage::Unsent), 4), 3, "it recorded, and died");
        assert_eq!(deaths(recorded_at(Stage::Ended), 4), 0, "it failed, and its process goes on");
        assert_eq!(deaths(recorded_at(Stage::Ended), 6), 2);
    }
}
