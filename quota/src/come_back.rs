//! When a waiting caller asks again: a little before its turn, because turns move up when calls use
//! less than was reserved.

use std::time::Duration;

/// A shorter wait in place is exact.
const EXACT: Duration = Duration::from_secs(2);

/// The part of a longer one after which the caller asks again.
const IN_PLACE: f64 = 0.95;

/// A caller that waits in place asks again at least this often: a limit may have been raised or a
/// gate opened.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// A caller that waits elsewhere comes back this long before its turn, because a turn must not pass
/// while the caller is dispatched; and by this part of the wait earlier, because far turns move
/// more. The latter is bounded, because a long wait would otherwise be asked about too often.
const DISPATCH: Duration = Duration::from_millis(500);
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Duration = Duration::from_secs(10);

/// The least time elsewhere.
const LEAST: Duration = Duration::from_secs(1);

/// How long a caller in this process sleeps whose turn is `wait` away.
pub fn in_place(wait: Duration) -> Duration {
    if wait > EXACT { wait.mul_f64(IN_PLACE).min(MAX_SLEEP) } else { wait }
}

/// When to dispatch a caller again that waits elsewhere, say in Temporal, and whose turn is `wait`
/// away.
pub fn elsewhere(wait: Duration) -> Duration {
    let early = DISPATCH + wait.mul_f64(EARLY_PART).min(MAX_EARLY);
    wait.saturating_sub(early).max(LEAST)
}
