//! What a model's quota looks like, for people and metrics.

use std::time::Duration;

use tidegate_types::Lane;

use crate::{
    dimension::{Amounts, DayLimit, Dimension, Limited, PerDimension},
    lanes::Share,
    plan::Allowance,
};

/// One model's quota at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Until the gate opens; zero when it is open.
    pub pause: Duration,
    /// Whether it is closed until the day ends or the account is paid.
    pub exhausted: bool,
    /// Why it is closed; empty when it is open.
    pub reason: String,
    /// Reservations in the window.
    pub reservations: u64,
    /// Mean time from admission to settlement.
    pub latency: Duration,
    /// On every limit, after refusals; 1 when there were none lately.
    pub factor: f64,
    /// On calls in flight, after overloads.
    pub cap: Option<u64>,
    /// Calls of the day; 0 without a limit by the day.
    pub day_requests: u64,
    /// Tokens of the day; 0 without a limit by the day.
    pub day_tokens: u64,
    /// Until the day ends.
    pub day_left: Duration,
    /// Each dimension of the window.
    pub dimensions: PerDimension<DimensionSnapshot>,
    /// Calls at once.
    pub in_flight: DimensionSnapshot,
    /// No longer wait is told.
    pub horizon: Duration,
    /// Programs with another configuration, or another version of the policy, made the plan that is in
    /// force.
    pub of_others: bool,
    /// Each lane, in the order of [`crate::Lanes`]; then those of other programs that are in use.
    pub lanes: Vec<LaneSnapshot>,
}

impl Snapshot {
    /// Whether nothing goes on: no call in the window, nobody waits, the gate is open, and nothing
    /// is left to recover from.
    pub fn is_idle(&self) -> bool {
        let unused = |it: &DimensionSnapshot| it.used == 0 && it.others == 0 && it.ahead.is_zero();
        self.pause.is_zero()
            && !self.exhausted
            && self.reservations == 0
            && self.factor >= 1.0
            && self.cap.is_none()
            && Dimension::ALL.into_iter().all(|dimension| unused(self.get(dimension)))
            && unused(&self.in_flight)
            && self.lanes.iter().all(|lane| lane.waiting == 0 && lane.in_flight == 0)
    }

    /// Use and reservation in the window.
    pub fn used(&self) -> Amounts {
        self.dimensions.map(|dimension| dimension.used)
    }

    /// One dimension.
    pub fn get(&self, dimension: Dimension) -> &DimensionSnapshot {
        &self.dimensions[dimension]
    }

    /// One dimension, or the calls at once.
    pub fn of(&self, limited: Limited) -> &DimensionSnapshot {
        match limited {
            Limited::Window(dimension) => self.get(dimension),
            Limited::InFlight => &self.in_flight,
        }
    }

    /// What was used of a limit of the day; 0 without one.
    pub fn day(&self, day: DayLimit) -> u64 {
        match day {
            DayLimit::Requests => self.day_requests,
            DayLimit::Tokens => self.day_tokens,
        }
    }
}

/// One dimension of a [`Snapshot`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DimensionSnapshot {
    /// The limit in force, margin and all; 0 for none.
    pub limit: u64,
    /// Use and reservation in the window.
    pub used: u64,
    /// Of it: reserved and not settled.
    pub held: u64,
    /// Use by others on the same account, as the provider's meter told it.
    pub others: u64,
    /// Set while the fleet runs, as it was set.
    pub set: Option<u64>,
    /// What the provider states where it is less than is configured.
    pub stated: Option<u64>,
    /// How long what is drawn beyond the capacity takes to refill.
    pub ahead: Duration,
    /// What may go, and why; `None` without a limit.
    pub plan: Option<Allowance>,
}

/// One lane of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSnapshot {
    /// The lane.
    pub lane: Lane,
    /// Its part of each limit.
    pub share: Share,
    /// It is none of this program's: another is configured with it.
    pub elsewhere: bool,
    /// Callers with a ticket that have not been admitted, about: by the work that waits, and what
    /// those took who went.
    pub waiting: u64,
    /// How long the queue is: when the last ticket's turn comes.
    pub queue: Duration,
    /// Calls in flight.
    pub in_flight: u64,
    /// Use and reservation in the window.
    pub used: Amounts,
}
