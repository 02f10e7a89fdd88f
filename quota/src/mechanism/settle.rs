//! The end of calls.

use std::collections::BTreeMap;

use super::{
    Mechanism, Terms,
    log::{MeterReading, Observation, RefusedUse},
    state::{Before, CloseReason, Condition, Entry, Spent},
};
use crate::{
    conversions::{float, index, micros, whole},
    dimension::{Amounts, Dimension, PerDimension},
    model::ModelQuota,
    numbers::Numbers,
    plan::{Units, units},
    store::{Meter, ProviderSignal, Settled, Settlement},
};

impl Mechanism {
    /// Ends a reservation, once. `longest` is the longest pause in microseconds.
    pub(crate) fn settle(
        &mut self,
        model: &ModelQuota,
        terms: &Terms<'_>,
        settlement: &Settlement,
        longest: f64,
    ) -> Settled {
        let (signal, numbers) = (settlement.signal, terms.numbers);
        let known = self.entries.get(&settlement.reservation).cloned();
        let outcome = match &known {
            Some(entry) if entry.condition == Condition::Settled => Settled::Before,
            Some(entry) => {
                if signal == ProviderSignal::Overloaded {
                    self.in_flight.record_overload(entry.admitted, self.at, numbers);
                }
                self.end_entry(model, terms, settlement, entry.clone());
                Settled::Done
            }
            None => Settled::Unknown,
        };
        let open = known.filter(|_| outcome == Settled::Done);
        if let Some(entry) = &open {
            if settlement.used.is_some() {
                self.log_meter(&settlement.meter, entry, numbers);
            }
            match signal {
                ProviderSignal::None if settlement.used.is_some() => {
                    self.record_answer(model, settlement, entry, numbers);
                }
                ProviderSignal::RateLimited => self.log_refusal(settlement, entry, numbers),
                _ => {}
            }
        }
        if let Some(pause) = settlement.pause.as_ref().filter(|pause| !pause.length.is_zero()) {
            let closed = match signal {
                ProviderSignal::Exhausted => CloseReason::Exhausted,
                ProviderSignal::RateLimited => CloseReason::Refused,
                _ => CloseReason::Pause,
            };
            self.close_gate(pause, longest, closed);
        }
        outcome
    }

    fn end_entry(
        &mut self,
        model: &ModelQuota,
        terms: &Terms<'_>,
        settlement: &Settlement,
        entry: Entry,
    ) {
        let id = &settlement.reservation;
        let used = settlement.used.as_ref().map(units).unwrap_or_default();
        let more = Units::from_fn(|it| used[it] - entry.amounts[it]);
        self.draw(&more);
        self.add_to_day(terms, entry.admitted, &more);
        self.add_in_flight(entry.lane, -1.0);
        self.entries.remove(id);
        if entry.condition == Condition::Outlived {
            self.leases.remove(id);
            if settlement.used.is_some() && model.charge.unused_returns {
                // The provider counts output at the end of the call.
                let output = (used.combined - used.input).max(0.0);
                let amounts = Units { output: used.output, combined: output, ..Units::default() };
                let late = Entry { admitted: self.at, progress: 0.0, ..entry };
                self.enter(id.clone(), Entry { amounts, condition: Condition::Settled, ..late });
            }
            return;
        }
        self.add(&entry, -1.0);
        if settlement.used.is_none() {
            self.ledger.retain(|(_, kept)| kept != id);
            return;
        }
        // The entry keeps its time of admission, and so its position in the window.
        let entry = Entry { amounts: used, condition: Condition::Settled, ..entry };
        self.add(&entry, 1.0);
        self.entries.insert(id.clone(), entry);
    }

    /// Learns from a call that went well.
    fn record_answer(
        &mut self,
        model: &ModelQuota,
        settlement: &Settlement,
        entry: &Entry,
        numbers: &Numbers,
    ) {
        let took = self.at - entry.admitted;
        let faded = 1.0 - numbers.fade;
        let mean = self.latency;
        self.latency = if mean > 0.0 { mean + faded * (took - mean) } else { took };
        self.in_flight.record_success(numbers);
        let (template, expected) = (model.learns_as(settlement.template), entry.amounts.output);
        self.learn(template, settlement, expected, took, numbers);
        if entry.probe {
            self.end_probe();
        }
        self.log.count_answer();
    }

