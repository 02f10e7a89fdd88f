//! One attempt at a document: the data that the guard needs, and the state that the next attempt
//! receives in Temporal's heartbeat details.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use temporalio_sdk::activities::ActivityContext;
use tidegate_calls::{
    attempt::{self, CallState},
    failure::StoreFault,
};
use tidegate_types::{CallCounts, Spend};
use tidegate_workflows::contract::{AskedAnswer, CutAnswers, FailureDetails, PartTask, Taken};
use tokio::sync::Notify;

use crate::fingerprint::hash;

/// State that is carried from attempt to attempt: a heartbeat's details outlive the worker that sent
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptState {
    /// State of its calls.
    #[serde(flatten)]
    pub call: CallState,
    /// State of the document.
    #[serde(flatten)]
    pub document: DocumentState,
}

/// State of the document that an attempt hands to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentState {
    /// Answers that did not satisfy the schema.
    pub invalid_outputs: u32,
    /// The fault of the last such answer. Quotes nothing of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<String>,
    /// Questions about the document that were answered before this one, where answers are checked.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub checked: u32,
    /// The checks that the last answer has failed for good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// The checked answers that it was asked for, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked_answers: Vec<AskedAnswer>,
    /// How often `max_output_tokens` was raised.
    pub raises: u32,
    /// Whether the first raise came before the first call, because many answers to the question are
    /// cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub began_raised: bool,
    /// Whether a higher cap was refused before any answer came.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cap_refused: bool,
    /// Its cut answers.
    pub cuts: CutAnswers,
    /// URI of the last answer that was not accepted as a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_uri: Option<String>,
    /// Since when its answer has been in a worker's spool, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spooled_millis: Option<i64>,
    /// Whether this worker holds its answer, because the store does not accept it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
    /// Documents now being read that may take much memory. If it is not 0 when the next attempt
    /// begins, the worker died during the read.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub reading: u32,
    /// Workers in a row that died while they read.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub dead_readers: u32,
    /// Whether the stored result answers this question about an earlier content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    /// Faults and refusals of stores.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub store: StoreFaults,
    /// Whether its extracted text is stored beside its shard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_text: bool,
}

impl AttemptState {
    /// The state with which the next attempt begins.
    pub fn for_next_attempt(self) -> Self {
        let DocumentState { dead_readers, reading, .. } = self.document;
        let dead_readers = dead_readers + u32::from(reading > 0);
        let (reading, unwritten) = (0, false);
        let document = DocumentState { dead_readers, reading, unwritten, ..self.document };
        Self { document, ..self }
    }
}

/// Faults of stores that an activity has met, over all its attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreFaults {
    /// Faults in a row, of any kind.
    pub faults: u32,
    /// Refusals, which time alone does not mend.
    pub refusals: u32,
    /// When the first fault of the row was met, in milliseconds since 1970.
    pub since_millis: Option<i64>,
    /// Calls of the document at the first fault of the row.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub calls: u32,
}

impl StoreFaults {
    /// The faults as of this many calls of the document. A call since the first fault proves that
    /// the document was read, so the row of faults is over.
    fn at(self, calls: u32) -> Self {
        match self.calls == calls {
            true => self,
            false => Self { refusals: self.refusals, ..Self::default() },
        }
    }

    /// Returns the time since the first fault of the row.
    pub fn lasting(&self, now: SystemTime) -> Duration {
        let since = self.since_millis.map_or(0, |since| millis(Some(now)).saturating_sub(since));
        Duration::from_millis(u64::try_from(since).unwrap_or_default())
    }
}

/// The use of an activity up to an answer, as stored beside the answer: the heartbeats that carry it
/// may be lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RecordedUse {
    /// [`Attempt::activity`].
    activity: String,
    /// The calls of that activity.
    counts: CallCounts,
    discarded: Spend,
}

impl RecordedUse {
    /// Whether the activity of this attempt has recorded it.
    pub(crate) fn is_of(&self, attempt: &Attempt) -> bool {
        self.activity == attempt.activity()
    }

    /// All that the activity had used, except for the answer.
    pub(crate) fn spent(&self) -> Spend {
        Spend::from(self.counts) + self.discarded
    }
}

/// Time after which a heartbeat has left this process.
const SEND_TIME: Duration = Duration::from_millis(50);

/// Time after which a heartbeat has reached the server: the worker sends at most one a second.
const DELIVERY_TIME: Duration = Duration::from_secs(2);

