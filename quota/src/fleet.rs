//! The number of live workers: while Redis is away, each has this part of the limits.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

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
}

impl Default for Fleet {
    fn default() -> Self {
        Self { known: AtomicU64::new(1) }
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
        let [workers] =
            wire::read_integers(&store.run(&store.scripts.beat, &keys, &arguments).await?)?;
        self.known.store(wire::unsigned(workers), Ordering::Relaxed);
        Ok(())
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
        let reads_every = |workers| Fleet { known: AtomicU64::new(workers) }.reads_every();
        assert_eq!([0, 1, 49, 50, 1_000].map(reads_every), [1, 1, 1, 2, 21]);
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
