//! One attempt at a document: what the guard knows of it, and what it tells the next one of the
//! document, through Temporal's heartbeat details.

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
use tidegate_workflows::contract::{CutAnswers, FailureDetails, PartTask, Taken};
use tokio::sync::Notify;

/// Carried from attempt to attempt: a heartbeat's details outlive the worker that sent them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptState {
    /// Of its calls.
    #[serde(flatten)]
    pub call: CallState,
    /// Of the document.
    #[serde(flatten)]
    pub document: DocumentState,
}

/// What an attempt tells the next of its document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentState {
    /// Answers that did not satisfy the schema.
    #[serde(rename = "amiss")]
    pub invalid_outputs: u32,
    /// What was wrong with the last of them; quotes nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// Questions about it that were answered before this one, where its answers are checked.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub checked: u32,
    /// The checks that its last answer has not passed, for good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// How often `max_output_tokens` was raised.
    pub raises: u32,
    /// Of these, the one that it began with, because many answers to the question are cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub began_raised: bool,
    /// It could not be had with more room before any answer had come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_room: bool,
    /// Its answers that were not whole.
    pub cuts: CutAnswers,
    /// URI of the last answer that was no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Since when its answer lies in a worker's spool, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spooled_millis: Option<i64>,
    /// So many documents that may take much memory are being read. Where the next attempt finds
    /// some, the worker died meanwhile.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub reading: u32,
    /// Workers in a row that died so.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub dead_readers: u32,
    /// The document's result answers this question about an earlier content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    /// What stores have refused or failed at.
    #[serde(skip_serializing_if = "StoreFaults::is_none")]
    pub store: StoreFaults,
    /// Its text lies beside its shard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_text: bool,
}

impl AttemptState {
    /// As the next attempt begins with it.
    pub fn resumed(self) -> Self {
        let DocumentState { dead_readers, reading, .. } = self.document;
        let dead_readers = dead_readers + u32::from(reading > 0);
        Self { document: DocumentState { dead_readers, reading: 0, ..self.document }, ..self }
    }
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
    /// Calls that the document had made then.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub calls: u32,
}

impl StoreFaults {
    fn is_none(&self) -> bool {
        self.faults == 0 && self.refusals == 0
    }

    /// Whoever has called since has read the document: the row is over.
    fn at(self, calls: u32) -> Self {
        match self.calls == calls {
            true => self,
            false => Self { refusals: self.refusals, ..Self::default() },
        }
    }

    /// How long the row has lasted.
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
    /// What the guard knows of it.
    pub call: attempt::Attempt,
    /// When the document's activity was scheduled, in milliseconds since 1970: results are ours
    /// from then on.
    pub scheduled_millis: i64,
    /// Whoever asks lets no other follow it.
    pub(crate) is_last: bool,
    state: Arc<Mutex<DocumentState>>,
    /// The attempt before died without a word, perhaps while it read.
    is_suspect: bool,
    /// The state is to be told now.
    news: Arc<Notify>,
}

impl Attempt {
    /// Begins with what the attempt before left.
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

    /// The running attempt at an activity. `work` names what it does among its run's activities;
    /// no document's name belongs there.
    pub fn of(ctx: &ActivityContext, work: &str) -> Self {
        let info = ctx.info();
        let runs = [info.workflow_run_id.as_deref(), info.activity_run_id.as_deref()];
        let run = runs.into_iter().flatten().find(|run| !run.is_empty()).unwrap_or_default();
        let state = ctx.heartbeat_details().deserialize::<AttemptState>().ok().flatten();
        let mut state = state.unwrap_or_default().resumed();
        let is_suspect = state.call.course.died_silently(info.attempt);
        state.call.course = state.call.course.resumed_by(info.attempt);
        let attempt = Self::new(
            reservation(run, work, info.attempt, millis(info.started_time)),
            run.to_owned(),
            millis(info.scheduled_time),
            state,
        );
        let workflow = info.workflow_id.as_deref().unwrap_or_default();
        Self { is_suspect, ..attempt.of_batch(workflow, run) }
    }

    /// Of a batch, by its workflow's id, and of this run of it, by the folder of its job.
    pub fn of_batch(self, workflow: &str, job: &str) -> Self {
        Self { call: self.call.of_batch(workflow, job), ..self }
    }

