//! At which models a worker looks with each of its beats: those at which something goes on, here or
//! anywhere in the fleet, and with every second beat one of the others, in turn. So what an idle worker
//! asks of Redis does not grow with the models that are configured.

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
    /// The idle one that was looked at last.
    last: Option<ModelId>,
    /// All have been looked at once.
    begun: bool,
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
        watched.begun && watched.busy.is_empty()
    }

    /// The models at which something goes on.
    pub(crate) fn busy(&self) -> Vec<ModelId> {
        self.0.lock().busy.iter().cloned().collect()
    }

    /// The same, and one of all others; at first all of them.
    pub(crate) fn due<'a>(
        &self,
        models: impl Iterator<Item = &'a ModelId> + Clone,
    ) -> Vec<ModelId> {
        let mut watched = self.0.lock();
        if !std::mem::replace(&mut watched.begun, true) {
            return models.cloned().collect();
        }
        let idle = models.filter(|model| !watched.busy.contains(*model));
        let behind = |model: &&ModelId| watched.last.as_ref().is_none_or(|last| *model > last);
        let next = idle.clone().find(behind).or_else(|| idle.clone().next()).cloned();
        let due = watched.busy.iter().cloned().chain(next.clone()).collect();
        watched.last = next;
        due
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
    fn idle_models_are_looked_at_in_turn_and_busy_ones_always() {
        let models: Vec<ModelId> =
            ["x:a", "x:b", "x:c", "x:d"].map(|model| model.parse().unwrap()).into();
        let idle = Snapshot { factor: 1.0, ..Snapshot::default() };
        let in_flight = DimensionSnapshot { used: 1, ..DimensionSnapshot::default() };
        let busy = Snapshot { in_flight, ..idle.clone() };
        let watch = Watch::default();
        let due = || -> String {
            let due = watch.due(models.iter());
            due.iter().map(|model| model.to_string().split_off(2)).collect()
        };
        assert_eq!(due(), "abcd", "all of them at first");
        models.iter().for_each(|model| watch.seen(model, &idle));
        assert_eq!([due(), due(), due(), due(), due()].concat(), "abcda");
        assert!(watch.is_idle());
        watch.seen(&models[2], &busy);
        assert_eq!([due(), due(), due(), due()], ["cb", "cd", "ca", "cb"]);
        watch.seen(&models[2], &idle);
        watch.asks(&models[3]);
        assert_eq!([due(), due()], ["dc", "da"]);
        assert_eq!(watch.busy(), [models[3].clone()]);
    }
}
