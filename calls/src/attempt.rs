//! One attempt at a call, as whoever makes it hands it to the guard: an activity, a request at a
//! door, a program.
//!
//! It says who it is, how it waits, and what the attempts before it have told; from the guard it
//! learns what the next one must know. The guard asks nothing else of it: an attempt that is
//! cancelled is dropped, and what it held is given back; heartbeats go on beside it.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_quota::{Request, Ticket};
use tidegate_types::{CallCounts, FailureType, ModelId, Spend};

use crate::stage::{Course, Stage};

/// Carried from attempt to attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallState {
    /// Calls and waits so far.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Where the attempt stands, and what became of those before.
    #[serde(flatten)]
    pub course: Course,
    /// Its turn in the queue for quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// Calls that the batch's retry budget has paid for.
    pub paid_retries: u32,
    /// What the last of its calls came to, where that was no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_as: Option<FailureType>,
    /// The step of its route that it is on.
    pub step: u32,
    /// Refusals in a row on that step.
    pub refusals: u32,
    /// The model that was asked last, by its place in the route: the turn belongs to it.
    #[serde(rename = "asked")]
    pub model: u32,
    /// Of its calls, those for questions before the one that is asked now.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub earlier: u32,
    /// Answers that were no result, refusals and broken answers among them: their tokens, without
    /// the calls.
    pub discarded: Spend,
}

/// How an attempt waits for its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    /// For a near turn in place; a far one it is told, and keeps.
    #[default]
    Near,
    /// In place, however long it takes, where the waiting room has a slot for it.
    Whole,
}

/// One attempt. Clones share what it tells: one works, the other beats.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Names this attempt and no other, for the limiter.
    pub reservation: String,
    /// Names the batch, for its budgets.
    pub batch: String,
    /// Names this run of the batch, and no other of the same workflow id.
    pub run: String,
    /// How it waits for its turn.
    pub patience: Patience,
    /// When its answer is of no use any more: it is not waited for a turn beyond that.
    pub deadline: Option<Instant>,
    /// It was asked already, with others: its first call is one beyond the first.
    asked: bool,
    /// The document of a step, and how many calls it takes if each succeeds at once.
    pub(crate) of_document: Option<(String, u64)>,
    state: Arc<Mutex<CallState>>,
}

