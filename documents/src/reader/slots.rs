//! Slots for child processes, shared out among the parties for which they read.
//!
//! A party with many slow files must not hold up others. A party without a running process comes
//! first. If memory allows, it gets a process even if all cores are taken.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// Time for which a slot is reserved for a party after its last document.
const RESERVE_TIME: Duration = Duration::from_secs(120);

/// Parties that are remembered. There are few lanes.
const MAX_PARTIES: usize = 1_000;

/// Bounds on the number of processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Processes that are not slow; each takes a core.
    pub(super) quick: usize,
    /// Slow processes, which leave their core to others.
    pub(super) slow: usize,
    /// All processes, as many as fit into memory.
    pub(super) total: usize,
}

#[derive(Debug)]
pub(super) struct SlotPool(Mutex<State>);

#[derive(Debug)]
struct State {
    bounds: Bounds,
    quick: usize,
    slow: usize,
    parties: HashMap<Arc<str>, Party>,
    /// In the order of arrival.
    waiting: VecDeque<(Arc<str>, oneshot::Sender<Slot>)>,
}

#[derive(Debug)]
struct Party {
    running: usize,
    last_seen: Instant,
}

/// The slot of a process, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pool: Arc<SlotPool>,
    party: Arc<str>,
    is_slow: bool,
    is_released: bool,
}

impl SlotPool {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        let (parties, waiting) = (HashMap::new(), VecDeque::new());
        Arc::new(Self(Mutex::new(State { bounds, quick: 0, slow: 0, parties, waiting })))
    }

    /// Waits for a slot for a process of a party. Returns `None` if the runtime ends.
    pub(super) async fn acquire(self: &Arc<Self>, party: &Arc<str>) -> Option<Slot> {
        let (give, given) = oneshot::channel();
        {
            let mut state = self.state();
            state.note_party(party, Instant::now());
            state.waiting.push_back((Arc::clone(party), give));
        }
        self.start_waiting();
        given.await.ok()
    }

    /// Gives the free slots to waiters. A slot whose waiter has gone goes to the next.
    fn start_waiting(self: &Arc<Self>) {
        loop {
            let Some((party, give)) = self.state().start_next(Instant::now()) else { return };
            let pool = Arc::clone(self);
            let slot = Slot { pool, party, is_slow: false, is_released: false };
            if let Err(mut slot) = give.send(slot) {
                // Its drop would call this function again.
                slot.release();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note_party(&mut self, party: &Arc<str>, now: Instant) {
        if self.parties.len() >= MAX_PARTIES {
            self.parties.retain(|_, party| party.running > 0);
        }
        let known = self.parties.entry(Arc::clone(party));
        known.or_insert(Party { running: 0, last_seen: now }).last_seen = now;
    }

    /// Starts the next waiter: of the parties that may start, one with the fewest processes.
    fn start_next(&mut self, now: Instant) -> Option<(Arc<str>, oneshot::Sender<Slot>)> {
        self.waiting.retain(|(_, give)| !give.is_closed());
        let startable =
            self.waiting.iter().enumerate().filter(|(_, (party, _))| self.may_start(party, now));
        let (at, _) = startable.min_by_key(|(_, (party, _))| self.running(party))?;
        let (party, give) = self.waiting.remove(at)?;
        self.quick += 1;
        self.note_party(&party, now);
        if let Some(party) = self.parties.get_mut(&party) {
            party.running += 1;
        }
        Some((party, give))
    }

    fn may_start(&self, party: &Arc<str>, now: Instant) -> bool {
        let running = self.quick + self.slow;
        if self.running(party) == 0 {
            return running < self.bounds.total;
        }
        let is_reserved = self.parties.iter().any(|(other, known)| {
            other != party
                && known.running == 0
                && now.duration_since(known.last_seen) < RESERVE_TIME
        });
        let most = self.bounds.total.saturating_sub(usize::from(is_reserved));
        running < most && self.quick < self.bounds.quick
    }

    fn running(&self, party: &Arc<str>) -> usize {
        self.parties.get(party).map_or(0, |party| party.running)
    }
}

impl Slot {
    /// Marks the process as slow, so that another one may start. Does nothing if too many are slow.
    pub(super) fn mark_slow(&mut self) {
        {
            let mut state = self.pool.state();
            if self.is_slow || state.slow >= state.bounds.slow {
                return;
            }
            state.quick = state.quick.saturating_sub(1);
            state.slow += 1;
        }
        self.is_slow = true;
        self.pool.start_waiting();
    }

    fn release(&mut self) {
        self.is_released = true;
        let mut state = self.pool.state();
        let State { quick, slow, .. } = &mut *state;
        let count = if self.is_slow { slow } else { quick };
        *count = count.saturating_sub(1);
        if let Some(party) = state.parties.get_mut(&self.party) {
            party.running = party.running.saturating_sub(1);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_released {
            self.release();
            self.pool.start_waiting();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Arc<str> {
        name.into()
    }

    /// Acquires a slot if one is free now.
    async fn try_acquire(slots: &Arc<SlotPool>, name: &str) -> Option<Slot> {
        tokio::time::timeout(Duration::from_millis(50), slots.acquire(&party(name))).await.ok()?
    }

    #[tokio::test]
    async fn a_flood_leaves_a_slot_to_who_has_none() {
        let slots = SlotPool::new(Bounds { quick: 2, slow: 1, total: 4 });
        let mut flood = [
            try_acquire(&slots, "batch").await.unwrap(),
            try_acquire(&slots, "batch").await.unwrap(),
        ];
        assert!(try_acquire(&slots, "batch").await.is_none(), "each core has its process");
        flood[0].mark_slow();
        let third = try_acquire(&slots, "batch").await.unwrap();
        flood[1].mark_slow();
        assert!(try_acquire(&slots, "batch").await.is_none());
        let other = try_acquire(&slots, "interactive").await.unwrap();
        assert!(try_acquire(&slots, "interactive").await.is_none(), "one beyond the cores");
        drop(other);
        drop(third);
        assert!(try_acquire(&slots, "batch").await.is_some());
    }

    #[tokio::test]
    async fn where_memory_binds_a_slot_is_reserved_for_who_came_lately() {
        let slots = SlotPool::new(Bounds { quick: 2, slow: 0, total: 2 });
        drop(try_acquire(&slots, "interactive").await.unwrap());
        let first = try_acquire(&slots, "batch").await.unwrap();
        assert!(try_acquire(&slots, "batch").await.is_none(), "it is reserved");
        let other = try_acquire(&slots, "interactive").await.unwrap();
        drop((first, other));
        // A single party may use all slots.
        let slots = SlotPool::new(Bounds { quick: 2, slow: 0, total: 2 });
        let _both = [
            try_acquire(&slots, "batch").await.unwrap(),
            try_acquire(&slots, "batch").await.unwrap(),
        ];
    }

    #[tokio::test]
    async fn who_has_fewer_comes_first_and_who_is_gone_takes_nothing() {
        let slots = SlotPool::new(Bounds { quick: 1, slow: 0, total: 1 });
        let first = try_acquire(&slots, "batch").await.unwrap();
        assert!(try_acquire(&slots, "batch").await.is_none(), "it is gone");
        let [one, other] = ["batch", "interactive"].map(|name| {
            let (slots, name) = (Arc::clone(&slots), party(name));
            tokio::spawn(
                async move { slots.acquire(&name).await.map(|slot| Arc::clone(&slot.party)) },
            )
        });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(one.await.unwrap(), Some(party("batch")));
        assert_eq!(other.await.unwrap(), Some(party("interactive")));
        assert_eq!(slots.state().quick, 0);
    }
}
