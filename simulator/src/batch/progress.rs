//! How far a batch is, by the clock.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::item::{Item, Outcome};

/// Requests that were taken in together.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When that was: on the simulator's clock, and on the wall's.
    taken: Duration,
    created: DateTime<Utc>,
    /// How long all of it takes.
    takes: Duration,
    /// How long after it was taken in it was cancelled.
    cancelled: Option<Duration>,
    /// In the order in which they are done.
    items: Vec<Item>,
    /// Its answers are in the account.
    accounted: bool,
}

/// A stretch of a batch's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first tenth.
    Validating,
    Running,
    /// The last tenth.
    Finalizing,
    /// From a cancellation until the work at hand is put down.
    Cancelling,
    Ended,
}

/// How one request stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disposition<'a> {
    Waiting,
    Done(&'a Outcome),
    Cancelled,
    Expired,
}

impl Progress {
    pub(crate) fn new(now: Duration, takes: Duration, mut items: Vec<Item>) -> Self {
        items.sort_by_key(|item| item.after);
        Self { taken: now, created: Utc::now(), takes, cancelled: None, items, accounted: false }
    }

    /// When a part of its time is over, in tenths, on the wall's clock.
    pub(crate) fn tenths(&self, tenths: u32) -> DateTime<Utc> {
        self.moment(self.takes / 10 * tenths)
    }

    /// When it was cancelled, on the wall's clock.
    pub(crate) fn cancelled(&self) -> Option<DateTime<Utc>> {
        self.cancelled.map(|cancelled| self.moment(cancelled))
    }

    /// When it ends, on the wall's clock.
    pub(crate) fn end(&self) -> DateTime<Utc> {
        self.moment(self.lives())
    }

    fn moment(&self, after: Duration) -> DateTime<Utc> {
        self.created + TimeDelta::from_std(after).unwrap_or_default()
    }

    /// A cancelled batch lives for a tenth of its time more, if it had so much left.
    fn lives(&self) -> Duration {
        self.cancelled.map_or(self.takes, |cancelled| (cancelled + self.takes / 10).min(self.takes))
    }

    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.taken)
    }

    pub(crate) fn stage(&self, now: Duration) -> Stage {
        let (age, tenth) = (self.age(now), self.takes / 10);
        if age >= self.lives() {
            Stage::Ended
        } else if self.cancelled.is_some() {
            Stage::Cancelling
        } else if age < tenth {
            Stage::Validating
        } else if age < tenth * 9 {
            Stage::Running
        } else {
            Stage::Finalizing
        }
    }

    /// Puts down what is not done. Says whether the batch is a cancelled one now, which it is not
    /// if it had ended.
    pub(crate) fn cancel(&mut self, now: Duration) -> bool {
        if self.stage(now) != Stage::Ended && self.cancelled.is_none() {
            self.cancelled = Some(self.age(now));
        }
        self.cancelled.is_some()
    }

    /// Each request and how it stands, in the order in which they are done: no other one is
    /// promised.
    pub(crate) fn dispositions(
        &self,
        now: Duration,
    ) -> impl Iterator<Item = (&Item, Disposition<'_>)> {
        let ended = self.stage(now) == Stage::Ended;
        let until = self.cancelled.unwrap_or(Duration::MAX).min(self.age(now));
        self.items.iter().map(move |item| {
            let disposition = match &item.outcome {
                Some(outcome) if item.after <= until => Disposition::Done(outcome),
                _ if !ended => Disposition::Waiting,
                _ if self.cancelled.is_some() => Disposition::Cancelled,
                _ => Disposition::Expired,
            };
            (item, disposition)
        })
    }

    /// How many requests it has.
    pub(crate) const fn len(&self) -> usize {
        self.items.len()
    }

    /// The prompts that were answered: once, when the batch has ended.
    pub(crate) fn answered(&mut self, now: Duration) -> Vec<u64> {
        if self.accounted || self.stage(now) != Stage::Ended {
            return Vec::new();
        }
        self.accounted = true;
        let prompt = |(_, disposition): (&Item, Disposition<'_>)| match disposition {
            Disposition::Done(Outcome::Answered { prompt, .. }) => Some(*prompt),
            _ => None,
        };
        self.dispositions(now).filter_map(prompt).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A batch of ten seconds, taken in at second 100: one request is done at second 2 of it, one
    /// at 8, one never.
    fn batch() -> Progress {
        let item = |after, prompt: Option<u64>| Item {
            custom_id: String::new(),
            id: 0,
            after: Duration::from_secs(after),
            outcome: prompt.map(|prompt| Outcome::Answered { body: Value::Null, prompt }),
        };
        let items = vec![item(8, Some(8)), item(5, None), item(2, Some(2))];
        Progress::new(Duration::from_secs(100), Duration::from_secs(10), items)
    }

    fn dispositions(batch: &Progress, second: u64) -> String {
        let letter = |(_, disposition)| match disposition {
            Disposition::Waiting => 'w',
            Disposition::Done(_) => 'd',
            Disposition::Cancelled => 'c',
            Disposition::Expired => 'x',
        };
        batch.dispositions(Duration::from_secs(second)).map(letter).collect()
    }

    #[test]
    fn requests_are_done_one_after_another_and_the_rest_expires() {
        let mut batch = batch();
        let seen = [100, 102, 107, 108, 109, 110]
            .map(|second| (batch.stage(Duration::from_secs(second)), dispositions(&batch, second)));
        let wanted = [
            (Stage::Validating, "www"),
            (Stage::Running, "dww"),
            (Stage::Running, "dww"),
            (Stage::Running, "dwd"),
            (Stage::Finalizing, "dwd"),
            (Stage::Ended, "dxd"),
        ];
        assert_eq!(seen, wanted.map(|(stage, dispositions)| (stage, dispositions.to_owned())));
        assert!(batch.answered(Duration::from_secs(109)).is_empty());
        assert_eq!(batch.answered(Duration::from_secs(110)), [2, 8]);
        assert!(batch.answered(Duration::from_secs(111)).is_empty(), "accounted once");
        assert!(!batch.cancel(Duration::from_secs(111)), "too late");
        assert_eq!(dispositions(&batch, 120), "dxd");
    }

    #[test]
    fn what_is_not_done_when_a_batch_is_cancelled_is_never_done() {
        let mut batch = batch();
        assert!(batch.cancel(Duration::from_secs(104)));
        assert_eq!(
            (batch.stage(Duration::from_secs(104)), dispositions(&batch, 104)),
            (Stage::Cancelling, "dww".into())
        );
        assert!(batch.cancel(Duration::from_millis(104_900)), "again, and to no effect");
        assert_eq!(
            (batch.stage(Duration::from_secs(105)), dispositions(&batch, 105)),
            (Stage::Ended, "dcc".into())
        );
        assert_eq!(
            (dispositions(&batch, 200), batch.answered(Duration::from_secs(200))),
            ("dcc".into(), vec![2])
        );
    }
}
