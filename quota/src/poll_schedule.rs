//! The models that a worker inspects with each beat: those in use, here or as last seen in the
//! fleet. It inspects all models once at the start and after each change by an operator. So the
//! load of an idle worker on Redis does not grow with the number of configured models.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::snapshot::Snapshot;

/// The models in use.
#[derive(Debug, Default)]
pub(crate) struct PollSchedule(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Models that were asked for, or were in use when last inspected.
    busy: BTreeSet<ModelId>,
    /// Whether all models were inspected since an operator's last change.
    all_polled: bool,
}

impl PollSchedule {
    /// Notes that a call of this process asks for the model.
    pub(crate) fn mark_busy(&self, model: &ModelId) {
        let mut state = self.0.lock();
        if !state.busy.contains(model) {
            state.busy.insert(model.clone());
        }
    }

    /// Whether no model is in use, as far as is known.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.0.lock();
        state.all_polled && state.busy.is_empty()
    }

    /// Schedules all models for the next inspection, after a change by an operator.
    pub(crate) fn poll_all(&self) {
        self.0.lock().all_polled = false;
    }

    /// The models to inspect now; those in use only if the worker `reads` at this beat.
    pub(crate) fn take_due<'a>(
        &self,
        models: impl Iterator<Item = &'a ModelId>,
        reads: bool,
    ) -> Vec<ModelId> {
        let mut state = self.0.lock();
        if !std::mem::replace(&mut state.all_polled, true) {
            return models.cloned().collect();
        }
        if reads { state.busy.iter().cloned().collect() } else { Vec::new() }
    }

    /// Records a model's snapshot.
    pub(crate) fn record_snapshot(&self, model: &ModelId, snapshot: &Snapshot) {
        let mut state = self.0.lock();
        if snapshot.is_idle() {
            state.busy.remove(model);
        } else {
            state.busy.insert(model.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::DimensionSnapshot;

    #[test]
    fn models_in_use_are_always_due_and_the_others_after_a_change() {
        let models: Vec<ModelId> = ["x:a", "x:b"].map(|model| model.parse().unwrap()).into();
        let idle = Snapshot { factor: 1.0, ..Snapshot::default() };
        let in_flight = DimensionSnapshot { used: 1, ..DimensionSnapshot::default() };
        let busy = Snapshot { in_flight, ..idle.clone() };
        let schedule = PollSchedule::default();
        let due = || schedule.take_due(models.iter(), true);
        assert!(!schedule.is_idle());
        assert_eq!(due(), models, "all of them at first");
        models.iter().for_each(|model| schedule.record_snapshot(model, &idle));
        assert_eq!(due(), []);
        assert!(schedule.is_idle());
        schedule.record_snapshot(&models[1], &busy);
        assert_eq!(schedule.take_due(models.iter(), false), []);
        assert_eq!(due(), [models[1].clone()]);
        schedule.record_snapshot(&models[1], &idle);
        schedule.mark_busy(&models[0]);
        assert_eq!(due(), [models[0].clone()]);
        schedule.poll_all();
        assert_eq!(schedule.take_due(models.iter(), false), models);
    }
}
