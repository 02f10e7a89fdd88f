//! What makes a model's limits differ from the configured ones, and what is counted by the day:
//! `lua/include/tuning.lua`.

use crate::{
    limits::ModelQuota,
    store::{Meter, Override},
};

use super::number::{float, floats, floor, micros};

const STEP: f64 = 0.02;
const LOWEST: f64 = 0.5;
const ONCE_IN: f64 = 10e6;
const QUIET: f64 = 60e6;
const RECOVERY: f64 = 0.000_000_000_166_666_666_666_666_67;
const CUT: f64 = 0.7;
const CUT_ONCE_IN: f64 = 2e6;
const RAISE: f64 = 0.05;
const CAP_FORGOTTEN: f64 = 300e6;
const FULL_DAY: f64 = 86_400e6;
const NOISE: f64 = 0.03;

/// Learned and set; everything at its default while the limits are as configured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tuning {
    pub(super) factor: f64,
    recovered_to: f64,
    pub(super) cap: f64,
    peak: f64,
    capped_at: f64,
    day: f64,
    pub(super) day_requests: f64,
    pub(super) day_tokens: f64,
    foreign: [f64; 4],
    pub(super) set: [f64; 5],
    pub(super) stated: [f64; 4],
}

impl Tuning {
    pub(super) fn new(now: f64) -> Self {
        Self {
            factor: 1.0,
            recovered_to: now,
            cap: 0.0,
            peak: 0.0,
            capped_at: 0.0,
            day: 0.0,
            day_requests: 0.0,
            day_tokens: 0.0,
            foreign: [0.0; 4],
            set: [0.0; 5],
            stated: [0.0; 4],
        }
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, model: &ModelQuota, now: f64) {
        if self.factor < 1.0 && now > self.recovered_to {
            self.factor = (self.factor + (now - self.recovered_to) * RECOVERY).min(1.0);
            self.recovered_to = now;
        }
        if self.cap > 0.0 && now - self.capped_at > CAP_FORGOTTEN {
            self.cap = 0.0;
        }
        let day = day(model, now);
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if day != self.day {
            (self.day, self.day_requests, self.day_tokens) = (day, 0.0, 0.0);
        }
    }

    /// The limits in force of the four dimensions and of calls at once, and those that waiting
    /// could restore.
    pub(super) fn limits(&self, model: &ModelQuota) -> ([f64; 5], [f64; 5]) {
        let mut whole = configured(model);
        for (index, limit) in whole.iter_mut().enumerate() {
            if self.set[index] > 0.0 {
                *limit = self.set[index];
            }
            let stated = self.stated.get(index).copied().unwrap_or(0.0);
            if *limit > 0.0 && stated > 0.0 {
                *limit = limit.min(stated);
            }
        }
        let mut limits = whole;
        for limit in &mut limits[..4] {
            *limit *= self.factor;
        }
        if self.cap > 0.0 && (limits[4] <= 0.0 || self.cap < limits[4]) {
            limits[4] = self.cap.floor();
        }
        (limits, whole)
    }

    pub(super) fn foreign_use(&self, index: usize, limit: f64, window: f64, now: f64) -> f64 {
        (self.foreign[index] - now).max(0.0) * limit / window
    }

    pub(super) fn add_to_day(
        &mut self,
        model: &ModelQuota,
        admitted: f64,
        requests: f64,
        tokens: f64,
    ) {
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if day(model, admitted) == self.day {
            self.day_requests = (self.day_requests + requests).max(0.0);
            self.day_tokens = (self.day_tokens + tokens).max(0.0);
        }
    }

    pub(super) fn lower(&mut self, now: f64) {
        if now >= self.recovered_to - QUIET + ONCE_IN || self.factor >= 1.0 {
            self.factor = (self.factor - STEP).max(LOWEST);
            self.recovered_to = now + QUIET;
        }
    }

    pub(super) fn cut(&mut self, in_flight: f64, now: f64) {
        if self.cap <= 0.0 || now - self.capped_at > CUT_ONCE_IN {
            if self.cap <= 0.0 {
                (self.cap, self.peak) = (in_flight, in_flight);
            }
            self.cap = (self.cap.min(in_flight) * CUT).max(1.0);
            self.capped_at = now;
        }
    }

    pub(super) fn raise(&mut self) {
        if self.cap > 0.0 {
            self.cap += (RAISE * self.peak).max(1.0) / self.cap;
            if self.cap >= self.peak {
                self.cap = 0.0;
            }
        }
    }

    pub(super) fn set(&mut self, model: &ModelQuota, new: &Override) {
        for (slot, set) in self.set.iter_mut().zip(new.limits) {
            if let Some(limit) = set {
                *slot = limit.map_or(0.0, |limit| float(model.limits.with_margin(limit)));
            }
        }
        if let Some(limit) = new.concurrent {
            self.set[4] = limit.map_or(0.0, float);
        }
    }
}

/// Tuning begins only when there is something to keep.
pub(super) fn observe(
    tuning: &mut Option<Tuning>,
    model: &ModelQuota,
    meter: &Meter,
    total: &[f64; 4],
    now: f64,
) {
    let (limits, window) = (floats(model.limits.effective()), micros(model.limits.window));
    for index in 0..4 {
        let (limit, stated) = (
            limits[index],
            meter.limits[index].map_or(0.0, |stated| float(model.limits.with_margin(stated))),
        );
        let observed = meter.used[index].map(float);
        if limit <= 0.0 || (stated <= 0.0 && observed.is_none()) {
            continue;
        }
        let lower = stated > 0.0 && stated < limit * 0.999;
        let foreign = observed.map_or(0.0, |observed| observed - total[index]);
        let others = foreign > NOISE * limit;
        if lower || others {
            tuning.get_or_insert_with(|| Tuning::new(now));
        }
        let Some(tuning) = tuning else { continue };
        if stated > 0.0 {
            tuning.stated[index] = if lower { stated } else { 0.0 };
        }
        if observed.is_some() {
            tuning.foreign[index] = if others { now + foreign * window / limit } else { 0.0 };
        }
    }
}

pub(super) fn configured(model: &ModelQuota) -> [f64; 5] {
    let [requests, input, output, combined] = floats(model.limits.effective());
    [requests, input, output, combined, model.limits.concurrent.map_or(0.0, float)]
}

pub(super) fn day_left(model: &ModelQuota, now: f64) -> f64 {
    let since = now + micros(model.limits.day_offset);
    FULL_DAY - (since - floor(since / FULL_DAY) * FULL_DAY)
}

/// The four dimensions fade with the window; calls at once do not.
pub(super) fn windowed(index: usize) -> Option<usize> {
    (index < 4).then_some(index)
}

fn day(model: &ModelQuota, time: f64) -> f64 {
    floor((time + micros(model.limits.day_offset)) / FULL_DAY)
}
