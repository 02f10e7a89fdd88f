//! At which models a worker looks with each of its beats: those at which something goes on, here or
//! as far as it has seen anywhere in the fleet; and at all of them once, and whenever an operator has
//! changed something. So what an idle worker asks of Redis does not grow with the models that are
//! configured.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::snapshot::Snapshot;

/// What is known of the models.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    /// Models that were asked for, or not idle when they were last seen.
    busy: BTreeSet<ModelId>,
    /// All have been looked at since an operator changed something.
    all_seen: bool,
}

impl Watch {
    /// Somebody here wants a call to be admitted.
    pub(crate) fn asks(&self, model: &ModelId) {
        let mut watched = self.0.lock();
        if !watched.busy.contains(model) {
            watched.busy.insert(model.clone());
        }
    }

    /// Whether nothing goes on at any model, as far as is known.
    pub(crate) fn is_idle(&self) -> bool {
        let watched = self.0.lock();
        watched.all_seen && watched.busy.is_empty()
    }

    /// An operator has changed something.
    pub(crate) fn looks_at_all(&self) {
        self.0.lock().all_seen = false;
    }

    /// The models to look at now.
    pub(crate) fn due<'a>(&self, models: impl Iterator<Item = &'a ModelId>) -> Vec<ModelId> {
        let mut watched = self.0.lock();
        if std::mem::replace(&mut watched.all_seen, true) {
            watched.busy.iter().cloned().collect()
        } else {
            models.cloned().collect()
        }
    }

    /// What a look has told.
    pub(crate) fn seen(&self, model: &ModelId, snapshot: &Snapshot) {
        let mut watched = self.0.lock();
        if snapshot.is_idle() {
            watched.busy.remove(model);
        } else {
            watched.busy.insert(model.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::DimensionSnapshot;

    #[test]
    fn busy_models_are_looked_at_always_and_the_others_when_something_was_changed() {
        let models: Vec<ModelId> = ["x:a", "x:b"].map(|model| model.parse().unwrap()).into();
        let idle = Snapshot { factor: 1.0, ..Snapshot::default() };
        let in_flight = DimensionSnapshot { used: 1, ..DimensionSnapshot::default() };
        let busy = Snapshot { in_flight, ..idle.clone() };
        let watch = Watch::default();
        let due = || watch.due(models.iter());
        assert!(!watch.is_idle());
        assert_eq!(due(), models, "all of them at first");
        models.iter().for_each(|model| watch.seen(model, &idle));
        assert_eq!(due(), []);
        assert!(watch.is_idle());
        watch.seen(&models[1], &busy);
        assert_eq!(due(), [models[1].clone()]);
        watch.seen(&models[1], &idle);
        watch.asks(&models[0]);
        assert_eq!(due(), [models[0].clone()]);
        watch.looks_at_all();
        assert_eq!(due(), models);
    }
}
