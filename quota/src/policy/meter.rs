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
    /// takes to refill.
    pub(super) fn comes_back(&mut self, told: &Told, numbers: &Numbers) {
        self.tells = true;
        let limit = if told.limit > 0.0 { told.limit } else { self.configured };
        let part = told.used / limit;
        if told.reset < 0.0 || part <= 0.0 || part >= numbers.telling {
            return;
        }
        let evenly = (told.reset - part * MINUTE).abs() <= numbers.close * MINUTE;
        // By chance others agree now and then, and a bucket hardly ever differs.
        let step = if evenly { 1.0 } else { -numbers.even * numbers.even };
        let was_even = self.is_even(numbers);
        self.even = (self.even + step).min(numbers.even);
        if self.is_even(numbers) && !was_even {
            // It is as deep as a minute, whatever was refused before.
            self.too_deep = None;
        }
    }

    /// By how much the meter is beyond all that we know of: what was drawn before the call, and since.
    pub(super) fn beyond(&self, told: &Told, numbers: &Numbers) -> f64 {
        told.used - self.own(told, numbers) - told.since
    }

    /// By how much the level is to fall, because the meter is below what we know of. Calls are under way
    /// to the provider, so what is true shows in several readings. What is held for calls that it has,
    /// it may count or not; but a rate that was lowered is restored.
    pub(super) fn below(&mut self, told: &Told, now: f64, numbers: &Numbers) -> f64 {
        let own = self.own(told, numbers);
        self.below.add(own - told.used, own - told.held - told.used);
        if self.below.readings < numbers.even {
            return 0.0;
        }
        let below = std::mem::take(&mut self.below);
        let close = numbers.close * self.configured;
        if below.all <= close || !self.is_even(numbers) {
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
        if self.is_even(numbers) { told.drawn } else { told.total.max(told.drawn) }
    }
}
