//! Warms a prompt cache: the first document of a batch is sent alone, and the others read the cache
//! that it wrote.
//!
//! A provider's cache can be read once the call that wrote it has ended. Calls that leave together
//! would all write, and writing costs more than not caching. So in each worker the first call with
//! given instructions is sent alone, and the others wait for its end. Once that end is longer ago
//! than a cache is kept, the next call is sent alone again.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;
use tokio::sync::watch;

/// Shorter instructions are cached nowhere: the minimum is 1,024 tokens of at least three bytes
/// each.
const MIN_PREFIX_BYTES: usize = 3_072;

/// Providers keep a cache for five minutes after its last use.
const KEPT: Duration = Duration::from_secs(300);

/// Longest wait for the first call, equal to that for quota: a slot is worth more than a cached
/// prefix.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Prefixes that are remembered at once.
const MAX_PREFIXES: usize = 1_000;

type Key = (ModelId, u64);

/// The prefixes that this worker has sent.
#[derive(Debug, Default)]
pub struct Warmth(Mutex<HashMap<Key, Prefix>>);

#[derive(Debug)]
struct Prefix {
    /// Closed when the first call has ended, successfully or not.
    first: watch::Receiver<()>,
    used: Instant,
}

impl Warmth {
    /// Waits until the call may leave: the first at once, the others after the first. The first
    /// keeps the returned value until its call has ended.
    pub async fn enter(
        self: &Arc<Self>,
        model: &ModelId,
        template: u64,
        instructions: &str,
    ) -> Option<First> {
        if instructions.len() < MIN_PREFIX_BYTES {
            return None;
        }
        let key = (model.clone(), template);
        let mut first = {
            let mut known = self.0.lock();
            match known.get_mut(&key) {
                Some(prefix) if prefix.used.elapsed() < KEPT => {
                    prefix.used = Instant::now();
                    prefix.first.clone()
                }
                _ => {
                    if known.len() >= MAX_PREFIXES {
                        known.retain(|_, prefix| prefix.used.elapsed() < KEPT);
                    }
                    let (ended, first) = watch::channel(());
                    known.insert(key.clone(), Prefix { first, used: Instant::now() });
                    return Some(First {
                        warmth: Arc::clone(self),
                        key,
                        warm: false,
                        _ended: ended,
                    });
                }
            }
        };
        // An error means that the first call has ended: its sender was dropped.
        let _ = tokio::time::timeout(MAX_WAIT, first.changed()).await;
        None
    }
}

/// Marks the first call with its instructions; dropped when the call has ended.
#[derive(Debug)]
#[must_use = "the others wait until it is dropped"]
pub struct First {
    warmth: Arc<Warmth>,
    key: Key,
    warm: bool,
    _ended: watch::Sender<()>,
}

impl First {
    /// Records that the call was answered: the cache can be read.
    pub fn succeeded(mut self) {
        self.warm = true;
    }
}

impl Drop for First {
    /// Forgets the prefix if the first call failed, so that the next one is sent first.
    fn drop(&mut self) {
        if !self.warm {
            self.warmth.0.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_goes_alone_and_the_others_after_it() {
        let (warmth, model) = (Arc::new(Warmth::default()), "a:b".parse().unwrap());
        let long = "x".repeat(MIN_PREFIX_BYTES);
        assert!(warmth.enter(&model, 1, "short").await.is_none());
        let first = warmth.enter(&model, 1, &long).await.unwrap();
        let waits =
            || tokio::time::timeout(Duration::from_millis(50), warmth.enter(&model, 1, &long));
        assert!(waits().await.is_err(), "the second waits");
        assert!(
            warmth.enter(&model, 2, &long).await.is_some(),
            "other instructions are another cache"
        );
        drop(first);
        // It failed, so the next one goes first.
        let first = waits().await.unwrap().unwrap();
        first.succeeded();
        assert!(waits().await.unwrap().is_none());
    }
}