    /// Logs the provider's meter from an answer, also of a refused call.
    fn log_meter(&mut self, meter: &Meter, entry: &Entry, numbers: &Numbers) {
        let each = PerDimension::from_fn(|it| {
            let before = self.use_before(entry, it)?;
            let told = |it: Option<u64>| it.map_or(-1.0, float);
            let (used, limit) = (told(meter.used[it]), told(meter.limits[it]));
            (used >= 0.0 || limit >= 0.0).then(|| MeterReading {
                used,
                limit,
                reset: meter.resets[it].map_or(-1.0, micros),
                drawn: before.drawn + self.changed[it],
                held: before.held,
                total: before.total,
                since: self.spent[it] - before.spent,
            })
        });
        if each.iter().any(|(_, told)| told.is_some()) {
            self.log.push(Observation::Metered(each), numbers);
        }
    }

    /// A dimension's state at the call's admission, if the dimension is limited now.
    fn use_before(&self, entry: &Entry, it: Dimension) -> Option<Before> {
        self.plan.limits[it]?;
        entry.before.map(|before| before[it])
    }

    fn log_refusal(&mut self, settlement: &Settlement, entry: &Entry, numbers: &Numbers) {
        let each = PerDimension::from_fn(|it| {
            self.use_before(entry, it).map(|before| RefusedUse {
                need: entry.amounts[it],
                drawn: before.drawn + self.changed[it],
                spent: before.spent,
            })
        });
        let retry = settlement.pause.as_ref().map_or(0.0, |pause| micros(pause.length));
        let (at, admitted, probe) = (self.at, entry.admitted, entry.probe);
        self.log.push(Observation::Refused { at, admitted, retry, probe, each }, numbers);
    }

    /// Charges use without a reservation from the time when the store was away; it moves the queue
    /// on. Part of it has refilled since: `drawn` is the rest.
    pub(crate) fn charge(
        &mut self,
        terms: &Terms<'_>,
        id: &str,
        lane: usize,
        used: &Amounts,
        drawn: &Amounts,
    ) {
        if self.entries.contains_key(id) {
            return;
        }
        let amounts = units(used);
        let entry = Entry {
            admitted: self.at,
            lane,
            condition: Condition::Settled,
            amounts,
            progress: 0.0,
            probe: false,
            before: None,
            handed_over: true,
        };
        self.draw(&units(drawn));
        self.add_to_day(terms, self.at, &amounts);
        self.lanes[lane].passed += self.plan.work_of(&amounts);
        self.enter(id.to_owned(), entry);
    }

    /// Starts from a quota with these amounts drawn and in the window, as if its lanes had used it
    /// evenly. They include what this process has reported.
    pub(crate) fn begin_with(&mut self, terms: &Terms<'_>, drawn: &Units, total: &Units) {
        self.drawn = *drawn;
        let is_known = |it: &Entry| it.handed_over && it.condition == Condition::Settled;
        let known: Vec<_> = self.entries.extract_if(|_, entry| is_known(entry)).collect();
        known.iter().for_each(|(_, entry)| self.add(entry, -1.0));
        self.ledger.retain(|(_, id)| self.entries.contains_key(id));
        let (count, now) = (terms.numbers.walk, self.at);
        for back in (0..index(count)).rev() {
            let entry = Entry {
                admitted: now - terms.window * float(back as u64) / count,
                lane: back % self.lanes.len(),
                condition: Condition::Settled,
                amounts: total.map(|total| total / count),
                progress: 0.0,
                probe: false,
                before: None,
                handed_over: true,
            };
            self.enter(format!("before:{now}:{back}"), entry);
        }
        self.ledger.make_contiguous().sort_by(|one, next| one.0.total_cmp(&next.0));
    }

    /// Use that has not been reported to the fleet yet, by lane.
    pub(crate) fn unreported(&self) -> Vec<Spent> {
        let mut lanes: BTreeMap<usize, (Units, Vec<String>)> = BTreeMap::new();
        for (id, entry) in self.entries.iter().filter(|(_, entry)| !entry.handed_over) {
            let (used, calls) = lanes.entry(entry.lane).or_default();
            *used = Units::from_fn(|it| used[it] + entry.amounts[it]);
            calls.push(id.clone());
        }
        let spent = |(lane, (used, calls)): (usize, (Units, Vec<String>))| {
            let used = used.map(|amount| whole(amount.ceil()));
            Spent { lane, used, calls }
        };
        lanes.into_iter().map(spent).collect()
    }

    /// Marks these calls as reported to the fleet.
    pub(crate) fn handed_over(&mut self, calls: &[String]) {
        for id in calls {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.handed_over = true;
            }
        }
    }
}
