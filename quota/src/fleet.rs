//! How many workers there are: each one's share of the limits while Redis is away.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{error::Error, key, redis_store};

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
    /// At least 1: whoever asks is alive.
    pub(crate) fn size(&self) -> u64 {
        self.known.load(Ordering::Relaxed).max(1)
    }

    /// Shows that `worker` lives, and counts those that do. One round trip; the set ends with the
    /// fleet.
    pub(crate) async fn beat(&self, store: &redis_store::Store, worker: &str) -> Result<(), Error> {
        let key = key::workers(store.prefix());
        let script = "local now = tonumber(redis.call('TIME')[1]) \
                      redis.call('ZADD', KEYS[1], now, ARGV[1]) \
                      redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2])) \
                      redis.call('EXPIRE', KEYS[1], tonumber(ARGV[2]) * 4) \
                      return redis.call('ZCARD', KEYS[1])";
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1).arg(key).arg(worker).arg(GONE_AFTER.as_secs());
        self.known.store(store.connection().command(&command).await?, Ordering::Relaxed);
        Ok(())
    }

    /// Takes a worker that ends in good order out of the count.
    pub(crate) async fn leave(
        &self,
        store: &redis_store::Store,
        worker: &str,
    ) -> Result<(), Error> {
        let mut command = redis::cmd("ZREM");
        command.arg(key::workers(store.prefix())).arg(worker);
        store.connection().command::<i64>(&command).await.map(drop)
    }
}
