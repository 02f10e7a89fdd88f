//! Prompt caches: a prefix that was sent a little while ago is read instead of computed.

use std::{collections::HashMap, time::Duration};

/// How long a prefix is kept after it was last used.
const KEPT: Duration = Duration::from_mins(5);

/// Prefixes at once; beyond, the old ones are dropped.
const MAX_PREFIXES: usize = 10_000;

/// The beginning of a prompt that may be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) hash: u64,
    pub(crate) tokens: u64,
    /// Tokens read from the cache count towards no limit, and writing them is reported and priced.
    pub(crate) asked_for: bool,
}

/// All caches, by model and prefix.
#[derive(Debug, Default)]
pub(crate) struct Cache(HashMap<(String, u64), Duration>);

impl Cache {
    /// The tokens of the longest prefix that can be read now, of several with the shortest first; 0
    /// if there is none.
    pub(crate) fn longest(&mut self, model: &str, prefixes: &[Prefix], now: Duration) -> u64 {
        prefixes
            .iter()
            .rev()
            .find(|prefix| self.read(model, prefix, now))
            .map_or(0, |prefix| prefix.tokens)
    }

    /// Whether the prefix can be read now; if so it is kept for as long again.
    fn read(&mut self, model: &str, prefix: &Prefix, now: Duration) -> bool {
        let Some(until) = self.0.get_mut(&(model.to_owned(), prefix.hash)) else { return false };
        let fresh = now < *until;
        if fresh {
            *until = now + KEPT;
        }
        fresh
    }

    /// Keeps prefixes: when the call that brought them is complete, so that calls beside it have
    /// written them too.
    pub(crate) fn write(&mut self, model: &str, prefixes: &[Prefix], now: Duration) {
        if self.0.len() + prefixes.len() > MAX_PREFIXES {
            self.0.retain(|_, until| now < *until);
        }
        for prefix in prefixes {
            if self.0.len() < MAX_PREFIXES {
                self.0.insert((model.to_owned(), prefix.hash), now + KEPT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_kept_for_five_minutes_from_its_last_use() {
        let prefix = Prefix { hash: 1, tokens: 2_000, asked_for: true };
        let (mut cache, at) = (Cache::default(), Duration::from_secs);
        assert!(!cache.read("m", &prefix, at(0)));
        cache.write("m", &[prefix], at(0));
        assert!(cache.read("m", &prefix, at(299)) && cache.read("m", &prefix, at(590)));
        assert!(!cache.read("other", &prefix, at(590)) && !cache.read("m", &prefix, at(890)));
    }

    #[test]
    fn the_longest_prefix_is_read() {
        let [short, long, new] =
            [1_000, 2_000, 3_000].map(|tokens| Prefix { hash: tokens, tokens, asked_for: true });
        let (mut cache, now) = (Cache::default(), Duration::ZERO);
        cache.write("m", &[short, long], now);
        assert_eq!(cache.longest("m", &[short, long, new], now), 2_000);
        assert_eq!(cache.longest("m", &[short, new], now), 1_000);
        assert_eq!(cache.longest("m", &[new], now), 0);
    }
}
