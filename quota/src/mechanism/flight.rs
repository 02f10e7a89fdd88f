//! Calls at once: a limit of their number, and a lower one after overloads.

use super::{Mechanism, Obstacle, Terms};
use crate::{numbers::Numbers, store::Hold};

/// What is in flight, and the cap after overloads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flight {
    pub(super) calls: f64,
    /// 0 for none.
    pub(super) cap: f64,
    /// In flight when the cap was set.
    peak: f64,
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

impl Mechanism {
    pub(super) fn add_in_flight(&mut self, lane: usize, by: f64) {
        for calls in [&mut self.flight.calls, &mut self.lanes[lane].in_flight] {
            *calls = (*calls + by).max(0.0);
        }
    }

    /// How long until a call in flight ends, where as many are in flight as may be. A lane that has
    /// its guaranteed part leaves to others who wait what is theirs.
    pub(super) fn keep_in_flight(&self, terms: &Terms<'_>, lane: usize, obstacle: &mut Obstacle) {
        let limit = self.flight.limit(self.plan.concurrent);
        if limit <= 0.0 {
            return;
        }
        let own = self.lanes[lane].in_flight;
        let mut over = self.flight.calls + 1.0 - limit;
        if own + 1.0 > terms.share(lane) * limit {
            for (other, it) in self.lanes.iter().enumerate() {
                if other != lane && it.waits() > 0.0 {
                    over += (terms.share(other) * limit - it.in_flight).max(0.0).floor();
                }
            }
        }
        over = over.max(own + 1.0 - (terms.lanes.at(lane).ceiling * limit).floor().max(1.0));
        if over > 0.0 {
            let wait = over * self.latency / limit;
            obstacle.at_least(wait.max(terms.numbers.pace), Hold::InFlight, over);
        }
    }
}
