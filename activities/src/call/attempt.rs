//! What one attempt at a document tells the next, through Temporal's heartbeat details.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use temporalio_sdk::activities::ActivityContext;
use tidegate_calls::failure::StoreFault;
use tidegate_quota::{Request, Ticket};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{CallCounts, FailureDetails, FailureType, PartTask, Taken};
use tokio::sync::Notify;

/// Carried from attempt to attempt: a heartbeat's details outlive the worker that sent them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptState {
    /// Calls and waits of the document so far.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Its turn in the queue for quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// Calls that the batch's retry budget has paid for.
    pub paid_retries: u32,
    /// What the last of its calls came to, where that was no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_as: Option<FailureType>,
    /// The step of its route that the document is on.
    pub step: u32,
    /// Refusals in a row on that step.
    pub refusals: u32,
    /// The model that was asked last, by its place in the route: the turn belongs to it.
    #[serde(rename = "asked")]
    pub model: u32,
    /// Answers that did not satisfy the schema.
    #[serde(rename = "amiss")]
    pub invalid_outputs: u32,
    /// What was wrong with the last of them; quotes nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// How often `max_output_tokens` was raised.
    pub raises: u32,
    /// Of these, the one that it began with, because many answers to the question are cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub began_raised: bool,
    /// It could not be had with more room before any answer had come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_room: bool,
    /// Answers that were no result, refusals and broken answers among them: their tokens, without
    /// the calls.
    pub discarded: Taken,
    /// URI of the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Since when its answer lies in a worker's spool, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spooled_millis: Option<i64>,
    /// So many documents that may take much memory are being read. Where the next attempt finds
    /// some, the worker died meanwhile.
    #[serde(skip_serializing_if = "is_zero")]
    pub reading: u32,
    /// Workers in a row that died so.
    #[serde(skip_serializing_if = "is_zero")]
    pub dead_readers: u32,
    /// The document's result answers this question about an earlier content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    /// What stores have refused or failed at.
    #[serde(skip_serializing_if = "StoreFaults::is_none")]
    pub store: StoreFaults,
    /// Which attempt told this, counted from 1; 0 in what earlier versions told.
    pub by: u32,
    /// That attempt has ended, and its process goes on.
    pub has_ended: bool,
    /// A call of that attempt has left.
    pub has_sent: bool,
    /// Attempts whose process died before it told of a call, which it may have made.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u32,
    /// Attempts in a row, up to this one, whose process died.
    #[serde(skip_serializing_if = "is_zero")]
    pub deaths: u32,
    /// Its text lies beside its shard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_text: bool,
}

