//! Start-time fair queueing without a list of who waits. Turns are amounts of work, in parts of a
//! limit, and never times: whatever changes the rate changes what a turn means with it.

use std::collections::BTreeMap;

/// The queue of one lane.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    tenants: BTreeMap<u64, Line>,
    /// One whose turn has gone by while it was away: what it needs, until when it may come for it.
    late: Option<Late>,
    /// Work that an idle lane finds when it comes.
    pub(crate) standby: f64,
}

/// One tenant's callers.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Where the last turn ends.
    tail: f64,
    /// Where the last that went ends.
    served: f64,
}

impl Line {
    fn at(turn: f64) -> Self {
        Self { tail: turn, served: turn }
    }
}

#[derive(Debug, Clone, Copy)]
struct Late {
    turn: f64,
    work: f64,
    until: f64,
}

/// A caller's place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) turn: f64,
    /// Work that goes before it.
    pub(crate) ahead: f64,
}

impl Queue {
    /// Where a caller with this turn stands, or a newcomer.
    pub(crate) fn place(&self, tenant: u64, turn: Option<f64>, now: f64) -> Place {
        let own = self.tenants.get(&tenant);
        let turn = turn.unwrap_or_else(|| {
            let clock = self.clock();
            own.map_or(clock, |line| line.tail.max(clock))
        });
        let before = |line: &Line| (line.tail.min(turn) - line.served).max(0.0);
        let mut ahead: f64 = self.tenants.values().map(before).sum();
        if let Some(late) = self.late.filter(|late| late.turn < turn && now < late.until) {
            ahead += late.work;
        }
        Place { turn, ahead }
    }

    /// Least of what those have been served who wait; where nobody waits, the most.
    fn clock(&self) -> f64 {
        let waiting = self.tenants.values().filter(|line| line.tail > line.served);
        let least = waiting.map(|line| line.served).min_by(f64::total_cmp);
        let most = || self.tenants.values().map(|line| line.served).fold(0.0, f64::max);
        least.unwrap_or_else(most)
    }

    /// A caller goes. By how much that brings the queue on: what a turn is worth is known from what
    /// those used who went, for estimates change and callers vanish while others wait.
    pub(crate) fn goes(&mut self, tenant: u64, place: Place, work: f64) -> f64 {
        let line = self.tenants.entry(tenant).or_insert_with(|| Line::at(place.turn));
        let served = line.served;
        line.served = line.served.max(place.turn + work);
        line.tail = line.tail.max(line.served);
        let progress = line.served - served;
        self.late = self.late.filter(|late| (late.turn - place.turn).abs() > f64::EPSILON);
        progress
    }

    /// A caller waits, and comes back by `until`.
    pub(crate) fn waits(&mut self, tenant: u64, place: Place, work: f64, until: f64, now: f64) {
        let line = self.tenants.entry(tenant).or_insert_with(|| Line::at(place.turn));
        line.tail = line.tail.max(place.turn + work);
        let passed = place.turn < line.served;
        let free = self.late.is_none_or(|late| late.turn >= place.turn || now >= late.until);
        if passed && free {
            self.late = Some(Late { turn: place.turn, work, until });
        }
    }

    /// Work that nobody came for: those who do not come hold up no others.
    pub(crate) fn passes(&mut self, work: f64) {
        let waiting = self.tenants.values().filter(|line| line.tail > line.served).count();
        for line in self.tenants.values_mut() {
            line.served = (line.served + work / waiting.max(1) as f64).min(line.tail);
        }
    }

    /// A tenant's callers come no more.
    pub(crate) fn leaves(&mut self, tenant: u64) {
        self.tenants.remove(&tenant);
    }

    /// Work of all who wait.
    pub(crate) fn waiting(&self) -> f64 {
        self.tenants.values().map(|line| line.tail - line.served).sum()
    }
}
