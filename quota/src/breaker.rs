//! Keeps callers from waiting for an absent Redis.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Rest of Redis after a failure; doubles up to [`MAX_REST`].
const FIRST_REST: Duration = Duration::from_millis(500);
const MAX_REST: Duration = Duration::from_secs(4);

/// Closed (ask), open (do not ask), half-open (one caller probes).
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rest: Option<Duration>,
    open_until: Option<Instant>,
    since: Option<Instant>,
}

impl Breaker {
    /// Whether to ask Redis now. After the rest the first caller probes, and the others wait for
    /// its result.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        match (state.open_until, state.rest) {
            (Some(until), _) if now < until => false,
            (Some(_), Some(rest)) => {
                state.open_until = Some(now + rest);
                true
            }
            _ => true,
        }
    }

    /// Records an answer. Returns the time for which the breaker was open, if it was.
    pub(crate) fn record_success(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock();
        (state.open_until, state.rest) = (None, None);
        state.since.take().map(|since| now.saturating_duration_since(since))
    }

    /// Records a failure. Returns true if the breaker was closed before.
    pub(crate) fn record_failure(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let first = state.rest.is_none();
        let rest = state.rest.map_or(FIRST_REST, |rest| (rest * 2).min(MAX_REST));
        state.rest = Some(rest);
        state.open_until = Some(now + rest);
        state.since.get_or_insert(now);
        first
    }

    /// Whether Redis is known to be away.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_probes_after_the_rest() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        assert!(breaker.allows(start));
        assert!(breaker.record_failure(start));
        assert!(!breaker.allows(start));
        let later = start + FIRST_REST;
        assert!(breaker.allows(later), "the first probes");
        assert!(!breaker.allows(later), "the second does not");
        assert!(!breaker.record_failure(later), "it was open already");
        assert!(!breaker.allows(later + FIRST_REST), "and rests longer now");
        assert_eq!(breaker.record_success(later), Some(FIRST_REST), "it was open for so long");
        assert_eq!(breaker.record_success(later), None);
        assert!(breaker.allows(later) && !breaker.is_open());
    }
}
