//! A cache that is bounded by the size of its values, except for those that are in use.

use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};

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
}
