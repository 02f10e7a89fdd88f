//! What the three algorithms of limits have in common.

use std::{fmt, time::Duration};

/// What an algorithm knows of the use.
pub(crate) trait Measure: fmt::Debug + Send {
    /// How long until so much would be admitted; `None` is now.
    fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration>;

    /// Takes it, even where that leaves a debt.
    fn take(&mut self, now: Duration, amount: u64);

    /// Gives back a part of what was taken at `taken`.
    fn give_back(&mut self, now: Duration, taken: Duration, amount: u64);

    /// The amount that could be admitted now.
    fn remaining(&mut self, now: Duration) -> u64;

    /// The time until the whole limit is there again.
    fn reset(&mut self, now: Duration) -> Duration;
}