/// How often the cap on output is raised for one document.
pub const MAX_RAISES: u32 = 2;

/// The name of a reservation. It contains the start of the attempt, because an operator's reset of the
/// activity counts attempts anew, and an earlier reservation must not admit another call.
fn reservation(run: &str, work: &str, attempt: u32, started_millis: i64) -> String {
    format!("{run}#{work}.{attempt}@{started_millis}")
}

/// One attempt at one document. Clones share the state: one does the work, the other sends heartbeats.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The call guard's view of the attempt.
    pub call: attempt::Attempt,
    /// When the document's activity was scheduled, in milliseconds since 1970.
    scheduled_millis: i64,
    /// The caller allows no further attempt.
    pub(crate) is_last: bool,
    state: Arc<Mutex<DocumentState>>,
    /// Whether the attempt before ended without a report: its worker may have died during a read.
    is_suspect: bool,
    /// Notified when the state is to be sent at once.
    news: Arc<Notify>,
}

impl Attempt {
    /// Creates the attempt with the state of the attempt before.
    pub fn new(
        reservation: String,
        batch: String,
        scheduled_millis: i64,
        state: AttemptState,
    ) -> Self {
        Self {
            call: attempt::Attempt::new(reservation, batch, state.call),
            scheduled_millis,
            is_last: false,
            state: Arc::new(Mutex::new(state.document)),
            is_suspect: false,
            news: Arc::default(),
        }
    }

    /// The running attempt at an activity. `work` names its work among the activities of its run; it
    /// must not contain a document's name.
    pub fn from_context(ctx: &ActivityContext, work: &str) -> Self {
        let info = ctx.info();
        let runs = [info.workflow_run_id.as_deref(), info.activity_run_id.as_deref()];
        let run = runs.into_iter().flatten().find(|run| !run.is_empty()).unwrap_or_default();
        let state = ctx.heartbeat_details().deserialize::<AttemptState>().ok().flatten();
        let mut state = state.unwrap_or_default().for_next_attempt();
        let is_suspect = state.call.progress.died_silently(info.attempt);
        state.call.progress = state.call.progress.resumed_by(info.attempt);
        let attempt = Self::new(
            reservation(run, work, info.attempt, millis(info.started_time)),
            run.to_owned(),
            millis(info.scheduled_time),
            state,
        );
        let workflow = info.workflow_id.as_deref().unwrap_or_default();
        Self { is_suspect, ..attempt.for_batch(workflow, run) }
    }

    /// The name of the activity, which its attempts share, and no other activity about the document
    /// has: the run, and when the server scheduled the activity. No worker's clock is part of it.
    pub fn activity(&self) -> String {
        let scheduled = self.scheduled_millis.to_le_bytes();
        format!("{:016x}", hash([self.call.run.as_bytes(), &scheduled]))
    }

    /// The use of the activity so far, to be stored beside an answer.
    pub(crate) fn recorded_use(&self) -> RecordedUse {
        let CallState { counts, discarded, .. } = self.call.state();
        RecordedUse { activity: self.activity(), counts, discarded }
    }

    /// Restores the use that an earlier attempt of this activity has stored.
    pub(crate) fn recall(&self, recorded: &RecordedUse) {
        self.call.recall(recorded.counts, recorded.discarded);
    }

    /// Sets the batch, by its workflow id, and the folder of the run's job.
    pub fn for_batch(self, workflow: &str, job: &str) -> Self {
        Self { call: self.call.of_batch(workflow, job), ..self }
    }

