//! Start-time fair queueing without a list of waiting callers. Turns are amounts of work and never
//! times: a change of the rate changes a turn's meaning with it. They are whole billionths of a
//! limit, so that sums are exact.

use std::collections::BTreeMap;

use tidegate_types::Tenant;

use crate::numbers::GRAIN;

/// The queue of one lane.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tenants: BTreeMap<Tenant, Line>,
    /// A caller whose turn passed while it was away: its work, and the time until which it may
    /// come.
    pub(super) late: Option<Late>,
}

/// One tenant's callers.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// The end of the last admitted call's turn.
    served: f64,
    /// The end of the last turn.
    tail: f64,
}

impl Line {
    fn is_waiting(&self) -> bool {
        self.tail > self.served
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    turn: f64,
    work: f64,
    pub(super) until: f64,
}

/// The state in which a caller comes to the queue.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arrival {
    /// With a valid ticket.
    InTurn(f64),
    /// With a ticket from another life of the store: it has waited.
    First,
    /// Without a ticket.
    Last,
}

/// A caller's position in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuePosition {
    pub(super) turn: f64,
    /// Work before it, in parts of a limit.
    pub(super) ahead: f64,
}

impl Queue {
    /// A caller's position.
    pub(super) fn position(&self, tenant: &Tenant, arrival: Arrival, now: f64) -> QueuePosition {
        let turn = match arrival {
            Arrival::InTurn(turn) => turn,
            Arrival::First => self.virtual_time(),
            Arrival::Last => {
                let tail = self.tenants.get(tenant).map_or(0.0, |line| line.tail);
                tail.max(self.virtual_time())
            }
        };
        let before = |line: &Line| (line.tail.min(turn) - line.served).max(0.0);
        let mut ahead: f64 = self.tenants.values().map(before).sum();
        if let Some(late) = self.late.filter(|late| late.turn < turn && now < late.until) {
            ahead += late.work;
        }
        QueuePosition { turn, ahead: ahead / GRAIN }
    }

    /// The queue's virtual time: the least served tenant that waits; without waiting tenants, the
    /// most served.
    fn virtual_time(&self) -> f64 {
        let waiting = self.tenants.values().filter(|line| line.is_waiting());
        let least = waiting.map(|line| line.served).min_by(f64::total_cmp);
        let most = || self.tenants.values().map(|line| line.served).fold(0.0, f64::max);
        least.unwrap_or_else(most)
    }

    /// A tenant's line. A tenant without waiting callers that has had less than others starts where
    /// a new tenant would.
    fn line(&mut self, tenant: &Tenant, turn: f64) -> &mut Line {
        let newcomer = Line { served: turn, tail: turn };
        let line = self.tenants.entry(tenant.clone()).or_insert(newcomer);
        if !line.is_waiting() && line.served < turn {
            *line = newcomer;
        }
        line
    }

    /// Admits a caller. Returns by how much that moves the queue on. The value of a turn is taken
    /// from the use of admitted calls, because estimates change and callers vanish while others
    /// wait.
    pub(super) fn admit(&mut self, tenant: &Tenant, position: QueuePosition, work: f64) -> f64 {
        let line = self.line(tenant, position.turn);
        let served = line.served;
        line.served = served.max(position.turn + work);
        line.tail = line.tail.max(line.served);
        let progress = line.served - served;
        self.late = self.late.filter(|late| late.turn != position.turn);
        progress
    }

    /// Adds a caller that comes back by `until`.
    pub(super) fn enqueue(
        &mut self,
        tenant: &Tenant,
        position: QueuePosition,
        work: f64,
        until: f64,
        now: f64,
    ) {
        let line = self.line(tenant, position.turn);
        line.tail = line.tail.max(position.turn + work);
        let passed = position.turn < line.served;
        let free = self.late.is_none_or(|late| late.turn >= position.turn || now >= late.until);
        if passed && free {
            self.late = Some(Late { turn: position.turn, work, until });
        }
    }

    /// Moves the queue on by work for which no caller came: absent callers hold up no others.
    pub(super) fn pass(&mut self, work: f64) {
        if work <= 0.0 {
            return;
        }
        let waiting = self.tenants.values().filter(|line| line.is_waiting()).count();
        let each = (work / waiting as f64).floor();
        for line in self.tenants.values_mut().filter(|line| line.is_waiting()) {
            line.served = (line.served + each).min(line.tail);
        }
    }

    /// Forgets tenants that had their turns: a new tenant would start at the same position.
    pub(super) fn drop_idle(&mut self) {
        let clock = self.virtual_time();
        let last = self.tenants.values().map(|line| line.served).fold(0.0, f64::max);
        self.tenants
            .retain(|_, line| line.is_waiting() || line.served > clock || line.served >= last);
    }

    /// Removes a tenant's waiting callers.
    pub(super) fn remove_tenant(&mut self, tenant: &Tenant) {
        if let Some(line) = self.tenants.get_mut(tenant) {
            line.tail = line.served;
        }
    }

    /// Removes one waiting caller.
    pub(super) fn give_up(&mut self, tenant: &Tenant, turn: f64, work: f64) {
        let Some(line) = self.tenants.get_mut(tenant) else { return };
        if turn + work >= line.tail {
            line.tail = line.served.max(line.tail.min(turn));
        } else {
            line.served = (line.served + work).min(line.tail);
        }
    }

    /// Work of all waiting callers.
    pub(super) fn waiting(&self) -> f64 {
        self.tenants.values().map(|line| line.tail - line.served).sum()
    }
}
