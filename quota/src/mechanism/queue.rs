//! Start-time fair queueing without a list of who waits. Turns are amounts of work and never times:
//! whatever changes the rate changes what a turn means with it. They are whole billionths of a limit,
//! so that sums are exact.

use std::collections::BTreeMap;

use tidegate_types::Tenant;

use crate::numbers::GRAIN;

/// The queue of one lane.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tenants: BTreeMap<Tenant, Line>,
    /// One whose turn has gone by while it was away: what it needs, until when it may come for it.
    pub(super) late: Option<Late>,
}

/// One tenant's callers.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Where the last that went ends.
    served: f64,
    /// Where the last turn ends.
    tail: f64,
}

impl Line {
    fn waits(&self) -> bool {
        self.tail > self.served
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    turn: f64,
    work: f64,
    pub(super) until: f64,
}

/// How a caller asks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asks {
    /// With its turn.
    InTurn(f64),
    /// With a turn of another life of the store: it has waited.
    First,
    /// For the first time.
    Last,
}

/// A caller's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) turn: f64,
    /// Work that goes before it, in parts of a limit.
    pub(super) ahead: f64,
}

impl Queue {
    /// Where a caller stands.
    pub(super) fn place(&self, tenant: &Tenant, asks: Asks, now: f64) -> Place {
        let turn = match asks {
            Asks::InTurn(turn) => turn,
            Asks::First => self.clock(),
            Asks::Last => {
                let tail = self.tenants.get(tenant).map_or(0.0, |line| line.tail);
                tail.max(self.clock())
            }
        };
        let before = |line: &Line| (line.tail.min(turn) - line.served).max(0.0);
        let mut ahead: f64 = self.tenants.values().map(before).sum();
        if let Some(late) = self.late.filter(|late| late.turn < turn && now < late.until) {
            ahead += late.work;
        }
        Place { turn, ahead: ahead / GRAIN }
    }

    /// Least of what those have been served who wait; where nobody waits, the most.
    fn clock(&self) -> f64 {
        let waiting = self.tenants.values().filter(|line| line.waits());
        let least = waiting.map(|line| line.served).min_by(f64::total_cmp);
        let most = || self.tenants.values().map(|line| line.served).fold(0.0, f64::max);
        least.unwrap_or_else(most)
    }

    /// A tenant of which none waits, and that has had less than others, begins where a newcomer would.
    fn line(&mut self, tenant: &Tenant, turn: f64) -> &mut Line {
        let newcomer = Line { served: turn, tail: turn };
        let line = self.tenants.entry(tenant.clone()).or_insert(newcomer);
        if !line.waits() && line.served < turn {
            *line = newcomer;
        }
        line
    }

    /// A caller goes. By how much that brings the queue on: what a turn is worth is known from what
    /// those used who went, for estimates change and callers vanish while others wait.
    pub(super) fn goes(&mut self, tenant: &Tenant, place: Place, work: f64) -> f64 {
        let line = self.line(tenant, place.turn);
        let served = line.served;
        line.served = served.max(place.turn + work);
        line.tail = line.tail.max(line.served);
        let progress = line.served - served;
        self.late = self.late.filter(|late| late.turn != place.turn);
        progress
    }

    /// A caller waits, and comes back by `until`.
    pub(super) fn waits(&mut self, tenant: &Tenant, place: Place, work: f64, until: f64, now: f64) {
        let line = self.line(tenant, place.turn);
        line.tail = line.tail.max(place.turn + work);
        let passed = place.turn < line.served;
        let free = self.late.is_none_or(|late| late.turn >= place.turn || now >= late.until);
        if passed && free {
            self.late = Some(Late { turn: place.turn, work, until });
        }
    }

    /// Work that nobody came for: those who do not come hold up no others.
    pub(super) fn passes(&mut self, work: f64) {
        if work <= 0.0 {
            return;
        }
        let waiting = self.tenants.values().filter(|line| line.waits()).count();
        let each = (work / waiting as f64).floor();
        for line in self.tenants.values_mut().filter(|line| line.waits()) {
            line.served = (line.served + each).min(line.tail);
        }
    }

    /// Those who have had their turns stand where a newcomer would.
    pub(super) fn forget(&mut self) {
        let clock = self.clock();
        let last = self.tenants.values().map(|line| line.served).fold(0.0, f64::max);
        self.tenants.retain(|_, line| line.waits() || line.served > clock || line.served >= last);
    }

    /// A tenant's callers come no more.
    pub(super) fn leaves(&mut self, tenant: &Tenant) {
        if let Some(line) = self.tenants.get_mut(tenant) {
            line.tail = line.served;
        }
    }

    /// A caller that waits comes no more.
    pub(super) fn gives_up(&mut self, tenant: &Tenant, turn: f64, work: f64) {
        let Some(line) = self.tenants.get_mut(tenant) else { return };
        if turn + work >= line.tail {
            line.tail = line.served.max(line.tail.min(turn));
        } else {
            line.served = (line.served + work).min(line.tail);
        }
    }

    /// Work of all who wait.
    pub(super) fn waiting(&self) -> f64 {
        self.tenants.values().map(|line| line.tail - line.served).sum()
    }
}
