//! How long a newcomer waits, as this process was told last: whoever hands out work keeps it short.
//! A caller that waits in place starts at its very turn; one that is told to come back later costs
//! an attempt, and sleeps although room may come early.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId, Tenant};

use crate::request::Request;

/// Of so old an answer that told a wait, nothing follows for how long the queue is now but that it
/// may be short.
const STALE: Duration = Duration::from_secs(10);

/// So old, a long wait is asked about anew by one newcomer: limits are raised, and turns move up.
const PROBED: Duration = Duration::from_secs(3);

/// Queues that are known of; those that are over go when there are more.
const KNOWN: usize = 256;

/// How long a queue is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Newcomers hardly wait.
    #[default]
    Free,
    /// They wait in place.
    Short,
    /// They may be told to come back.
    Long,
}

/// The last wait that a newcomer was told.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: Instant,
    wait: Duration,
}

impl Told {
    /// What is left of it: each caller before the newcomer goes at its turn.
    fn left(&self, now: Instant) -> Duration {
        self.wait.saturating_sub(now.saturating_duration_since(self.at))
    }
}

/// The tenants of a lane have a queue each.
type Key = (ModelId, Lane, Tenant);

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<HashMap<Key, Told>>);

/// Half of what is waited for in place at most: whoever is handed out meanwhile waits in place, too.
fn short(in_place: Duration) -> Duration {
    in_place / 2
}

impl Queues {
    /// A newcomer, which has no ticket yet, was told to wait so long, or to go at once.
    pub(crate) fn told(&self, request: &Request, wait: Duration, at: Instant) {
        let key = (request.model.clone(), request.lane.clone(), request.tenant.clone());
        let mut queues = self.0.lock();
        if queues.len() >= KNOWN {
            queues.retain(|_, told| at.saturating_duration_since(told.at) < STALE);
        }
        queues.insert(key, Told { at, wait });
    }

    /// One was sent away: what waits in place has no room for the next one either.
    pub(crate) fn sent_away(&self, request: &Request, wait: Duration, in_place: Duration) {
        let now = Instant::now();
        self.told(request, wait.max(short(in_place) + Duration::from_secs(1)), now);
    }

    pub(crate) fn of(&self, key: &Key, in_place: Duration, now: Instant) -> Queue {
        let Some(told) = self.0.lock().get(key).copied() else { return Queue::Free };
        let (short, left) = (short(in_place), told.left(now));
        let age = now.saturating_duration_since(told.at);
        let is_known = told.wait <= short / 4 || age > STALE;
        if left > short && age < PROBED {
            Queue::Long
        } else if left <= short / 4 && is_known {
            Queue::Free
        } else {
            Queue::Short
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_as_long_as_the_last_newcomer_was_told_and_the_time_since_leaves() {
        let (queues, in_place, start) =
            (Queues::default(), Duration::from_secs(10), Instant::now());
        let request = Request::new("test:model".parse().unwrap(), "r");
        let key = (request.model.clone(), request.lane.clone(), request.tenant.clone());
        let seconds = Duration::from_secs;
        let after = |time| queues.of(&key, in_place, start + time);
        assert_eq!(after(seconds(0)), Queue::Free, "nobody has asked");
        queues.told(&request, seconds(7), start);
        let seen = [0, 1, 3, 6, 8, 11].map(|time| after(seconds(time)));
        let [long, short, free] = [Queue::Long, Queue::Short, Queue::Free];
        assert_eq!(seen, [long, long, short, short, short, free]);
        queues.told(&request, seconds(30), start);
        assert_eq!([2, 4].map(|time| after(seconds(time))), [long, short], "one finds out");
        queues.told(&request, seconds(4), start);
        assert_eq!(
            [1, 5, 11].map(|time| after(seconds(time))),
            [Queue::Short, Queue::Short, Queue::Free]
        );
        queues.told(&request, seconds(1), start);
        assert_eq!(after(seconds(0)), Queue::Free);
        queues.sent_away(&request, Duration::ZERO, in_place);
        assert_eq!(queues.of(&key, in_place, Instant::now()), Queue::Long);
        let other = (key.0.clone(), key.1.clone(), "other".parse().unwrap());
        assert_eq!(queues.of(&other, in_place, start), Queue::Free, "tenants have their own");
    }

    #[test]
    fn queues_that_are_over_are_forgotten() {
        let (queues, start) = (Queues::default(), Instant::now());
        for number in 0..2 * KNOWN as u64 {
            let tenant = format!("t{number}").parse().unwrap();
            let request = Request::new("test:model".parse().unwrap(), "r").tenant(tenant);
            queues.told(&request, Duration::ZERO, start + Duration::from_secs(number));
        }
        assert!(queues.0.lock().len() <= KNOWN);
    }
}
