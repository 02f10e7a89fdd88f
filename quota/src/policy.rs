//! Computes a plan from the knowledge of a provider. The policy is a pure function: from earlier
//! knowledge and the log it computes new knowledge, a plan, and changes of levels. Times are
//! microseconds.
//!
//! * `known`: the knowledge that is kept between two runs; `configured`: the configuration
//! * `refusal`, `meter`: learn from one observation
//! * `capacity`: the amount that may be drawn at once

mod capacity;
mod configured;
mod known;
mod meter;
mod refusal;
#[cfg(test)]
mod tests;

use crate::{
    dimension::{Dimension, PerDimension},
    mechanism::log::{Observation, Reading},
    numbers::{DAY, Numbers},
    plan::{Allowance, Plan, Reasoned, Units, Why},
};

pub(crate) use configured::Configured;
pub(crate) use known::Known;
use known::KnownDimension;

/// The result of a run of the policy.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) known: Known,
    pub(crate) plan: Plan,
    /// Amount to add to the drawn amounts.
    pub(crate) change: Units,
}

/// Runs the policy once.
pub(crate) fn run(
    mut known: Known,
    reading: &Reading,
    configured: &Configured,
    numbers: &Numbers,
) -> Outcome {
    // After a failover to a server whose clock is behind, time continues from there.
    if reading.now < known.at {
        known.move_by(reading.now - known.at);
    }
    let passed = if known.at > 0.0 { (reading.now - known.at).max(0.0) } else { 0.0 };
    known.at = reading.now;
    known.proven |= reading.answers > 0;
    for observation in &reading.log {
        if let Observation::Metered(each) = observation {
            each.iter().for_each(|(it, told)| {
                if let Some(told) = told.filter(|told| told.limit > 0.0) {
                    known.each[it].stated = Some((configured.with_margin(told.limit), reading.now));
                }
            });
        }
    }
    let limits = PerDimension::from_fn(|it| known.limit(it, configured, numbers));
    let (mut change, mut beyond) = (Units::default(), Units::default());
    for it in Dimension::ALL {
        let Some(most) = limits[it] else { continue };
        let (one, proven) = (&mut known.each[it], known.proven);
        let before = one.capacity(it, proven, configured, numbers).value;
        let is_new = one.configured <= 0.0;
        one.begin_limit(most.value);
        // A deeper bucket is not fuller: the additional depth counts as drawn.
        let deeper = one.capacity(it, proven, configured, numbers).value - before;
        change[it] = if is_new { 0.0 } else { deeper.max(0.0) };
        one.lowered = (one.lowered - numbers.yields * passed / numbers.episode).max(0.0);
        // What was refused is tried again a day later.
        if reading.now - one.last_refusal >= DAY {
            (one.refused_depth, one.last_refusal) = (None, 0.0);
        }
    }
    for observation in &reading.log {
        match observation {
            // A time of another clock has no meaning.
            Observation::Refused { at, .. } if *at > reading.now => {}
            Observation::Refused { .. } => {
                known.learn_refusal(observation, &reading.drawn, configured, numbers, &mut change);
            }
            Observation::Metered(each) => {
                for (it, told) in each.iter() {
                    let told = told.filter(|told| told.used >= 0.0 && limits[it].is_some());
                    if let Some(told) = told {
                        let one = &mut known.each[it];
                        one.learn_refill(&told, numbers);
                        beyond[it] = beyond[it].max(one.use_of_others(&told, numbers));
                        change[it] -= one.take_surplus(&told, reading.now, numbers);
                    }
                }
            }
        }
    }
    for it in Dimension::ALL {
        let one = &mut known.each[it];
        // Use beyond our own count is use by others.
        one.others = if beyond[it] > numbers.close * one.configured { beyond[it] } else { 0.0 };
        change[it] += one.others;
        one.observe_peak(reading.peak[it], reading.now, numbers);
    }
    let allowances = PerDimension::from_fn(|it| {
        let allowance = known.allowance(it, limits[it]?, configured, numbers);
        known.each[it].why = [allowance.rate.why, allowance.capacity.why, allowance.window.why];
        Some(allowance)
    });
    let parts = allowances.map(|it: Option<Allowance>| {
        it.map_or([0.0; 2], |it| {
            [it.rate.value * configured.window, it.capacity.value].map(|part| part / it.most)
        })
    });
    let differs = |it| {
        let pairs = parts[it].iter().zip(&known.parts[it]);
        pairs.map(|(now, then)| (now - then).abs()).any(|by| by > numbers.close)
    };
    if known.since <= 0.0 || Dimension::ALL.into_iter().any(differs) {
        (known.since, known.parts) = (reading.now, parts);
    }
    // No wait is longer than the time for which the plan's rates and capacities have held.
    let horizon = numbers.horizon.max(reading.now - known.since);
    let concurrent = known.concurrent(configured);
    Outcome { known, plan: Plan { horizon, concurrent, limits: allowances }, change }
}

impl Known {
    fn allowance(
        &self,
        it: Dimension,
        most: Reasoned,
        configured: &Configured,
        numbers: &Numbers,
    ) -> Allowance {
        let one = &self.each[it];
        let why = if one.lowered > 0.0 { Why::Refused } else { most.why };
        let rate = Reasoned::new(one.rate(configured, numbers), why);
        let is_even = configured.bucket && one.refused_depth.is_none() || one.is_even(numbers);
        let window = if is_even {
            Reasoned::new(f64::INFINITY, Why::Even)
        } else {
            Reasoned::new(most.value, Why::Strict)
        };
        let capacity = one.capacity(it, self.proven, configured, numbers);
        Allowance { rate, capacity, window, most: most.value }
    }
}

impl KnownDimension {
    /// Units a microsecond. A bucket needs no margin for windows and skew.
    fn rate(&self, configured: &Configured, numbers: &Numbers) -> f64 {
        let kept = if self.is_even(numbers) { configured.kept } else { 1.0 };
        self.configured * (1.0 - self.lowered) / configured.window / kept
    }
}
