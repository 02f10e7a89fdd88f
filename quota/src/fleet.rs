//! The number of live workers: while Redis is away, each has this part of the limits.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{error::Error, key, redis_store, wire};

/// Interval between a worker's reports; it counts as gone after three times as long.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
const GONE_AFTER: Duration = Duration::from_secs(15);

/// Number of workers from which a fleet counts as large.
const LARGE: u64 = 50;

/// The last known number of live workers.
#[derive(Debug)]
pub(crate) struct Fleet {
    known: AtomicU64,
    /// Time since when Redis has told a smaller number without a break.
    smaller_since: Mutex<Option<Instant>>,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { known: AtomicU64::new(1), smaller_since: Mutex::default() }
    }
}

impl Fleet {
    /// The number of live workers; at least 1, this one.
    pub(crate) fn size(&self) -> u64 {
        self.known.load(Ordering::Relaxed).max(1)
    }

    /// Interval in beats between a worker's reads of data that all workers read. In a larger fleet
    /// each reads less often: together they read about as often as fifty workers do.
    pub(crate) fn reads_every(&self) -> u64 {
        self.size() / LARGE + 1
    }

    /// Reports `worker` as live and counts the live workers. One round trip. The set expires after
    /// the fleet ends.
    pub(crate) async fn beat(&self, store: &redis_store::Store, worker: &str) -> Result<(), Error> {
        let arguments = [worker.as_bytes().to_vec(), GONE_AFTER.as_secs().to_string().into_bytes()];
        let keys = [key::workers(&store.prefix)];
        let told = store.run(&store.scripts.beat, &keys, &arguments).await;
        let told = told.and_then(|told| wire::read_integers::<1>(&told));
        self.hear(told.as_ref().ok().map(|told| wire::unsigned(told[0])), Instant::now());
        told.map(drop)
    }

    /// Takes the number that Redis tells, or that it tells none. A smaller one counts once it has
    /// lasted: when Redis comes back, or comes back empty, the others must report themselves first.
    fn hear(&self, told: Option<u64>, now: Instant) {
        let mut since = self.smaller_since.lock();
        match told {
            Some(workers) if workers < self.size() => {
                if now.duration_since(*since.get_or_insert(now)) < GONE_AFTER {
                    return;
                }
                self.known.store(workers, Ordering::Relaxed);
            }
            Some(workers) => self.known.store(workers, Ordering::Relaxed),
            None => {}
        }
        *since = None;
    }

    /// Publishes `words` as the status of `worker`. Returns the statuses of all live workers if
    /// `listens`.
    pub(crate) async fn publish_status(
        store: &redis_store::Store,
        worker: &str,
        words: &str,
        listens: bool,
    ) -> Result<Vec<(String, String)>, Error> {
        let arguments =
            [worker, words, &GONE_AFTER.as_secs().to_string(), if listens { "1" } else { "0" }];
        let arguments = arguments.map(|argument| argument.as_bytes().to_vec());
        let keys = [key::worker_statuses(&store.prefix)];
        wire::read_pairs(&store.run(&store.scripts.workers, &keys, &arguments).await?)
    }

    /// Removes a worker that ends in good order from the count.
    pub(crate) async fn leave(
        &self,
        store: &redis_store::Store,
        worker: &str,
    ) -> Result<(), Error> {
        let command = redis::Cmd::zrem(key::workers(&store.prefix), worker);
        store.connection.command::<i64>(&command).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_fleet_reads_as_often_as_one_of_fifty() {
        let reads_every =
            |workers| Fleet { known: AtomicU64::new(workers), ..Fleet::default() }.reads_every();
        assert_eq!([0, 1, 49, 50, 1_000].map(reads_every), [1, 1, 1, 2, 21]);
    }

    #[test]
    fn the_number_falls_only_after_it_has_been_smaller_for_a_while() {
        let (fleet, start) = (Fleet::default(), Instant::now());
        let after = |seconds, told| {
            fleet.hear(told, start + Duration::from_secs(seconds));
            fleet.size()
        };
        assert_eq!(after(0, Some(10)), 10);
        // Redis is away, or has lost the others; they report themselves again.
        assert_eq!([after(5, None), after(25, Some(1)), after(30, Some(7))], [10; 3]);
        assert_eq!([after(35, None), after(41, Some(2)), after(46, Some(10))], [10; 3]);
        // The others have gone.
        assert_eq!([after(51, Some(4)), after(61, Some(3)), after(66, Some(3))], [10, 10, 3]);
        assert_eq!(after(71, Some(4)), 4);
    }

    #[tokio::test]
    async fn what_a_steady_fleet_reports_never_expires() {
        let Some(redis) = tidegate_testkit::Redis::shared() else { return };
        let prefix = tidegate_testkit::unique("fleet");
        let patience = tidegate_testkit::PATIENCE;
        let store =
            redis_store::Store::open_within(&redis.url, &prefix, patience, patience).unwrap();
        let fleet = Fleet::default();
        let mut connection = redis.connection();
        for _ in 0..2 {
            fleet.beat(&store, "worker").await.unwrap();
            Fleet::publish_status(&store, "worker", "words", false).await.unwrap();
            for key in [key::workers(&prefix), key::worker_statuses(&prefix)] {
                let lives: i64 = redis::cmd("TTL").arg(&key).query(&mut connection).unwrap();
                assert!(lives > 80_000, "{key} lives for {lives} s");
                redis::cmd("EXPIRE").arg(&key).arg(60).exec(&mut connection).unwrap();
            }
        }
    }
}
