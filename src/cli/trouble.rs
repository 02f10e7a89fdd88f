//! Recent faults of the fleet's calls to a model, combined from each worker's report.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tidegate_calls::{
    health::{MINUTES, RecentCalls},
    worker_status::WorkerStatus,
};
use tidegate_types::{ModelId, seconds_since_1970};

use super::{
    advice,
    format::{count, duration},
};

/// Seconds after the last fault from which its age is mentioned, and from which an answer ends it.
const UNASKED: u64 = 30;
/// This many consecutive calls without an answer are no coincidence.
const MANY_IN_A_ROW: u64 = 3;

/// Faults of one model's calls, from all live workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    model: ModelId,
    /// The latest fault.
    last: RecentCalls,
    failed: BTreeMap<String, u64>,
    answered: u64,
    /// When a call was last answered, in seconds since 1970.
    answered_at: u64,
    /// Consecutive calls without an answer, over all workers.
    row: u64,
    /// The time since which no call was answered, in seconds since 1970.
    down_since: Option<u64>,
}

impl Trouble {
    /// The faults of `model`; `None` if its calls have had no recent fault.
    pub(super) fn from_cards(cards: &[(String, WorkerStatus)], model: &ModelId) -> Option<Self> {
        let calls: Vec<&RecentCalls> =
            cards.iter().filter_map(|(_, card)| card.calls.get(model)).collect();
        let last = calls.iter().filter(|calls| !calls.kind.is_empty()).max_by_key(|it| it.at)?;
        let mut failed = BTreeMap::<String, u64>::new();
        for (kind, count) in calls.iter().flat_map(|calls| &calls.failed) {
            *failed.entry(kind.clone()).or_default() += count;
        }
        let row = calls.iter().map(|calls| calls.row).sum();
        let begun = calls.iter().filter(|calls| calls.row > 0).map(|calls| calls.since).min();
        let answered_at = calls.iter().map(|calls| calls.answered_at).max().unwrap_or_default();
        let down_since = begun.filter(|since| row >= MANY_IN_A_ROW && answered_at <= *since);
        Some(Self {
            model: model.clone(),
            last: (*last).clone(),
            failed,
            answered: calls.iter().map(|calls| calls.answered).sum(),
            answered_at,
            row,
            down_since,
        })
    }

    /// Whether no call is answered at all.
    pub(super) fn is_down(&self) -> bool {
        self.down_since.is_some()
    }

    /// Whether calls were answered since the last fault, which is some time ago.
    pub(super) fn is_over(&self) -> bool {
        self.answered_at > self.last.at && now().saturating_sub(self.last.at) >= UNASKED
    }

    /// The last fault's type.
    pub(super) fn kind(&self) -> &str {
        &self.last.kind
    }

    /// The provider's last message, and the number of failures by type.
    pub(super) fn sentence(&self) -> String {
        let words = self.words();
        let counts = self.counts();
        match self.down_since {
            Some(since) => format!(
                "{} {}, for {}: {words} ({} in a row{}; {counts})",
                self.model.provider(),
                self.down(),
                ago(since),
                count(self.row),
                self.unasked(),
            ),
            None => format!("{words} ({} ago; {counts})", ago(self.last.at)),
        }
    }

    /// The sentence, with the remedy.
    pub(super) fn with_advice(&self) -> String {
        format!("{}; next: {}", self.sentence(), self.advice())
    }

    /// The remedy for the last fault.
    pub(super) fn advice(&self) -> String {
        advice::after(self.kind(), self.last.status, &self.model)
    }

    pub(super) fn name(&self) -> String {
        format!("calls to {}", self.model)
    }

