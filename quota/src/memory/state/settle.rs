//! What `settle-7.lua` does.

use std::time::Duration;

use super::{Canary, Condition, Entry, IN_FLIGHT, PACE_SPEEDUP, State};
use crate::{
    amounts::Amounts,
    limits::ModelQuota,
    memory::{
        number::{float, floats, micros},
        tuning::{self, Tuning},
    },
    store::{ProviderSignal, Settled, Settlement, UsageSample},
};

const DECAY: f64 = 0.99;
const EWMA_ALPHA: f64 = 0.03;

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
        let outcome = match self.entries.get(&settlement.reservation).cloned() {
            None => Settled::Unknown,
            Some(Entry { condition: Condition::Settled, .. }) => Settled::Before,
            Some(entry) => {
                self.end(model, settlement, &entry, now);
                Settled::Done
            }
        };
        if settlement.signal == ProviderSignal::Refused
            && let Some(tuning) = &mut self.tuning
        {
            tuning.lower(now);
        }
        let [requests, input, output, combined, _] = self.total;
        tuning::observe(
            &mut self.tuning,
            model,
            &settlement.meter,
            &[requests, input, output, combined],
            now,
        );
        if let Some(pause) = &settlement.pause {
            let exhausted = settlement.signal == ProviderSignal::Exhausted;
            self.close(
                pause,
                settlement.longest_pause(ttl),
                exhausted,
                settlement.signal == ProviderSignal::Refused,
                now,
            );
        }
        outcome
    }

    fn end(&mut self, model: &ModelQuota, settlement: &Settlement, entry: &Entry, now: f64) {
        let id = &settlement.reservation;
        let used = floats(settlement.used.unwrap_or_default());
        if settlement.signal == ProviderSignal::Overloaded {
            let in_flight = self.total[IN_FLIGHT];
            if let Some(tuning) = &mut self.tuning {
                tuning.cut(in_flight, now);
            }
        }
        if entry.condition == Condition::Reserved {
            let longer = self.move_pace(model, &used, &entry.amounts);
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
                let late = [0.0, 0.0, used[2], (used[3] - used[1]).max(0.0)];
                self.move_pace(model, &late, &[0.0; 4]);
                self.enter(id, entry.lane, Condition::Settled, late, now);
            }
        }
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(
                model,
                entry.admitted,
                used[0] - entry.amounts[0],
                used[3] - entry.amounts[3],
            );
        }
        self.add_in_flight(entry.lane, -1.0);
        if settlement.used.is_some() && settlement.signal == ProviderSignal::None {
            let latency = now - entry.admitted;
            self.latency = Some(match self.latency.filter(|known| *known > 0.0) {
                Some(known) => known + EWMA_ALPHA * (latency - known),
                None => latency,
            });
            if let Some(tuning) = &mut self.tuning {
                tuning.raise();
            }
            if let Some(sample) = settlement.sample.filter(|sample| sample.estimated_input > 0) {
                self.learn(settlement.template, sample, latency);
            }
        }
        if self.canary == Canary::Admitted(entry.admitted)
            && settlement.signal != ProviderSignal::Refused
        {
            self.canary = Canary::None;
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
        let used = floats(used);
        self.move_pace(model, &used, &[0.0; 4]);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, used[0], used[3]);
        }
        self.enter(name, lane, Condition::Settled, used, now);
    }

    /// Moves the pace clocks by what was used beyond what was reserved, and says by how much the
    /// turns behind are to move.
    fn move_pace(&mut self, model: &ModelQuota, used: &[f64; 4], reserved: &[f64; 4]) -> f64 {
        let (limits, _) = self.limits(model);
        let (mut longer, slowest) = (0.0, self.fullest(&limits));
        for index in 0..4 {
            if limits[index] > 0.0 {
                let rate = limits[index] / micros(model.limits.window);
                self.pace[index] += (used[index] - reserved[index]) / (rate * PACE_SPEEDUP);
                if slowest == Some(index) {
                    longer = (used[index] - reserved[index] * self.yield_of(index)) / rate;
                }
            }
        }
        longer
    }

    fn learn_yield(&mut self, model: &ModelQuota, used: &[f64; 4], reserved: &[f64; 4]) {
        let (limits, _) = self.limits(model);
        for index in 0..4 {
            if limits[index] > 0.0 && reserved[index] > 0.0 {
                let yielded = self.yield_of(index);
                let seen = (used[index] / reserved[index]).clamp(0.1, 3.0);
                self.yielded[index] = Some(yielded + EWMA_ALPHA * (seen - yielded));
            }
        }
    }

    fn learn(&mut self, template: u64, sample: UsageSample, latency: f64) {
        let learned = self.learned.entry(template).or_default();
        let weight = latency.max(1.0);
        let seen = [
            float(sample.input),
            float(sample.estimated_input),
            float(sample.output) * weight,
            weight,
        ];
        for (sum, value) in learned.iter_mut().zip(seen) {
            *sum = *sum * DECAY + value;
        }
        learned[4] += 1.0;
    }
}