impl AttemptState {
    /// As the next attempt begins with it.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { dead_readers: self.dead_readers + u32::from(self.reading > 0), reading: 0, ..self }
    }

    /// The same, where the next attempt's number is known: the one before it may have died without a
    /// word.
    fn resumed_by(self, number: u32) -> Self {
        let lost = self.has_died(number) && !(self.is_of_the_last(number) && self.has_sent);
        let (lost, deaths) = (self.lost + u32::from(lost), self.deaths_before(number));
        Self { by: number, has_ended: false, has_sent: false, lost, deaths, ..self.resumed() }
    }

    /// An attempt that fails tells so; those since the last that told died before they could.
    fn deaths_before(&self, number: u32) -> u32 {
        let silent = number.saturating_sub(1).saturating_sub(self.by);
        match (self.by, self.has_ended) {
            (0, _) | (_, true) => silent,
            _ => self.deaths + 1 + silent,
        }
    }

    fn is_of_the_last(&self, number: u32) -> bool {
        self.by + 1 == number
    }

    fn has_died(&self, number: u32) -> bool {
        number > 1 && !(self.is_of_the_last(number) && self.has_ended)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Faults of stores that an activity has met, over all its attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreFaults {
    /// In a row, of whatever kind.
    pub faults: u32,
    /// Those that time alone does not mend.
    pub refusals: u32,
    /// When the first of the row was met, in milliseconds since 1970.
    pub since_millis: Option<i64>,
}

impl StoreFaults {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How long the row has lasted.
    #[must_use]
    pub fn lasting(&self, now: SystemTime) -> Duration {
        let since = self.since_millis.map_or(0, |since| millis(Some(now)).saturating_sub(since));
        Duration::from_millis(u64::try_from(since).unwrap_or_default())
    }
}

/// A beat has left this process after so long.
const TELL: Duration = Duration::from_millis(50);

/// A beat has reached the server after so long: the worker sends one each second at most.
const TOLD: Duration = Duration::from_secs(2);

/// The cap on output is raised so often for one document.
pub const MAX_RAISES: u32 = 2;

/// Attempts are counted anew when an operator resets the activity, and what a reservation of before
/// has paid for must not admit another call: when the attempt started is part of its name.
fn reservation(run: &str, work: &str, attempt: u32, started_millis: i64) -> String {
    format!("{run}#{work}.{attempt}@{started_millis}")
}

/// One attempt at one document. Clones share the state: one works, the other beats.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Names this attempt and no other, for the limiter.
    pub reservation: String,
    /// Names the batch, for its retry budget.
    pub batch: String,
    /// Names this run of the batch, and no other of the same workflow id.
    pub run: String,
    /// When the document's activity was scheduled, in milliseconds since 1970: results are ours
    /// from then on.
    pub scheduled_millis: i64,
    /// The document was asked already, with others: its first call is one beyond the first.
    asked: bool,
    /// The document of a step, and how many calls it takes if each succeeds at once.
    pub(crate) of_document: Option<(String, u64)>,
    state: Arc<Mutex<AttemptState>>,
    /// Whether this attempt's call has left.
    sent: Arc<AtomicBool>,
    /// The attempt before died without a word, perhaps while it read.
    is_suspect: bool,
    /// The state is to be told now.
    news: Arc<Notify>,
}

impl Attempt {
    /// Begins with what the attempt before left.
    #[must_use]
    pub fn new(
        reservation: String,
        batch: String,
        scheduled_millis: i64,
        state: AttemptState,
    ) -> Self {
        Self {
            reservation,
            run: batch.clone(),
            batch,
            scheduled_millis,
            asked: false,
            of_document: None,
            state: Arc::new(Mutex::new(state)),
            sent: Arc::default(),
            is_suspect: false,
            news: Arc::default(),
        }
    }

    /// The running attempt at an activity. `work` names what it does among its run's activities;
    /// no document's name belongs there.
    #[must_use]
    pub fn of(ctx: &ActivityContext, work: &str) -> Self {
        let info = ctx.info();
        let run = info.workflow_run_id.as_deref().unwrap_or_default();
        let state = ctx.heartbeat_details().deserialize::<AttemptState>().ok().flatten();
        let (state, number) = (state.unwrap_or_default(), info.attempt);
        let is_suspect = state.has_died(number) && !state.is_of_the_last(number);
        let attempt = Self::new(
            reservation(run, work, number, millis(info.started_time)),
            info.workflow_id.clone().unwrap_or_default(),
            millis(info.scheduled_time),
            state.resumed_by(number),
        );
        Self { is_suspect, run: run.to_owned(), ..attempt }
    }

    /// Of a batch, by its workflow's id, and of this run of it, by the folder of its job.
    #[must_use]
    pub fn of_batch(self, workflow: &str, job: &str) -> Self {
        Self { batch: workflow.to_owned(), run: job.to_owned(), ..self }
    }

    /// At a document that comes back from a provider's batch or a pack, in which it was asked.
    #[must_use]
    pub fn asked_before(self, asked: bool) -> Self {
        Self { asked, ..self }
    }

    /// At a step of a document that is read in parts.
    #[must_use]
    pub fn in_parts(self, task: &PartTask) -> Self {
        let document = format!("{}.{}", task.document.shard, task.document.index);
        Self { of_document: Some((document, task.parts.calls())), ..self }
    }

    /// A call of this attempt, in the turn that the attempt before was given.
    #[must_use]
    pub fn request(&self, model: ModelId) -> Request {
        Request::new(model, self.reservation.clone()).ticket(self.state().ticket)
    }

