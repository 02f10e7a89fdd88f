//! What `settle-8.lua` does.

use std::time::Duration;

use super::{Canary, Closing, Condition, Entry, State, burst::FULL};
use crate::{
    dimension::{Amounts, Dimension, PerDimension},
    memory::tuning::{self, Tuning},
    model::ModelQuota,
    number::{float, micros},
    store::{ProviderSignal, Settled, Settlement, UsageSample},
};

const DECAY: f64 = 0.99;
const HALF: f64 = 0.5;
const EWMA_ALPHA: f64 = 0.03;
const LEAST_YIELD: f64 = 0.02;
const MOST_YIELD: f64 = 3.0;
const OPEN_FOR: f64 = 2e6;
const LATEST_CALLS: usize = 256;
const BELIEVED: f64 = 0.9;

impl State {
    pub(in crate::memory) fn settle(
        &mut self,
        model: &ModelQuota,
        settlement: &Settlement,
        ttl: Duration,
        now: f64,
    ) -> Settled {
        if matches!(settlement.signal, ProviderSignal::Refused | ProviderSignal::Overloaded)
            && self.tuning.is_none()
        {
            self.tuning = Some(Tuning::new(now));
        }
        let mut ended = None;
        let outcome = match self.entries.get(&settlement.reservation).cloned() {
            None => {
                self.begin_steady(model, now);
                Settled::Unknown
            }
            Some(Entry { condition: Condition::Settled, .. }) => Settled::Before,
            Some(entry) => {
                self.end(model, settlement, &entry, now);
                ended = Some(entry);
                Settled::Done
            }
        };
        let admitted = ended.as_ref().map(|entry| entry.admitted);
        if settlement.signal == ProviderSignal::Refused {
            let alone = admitted.is_some_and(|at| self.canary == Canary::Admitted(at));
            self.learn_refusal(model, &self.in_force(model).limits.window, alone, now);
            self.lower(model, ended.as_ref(), now);
        }
        let known = (&self.total.window, &self.held);
        tuning::observe(&mut self.tuning, model, &settlement.meter, known, admitted, now);
        if let Some(pause) = &settlement.pause {
            let closing = match settlement.signal {
                ProviderSignal::Exhausted => Closing::Exhaustion,
                ProviderSignal::Refused => Closing::Refusal,
                _ => Closing::Pause,
            };
            self.close(pause, settlement.longest_pause(ttl), closing, now);
        }
        outcome
    }

    fn end(&mut self, model: &ModelQuota, settlement: &Settlement, entry: &Entry, now: f64) {
        let id = &settlement.reservation;
        let mut used = settlement.used.unwrap_or_default().map(float);
        let tells = settlement.used.is_some() && settlement.signal == ProviderSignal::None;
        let sample = settlement.sample.filter(|sample| tells && sample.estimated_input > 0);
        if let Some(sample) = sample {
            used.combined = self.count(model, entry, sample, used.combined);
        } else if !tells {
            self.count_none(entry);
        }
        if settlement.signal == ProviderSignal::Overloaded {
            let in_flight = self.total.in_flight;
            if let Some(tuning) = &mut self.tuning {
                tuning.cut(in_flight, now);
            }
        }
        if entry.condition == Condition::Reserved {
            let longer = self.move_pace(model, &used, &entry.amounts, now);
            self.lanes[entry.lane].move_queue(longer);
            self.add(entry.lane, &entry.amounts, -1.0, -1.0);
            if settlement.used.is_none() {
                self.entries.remove(id);
                self.ledger.retain(|(_, other)| other != id);
            } else {
                if settlement.signal == ProviderSignal::None {
                    self.learn_yield(model, &used, &entry.amounts);
                }
                self.add(entry.lane, &used, 1.0, 0.0);
                self.entries.insert(
                    id.clone(),
                    Entry { condition: Condition::Settled, amounts: used, ..entry.clone() },
                );
            }
        } else {
            self.leases.remove(id);
            self.entries.remove(id);
            if model.charge.unused_returns && settlement.used.is_some() {
                let late = PerDimension {
                    output: used.output,
                    combined: (used.combined - used.input).max(0.0),
                    ..PerDimension::default()
                };
                self.move_pace(model, &late, &PerDimension::default(), now);
                self.enter(id, entry.lane, Condition::Settled, late, now);
            }
        }
        if let Some(tuning) = &mut self.tuning {
            let more =
                PerDimension::from_fn(|dimension| used[dimension] - entry.amounts[dimension]);
            tuning.add_to_day(model, entry.admitted, &more);
        }
        self.add_in_flight(entry.lane, -1.0);
        if tells {
            let latency = now - entry.admitted;
            self.latency = Some(match self.latency.filter(|known| *known > 0.0) {
                Some(known) => known + EWMA_ALPHA * (latency - known),
                None => latency,
            });
            if let Some(tuning) = &mut self.tuning {
                tuning.raise();
            }
            if let Some(sample) = sample {
                self.learn(model.learns_as(settlement.template), settlement, sample, latency, now);
            }
        }
        if self.canary == Canary::Admitted(entry.admitted)
            && settlement.signal != ProviderSignal::Refused
        {
            self.canary = Canary::None;
        }
        if sample.is_some() {
            self.learn_counted(model, settlement, entry.admitted, now);
        }
        if tells {
            let limits = self.in_force(model).limits.window;
            self.learn_refill(settlement.meter.refill());
            // Of limits that refusals have shown to be lower, what headers say is left is not there.
            if self.tuning.as_ref().is_none_or(|tuning| tuning.factor >= BELIEVED)
                && self.believe(model, &limits, &settlement.meter, entry.admitted, now)
                && sample.is_some()
            {
                self.learn_unheld(model, settlement, entry, now);
            }
        }
    }

