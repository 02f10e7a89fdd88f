//! What the mechanism keeps, part by part.

use crate::{
    dimension::{Amounts, PerDimension},
    numbers::Numbers,
    plan::Units,
};

/// A call that was admitted.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) admitted: f64,
    pub(super) lane: usize,
    pub(super) condition: Condition,
    pub(super) amounts: Units,
    /// By how much it brought its queue on.
    pub(super) progress: f64,
    pub(super) probe: bool,
    /// As it was before the call.
    pub(super) before: Option<PerDimension<Before>>,
    /// The fleet has been told of it.
    pub(super) handed_over: bool,
}

/// One dimension when a call was admitted, itself left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// Less what policies had added.
    pub(super) drawn: f64,
    pub(super) held: f64,
    pub(super) total: f64,
    pub(super) spent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Reserved,
    Settled,
    /// It has left the window, and its end is not known.
    Outlived,
}

/// A closed gate.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) until: f64,
    pub(super) closed: Closed,
    /// When the one call went that goes first.
    pub(super) probe: Option<f64>,
    pub(super) reason: String,
}

/// What a gate is closed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// By an operator.
    Pause,
    /// Until the day ends or the account is paid.
    Exhausted,
    /// The provider has refused a call.
    Refused,
}

/// What is in flight, and the cap after overloads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flight {
    pub(super) calls: f64,
    /// 0 for none.
    pub(super) cap: f64,
    /// In flight when the cap was set.
    pub(super) peak: f64,
    pub(super) capped_at: f64,
}

impl Flight {
    /// The limit in force; 0 for none.
    pub(super) fn limit(&self, concurrent: f64) -> f64 {
        let capped = self.cap > 0.0 && (concurrent <= 0.0 || self.cap < concurrent);
        if capped { self.cap.floor() } else { concurrent }
    }

    /// The provider is overloaded. A call that was sent before the last overload was known says
    /// nothing new.
    pub(super) fn overloaded(&mut self, admitted: f64, now: f64, numbers: &Numbers) {
        if self.cap > 0.0 && admitted <= self.capped_at {
            return;
        }
        self.peak = self.peak.max(self.calls);
        let known = if self.cap > 0.0 { self.cap.min(self.calls) } else { self.calls };
        self.cap = (known * numbers.half).max(1.0);
        self.capped_at = now;
    }

    /// A call went well.
    pub(super) fn went_well(&mut self, numbers: &Numbers) {
        if self.cap > 0.0 {
            self.cap += (numbers.regain * self.peak).max(1.0) / self.cap;
            if self.cap >= self.peak {
                (self.cap, self.peak) = (0.0, 0.0);
            }
        }
    }
}

/// Calls and tokens of a day.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Day {
    pub(super) number: f64,
    pub(super) requests: f64,
    pub(super) tokens: f64,
}

/// Sums over the calls of a template, of which older ones count less.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Learned {
    pub(super) input: f64,
    pub(super) estimated: f64,
    pub(super) output: f64,
    pub(super) weight: f64,
    /// Input that a cache gives and the provider does not count.
    pub(super) cached: f64,
}

/// What a lane used in this process alone.
#[derive(Debug)]
pub(crate) struct Spent {
    pub(crate) lane: usize,
    pub(crate) used: Amounts,
    /// The calls' reservations.
    pub(crate) calls: Vec<String>,
}
