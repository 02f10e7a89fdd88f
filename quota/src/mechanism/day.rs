//! Counts of the provider's day.

use super::{Mechanism, Terms, state::Day};
use crate::{dimension::DayLimit, numbers::DAY, plan::Units};

impl Terms<'_> {
    fn counts_days(&self) -> bool {
        self.by_day.iter().any(|limit| *limit > 0.0)
    }

    fn day(&self, at: f64) -> f64 {
        ((at + self.day_offset) / DAY).floor()
    }

    /// Time until the day ends.
    pub(super) fn day_left(&self, now: f64) -> f64 {
        DAY - (now + self.day_offset).rem_euclid(DAY)
    }
}

impl Mechanism {
    /// Resets the counts when a new day begins.
    pub(super) fn begin_day(&mut self, terms: &Terms<'_>) {
        let number = terms.day(self.at);
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if terms.counts_days() && number != self.day.number {
            self.day = Day { number, ..Day::default() };
        }
    }

    /// The limit of the day that a call would exceed, and the time until the day ends.
    pub(super) fn day_spent(&self, terms: &Terms<'_>, need: &Units) -> Option<(f64, DayLimit)> {
        let used = [self.day.requests + need.requests, self.day.tokens + need.combined];
        let spent = DayLimit::ALL.into_iter().zip(used.into_iter().zip(terms.by_day));
        let mut spent = spent.filter(|(_, (used, limit))| *limit > 0.0 && used > limit);
        spent.next().map(|(day, _)| (terms.day_left(self.at), day))
    }

    /// Counts an amount towards the day of the call's admission.
    pub(super) fn add_to_day(&mut self, terms: &Terms<'_>, admitted: f64, more: &Units) {
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if terms.counts_days() && terms.day(admitted) == self.day.number {
            self.day.requests = (self.day.requests + more.requests).max(0.0);
            self.day.tokens = (self.day.tokens + more.combined).max(0.0);
        }
    }
}