    /// Names the document's step, whatever the attempt.
    #[must_use]
    pub fn document(&self) -> &str {
        self.reservation.rsplit_once('.').map_or(&self.reservation, |(document, _)| document)
    }

    /// A copy of the state.
    #[must_use]
    pub fn state(&self) -> AttemptState {
        self.state.lock().clone()
    }

    /// What a failure tells of the document.
    #[must_use]
    pub fn details(&self) -> FailureDetails {
        let AttemptState { counts, discarded, kept, .. } = self.state();
        FailureDetails { counts, waits_for: None, discarded, kept }
    }

    /// Calls and waits of the document so far.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.state.lock().counts
    }

    /// Its calls so far that failed for another reason than a limit that refills.
    #[must_use]
    pub fn faults(&self) -> u32 {
        let counts = self.counts();
        counts.provider_calls.saturating_sub(counts.rate_limited)
    }

    /// A call is about to leave. Counted before, so that a crash cannot hide it.
    pub fn calling(&self) {
        self.sent.store(true, Ordering::SeqCst);
        let mut state = self.state.lock();
        state.counts.provider_calls += 1;
        state.has_sent = true;
        state.ticket = None;
        // The document was read: the row of faults is over.
        state.store = StoreFaults { refusals: state.store.refusals, ..StoreFaults::default() };
    }

    /// Whether an attempt at the document has called before, or may have.
    #[must_use]
    pub fn has_called(&self) -> bool {
        let state = self.state.lock();
        state.counts.provider_calls + state.lost > 0
    }

    /// Whether a call of this attempt has left: what it answers is paid for.
    #[must_use]
    pub fn has_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst)
    }

    /// A store failed or refused; what stores have done to this activity so far.
    pub fn store_failed(&self, fault: StoreFault) -> StoreFaults {
        let store = &mut self.state.lock().store;
        store.faults += 1;
        store.refusals += u32::from(fault == StoreFault::Refused);
        store.since_millis.get_or_insert_with(|| millis(Some(SystemTime::now())));
        *store
    }

    /// The call was answered 429.
    pub fn rate_limited(&self) {
        self.state.lock().counts.rate_limited += 1;
    }

    /// No connection came about: the call has not left after all.
    pub fn not_reached(&self) {
        self.sent.store(false, Ordering::SeqCst);
        let mut state = self.state.lock();
        state.counts.provider_calls = state.counts.provider_calls.saturating_sub(1);
        state.has_sent = false;
    }

    /// The call came to no result.
    pub fn failed_as(&self, kind: FailureType) {
        self.state.lock().failed_as = Some(kind);
    }

    /// The document goes back to Temporal to wait, and keeps its turn.
    pub fn deferred(&self, ticket: Option<Ticket>) {
        let mut state = self.state.lock();
        state.counts.deferrals += 1;
        state.ticket = ticket;
    }

    /// The model at this place of the route is asked; a turn at another is given up.
    pub fn asks(&self, place: u32) {
        let mut state = self.state.lock();
        if state.model != place {
            state.model = place;
            state.ticket = None;
        }
    }

    /// The document was refused once more; the step of its route that it is on, and how often in a
    /// row.
    #[must_use]
    pub fn refused(&self) -> (u32, u32) {
        let mut state = self.state.lock();
        state.refusals += 1;
        (state.step, state.refusals)
    }

    /// The document goes on to the next step of its route.
    pub fn next_step(&self) {
        let mut state = self.state.lock();
        state.step += 1;
        state.refusals = 0;
        state.ticket = None;
    }

    /// An answer did not satisfy the schema, for this reason; how many did not.
    #[must_use]
    pub fn invalid_output(&self, wrong: &str) -> u32 {
        let mut state = self.state.lock();
        state.invalid_outputs += 1;
        state.wrong = Some(wrong.to_owned());
        state.invalid_outputs
    }

    /// Reading may take the process with it: the server is told before, so that the next attempt
    /// knows.
    pub async fn reads(&self) {
        self.state.lock().reading += 1;
        self.news.notify_one();
        tokio::time::sleep(TELL).await;
    }

    /// The same of the one document that the attempt is about. The server is told only where a
    /// worker may have died of it already: hardly one does, and a beat for each document would cost
    /// as much as its attempt. Whether it is told.
    pub async fn reads_alone(&self) -> bool {
        let suspected = {
            let mut state = self.state.lock();
            if self.is_suspect {
                state.dead_readers = state.dead_readers.max(1);
            }
            state.dead_readers > 0
        };
        if suspected {
            self.reads().await;
        } else {
            self.state.lock().reading += 1;
        }
        suspected
    }

    /// How many workers in a row have died while they had this activity.
    #[must_use]
    pub fn deaths(&self) -> u32 {
        self.state.lock().deaths
    }

    /// How many workers in a row have died while they read.
    #[must_use]
    pub fn dead_readers(&self) -> u32 {
        self.state.lock().dead_readers
    }

    /// It was read, or not, and the process lives; whether the server was told that it is read.
    pub async fn has_read(&self, told: bool) {
        let suspected = {
            let mut state = self.state.lock();
            state.reading = state.reading.saturating_sub(1);
            std::mem::take(&mut state.dead_readers) > 0
        };
        if told {
            self.news.notify_one();
        }
        if suspected {
            // What kills the next worker is not the reading, and must not look so.
            tokio::time::sleep(TOLD).await;
        }
    }

    /// The attempt ends, and its process goes on.
    pub(crate) fn ends(&self) {
        let mut state = self.state.lock();
        state.reading = 0;
        state.has_ended = true;
    }

    /// Resolves when the state is to be told before the next beat is due.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// An answer was cut: the next call has more room. Whether it may have.
    #[must_use]
    pub fn raise(&self) -> bool {
        let mut state = self.state.lock();
        let raised = state.raises < MAX_RAISES;
        state.raises += u32::from(raised);
        raised
    }

    /// Many answers to the question are cut: this one begins with more room.
    pub fn begin_with_room(&self) {
        let mut state = self.state.lock();
        if state.raises == 0 && state.counts.provider_calls == 0 && !state.no_room {
            state.raises = 1;
            state.began_raised = true;
            state.discarded.cuts.began_raised = 1;
        }
    }

    /// That much room could not be had: the document is asked as the batch states.
    pub fn begin_without_room(&self) {
        let mut state = self.state.lock();
        state.raises = 0;
        state.began_raised = false;
        state.no_room = true;
        state.discarded.cuts.began_raised = 0;
    }

    /// The document's answer out of a provider's batch was cut, and lies there.
    pub fn begin_raised(&self, kept: String) {
        let mut state = self.state.lock();
        if state.raises == 0 {
            state.raises = 1;
            state.kept = Some(kept);
        }
    }

    /// An answer was no result, and took this.
    pub fn discard(&self, taken: Taken) {
        self.state.lock().discarded += taken;
    }

    /// Its answer lies in this worker's spool, or does not any more.
    pub fn spooled(&self, is_there: bool) {
        let mut state = self.state.lock();
        let since = state.spooled_millis.unwrap_or_else(|| millis(Some(SystemTime::now())));
        let known = std::mem::replace(&mut state.spooled_millis, is_there.then_some(since));
        if known != state.spooled_millis {
            // A process that is killed now must not keep it to itself.
            self.news.notify_one();
        }
    }

    /// For how long its answer has lain in a worker's spool.
    #[must_use]
    pub fn spooled_for(&self, now: SystemTime) -> Option<Duration> {
        let since = self.state.lock().spooled_millis?;
        let lasting = millis(Some(now)).saturating_sub(since);
        Some(Duration::from_millis(u64::try_from(lasting).unwrap_or_default()))
    }

    /// The document is asked again, because its content has changed.
    pub fn updates(&self) {
        self.state.lock().updated = true;
    }

    /// The document's text lies beside its shard: the next attempt does not read it again.
    pub fn has_text(&self) {
        self.state.lock().has_text = true;
    }

    /// Where the last answer that was no result lies.
    pub fn keep(&self, uri: String) {
        self.state.lock().kept = Some(uri);
    }

    /// Whether the next call is one beyond the first that the retry budget has not paid for yet.
    #[must_use]
    pub fn must_pay_for_retry(&self) -> bool {
        let state = self.state.lock();
        state.counts.provider_calls + state.lost + u32::from(self.asked) > state.paid_retries
    }

    /// The retry budget has paid for the next call.
    pub fn paid_for_retry(&self) {
        let mut state = self.state.lock();
        state.paid_retries = state.counts.provider_calls + state.lost + u32::from(self.asked);
    }
}

