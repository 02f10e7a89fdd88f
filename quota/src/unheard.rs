//! What Redis must still hear: the ends of calls that it did not answer. They are sent again when it
//! is back, until the lease of the reservation has ended.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::{
    model::ModelQuota,
    store::{Ask, Meter, Pause, Settlement},
};

/// By model and reservation.
#[derive(Debug, Default)]
pub(crate) struct Unheard(Mutex<HashMap<(ModelId, String), Kept>>);

#[derive(Debug)]
struct Kept {
    settlement: Settlement,
    since: Instant,
    lease: Duration,
}

impl Kept {
    fn is_leased(&self) -> bool {
        self.since.elapsed() < self.lease
    }
}

impl Unheard {
    /// Keeps the end of a reservation.
    pub(crate) fn keep(&self, model: &ModelQuota, settlement: Settlement) {
        let id = (model.id.clone(), settlement.reservation.clone());
        let kept = Kept { settlement, since: Instant::now(), lease: model.limits.lease() };
        let mut all = self.0.lock();
        all.retain(|_, kept| kept.is_leased());
        all.insert(id, kept);
    }

    /// Drops what is kept of these calls: they are asked about anew.
    pub(crate) fn drop_all(&self, model: &ModelQuota, asks: &[Ask]) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        for ask in asks {
            all.remove(&(model.id.clone(), ask.reservation.clone()));
        }
    }

    /// Takes one. Its pause is as much shorter as it has been kept, and the provider's count, which
    /// has changed since, is left out.
    pub(crate) fn take(&self) -> Option<(ModelId, Settlement)> {
        let mut all = self.0.lock();
        all.retain(|_, kept| kept.is_leased());
        let id = all.keys().next()?.clone();
        let Kept { settlement, since, .. } = all.remove(&id)?;
        let left = |pause: Pause| {
            let length = pause.length.saturating_sub(since.elapsed());
            Some(Pause { length, ..pause }).filter(|pause| !pause.length.is_zero())
        };
        let (pause, meter) = (settlement.pause.and_then(left), Meter::default());
        Some((id.0, Settlement { pause, meter, ..settlement }))
    }
}