    /// The same, which no other follows, or which others may.
    pub fn last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }

    /// The same, of which the guard knows this.
    pub fn asking(self, call: attempt::Attempt) -> Self {
        Self { call, ..self }
    }

    /// At a document that comes back from a provider's batch or a pack, in which it was asked.
    pub fn asked_before(self, asked: bool) -> Self {
        Self { call: self.call.asked_before(asked), ..self }
    }

    /// At a step of a document that is read in parts.
    pub fn in_parts(self, task: &PartTask) -> Self {
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

    /// What a failure tells of the document.
    pub fn details(&self) -> FailureDetails {
        let AttemptState { call, document } = self.state();
        let discarded = Taken { spend: call.discarded, cuts: document.cuts };
        let DocumentState { kept, failed_checks, .. } = document;
        FailureDetails { counts: call.counts, waits_for: None, discarded, kept, failed_checks }
    }

    /// Calls and waits of the document so far.
    pub fn counts(&self) -> CallCounts {
        self.call.counts()
    }

    /// What the document has taken so far, without what its result took: calls, waits, and answers
    /// that were no result.
    pub fn spent(&self) -> Spend {
        let CallState { counts, discarded, .. } = self.call.state();
        Spend::from(counts) + discarded
    }

    /// Whether a call of this attempt has left: what it answers is paid for.
    pub fn has_sent(&self) -> bool {
        self.call.has_sent()
    }

    /// A store failed or refused; what stores have done to this activity so far.
    pub fn store_failed(&self, fault: StoreFault) -> StoreFaults {
        let calls = self.call.counts().provider_calls;
        let store = &mut self.state.lock().store;
        *store = StoreFaults { calls, ..store.at(calls) };
        store.faults += 1;
        store.refusals += u32::from(fault == StoreFault::Refused);
        store.since_millis.get_or_insert_with(|| millis(Some(SystemTime::now())));
        *store
    }

    /// An answer did not satisfy the schema, for this reason; how many did not.
    pub fn invalid_output(&self, wrong: &str) -> u32 {
        let mut state = self.state.lock();
        state.invalid_outputs += 1;
        state.wrong = Some(wrong.to_owned());
        state.invalid_outputs
    }

    /// So many questions about the document are answered, and what is asked now is the next.
    pub fn answered(&self, questions: u32) {
        let mut state = self.state.lock();
        if state.checked != questions {
            (state.checked, state.invalid_outputs, state.wrong) = (questions, 0, None);
            self.call.begin_next_question();
        }
    }

    /// Its last answer has not passed these checks, for good.
    pub fn fails_checks(&self, names: Vec<String>) {
        self.state.lock().failed_checks = names;
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
    pub fn deaths(&self) -> u32 {
        self.call.state().course.deaths
    }

    /// How many workers in a row have died while they read.
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
        self.state.lock().reading = 0;
        self.call.end();
    }

    /// Resolves when the state is to be told before the next beat is due.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// An answer was cut: the next call has more room. Whether it may have.
    pub fn raise(&self) -> bool {
        let mut state = self.state.lock();
        let raised = state.raises < MAX_RAISES;
        state.raises += u32::from(raised);
        raised
    }

    /// Many answers to the question are cut: this one begins with more room.
    pub fn begin_with_room(&self) {
        let calls = self.call.counts().provider_calls;
        let mut state = self.state.lock();
        if state.raises == 0 && calls == 0 && !state.no_room {
            state.raises = 1;
            state.began_raised = true;
            state.cuts.began_raised = 1;
        }
    }

    /// That much room could not be had: the document is asked as the batch states.
    pub fn begin_without_room(&self) {
        let mut state = self.state.lock();
        state.raises = 0;
        state.began_raised = false;
        state.no_room = true;
        state.cuts.began_raised = 0;
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
        self.call.discard(taken.spend);
        self.state.lock().cuts += taken.cuts;
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
}

fn millis(time: Option<SystemTime>) -> i64 {
    let since =
        time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server hears of a reading only once a worker may have died of it.
    #[tokio::test]
    async fn a_reading_is_told_only_of_a_document_that_is_suspected() {
        let attempt = |is_suspect| {
            let new = Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
            Attempt { is_suspect, ..new }
        };
        let first = attempt(false);
        assert!(!first.reads_alone().await);
        assert_eq!((first.state().document.reading, first.dead_readers()), (1, 0));
        let silent = tokio::time::timeout(Duration::from_millis(20), first.news()).await;
        assert!(silent.is_err(), "nothing is told");
        let second = attempt(true);
        assert!(second.reads_alone().await);
        assert_eq!((second.state().document.reading, second.dead_readers()), (1, 1));
        second.news().await;
        assert_eq!(
            second.state().resumed().document.dead_readers,
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
