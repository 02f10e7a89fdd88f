//! What a reading of the provider's own meter teaches.

use super::{One, known::Beyond};
use crate::{
    mechanism::log::Told,
    numbers::{MINUTE, Numbers},
};

impl Beyond {
    fn add(&mut self, least: f64, most: f64) {
        let first = self.readings <= 0.0;
        self.least = if first { least } else { self.least.min(least) };
        self.most = if first { most } else { self.most.max(most) };
        self.readings += 1.0;
    }
}

impl One {
    /// By how much the level changes.
    pub(super) fn told(&mut self, told: &Told, now: f64, numbers: &Numbers) -> f64 {
        let (used, most) = (told.used, self.configured);
        if told.reset >= 0.0 && used > 0.0 && used < numbers.telling * most {
            let limit = if told.limit > 0.0 { told.limit } else { most };
            let evenly = used / limit * MINUTE;
            let evenly = (told.reset - evenly).abs() <= numbers.close * MINUTE;
            // By chance others agree now and then, and a bucket hardly ever differs.
            let step = if evenly { 1.0 } else { -numbers.even * numbers.even };
            self.even = (self.even + step).min(numbers.even);
        }
        let own = if self.is_even(numbers) { told.drawn } else { told.total };
        // Calls overtake each other on their way: what is true shows in all readings. What is held
        // for calls under way the provider may count or not.
        self.beyond.add(used - own, used - (own - told.held));
        if self.beyond.readings < numbers.even {
            return 0.0;
        }
        let beyond = std::mem::take(&mut self.beyond);
        let close = numbers.close * most;
        self.others = if beyond.least > close { beyond.least } else { 0.0 };
        if self.others > 0.0 {
            return beyond.least;
        }
        if beyond.most < -close && self.is_even(numbers) {
            if self.lowered > 0.0 {
                (self.lowered, self.believed) = (0.0, now);
            }
            return beyond.most;
        }
        0.0
    }
}
