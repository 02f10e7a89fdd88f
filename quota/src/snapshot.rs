//! A model's quota at one moment, for people and metrics.

use std::time::Duration;

use tidegate_types::Lane;

use crate::{
    dimension::{Amounts, DayLimit, Dimension, Limited, PerDimension},
    lanes::Share,
    plan::Allowance,
};

/// The reason of a pause after the provider's refusal (429).
pub const RATE_LIMITED: &str = "rate_limited";

/// One model's quota at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Time until the gate opens; zero if it is open.
    pub pause: Duration,
    /// Whether the gate is closed until the day ends or the account is paid.
    pub exhausted: bool,
    /// The reason why the gate is closed; empty if it is open.
    pub reason: String,
    /// Reservations in the window.
    pub reservations: u64,
    /// Mean time from admission to settlement.
    pub latency: Duration,
    /// The part of every limit in force after refusals; 1 without recent ones.
    pub factor: f64,
    /// The cap on calls in flight after overloads.
    pub cap: Option<u64>,
    /// Calls of the day; 0 without a limit by the day.
    pub day_requests: u64,
    /// Tokens of the day; 0 without a limit by the day.
    pub day_tokens: u64,
    /// Time until the day ends.
    pub day_left: Duration,
    /// Each dimension of the window.
    pub dimensions: PerDimension<DimensionSnapshot>,
    /// Calls at once.
    pub in_flight: DimensionSnapshot,
    /// The longest wait given.
    pub horizon: Duration,
    /// The fingerprint of the plan in force, and that of this program's configuration and version
    /// of the policy, if they differ.
    pub other_fingerprint: Option<(u64, u64)>,
    /// Each lane, in the order of [`crate::Lanes`]; then those of other programs that are in use.
    pub lanes: Vec<LaneSnapshot>,
}

impl Snapshot {
    /// Whether the quota is idle: no call in the window, none waiting, the gate open, and nothing
    /// left to recover from.
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

    /// Used or reserved in the window.
    pub fn used(&self) -> Amounts {
        self.dimensions.map(|dimension| dimension.used)
    }

    /// One dimension.
    pub fn get(&self, dimension: Dimension) -> &DimensionSnapshot {
        &self.dimensions[dimension]
    }

    /// One dimension, or the calls at once.
    pub fn for_limit(&self, limited: Limited) -> &DimensionSnapshot {
        match limited {
            Limited::Window(dimension) => self.get(dimension),
            Limited::InFlight => &self.in_flight,
        }
    }

    /// The use of a limit of the day; 0 without one.
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
    /// The limit in force, after the margin; 0 for none.
    pub limit: u64,
    /// Used or reserved in the window.
    pub used: u64,
    /// The part of `used` that is reserved and not settled.
    pub held: u64,
    /// Use by other programs on the same account, by the provider's meter.
    pub others: u64,
    /// The limit that an operator set while the fleet runs.
    pub set: Option<u64>,
    /// The limit that the provider states, if it is below the configured one.
    pub stated: Option<u64>,
    /// Time to refill the amount drawn beyond the capacity.
    pub ahead: Duration,
    /// The numbers of the plan and their reasons; `None` without a limit.
    pub plan: Option<Allowance>,
}

/// One lane of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSnapshot {
    /// The lane.
    pub lane: Lane,
    /// The lane's share of each limit.
    pub share: Share,
    /// Whether the lane is another program's and not configured here.
    pub elsewhere: bool,
    /// Approximate number of waiting callers with a ticket: the work that waits, divided by the
    /// mean work of the calls in the window.
    pub waiting: u64,
    /// Length of the queue: the time until the last ticket's turn.
    pub queue: Duration,
    /// Calls in flight.
    pub in_flight: u64,
    /// Used or reserved in the window.
    pub used: Amounts,
}
