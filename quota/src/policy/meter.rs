//! What a reading of the provider's own meter teaches.

use super::{One, known::Below};
use crate::{
    mechanism::log::Told,
    numbers::{MINUTE, Numbers},
};

impl Below {
    fn add(&mut self, all: f64, settled: f64) {
        let first = self.readings <= 0.0;
        self.all = if first { all } else { self.all.min(all) };
        self.settled = if first { settled } else { self.settled.min(settled) };
        self.readings += 1.0;
    }
}

impl One {
    /// Whether the meter comes back as a bucket's does: it is full again after as long as what is used
    /// takes to refill. A bucket of less than a minute never shows the rest of the limit.
    pub(super) fn comes_back(&mut self, told: &Told, numbers: &Numbers) {
        self.tells = true;
        if told.reset < 0.0 || told.used <= 0.0 {
            return;
        }
        let limit = self.limit(told);
        let missing = told.used / limit - told.reset / MINUTE;
        let evenly = (missing - self.missing).abs() <= numbers.close;
        if !evenly {
            // What our own calls explain does not speak of the depth.
            self.missing = 0.0;
            if self.beyond(told, numbers) > numbers.close * limit {
                self.missing = missing.clamp(0.0, 1.0);
            }
        }
        if self.used(told) >= numbers.telling * (1.0 - self.missing) * limit {
            return;
        }
        // By chance others agree now and then, and a bucket hardly ever differs.
        let step = if evenly { 1.0 } else { -numbers.even * numbers.even };
        let was_even = self.is_even(numbers);
        self.even = (self.even + step).min(numbers.even);
        if self.is_even(numbers) && !was_even {
            // It is as deep as it shows, whatever was refused before.
            self.too_deep = None;
        }
    }

    /// By how much the meter is beyond all that we know of: what was drawn before the call, and since.
    pub(super) fn beyond(&self, told: &Told, numbers: &Numbers) -> f64 {
        self.used(told) - self.own(told, numbers) - told.since
    }

    fn limit(&self, told: &Told) -> f64 {
        if told.limit > 0.0 { told.limit } else { self.configured }
    }

    /// What is used of what the meter shows when it is full.
    fn used(&self, told: &Told) -> f64 {
        told.used - self.missing * self.limit(told)
    }

    /// Whether what is drawn is what the provider counts.
    fn is_bucket(&self, numbers: &Numbers) -> bool {
        self.missing > 0.0 || self.is_even(numbers)
    }

    /// By how much the level is to fall, because the meter is below what we know of. Calls are under way
    /// to the provider, so what is true shows in several readings. What is held for calls that it has,
    /// it may count or not; but a rate that was lowered is restored.
    pub(super) fn below(&mut self, told: &Told, now: f64, numbers: &Numbers) -> f64 {
        let over = self.own(told, numbers) - self.used(told);
        self.below.add(over, over - told.held);
        if self.below.readings < numbers.even {
            return 0.0;
        }
        let below = std::mem::take(&mut self.below);
        let close = numbers.close * self.configured;
        if below.all <= close || !self.is_bucket(numbers) {
            return 0.0;
        }
        if self.lowered > 0.0 {
            (self.lowered, self.restored) = (0.0, Some((now, self.lowered)));
        }
        if below.settled > close { below.settled } else { 0.0 }
    }

    /// What we know to be used. A window that is not known whole, after a loss or while Redis is away,
    /// has at least what is drawn.
    fn own(&self, told: &Told, numbers: &Numbers) -> f64 {
        if self.is_bucket(numbers) { told.drawn } else { told.total.max(told.drawn) }
    }
}
