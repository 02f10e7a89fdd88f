//! The last hour of each model's quota and the number of its calls on each of the last 14 days, for
//! people. It is stored beside the quota and has a bounded size. A worker with nothing to report
//! sends nothing.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde::Serialize;
use tidegate_types::ModelId;

use crate::{
    conversions::{float, whole},
    dimension::Limited,
    key::ModelKeys,
    model::ModelQuota,
    redis_store,
    snapshot::Snapshot,
    store::ProviderSignal,
};

/// Seconds of one [`Point`].
pub const SLOT_SECONDS: u64 = 30;
const SLOTS: u64 = 120;
const A_DAY: u64 = 86_400;
const DAYS: u64 = 14;

/// The last hour and the last days, each oldest first. Times without a report are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct History {
    /// The last hour.
    pub points: Vec<Point>,
    /// The last days.
    pub days: Vec<Day>,
}

/// Use in half a minute: the highest value that any worker saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Point {
    /// Its beginning, in seconds since 1970.
    pub at: u64,
    /// Use of the fullest limit; 1 is full.
    pub used: f64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Callers that waited for their turn.
    pub waiting: u64,
    /// Length of the longest queue, in seconds.
    pub queue_seconds: f64,
    /// Calls that ended.
    #[serde(flatten)]
    pub calls: Calls,
}

/// A day of UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Day {
    /// Its beginning, in seconds since 1970.
    pub at: u64,
    /// Calls that ended.
    #[serde(flatten)]
    pub calls: Calls,
}

/// Calls that ended, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Answered.
    pub answered: u64,
    /// Refused for a rate.
    pub rate_limited: u64,
    /// Failed otherwise.
    pub failed: u64,
}

/// Use that this process has seen and not written yet.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<HashMap<ModelId, Sample>>);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sample {
    used: f64,
    in_flight: u64,
    waiting: u64,
    queue_seconds: f64,
    calls: Calls,
}

impl Recorder {
    /// Counts a call that has ended.
    pub(crate) fn record_end(&self, model: &ModelId, answered: bool, signal: ProviderSignal) {
        let mut all = self.0.lock();
        let calls = &mut all.entry(model.clone()).or_default().calls;
        match signal {
            ProviderSignal::RateLimited => calls.rate_limited += 1,
            _ if answered => calls.answered += 1,
            _ => calls.failed += 1,
        }
    }

    /// Records a snapshot of the model's quota.
    pub(crate) fn record_snapshot(&self, model: &ModelId, snapshot: &Snapshot) {
        let part = |limited| {
            let seen = snapshot.for_limit(limited);
            if seen.limit == 0 { 0.0 } else { float(seen.used) / float(seen.limit) }
        };
        let used = Limited::ALL.into_iter().map(part).fold(0.0, f64::max);
        let queue = snapshot.lanes.iter().map(|lane| lane.queue.as_secs_f64());
        let mut all = self.0.lock();
        let seen = all.entry(model.clone()).or_default();
        seen.used = seen.used.max(used);
        seen.in_flight = seen.in_flight.max(snapshot.in_flight.used);
        seen.waiting = seen.waiting.max(snapshot.lanes.iter().map(|lane| lane.waiting).sum());
        seen.queue_seconds = queue.fold(seen.queue_seconds, f64::max);
    }

    /// Writes the seen use to Redis. A failed write is lost: nothing depends on it.
    pub(crate) async fn flush(&self, redis: &redis_store::Store, model: &ModelQuota) {
        let seen = self.0.lock().remove(&model.id).unwrap_or_default();
        if seen == Sample::default() {
            return;
        }
        let keys = [ModelKeys::new(&redis.prefix, &model.quota_name()).history(&model.id)];
        let numbers = [
            whole(seen.used * 1e3),
            seen.in_flight,
            seen.waiting,
            whole(seen.queue_seconds * 1e3),
            seen.calls.answered,
            seen.calls.rate_limited,
            seen.calls.failed,
            redis.clock(),
        ];
        let arguments = numbers.map(|number| number.to_string().into_bytes());
        let _ = redis.run(&redis.scripts.history, &keys, &arguments).await;
    }
}

impl History {
    pub(crate) fn from_fields(fields: &BTreeMap<String, String>, now: u64) -> Self {
        let mut history = Self::default();
        for (name, value) in fields {
            let numbers: Vec<u64> =
                value.split(' ').filter_map(|number| number.parse().ok()).collect();
            match (name.split(':').next(), numbers.as_slice()) {
                (
                    Some("slot"),
                    &[slot, used, in_flight, waiting, queue, answered, rate_limited, failed],
                ) if slot + SLOTS > now / SLOT_SECONDS => history.points.push(Point {
                    at: slot * SLOT_SECONDS,
                    used: float(used) / 1e3,
                    in_flight,
                    waiting,
                    queue_seconds: float(queue) / 1e3,
                    calls: Calls { answered, rate_limited, failed },
                }),
                (Some("day"), &[day, answered, rate_limited, failed])
                    if day + DAYS > now / A_DAY =>
                {
                    let calls = Calls { answered, rate_limited, failed };
                    history.days.push(Day { at: day * A_DAY, calls });
                }
                _ => {}
            }
        }
        history.points.sort_by_key(|point| point.at);
        history.days.sort_by_key(|day| day.at);
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_unreadable_fields_are_left_out() {
        let now = 10 * A_DAY;
        let slot = now / SLOT_SECONDS;
        let fields = [
            ("slot:0".to_owned(), format!("{slot} 970 42 120 17500 9 2 1")),
            ("slot:1".to_owned(), format!("{} 970 42 120 17500 9 2 1", slot - SLOTS)),
            ("slot:2".to_owned(), "of a later version".to_owned()),
            ("day:9".to_owned(), "9 70 5 1".to_owned()),
            ("day:10".to_owned(), "10 9 2 1".to_owned()),
        ];
        let history = History::from_fields(&fields.into(), now);
        let calls = Calls { answered: 9, rate_limited: 2, failed: 1 };
        let (used, in_flight, waiting, queue_seconds) = (0.97, 42, 120, 17.5);
        assert_eq!(
            history.points,
            [Point { at: now, used, in_flight, waiting, queue_seconds, calls }]
        );
        assert_eq!(history.days.len(), 2);
        assert_eq!(history.days[1], Day { at: now, calls });
    }

    #[test]
    fn the_highest_is_kept_and_calls_are_counted_by_how_they_ended() {
        let (recorder, model) = (Recorder::default(), "a:b".parse::<ModelId>().unwrap());
        let mut snapshot = Snapshot::default();
        for used in [90, 97, 3] {
            (snapshot.dimensions.combined.limit, snapshot.dimensions.combined.used) = (100, used);
            recorder.record_snapshot(&model, &snapshot);
        }
        recorder.record_end(&model, true, ProviderSignal::None);
        recorder.record_end(&model, false, ProviderSignal::RateLimited);
        recorder.record_end(&model, false, ProviderSignal::Overloaded);
        let seen = recorder.0.lock()[&model];
        assert_eq!((seen.used, seen.in_flight), (0.97, 0));
        assert_eq!(seen.calls, Calls { answered: 1, rate_limited: 1, failed: 1 });
    }
}
