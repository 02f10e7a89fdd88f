//! Callers of this process that wait in place, and what wakes them before their time: an answer
//! whose headers say that more may go at once than was known.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;
use tokio::sync::Notify;

/// By turn, and the number of the wait where turns are the same.
type Turn = (u64, u64);

#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    /// When a caller was told to wait last.
    told: Option<Instant>,
    models: HashMap<ModelId, BTreeMap<Turn, Wait>>,
}

#[derive(Debug)]
struct Wait {
    /// What the call takes of an even pace.
    cost: Duration,
    woken: Arc<Notify>,
}

impl Waiters {
    /// A caller was told to wait, in place or elsewhere.
    pub(crate) fn told(&self) {
        self.0.lock().told = Some(Instant::now());
    }

    /// Whether a caller was told to wait so lately.
    pub(crate) fn were_told_within(&self, time: Duration) -> bool {
        self.0.lock().told.is_some_and(|told| told.elapsed() < time)
    }

    /// Waits for a turn at this position until it is woken; dropped, it waits no more.
    pub(crate) fn wait(&self, model: &ModelId, position: u64, cost: Duration) -> Waiting<'_> {
        let mut waits = self.0.lock();
        let (turn, woken) = ((position, waits.next), Arc::new(Notify::new()));
        waits.next += 1;
        let wait = Wait { cost, woken: Arc::clone(&woken) };
        waits.models.entry(model.clone()).or_default().insert(turn, wait);
        Waiting { waiters: self, model: model.clone(), turn, woken }
    }

    /// Wakes those first in turn for whom there is room.
    pub(crate) fn wake(&self, model: &ModelId, mut room: Duration) {
        let mut waits = self.0.lock();
        let Some(waiting) = waits.models.get_mut(model) else { return };
        while !room.is_zero()
            && let Some((_, first)) = waiting.pop_first()
        {
            room = room.saturating_sub(first.cost);
            first.woken.notify_one();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    model: ModelId,
    turn: Turn,
    woken: Arc<Notify>,
}

impl Waiting<'_> {
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = self.waiters.0.lock();
        if let Some(waiting) = waits.models.get_mut(&self.model) {
            waiting.remove(&self.turn);
            if waiting.is_empty() {
                waits.models.remove(&self.model);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_first_is_woken_first_and_only_for_what_there_is_room() {
        let (waiters, model) = (Waiters::default(), "test:model".parse().unwrap());
        let second = Duration::from_secs(1);
        let [late, early, last] =
            [30, 10, 40].map(|position| waiters.wait(&model, position, 2 * second));
        waiters.wake(&model, Duration::ZERO);
        waiters.wake(&model, 3 * second);
        let woken = async |waiting: &Waiting<'_>| {
            tokio::time::timeout(Duration::ZERO, waiting.woken()).await.is_ok()
        };
        assert!(woken(&early).await && woken(&late).await);
        assert!(!woken(&last).await);
        drop((early, last, late));
        assert!(waiters.0.lock().models.is_empty());
    }
}
