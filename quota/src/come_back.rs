//! The time at which a waiting caller asks again: a little before its turn, because turns move up
//! when calls use less than was reserved.

use std::time::Duration;

/// A shorter wait in place is exact.
const EXACT: Duration = Duration::from_secs(2);

/// The part of a longer wait after which the caller asks again.
const IN_PLACE: f64 = 0.95;

/// Longest sleep of a caller that waits in place: a limit may have been raised or a gate opened.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// A caller that waits elsewhere comes back this long before its turn, because a turn must not pass
/// while the caller is dispatched. It also comes back earlier by a part of the wait, because far
/// turns move more. That part is bounded, because otherwise the caller would ask too often during a
/// long wait.
const DISPATCH: Duration = Duration::from_millis(500);
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Duration = Duration::from_secs(10);

/// The least time elsewhere.
const LEAST: Duration = Duration::from_secs(1);

/// Sleep of a caller in this process whose turn is `wait` away.
pub fn in_place(wait: Duration) -> Duration {
    if wait > EXACT { wait.mul_f64(IN_PLACE).min(MAX_SLEEP) } else { wait }
}

/// Time until a caller that waits elsewhere, such as in Temporal, is dispatched again; its turn is
/// `wait` away.
pub fn elsewhere(wait: Duration) -> Duration {
    let early = DISPATCH + wait.mul_f64(EARLY_PART).min(MAX_EARLY);
    wait.saturating_sub(early).max(LEAST)
}