fn millis(time: Option<SystemTime>) -> i64 {
    let since =
        time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As attempt `by` told it last.
    fn told(by: u32, change: impl FnOnce(&mut AttemptState)) -> AttemptState {
        let mut state = AttemptState { by, ..AttemptState::default() };
        change(&mut state);
        state
    }

    #[test]
    fn a_call_that_a_dead_worker_may_have_made_counts_against_the_bounds_once() {
        let lost = |state: AttemptState, number| state.resumed_by(number).lost;
        assert_eq!(lost(AttemptState::default(), 1), 0, "nothing was before it");
        assert_eq!(lost(told(1, |state| state.has_ended = true), 2), 0, "it went back in order");
        assert_eq!(lost(AttemptState::default(), 2), 1, "it died before it told anything");
        assert_eq!(lost(told(1, |state| state.has_ended = true), 3), 1, "the second one did");
        assert_eq!(lost(told(1, |_| {}), 2), 1, "the call may have left after its last beat");
        assert_eq!(lost(told(1, |state| state.has_sent = true), 2), 0, "the call is counted");
        let died = told(1, |state| state.lost = 2).resumed_by(2);
        assert_eq!((died.lost, died.by, died.has_ended, died.has_sent), (3, 2, false, false));
    }

    #[test]
    fn lost_calls_are_paid_for_by_the_retry_budget() {
        let attempt = |lost| {
            let state = AttemptState { lost, ..AttemptState::default() };
            Attempt::new("r".to_owned(), "b".to_owned(), 0, state)
        };
        assert!(!attempt(0).must_pay_for_retry());
        let second = attempt(1);
        assert!(second.must_pay_for_retry());
        second.paid_for_retry();
        assert!(!second.must_pay_for_retry());
        assert_eq!(second.counts().provider_calls, 0, "what is reported is what is known");
    }

    #[test]
    fn deaths_are_counted_in_a_row() {
        let deaths = |state: AttemptState, number| state.resumed_by(number).deaths;
        assert_eq!(deaths(AttemptState::default(), 1), 0);
        assert_eq!(deaths(AttemptState::default(), 3), 2, "nobody told anything");
        assert_eq!(deaths(told(3, |state| state.deaths = 2), 4), 3, "it told, and died");
        let ended = told(3, |state| (state.deaths, state.has_ended) = (2, true));
        assert_eq!(deaths(ended.clone(), 4), 0, "it failed, and its process goes on");
        assert_eq!(deaths(ended, 6), 2);
    }

    /// The server hears of a reading only once a worker may have died of it.
    #[tokio::test]
    async fn a_reading_is_told_only_of_a_document_that_is_suspected() {
        let attempt = |is_suspect| {
            let new = Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
            Attempt { is_suspect, ..new }
        };
        let first = attempt(false);
        assert!(!first.reads_alone().await);
        assert_eq!((first.state().reading, first.dead_readers()), (1, 0));
        let silent = tokio::time::timeout(Duration::from_millis(20), first.news()).await;
        assert!(silent.is_err(), "nothing is told");
        let second = attempt(true);
        assert!(second.reads_alone().await);
        assert_eq!((second.state().reading, second.dead_readers()), (1, 1));
        second.news().await;
        assert_eq!(second.state().resumed().dead_readers, 2, "the third one does not read it");
    }

    #[test]
    fn an_activity_that_is_reset_reserves_anew_for_the_same_document() {
        let [first, retried, reset] = [(1, 1_000), (2, 2_000), (1, 3_000)]
            .map(|(attempt, started)| reservation("run", "0.7", attempt, started));
        assert!(first != retried && first != reset && retried != reset);
        let attempt = |name| Attempt::new(name, "b".to_owned(), 0, AttemptState::default());
        assert_eq!(attempt(first).document(), attempt(reset).document());
    }
}
