//! The parts of the mechanism's state.

use crate::{
    dimension::{Amounts, PerDimension},
    numbers::Numbers,
    plan::Units,
};

/// An admitted call.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) admitted: f64,
    pub(super) lane: usize,
    pub(super) condition: Condition,
    pub(super) amounts: Units,
    /// By how much it moved its queue on.
    pub(super) progress: f64,
    pub(super) probe: bool,
    /// The state before the call, for each dimension.
    pub(super) before: Option<PerDimension<Before>>,
    /// Whether the call was reported to the fleet.
    pub(super) handed_over: bool,
}

/// One dimension when a call was admitted, without the call itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// Without the amounts that policies had added.
    pub(super) drawn: f64,
    pub(super) held: f64,
    pub(super) total: f64,
    pub(super) spent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Reserved,
    Settled,
    /// The call has left the window and has not been settled.
    Outlived,
}

/// A closed gate.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) until: f64,
    pub(super) closed: CloseReason,
    /// When the probe call was admitted.
    pub(super) probe: Option<f64>,
    pub(super) reason: String,
}

/// The reason why a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// By an operator.
    Pause,
    /// Until the day ends or the account is paid.
    Exhausted,
    /// The provider has refused a call.
    Refused,
}

/// Calls in flight, and the cap after overloads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InFlight {
    pub(super) calls: f64,
    /// The cap on calls in flight; 0 for none.
    pub(super) cap: f64,
    /// Calls in flight when the cap was set.
    pub(super) peak: f64,
    pub(super) capped_at: f64,
}

impl InFlight {
    /// The limit in force; 0 for none.
    pub(super) fn limit(&self, concurrent: f64) -> f64 {
        let capped = self.cap > 0.0 && (concurrent <= 0.0 || self.cap < concurrent);
        if capped { self.cap.floor() } else { concurrent }
    }

    /// Halves the calls in flight after an overload. A call that was sent before the last overload
    /// was known is no new evidence.
    pub(super) fn record_overload(&mut self, admitted: f64, now: f64, numbers: &Numbers) {
        if self.cap > 0.0 && admitted <= self.capped_at {
            return;
        }
        self.peak = self.peak.max(self.calls);
        let known = if self.cap > 0.0 { self.cap.min(self.calls) } else { self.calls };
        self.cap = (known * numbers.half).max(1.0);
        self.capped_at = now;
    }

    /// Raises the cap after a call that went well.
    pub(super) fn record_success(&mut self, numbers: &Numbers) {
        if self.cap > 0.0 {
            self.cap += (numbers.regain * self.peak).max(1.0) / self.cap;
            if self.cap >= self.peak {
                (self.cap, self.peak) = (0.0, 0.0);
            }
        }
    }
}

/// Requests and tokens of a day.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Day {
    pub(super) number: f64,
    pub(super) requests: f64,
    pub(super) tokens: f64,
}

/// Sums over the calls of a template; older calls count less.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Learned {
    pub(super) input: f64,
    pub(super) estimated: f64,
    pub(super) output: f64,
    pub(super) weight: f64,
    /// Input tokens from a cache that the provider does not count.
    pub(super) cached: f64,
}

/// Use of a lane in this process alone.
#[derive(Debug)]
pub(crate) struct Spent {
    pub(crate) lane: usize,
    pub(crate) used: Amounts,
    /// The calls' reservations.
    pub(crate) calls: Vec<String>,
}