    /// A sentence on the failing provider. One that sends an unreadable answer with a success
    /// status is reachable.
    fn down(&self) -> &'static str {
        match self.last.status {
            Some(200..=299) => "sends no answer that can be read",
            Some(_) => "answers with errors",
            None => "does not answer",
        }
    }

    /// A note on the age of the last call: the provider may be back.
    fn unasked(&self) -> String {
        let recent = now().saturating_sub(self.last.at) < UNASKED;
        if recent { String::new() } else { format!(", the last {} ago", ago(self.last.at)) }
    }

    fn words(&self) -> String {
        let status = self.last.status.map_or_else(String::new, |status| format!(" ({status})"));
        let colon = if self.last.words.is_empty() { "" } else { ": " };
        format!("{}{status}{colon}{}", self.last.kind, self.last.words)
    }

    fn counts(&self) -> String {
        let mut counts: Vec<_> = self.failed.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(kind, number)| format!("{} × {kind}", count(*number)))
            .collect();
        let answered = count(self.answered);
        format!("in {MINUTES} minutes {} and {answered} answered", counts.join(", "))
    }

    pub(super) fn value(&self) -> Value {
        json!({
            "model": self.model,
            "error_type": self.last.kind,
            "message": self.last.words,
            "status": self.last.status,
            "seconds_ago": now().saturating_sub(self.last.at),
            "down_seconds": self.down_since.map(|since| now().saturating_sub(since)),
            "failed": self.failed,
            "answered": self.answered,
            "next": self.advice(),
        })
    }
}

fn ago(since: u64) -> String {
    duration(Duration::from_secs(now().saturating_sub(since)))
}

fn now() -> u64 {
    seconds_since_1970(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(row: u64, since: u64, answered_at: u64) -> (String, WorkerStatus) {
        let calls = RecentCalls {
            kind: if row > 0 { "Overloaded" } else { "" }.to_owned(),
            words: if row > 0 { "the tide is out" } else { "" }.to_owned(),
            status: Some(529),
            at: since + 5,
            row,
            since,
            failed: BTreeMap::from([("Overloaded".to_owned(), row)]),
            answered: 1,
            answered_at,
        };
        let calls = BTreeMap::from([("a:b".parse().unwrap(), calls)]);
        ("w".to_owned(), WorkerStatus { calls, ..WorkerStatus::default() })
    }

    #[test]
    fn a_provider_is_down_when_no_worker_gets_an_answer() {
        let model: ModelId = "a:b".parse().unwrap();
        let (begun, of) =
            (now() - 60, |cards: &[(String, WorkerStatus)]| Trouble::from_cards(cards, &model));
        let down = of(&[worker(4, begun, begun - 9), worker(2, begun + 1, 0)]).unwrap();
        let sentence = down.sentence();
        assert!(sentence.starts_with("a answers with errors, for 1m 0s: Overloaded (529): the tide is out (6 in a row, the last 5"), "{sentence}");
        assert!(
            sentence.ends_with("s ago; in 10 minutes 6 × Overloaded and 2 answered)"),
            "{sentence}"
        );
        let lately = of(&[worker(4, now() - 9, 0)]).unwrap().sentence();
        assert!(lately.contains("the tide is out (4 in a row; in 10 minutes"), "{lately}");
        assert!(down.with_advice().contains("; next: wait until the provider recovers"));
        let mut broken = worker(4, begun, 0);
        if let Some(calls) = broken.1.calls.get_mut(&model) {
            (calls.kind, calls.status) = ("Transient".to_owned(), Some(200));
        }
        let broken = of(&[broken]).unwrap().with_advice();
        assert!(broken.starts_with("a sends no answer that can be read, for"), "{broken}");
        assert!(broken.contains("next: an answer comes"), "{broken}");
        let mut silent = worker(4, begun, 0);
        if let Some(calls) = silent.1.calls.get_mut(&model) {
            calls.status = None;
        }
        let silent = of(&[silent]).unwrap().sentence();
        assert!(silent.starts_with("a does not answer, for 1m 0s: Overloaded:"), "{silent}");
        let half = of(&[worker(4, begun, 0), worker(0, 0, begun + 30)]).unwrap();
        assert!(!half.is_down() && half.is_over(), "another worker gets answers");
        assert!(!down.is_over());
        assert!(!of(&[worker(1, now() - 9, now())]).unwrap().is_over(), "it may come again");
        assert!(half.sentence().starts_with("Overloaded (529): the tide is out (5"), "{half:?}");
        assert!(!of(&[worker(2, begun, 0)]).unwrap().is_down(), "two may be chance");
        assert_eq!(of(&[worker(0, 0, begun)]), None);
        assert_eq!(of(&[]), None);
    }
}