impl Attempt {
    /// Begins with what the attempt before left.
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
        }
    }

    /// The only one at a call that is part of no batch, under a name that no other has.
    pub fn once() -> Self {
        Self::alone(format!("once:{:032x}", rand::random::<u128>()))
    }

    /// At a call of this name that is part of no batch: what it asks for amiss condemns no other.
    pub fn alone(reservation: String) -> Self {
        Self {
            run: reservation.clone(),
            ..Self::new(reservation, String::new(), CallState::default())
        }
    }

    /// The next at the same call, in this process: it knows what came of this one, and has a name of
    /// its own.
    #[must_use]
    pub fn next(&self) -> Self {
        self.ends();
        let reservation = Self::once().reservation;
        Self { reservation, state: Arc::new(Mutex::new(self.state())), ..self.clone() }
    }

    /// Of a batch, by its workflow's id, and of this run of it, by the folder of its job.
    pub fn of_batch(self, workflow: &str, job: &str) -> Self {
        Self { batch: workflow.to_owned(), run: job.to_owned(), ..self }
    }

    /// The same, which waits for its turn so.
    pub fn patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The same, which waits for no turn beyond this.
    pub fn deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// At what comes back from a provider's batch or a pack, in which it was asked.
    pub fn asked_before(self, asked: bool) -> Self {
        Self { asked, ..self }
    }

    /// At a step of a document, by its name, that takes so many calls if each succeeds at once.
    pub fn in_parts(self, document: String, calls: u64) -> Self {
        Self { of_document: Some((document, calls)), ..self }
    }

    /// A call of this attempt, in the turn that the attempt before was given.
    pub fn request(&self, model: ModelId) -> Request {
        Request::new(model, self.reservation.clone()).ticket(self.state().ticket)
    }

    /// Names the document's step, whatever the attempt.
    pub fn document(&self) -> &str {
        self.reservation.rsplit_once('.').map_or(&self.reservation, |(document, _)| document)
    }

    /// A copy of the state.
    pub fn state(&self) -> CallState {
        self.state.lock().clone()
    }

    /// Calls and waits so far.
    pub fn counts(&self) -> CallCounts {
        self.state.lock().counts
    }

    /// Its calls so far that failed for another reason than a limit that refills.
    pub fn faults(&self) -> u32 {
        let CallCounts { provider_calls, rate_limited, .. } = self.counts_now();
        provider_calls.saturating_sub(rate_limited)
    }

    /// Calls and waits so far, without the calls for questions before the one that is asked now.
    pub fn counts_now(&self) -> CallCounts {
        let CallState { counts, earlier, .. } = self.state();
        CallCounts { provider_calls: counts.provider_calls.saturating_sub(earlier), ..counts }
    }

    /// Another question comes next, which is as much part of the work as the first: it has its own
    /// turn, route and faults, and its first call is no retry.
    pub fn asks_anew(&self) {
        let mut state = self.state.lock();
        *state = CallState {
            counts: state.counts,
            course: state.course,
            discarded: state.discarded,
            earlier: state.counts.provider_calls.saturating_sub(state.counts.rate_limited),
            paid_retries: self.calls_of(&state),
            ..CallState::default()
        };
    }

    /// What attempts before this one have taken, as they left it beside their answers: what they
    /// told last may be lost.
    pub fn recall(&self, counts: CallCounts, discarded: Spend) {
        let mut state = self.state.lock();
        if state.counts.provider_calls < counts.provider_calls {
            (state.counts, state.discarded) = (counts, discarded);
        }
    }

    /// A call is about to leave. Counted before, so that a crash cannot hide it.
    pub fn calling(&self) {
        let mut state = self.state.lock();
        state.counts.provider_calls += 1;
        state.course.stage.leaves();
        state.ticket = None;
    }

    /// Whether an attempt at it has called before, or may have.
    pub fn has_called(&self) -> bool {
        let state = self.state.lock();
        state.counts.provider_calls + state.course.lost > 0
    }

    /// Whether a call of this attempt has left: what it answers is paid for.
    pub fn has_sent(&self) -> bool {
        self.state.lock().course.stage == Stage::Sent
    }

    /// The call was answered 429.
    pub fn rate_limited(&self) {
        self.state.lock().counts.rate_limited += 1;
    }

    /// No connection came about: the call has not left after all.
    pub fn not_reached(&self) {
        let mut state = self.state.lock();
        state.counts.provider_calls = state.counts.provider_calls.saturating_sub(1);
        state.course.stage.was_not_reached();
    }

    /// The call came to no result.
    pub fn failed_as(&self, kind: FailureType) {
        self.state.lock().failed_as = Some(kind);
    }

    /// It goes back to wait, and keeps its turn.
    pub fn deferred(&self, ticket: Option<Ticket>) {
        let mut state = self.state.lock();
        state.counts.deferrals += 1;
        state.ticket = ticket;
    }

    /// The attempt ends, and its process goes on.
    pub fn ends(&self) {
        self.state.lock().course.stage.ends();
    }

    /// The model at this place of the route is asked; a turn at another is given up.
    pub fn asks(&self, place: u32) {
        let mut state = self.state.lock();
        if state.model != place {
            state.model = place;
            state.ticket = None;
        }
    }

    /// It was refused once more; the step of its route that it is on, and how often in a row.
    pub fn refused(&self) -> (u32, u32) {
        let mut state = self.state.lock();
        state.refusals += 1;
        (state.step, state.refusals)
    }

    /// It goes on to the next step of its route.
    pub fn next_step(&self) {
        let mut state = self.state.lock();
        state.step += 1;
        state.refusals = 0;
        state.ticket = None;
    }

    /// An answer was no result, and took this.
    pub fn discard(&self, spend: Spend) {
        self.state.lock().discarded += spend;
    }

    /// Whether the next call is one beyond the first that the retry budget has not paid for yet.
    pub fn must_pay_for_retry(&self) -> bool {
        let state = self.state.lock();
        self.calls_of(&state) > state.paid_retries
    }

    /// The retry budget has paid for the next call.
    pub fn paid_for_retry(&self) {
        let mut state = self.state.lock();
        state.paid_retries = self.calls_of(&state);
    }

    /// Calls that were made, or may have been.
    fn calls_of(&self, state: &CallState) -> u32 {
        state.counts.provider_calls + state.course.lost + u32::from(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_calls_are_paid_for_by_the_retry_budget() {
        let attempt = |lost| {
            let course = Course { lost, ..Course::default() };
            let state = CallState { course, ..CallState::default() };
            Attempt::new("r".to_owned(), "b".to_owned(), state)
        };
        assert!(!attempt(0).must_pay_for_retry());
        let second = attempt(1);
        assert!(second.must_pay_for_retry());
        second.paid_for_retry();
        assert!(!second.must_pay_for_retry());
        assert_eq!(second.counts().provider_calls, 0, "what is reported is what is known");
    }
}
