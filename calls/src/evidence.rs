//! A single refusal is evidence, not a verdict: a passing fault (of a key, an account) is tested
//! again after seconds by one call, before documents fail.
//!
//! A refusal counts only if its call may have left after the previous one was counted: calls under
//! way together are one piece of evidence.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

/// Pauses after the first and the second refusal until the next call. A gateway that restarts, or
/// keys that are replaced, take seconds.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// Older refusals no longer count.
const OUTDATED: Duration = Duration::from_mins(10);

/// Maximum number of scopes; beyond it, all are forgotten at once, and each costs two more calls.
const MAX_SCOPES: usize = 1_000;

/// Refusals of each scope since its last accepted call.
#[derive(Debug)]
pub(crate) struct Evidence<K>(HashMap<K, Refusals>);

#[derive(Debug, Clone, Copy)]
struct Refusals {
    counted: usize,
    last: Instant,
}

impl<K> Default for Evidence<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Evidence<K> {
    /// Counts a refused call. Returns the time until one call should test again, or `None` after
    /// three refusals in a row.
    pub(crate) fn refused(&mut self, scope: K, now: Instant) -> Option<Duration> {
        if self.0.len() >= MAX_SCOPES {
            self.0.clear();
        }
        let known = self.0.entry(scope).or_insert(Refusals { counted: 0, last: now });
        let since = now.saturating_duration_since(known.last);
        if since >= OUTDATED {
            known.counted = 0;
        }
        let pause = known.counted.checked_sub(1).and_then(|before| PAUSES.get(before));
        if let Some(left) = pause.and_then(|pause| pause.checked_sub(since))
            && !left.is_zero()
        {
            return Some(left);
        }
        known.last = now;
        let pause = PAUSES.get(known.counted).copied();
        known.counted = (known.counted + 1).min(PAUSES.len() + 1);
        pause
    }

    /// Whether a call was refused since the scope's last accepted call.
    pub(crate) fn has(&self, scope: &K) -> bool {
        self.0.contains_key(scope)
    }

    /// Forgets the scope's refusals, after an accepted call.
    pub(crate) fn accepted(&mut self, scope: &K) {
        self.0.remove(scope);
    }

    /// Forgets the refusals of every matching scope, after an accepted call.
    pub(crate) fn accepted_where(&mut self, is_let_in: impl Fn(&K) -> bool) {
        self.0.retain(|scope, _| !is_let_in(scope));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_calls_in_a_row_are_a_verdict_and_what_was_under_way_together_is_one() {
        let (mut evidence, start) = (Evidence::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(evidence.refused("a", at(0)), Some(PAUSES[0]));
        assert_eq!(evidence.refused("a", at(1)), Some(Duration::from_secs(1)), "was under way");
        assert_eq!(evidence.refused("b", at(1)), Some(PAUSES[0]), "each for itself");
        assert_eq!(evidence.refused("a", at(2)), Some(PAUSES[1]));
        assert_eq!(evidence.refused("a", at(11)), Some(Duration::from_secs(1)));
        assert_eq!(evidence.refused("a", at(12)), None);
        assert_eq!(evidence.refused("a", at(13)), None, "the verdict stands");
        evidence.accepted(&"a");
        assert_eq!(evidence.refused("a", at(14)), Some(PAUSES[0]));
        assert_eq!(evidence.refused("a", at(14) + OUTDATED), Some(PAUSES[0]), "long ago");
    }
}
