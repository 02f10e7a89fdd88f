//! Outcomes of this worker's recent calls to each model, to explain why a batch does not progress.
//! They are sent with the worker's status (see [`super::worker_status`]), so they cost no request
//! of their own.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::SystemTime,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_providers::{Error, Kind};
use tidegate_types::{ModelId, seconds_since_1970};

use crate::failure::provider::provider_failure;

/// Period in minutes over which calls are counted and a fault is remembered.
pub const MINUTES: u64 = 10;

/// Longest message of a fault, in characters.
const MAX_WORDS: usize = 300;

/// Outcomes of the calls to one model in the last [`MINUTES`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentCalls {
    /// The last fault, by its failure type; empty if there was none.
    pub kind: String,
    /// The provider's message without key and document; empty for a refused key, whose message is
    /// not reported.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Its HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the last fault was, in seconds since 1970.
    pub at: u64,
    /// Calls in a row that failed, up to now, without an answer of any kind. If the model answered
    /// lately, unreadable answers to one document count once.
    pub row: u64,
    /// When that row began, in seconds since 1970; meaningless without one.
    pub since: u64,
    /// Calls that failed, by failure type.
    pub failed: BTreeMap<String, u64>,
    /// Calls that were answered.
    pub answered: u64,
    /// When the last call was answered, in seconds since 1970; 0 for never.
    pub answered_at: u64,
}

/// The outcomes of every model.
#[derive(Debug, Default)]
pub(crate) struct RecentByModel(Mutex<HashMap<ModelId, Recent>>);

#[derive(Debug, Default)]
struct Recent {
    /// The last fault and its row. Its counts are empty.
    last: RecentCalls,
    /// The document of the last call in the row.
    document: String,
    /// Calls by the minute in which they ended (minutes since 1970), the latest last.
    minutes: VecDeque<Minute>,
}

#[derive(Debug, Default)]
struct Minute {
    number: u64,
    failed: BTreeMap<&'static str, u64>,
    answered: u64,
}

impl RecentByModel {
    /// Records an answered call.
    pub(crate) fn answered(&self, model: &ModelId, now: SystemTime) {
        let mut models = self.0.lock();
        let recent = models.entry(model.clone()).or_default();
        (recent.last.row, recent.last.answered_at) = (0, seconds_since_1970(now));
        recent.minute(seconds_since_1970(now)).answered += 1;
    }

    /// Records a failed call for this document.
    pub(crate) fn failed(&self, model: &ModelId, error: &Error, document: &str, now: SystemTime) {
        let now = seconds_since_1970(now);
        let kind = provider_failure(error.kind).as_str();
        let mut models = self.0.lock();
        let recent = models.entry(model.clone()).or_default();
        *recent.minute(now).failed.entry(kind).or_default() += 1;
        // A fault of one document does not concern the model.
        if is_of_document(error.kind) {
            recent.last.row = 0;
            return;
        }
        let is_there = error.status.is_some_and(|status| (200..300).contains(&status))
            && recent.minutes.iter().any(|minute| minute.answered > 0);
        let is_again = is_there && recent.document == document;
        document.clone_into(&mut recent.document);
        let (row, since) = match (recent.last.row, is_no_answer(error.kind)) {
            (_, false) => (0, now),
            (0, true) => (1, now),
            (row, true) => (row + u64::from(!is_again), recent.last.since),
        };
        let words = if error.kind == Kind::Unauthorized { "" } else { error.message.as_str() };
        recent.last = RecentCalls {
            kind: kind.to_owned(),
            words: words.chars().take(MAX_WORDS).collect(),
            status: error.status,
            at: now,
            row,
            since,
            ..RecentCalls::default()
        };
    }

    /// The message of the last fault, unless it is too old.
    pub(crate) fn words(&self, model: &ModelId) -> Option<String> {
        let models = self.0.lock();
        models.get(model).map(|recent| recent.last.words.clone()).filter(|words| !words.is_empty())
    }

    /// Every model that was asked within [`MINUTES`].
    pub(crate) fn seen(&self, now: SystemTime) -> BTreeMap<ModelId, RecentCalls> {
        let now = seconds_since_1970(now);
        let mut models = self.0.lock();
        let seen = models.iter_mut().filter_map(|(model, recent)| {
            recent.forget(now);
            (!recent.minutes.is_empty()).then(|| (model.clone(), recent.summed(now)))
        });
        seen.collect()
    }
}