    pub(in crate::memory) fn charge(
        &mut self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
        now: f64,
    ) {
        if self.entries.contains_key(name) {
            return;
        }
        let used = used.map(float);
        self.move_pace(model, &used, &PerDimension::default(), now);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, &used);
        }
        self.enter(name, lane, Condition::Settled, used, now);
    }

    /// Moves the pace clocks by what was used beyond what was reserved, and says by how much the
    /// turns behind are to move. A call that used many times what it reserved stops the model for
    /// no longer than a window.
    fn move_pace(
        &mut self,
        model: &ModelQuota,
        used: &PerDimension<f64>,
        reserved: &PerDimension<f64>,
        now: f64,
    ) -> f64 {
        let window = micros(model.limits.window);
        let most = now + window + self.burst.as_ref().map_or(0.0, |burst| burst.allowance);
        let speed = self.pace_speed(model);
        let limits = self.in_force(model).limits.window;
        let (mut longer, slowest) = (0.0, self.fullest(&limits));
        for (dimension, limit) in limits.iter().filter(|(_, limit)| **limit > 0.0) {
            let (used, reserved) = (used[dimension], reserved[dimension]);
            let rate = limit / window;
            let after = self.pace[dimension] + (used - reserved) / (rate * speed);
            self.pace[dimension] = after.min(self.pace[dimension].max(most));
            if slowest == Some(dimension) {
                longer = (used - reserved * self.yield_of(dimension)) / rate;
            }
        }
        longer.min(window)
    }

    /// A call was refused; nothing is known of it if its entry was gone.
    fn lower(&mut self, model: &ModelQuota, refused: Option<&Entry>, now: f64) {
        let Some(tuning) = &self.tuning else { return };
        let (lowered, whole, quiet) =
            (tuning.lowered_at(now), tuning.factor >= 1.0, tuning.is_quiet(now));
        let (mut part, mut shown) = (0.0, 1.0);
        if quiet {
            self.refusals = 0.0;
        }
        if let Some(entry) = refused.filter(|entry| !whole && entry.admitted > lowered) {
            self.refusals += 1.0;
            part = self.refusals / float(self.admitted_after(lowered).count().max(1) as u64);
            shown = self.rate_shown(model, &entry.amounts, lowered, now);
        }
        let Some(tuning) = &mut self.tuning else { return };
        if tuning.lower(self.refusals, part, shown, now) {
            self.refusals = 0.0;
        }
    }

    /// The calls in the window that were admitted later than `since`, the last one first.
    fn admitted_after(&self, since: f64) -> impl Iterator<Item = &(f64, String)> {
        self.ledger.iter().rev().take_while(move |(admitted, _)| *admitted > since)
    }

    /// What part of the limits in force there is at most, 1 where it is not known: since they were
    /// lowered last, or the gate opened, the provider let some calls through and then refused one,
    /// so it had less to give in that time than all of these would use.
    fn rate_shown(
        &self,
        model: &ModelQuota,
        refused: &PerDimension<f64>,
        since: f64,
        now: f64,
    ) -> f64 {
        let (window, limits) = (micros(model.limits.window), self.in_force(model).limits.window);
        let mut since = self.gate.as_ref().map_or(since, |gate| gate.until.max(since));
        if now - since < OPEN_FOR || self.fullness(&limits, &PerDimension::default()) < FULL {
            return 1.0;
        }
        let mut wanted = *refused;
        for (index, (admitted, id)) in self.admitted_after(since).take(LATEST_CALLS).enumerate() {
            if index + 1 == LATEST_CALLS {
                since = *admitted;
            }
            let Some(entry) = self.entries.get(id) else { continue };
            for dimension in Dimension::ALL {
                wanted[dimension] += entry.amounts[dimension];
            }
        }
        let limited = limits.iter().filter(|(_, limit)| **limit > 0.0);
        let shown = limited.map(|(it, limit)| wanted[it] / limit).fold(0.0, f64::max);
        shown * window / (now - since).min(window)
    }

    fn learn_yield(
        &mut self,
        model: &ModelQuota,
        used: &PerDimension<f64>,
        reserved: &PerDimension<f64>,
    ) {
        for (dimension, limit) in self.in_force(model).limits.window.iter() {
            if *limit > 0.0 && reserved[dimension] > 0.0 {
                let yielded = self.yield_of(dimension);
                let seen = (used[dimension] / reserved[dimension]).clamp(LEAST_YIELD, MOST_YIELD);
                self.yielded[dimension] = Some(yielded + EWMA_ALPHA * (seen - yielded));
            }
        }
    }

    fn learn(
        &mut self,
        template: u64,
        settlement: &Settlement,
        sample: UsageSample,
        latency: f64,
        now: f64,
    ) {
        let learned = self.learned.entry(template).or_default();
        let weight = latency.max(1.0);
        let add = |sum: &mut f64, value: f64| *sum = *sum * DECAY + value;
        add(&mut learned.input, float(sample.input));
        add(&mut learned.estimated, float(sample.estimated_input));
        add(&mut learned.output, float(sample.output) * weight);
        add(&mut learned.weight, weight);
        let cached = settlement.cached.map(float);
        if learned.calls <= 0.0 || (learned.cached > 0.0 && cached == Some(0.0)) {
            learned.unknown_since = tuning::minute_of(now);
        }
        learned.calls += 1.0;
        if let Some(cached) = cached {
            let rises = (cached - learned.cached).max(0.0);
            learned.cached = cached.min(learned.cached + HALF * rises);
            if cached > 0.0 {
                learned.cached_at = now;
            }
        }
    }
}
