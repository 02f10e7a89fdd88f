//! Faults, drawn from the seed.

use crate::documents::Chance;

/// A kind of fault. The first are faults of the servers, the others of workers and people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No call asks for 3 to 12 windows; calls in flight ended before.
    Silence,
    /// As before, but the calls in flight are never settled.
    Kill,
    /// Redis forgets everything.
    Flush,
    /// Redis evicts one key.
    Eviction,
    /// A replica takes over that lacks the writes of the last seconds.
    Failover,
    /// The server's clock is set back, by anything from a second to ten windows.
    Clock,
    /// A settlement never arrives.
    LostSettlement,
    /// The answer to an ask or a settlement is lost, and it is sent again.
    LostReply,
    /// Half of the waiting callers never come back, or all of a tenant whose batch was cancelled.
    Cancellation,
    /// The program that gets the policy's task is frozen, and runs it late or never.
    Policy,
    /// An operator cuts or raises the limit.
    Limit,
    /// An operator closes the gate.
    Pause,
    /// The provider refuses a call.
    Refusal,
    /// The provider's meter states arbitrary numbers.
    Headers,
}

impl Fault {
    pub(crate) const ALL: [Self; 14] = [
        Self::Silence,
        Self::Kill,
        Self::Flush,
        Self::Eviction,
        Self::Failover,
        Self::Clock,
        Self::LostSettlement,
        Self::LostReply,
        Self::Cancellation,
        Self::Policy,
        Self::Limit,
        Self::Pause,
        Self::Refusal,
        Self::Headers,
    ];
}

/// The faults of a run.
pub(crate) struct Faults<'a>(pub(crate) &'a [Fault]);

impl Faults<'_> {
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// Whether the fault hits this call: one in twenty.
    pub(crate) fn strikes(&self, fault: Fault, chance: &mut Chance) -> bool {
        self.has(fault) && chance.part() < 0.05
    }

    /// A fault of the whole fleet, if the run has any.
    pub(crate) fn of_the_fleet(&self, chance: &mut Chance) -> Option<Fault> {
        const CALLS: [Fault; 4] =
            [Fault::LostSettlement, Fault::LostReply, Fault::Refusal, Fault::Headers];
        let fleet: Vec<Fault> = self.0.iter().copied().filter(|it| !CALLS.contains(it)).collect();
        fleet.get((chance.part() * fleet.len() as f64) as usize).copied()
    }
}