impl Recent {
    fn minute(&mut self, now: u64) -> &mut Minute {
        self.forget(now);
        let number = now / 60;
        if self.minutes.back().is_none_or(|last| last.number != number) {
            self.minutes.push_back(Minute { number, ..Minute::default() });
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }

    fn forget(&mut self, now: u64) {
        while self.minutes.front().is_some_and(|first| first.number + MINUTES <= now / 60) {
            self.minutes.pop_front();
        }
    }

    fn summed(&self, now: u64) -> RecentCalls {
        let (answered_at, is_past) = (self.last.answered_at, self.last.at + MINUTES * 60 <= now);
        let mut sum = if is_past { RecentCalls::default() } else { self.last.clone() };
        sum.answered_at = answered_at;
        for minute in &self.minutes {
            sum.answered += minute.answered;
            for (kind, count) in &minute.failed {
                *sum.failed.entry((*kind).to_owned()).or_default() += count;
            }
        }
        sum
    }
}

/// Whether the provider gave no useful reply: it is down, short of capacity, or unreachable.
pub(crate) fn is_no_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Overloaded | Kind::Transient | Kind::Timeout | Kind::Unreachable)
}

fn is_of_document(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InvalidRequest | Kind::TooLarge | Kind::ContentRefused | Kind::InvalidOutput
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::time::Duration;

    use tidegate_providers::Charged;

    use super::*;

    fn error(kind: Kind, message: &str) -> Error {
        Error {
            kind,
            message: message.to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: Some(529),
            timed_out: false,
            span: None,
            observed: Box::default(),
        }
    }

    #[test]
    fn the_last_fault_keeps_its_message_and_is_counted() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(6_000 + seconds);
        let seen = |seconds| faults.seen(at(seconds)).remove(&model);
        faults.answered(&model, at(0));
        let well = seen(1).unwrap();
        assert_eq!((well.kind.as_str(), well.answered, well.answered_at), ("", 1, 6_000));
        faults.failed(&model, &error(Kind::RateLimited, "slow down"), "a", at(2));
        faults.failed(&model, &error(Kind::Overloaded, "Overloaded"), "a", at(10));
        faults.failed(&model, &error(Kind::Timeout, "connection reset"), "a", at(70));
        let both = seen(80).unwrap();
        assert_eq!((both.kind.as_str(), both.words.as_str()), ("Transient", "connection reset"));
        assert_eq!((both.row, both.since, both.at, both.answered), (2, 6_010, 6_070, 1));
        assert_eq!(both.failed["Overloaded"] + both.failed["RateLimited"], 2);
        faults.failed(&model, &error(Kind::TooLarge, "one document"), "a", at(75));
        let after = seen(80).unwrap();
        assert_eq!((after.words.as_str(), after.row), ("connection reset", 0));
        faults.answered(&model, at(80));
        assert_eq!(seen(80).unwrap().answered, 2);
        assert_eq!(seen(640).unwrap().failed.len(), 2, "those of the first minute are forgotten");
        assert_eq!(seen(700), None);
    }

    /// A provider that answers other documents is up.
    #[test]
    fn one_document_whose_answers_cannot_be_read_is_no_row() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let now = SystemTime::now();
        let row = || faults.seen(now).remove(&model).unwrap().row;
        let unread = Error { status: Some(200), ..error(Kind::Transient, "no text") };
        for _ in 0..3 {
            faults.failed(&model, &unread, "first", now);
        }
        assert_eq!(row(), 3, "no call was answered yet");
        faults.answered(&model, now);
        for _ in 0..5 {
            faults.failed(&model, &unread, "poison", now);
        }
        assert_eq!(row(), 1);
        faults.failed(&model, &unread, "another", now);
        assert_eq!(row(), 2);
        for _ in 0..2 {
            faults.failed(&model, &error(Kind::Transient, "bad gateway"), "another", now);
        }
        assert_eq!(row(), 4, "it does not answer");
    }

    #[test]
    fn a_refused_keys_message_is_not_kept() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let now = SystemTime::now();
        faults.failed(&model, &error(Kind::Unauthorized, "your key sk-123 is bad"), "a", now);
        let seen = faults.seen(now).remove(&model).unwrap();
        assert_eq!((seen.kind.as_str(), seen.words.as_str()), ("Unauthorized", ""));
        assert_eq!(faults.words(&model), None);
    }
}
