//! Learns from a reading of the provider's meter.

use super::{KnownDimension, known::Below};
use crate::{
    mechanism::log::MeterReading,
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

impl KnownDimension {
    /// Learns whether the meter refills as a bucket: it is full again after the time that the used
    /// amount takes to refill. A bucket of less than a minute never shows the rest of the limit.
    pub(super) fn learn_refill(&mut self, reading: &MeterReading, numbers: &Numbers) {
        self.has_meter = true;
        if reading.reset < 0.0 || reading.used <= 0.0 {
            return;
        }
        let limit = self.limit(reading);
        let missing = reading.used / limit - reading.reset / MINUTE;
        let evenly = (missing - self.hidden_part).abs() <= numbers.close;
        if !evenly {
            // Use by our own calls shows nothing about the depth.
            self.hidden_part = 0.0;
            if self.use_of_others(reading, numbers) > numbers.close * limit {
                // A plan without any capacity would admit nothing.
                self.hidden_part = missing.clamp(0.0, 1.0 - numbers.close);
            }
        }
        if self.visible_use(reading) >= numbers.telling * (1.0 - self.hidden_part) * limit {
            return;
        }
        // A reading that differs outweighs `even` times `even` that agree: other meters agree now and
        // then by chance, and a bucket hardly ever differs.
        let step = if evenly { 1.0 } else { -numbers.even * numbers.even };
        let was_even = self.is_even(numbers);
        self.even_readings = (self.even_readings + step).min(numbers.even);
        if self.is_even(numbers) && !was_even {
            // The bucket is as deep as it shows, even after refusals.
            self.refused_depth = None;
        }
    }

    /// Amount by which the meter exceeds our own count before the call and since.
    pub(super) fn use_of_others(&self, reading: &MeterReading, numbers: &Numbers) -> f64 {
        self.visible_use(reading) - self.known_use(reading, numbers) - reading.since
    }

    fn limit(&self, reading: &MeterReading) -> f64 {
        if reading.limit > 0.0 { reading.limit } else { self.configured }
    }

    /// The used part of the amount that a full meter shows.
    fn visible_use(&self, reading: &MeterReading) -> f64 {
        reading.used - self.hidden_part * self.limit(reading)
    }

    /// Whether the provider counts the drawn amount, not that of a window.
    fn is_bucket(&self, numbers: &Numbers) -> bool {
        self.hidden_part > 0.0 || self.is_even(numbers)
    }

    /// Amount by which the level should fall, because several readings in a row were below our own
    /// count. One reading proves nothing: calls on their way are in our count and not yet in the
    /// meter. For example, we count 90 of 100 drawn, 20 of them held for calls that have no answer
    /// yet, and three readings show at most 60. A provider that counts those 20 at the start shows
    /// 30 less than we do, one that counts them at the end 10 less. So the level falls by 10, the
    /// surplus without the held amount. In either case a rate that was lowered is restored.
    pub(super) fn take_surplus(
        &mut self,
        reading: &MeterReading,
        now: f64,
        numbers: &Numbers,
    ) -> f64 {
        let over = self.known_use(reading, numbers) - self.visible_use(reading);
        self.below.add(over, over - reading.held);
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

    /// Our own count of the use. A window that is not known completely, after a loss or while Redis
    /// is away, has at least the drawn amount.
    fn known_use(&self, reading: &MeterReading, numbers: &Numbers) -> f64 {
        if self.is_bucket(numbers) { reading.drawn } else { reading.total.max(reading.drawn) }
    }
}
