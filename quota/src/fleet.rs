//! How many workers there are: each one's share of the limits while Redis is away.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{error::Error, key, redis_store, wire};

/// A worker shows that it lives this often, and counts as gone after three times as long.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
const GONE_AFTER: Duration = Duration::from_secs(15);

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
    /// At least 1: this worker.
    pub(crate) fn size(&self) -> u64 {
        self.known.load(Ordering::Relaxed).max(1)
    }

    /// Shows that `worker` lives, and counts those that do. One round trip; the set ends with the
    /// fleet.
    pub(crate) async fn beat(&self, store: &redis_store::Store, worker: &str) -> Result<(), Error> {
        let arguments = [worker.as_bytes().to_vec(), GONE_AFTER.as_secs().to_string().into_bytes()];
        let keys = [key::workers(&store.prefix)];
        let [workers] = wire::integers(&store.run(&store.scripts.beat, &keys, &arguments).await?)?;
        self.known.store(wire::unsigned(workers), Ordering::Relaxed);
        Ok(())
    }

    /// Says `words` of `worker`, and hears what all live workers say if `listens`.
    pub(crate) async fn say(
        store: &redis_store::Store,
        worker: &str,
        words: &str,
        listens: bool,
    ) -> Result<Vec<(String, String)>, Error> {
        let arguments =
            [worker, words, &GONE_AFTER.as_secs().to_string(), if listens { "1" } else { "0" }];
        let arguments = arguments.map(|argument| argument.as_bytes().to_vec());
        let keys = [key::words(&store.prefix)];
        wire::pairs(&store.run(&store.scripts.workers, &keys, &arguments).await?)
    }

    /// Takes a worker that ends in good order out of the count.
    pub(crate) async fn leave(
        &self,
        store: &redis_store::Store,
        worker: &str,
    ) -> Result<(), Error> {
        let mut command = redis::cmd("ZREM");
        command.arg(key::workers(&store.prefix)).arg(worker);
        store.connection.command::<i64>(&command).await.map(drop)
    }
}