    /// Sets whether another attempt may follow.
    pub fn with_last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }

    /// Replaces the call guard's view of the attempt.
    pub fn with_call(self, call: attempt::Attempt) -> Self {
        Self { call, ..self }
    }

    /// Sets whether the document was asked before, in a provider's batch or a pack.
    pub fn with_asked_before(self, asked: bool) -> Self {
        Self { call: self.call.asked_before(asked), ..self }
    }

    /// Derives the attempt for a step of a document that is read in parts.
    pub fn for_part(self, task: &PartTask) -> Self {
        let document = format!("{}.{}", task.document.shard, task.document.index);
        Self { call: self.call.in_parts(document, task.parts.calls()), ..self }
    }

    /// A copy of the state.
    pub fn state(&self) -> AttemptState {
        let call = self.call.state();
        let document = self.state.lock().clone();
        let store = document.store.at(call.counts.provider_calls);
        AttemptState { document: DocumentState { store, ..document }, call }
    }

    /// The failure details that the workflow receives.
    pub fn details(&self) -> FailureDetails {
        let AttemptState { call, document } = self.state();
        let discarded = Taken { spend: call.discarded, cuts: document.cuts };
        let DocumentState { refused_uri: kept, failed_checks, asked_answers: asked, .. } = document;
        let (counts, waits_for) = (call.counts, None);
        FailureDetails { counts, waits_for, discarded, kept, failed_checks, asked }
    }

    /// The document's calls and waits so far.
    pub fn counts(&self) -> CallCounts {
        self.call.counts()
    }

    /// Returns the document's use so far apart from its result: calls, waits, and rejected answers.
    pub fn spent(&self) -> Spend {
        let CallState { counts, discarded, .. } = self.call.state();
        Spend::from(counts) + discarded
    }

    /// Whether this attempt has sent a call: its answer is paid for.
    pub fn has_sent(&self) -> bool {
        self.call.has_sent()
    }

    /// Counts a fault or refusal of a store. Returns all faults of this activity so far.
    pub fn store_failed(&self, fault: StoreFault) -> StoreFaults {
        let calls = self.call.counts().provider_calls;
        let store = &mut self.state.lock().store;
        *store = StoreFaults { calls, ..store.at(calls) };
        store.faults += 1;
        store.refusals += u32::from(fault == StoreFault::Refused);
        store.since_millis.get_or_insert_with(|| millis(Some(SystemTime::now())));
        *store
    }

    /// Counts an answer that did not satisfy the schema, for this reason. Returns the number of such
    /// answers.
    pub fn invalid_output(&self, fault: &str) -> u32 {
        let mut state = self.state.lock();
        state.invalid_outputs += 1;
        state.last_fault = Some(fault.to_owned());
        state.invalid_outputs
    }

    /// Records that this many questions about the document are answered.
    pub fn set_answered_questions(&self, questions: u32) {
        let mut state = self.state.lock();
        if state.checked != questions {
            (state.checked, state.invalid_outputs, state.last_fault) = (questions, 0, None);
            self.call.begin_next_question();
        }
    }

    /// Records the checks that the last answer has failed for good.
    pub fn set_failed_checks(&self, names: Vec<String>) {
        self.state.lock().failed_checks = names;
    }

    /// Records the checked answers that the document was asked for so far, in order.
    pub fn set_asked_answers(&self, asked: Vec<AskedAnswer>) {
        self.state.lock().asked_answers = asked;
    }

    /// Sends a heartbeat before a read that may kill the process, so that the next attempt knows of
    /// the read.
    pub async fn announce_reading(&self) {
        self.state.lock().reading += 1;
        self.news.notify_one();
        tokio::time::sleep(SEND_TIME).await;
    }

    /// Like [`Self::announce_reading`], for an attempt at a single document. Sends the heartbeat
    /// only if an earlier read may have killed a worker: this is rare, and a heartbeat for each
    /// document would cost as much as its attempt. Returns whether it was sent.
    pub async fn announce_reading_alone(&self) -> bool {
        let suspected = {
            let mut state = self.state.lock();
            if self.is_suspect {
                state.dead_readers = state.dead_readers.max(1);
            }
            state.dead_readers > 0
        };
        if suspected {
            self.announce_reading().await;
        } else {
            self.state.lock().reading += 1;
        }
        suspected
    }

    /// Returns how many workers in a row have died during this activity.
    pub fn deaths(&self) -> u32 {
        self.call.state().progress.deaths
    }

    /// Returns the number of workers in a row that died while they read.
    pub fn dead_readers(&self) -> u32 {
        self.state.lock().dead_readers
    }

    /// Records that the read ended and the process survived. `told` is whether the read was
    /// announced to the server.
    pub async fn finish_reading(&self, told: bool) {
        let suspected = {
            let mut state = self.state.lock();
            state.reading = state.reading.saturating_sub(1);
            std::mem::take(&mut state.dead_readers) > 0
        };
        if told {
            self.news.notify_one();
        }
        if suspected {
            // The server must learn of the end of this read, so that a later death of the worker is
            // not taken for one during the read.
            tokio::time::sleep(DELIVERY_TIME).await;
        }
    }

    /// Records that the attempt ends and its process lives on.
    pub(crate) fn mark_ended(&self) {
        self.state.lock().reading = 0;
        self.call.end();
    }

    /// Resolves when the state is to be sent before the next heartbeat is due.
    pub(crate) async fn state_changed(&self) {
        self.news.notified().await;
    }

    /// Raises the cap on output for the next call, after a cut answer. Returns whether a raise was
    /// left.
    pub fn raise_output_cap(&self) -> bool {
        let mut state = self.state.lock();
        let raised = state.raises < MAX_RAISES;
        state.raises += u32::from(raised);
        raised
    }

    /// Begins with a higher cap, because many answers to the question are cut.
    pub fn begin_with_room(&self) {
        let calls = self.call.counts().provider_calls;
        let mut state = self.state.lock();
        if state.raises == 0 && calls == 0 && !state.cap_refused {
            state.raises = 1;
            state.began_raised = true;
            state.cuts.began_raised = 1;
        }
    }

    /// Undoes [`Self::begin_with_room`] after the higher cap was refused: the document is asked
    /// with the batch's own cap.
    pub fn begin_without_room(&self) {
        let mut state = self.state.lock();
        state.raises = 0;
        state.began_raised = false;
        state.cap_refused = true;
        state.cuts.began_raised = 0;
    }

    /// Begins with a higher cap, because the document's answer from a provider's batch was cut. `uri`
    /// is its URI.
    pub fn begin_raised(&self, uri: String) {
        let mut state = self.state.lock();
        if state.raises == 0 {
            state.raises = 1;
            state.refused_uri = Some(uri);
        }
    }

    /// Counts the use of a rejected answer.
    pub fn discard(&self, taken: Taken) {
        self.call.discard(taken.spend);
        self.state.lock().cuts += taken.cuts;
    }

    /// Records whether this worker holds an answer that its store does not accept. Sent at once: the
    /// user's commands read it from the heartbeat.
    pub fn set_unwritten(&self, is_held: bool) {
        if std::mem::replace(&mut self.state.lock().unwritten, is_held) != is_held {
            self.news.notify_one();
        }
    }

    /// Records whether the answer is in this worker's spool.
    pub fn set_spooled(&self, is_there: bool) {
        let mut state = self.state.lock();
        let since = state.spooled_millis.unwrap_or_else(|| millis(Some(SystemTime::now())));
        let known = std::mem::replace(&mut state.spooled_millis, is_there.then_some(since));
        if known != state.spooled_millis {
            // Sent at once: the process may be killed before the next heartbeat.
            self.news.notify_one();
        }
    }

    /// Returns the time for which the answer has been in a worker's spool.
    pub fn spooled_duration(&self, now: SystemTime) -> Option<Duration> {
        let since = self.state.lock().spooled_millis?;
        let lasting = millis(Some(now)).saturating_sub(since);
        Some(Duration::from_millis(u64::try_from(lasting).unwrap_or_default()))
    }

    /// Records that the document is asked again because its content has changed.
    pub fn mark_updated(&self) {
        self.state.lock().updated = true;
    }

    /// Records that the document's text is stored beside its shard, so that the next attempt does not
    /// extract it again.
    pub fn mark_text_stored(&self) {
        self.state.lock().has_text = true;
    }

    /// Records the URI of the last answer that was not accepted.
    pub fn set_kept_answer(&self, uri: String) {
        self.state.lock().refused_uri = Some(uri);
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

    /// A read is announced only after a read may have killed a worker.
    #[tokio::test]
    async fn a_reading_is_told_only_of_a_document_that_is_suspected() {
        let attempt = |is_suspect| {
            let new = Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
            Attempt { is_suspect, ..new }
        };
        let first = attempt(false);
        assert!(!first.announce_reading_alone().await);
        assert_eq!((first.state().document.reading, first.dead_readers()), (1, 0));
        let silent = tokio::time::timeout(Duration::from_millis(20), first.state_changed()).await;
        assert!(silent.is_err(), "nothing is told");
        let second = attempt(true);
        assert!(second.announce_reading_alone().await);
        assert_eq!((second.state().document.reading, second.dead_readers()), (1, 1));
        second.state_changed().await;
        assert_eq!(
            second.state().for_next_attempt().document.dead_readers,
            2,
            "the third one does not read it"
        );
    }

    #[test]
    fn an_activity_that_is_reset_reserves_anew_for_the_same_document() {
        let [first, retried, reset] = [(1, 1_000), (2, 2_000), (1, 3_000)]
            .map(|(attempt, started)| reservation("run", "0.7", attempt, started));
        assert!(first != retried && first != reset && retried != reset);
        let attempt = |name| Attempt::new(name, "b".to_owned(), 0, AttemptState::default());
        assert_eq!(attempt(first).call.document(), attempt(reset).call.document());
    }
}
