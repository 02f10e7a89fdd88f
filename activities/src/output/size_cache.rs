//! A cache that is bounded by the size of its values, except for those that are in use.

use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// A value that was needed within this time stays however large it is.
const IN_USE: Duration = Duration::from_mins(1);

/// Values by key, with a bound in bytes. If it is full, those that were not needed for the longest
/// time leave.
#[derive(Debug)]
pub(crate) struct SizeCache<K, T> {
    bound: usize,
    entries: Vec<Entry<K, T>>,
}

#[derive(Debug)]
struct Entry<K, T> {
    key: K,
    value: Arc<T>,
    bytes: usize,
    needed: Instant,
}

impl<K: PartialEq, T> SizeCache<K, T> {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, entries: Vec::new() }
    }

    pub(crate) fn get(&mut self, key: &K, now: Instant) -> Option<Arc<T>> {
        let known = self.entries.iter_mut().find(|entry| entry.key == *key)?;
        known.needed = now;
        Some(Arc::clone(&known.value))
    }

    pub(crate) fn put(&mut self, key: K, value: Arc<T>, bytes: usize, now: Instant) {
        self.entries.retain(|entry| entry.key != key);
        self.entries.push(Entry { key, value, bytes, needed: now });
        self.entries.sort_by_key(|entry| Reverse(entry.needed));
        let mut left = self.bound;
        self.entries.retain(|entry| {
            let fits = entry.bytes <= left;
            left = left.saturating_sub(entry.bytes);
            fits || now.duration_since(entry.needed) < IN_USE
        });
    }
}

/// A cache of values that are loaded when they are needed. Concurrent callers share one load.
#[derive(Debug)]
pub(crate) struct LoadingCache<K, T> {
    cached: Mutex<SizeCache<K, T>>,
    /// The loads that callers wait for.
    loads: Mutex<HashMap<K, Weak<OnceCell<Arc<T>>>>>,
}

impl<K: Clone + Eq + Hash, T> LoadingCache<K, T> {
    pub(crate) fn new(bound: usize) -> Self {
        Self { cached: Mutex::new(SizeCache::new(bound)), loads: Mutex::default() }
    }

    /// Returns the value of a key. `load` returns the value and its size in bytes.
    ///
    /// # Errors
    /// The errors of `load`; the next caller loads again.
    pub(crate) async fn get<E>(
        &self,
        key: K,
        load: impl AsyncFnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.cached.lock().get(&key, Instant::now()) {
            return Ok(known);
        }
        let cell = self.load_of(&key);
        let load = async || {
            // Another load may have ended in the meantime.
            let known = self.cached.lock().get(&key, Instant::now());
            if let Some(known) = known {
                return Ok(known);
            }
            let (value, bytes) = load().await?;
            let value = Arc::new(value);
            self.cached.lock().put(key.clone(), Arc::clone(&value), bytes, Instant::now());
            Ok(value)
        };
        cell.get_or_try_init(load).await.cloned()
    }

    fn load_of(&self, key: &K) -> Arc<OnceCell<Arc<T>>> {
        let mut loads = self.loads.lock();
        if let Some(cell) = loads.get(key).and_then(Weak::upgrade) {
            return cell;
        }
        loads.retain(|_, cell| cell.strong_count() > 0);
        let cell = Arc::default();
        loads.insert(key.clone(), Arc::downgrade(&cell));
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn what_was_not_needed_for_the_longest_time_leaves() {
        let (mut cache, start) = (SizeCache::new(10), Instant::now());
        for key in 0..3 {
            cache.put(key, Arc::new(()), 5, start + seconds(key));
        }
        let now = start + seconds(3);
        assert!((0..3).all(|key| cache.get(&key, now).is_some()), "all are in use");
        assert!(cache.get(&0, start + seconds(100)).is_some());
        let now = start + seconds(101);
        cache.put(3, Arc::new(()), 5, now);
        let kept = [0, 1, 2, 3].map(|key| cache.get(&key, now).is_some());
        assert_eq!(kept, [true, false, false, true]);
    }

    #[test]
    fn a_value_that_is_read_twice_at_once_is_kept_once() {
        let (mut cache, now) = (SizeCache::new(10), Instant::now());
        cache.put(0, Arc::new(1), 5, now);
        cache.put(0, Arc::new(2), 5, now);
        assert_eq!((cache.entries.len(), cache.get(&0, now).as_deref()), (1, Some(&2)));
    }

    #[tokio::test]
    async fn callers_share_a_load_and_a_failed_one_is_repeated() {
        let (cache, loads) = (LoadingCache::new(10), Mutex::new(Vec::new()));
        let get = |key: u32, fails: bool| {
            let (cache, loads) = (&cache, &loads);
            cache.get(key, async move || {
                loads.lock().push(key);
                tokio::task::yield_now().await;
                if fails { Err("no store") } else { Ok((key, 5)) }
            })
        };
        let of_one = futures::future::join_all((0..8).map(|_| get(1, false)));
        let (of_one, other) = tokio::join!(of_one, get(2, true));
        assert!(of_one.iter().all(|value| value.as_deref() == Ok(&1)), "{of_one:?}");
        assert_eq!(other, Err("no store"));
        assert_eq!(get(2, false).await.as_deref(), Ok(&2));
        assert_eq!(get(2, true).await.as_deref(), Ok(&2), "it is cached");
        let mut loads = loads.into_inner();
        loads.sort_unstable();
        assert_eq!((loads, cache.loads.lock().len()), (vec![1, 2, 2], 1));
    }
}
