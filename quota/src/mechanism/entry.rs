//! Admitted calls and the window.

use super::{
    Mechanism, Terms,
    state::{Before, Condition, Entry},
};
use crate::{conversions::micros, dimension::PerDimension, plan::Units, store::Ask};

impl Mechanism {
    /// Admits a call.
    pub(super) fn admit(
        &mut self,
        terms: &Terms<'_>,
        ask: &Ask,
        need: &Units,
        progress: f64,
        probe: bool,
    ) {
        let before = PerDimension::from_fn(|it| {
            let drawn = self.drawn[it] - self.changed[it];
            Before { drawn, held: self.held[it], total: self.total[it], spent: self.spent[it] }
        });
        self.draw(need);
        for (it, limit) in self.plan.limits.iter() {
            if let Some(limit) = limit {
                self.peak[it] = self.peak[it].max(self.drawn[it].min(limit.capacity.value));
            }
        }
        let entry = Entry {
            admitted: self.at,
            lane: ask.lane,
            condition: Condition::Reserved,
            amounts: *need,
            progress,
            probe,
            before: Some(before),
            handed_over: false,
        };
        self.enter(ask.reservation.clone(), entry);
        self.add_in_flight(ask.lane, 1.0);
        self.add_to_day(terms, self.at, need);
    }

    /// Adds an entry to the window.
    pub(super) fn enter(&mut self, id: String, entry: Entry) {
        self.add(&entry, 1.0);
        self.ledger.push_back((entry.admitted, id.clone()));
        self.entries.insert(id, entry);
    }

    /// Draws from the levels. A debt is at most the amount that refills in a window, even after a
    /// wrong estimate. Nothing is drawn where there is no limit.
    pub(super) fn draw(&mut self, amounts: &Units) {
        for (it, amount) in amounts.iter() {
            let deepest = self.plan.limits[it].map_or(0.0, |it| it.capacity.value + it.most);
            self.drawn[it] = (self.drawn[it] + amount).min(deepest).max(0.0);
            self.spent[it] += amount;
        }
    }

    /// Adds an entry's amounts to the totals of the window, or takes them out with sign -1.
    pub(super) fn add(&mut self, entry: &Entry, sign: f64) {
        let used = &mut self.lanes[entry.lane].used;
        for (it, amount) in entry.amounts.iter() {
            self.total[it] += sign * amount;
            used[it] += sign * amount;
            if entry.condition == Condition::Reserved {
                self.held[it] += sign * amount;
            }
        }
        self.progress += sign * entry.progress;
    }

    /// Removes entries that have left the window. A call that outlives the window stays in flight
    /// until it settles or its lease ends.
    pub(super) fn expire(&mut self, terms: &Terms<'_>) {
        let horizon = self.at - terms.window;
        while self.ledger.front().is_some_and(|(admitted, _)| *admitted <= horizon) {
            let Some((_, id)) = self.ledger.pop_front() else { break };
            let Some(mut entry) = self.entries.remove(&id) else { continue };
            self.add(&entry, -1.0);
            if entry.condition == Condition::Reserved {
                entry.condition = Condition::Outlived;
                self.leases.insert(id.clone(), horizon + terms.lease);
                self.entries.insert(id, entry);
            }
        }
        self.end_leases();
    }

    /// Ends expired leases: the call's worker is gone or never settled it. The call no longer
    /// counts as in flight.
    fn end_leases(&mut self) {
        let at = self.at;
        for (id, _) in self.leases.extract_if(.., |_, ends| *ends <= at).collect::<Vec<_>>() {
            if let Some(entry) = self.entries.remove(&id) {
                self.add_in_flight(entry.lane, -1.0);
            }
        }
    }

    /// Renews the lease of a call that has outlived the window.
    pub(crate) fn renew(&mut self, lease: std::time::Duration, id: &str) {
        if let Some(ends) = self.leases.get_mut(id) {
            *ends = self.at + micros(lease);
        }
    }
}
