//! Places for child processes, shared out among the parties for which they read.
//!
//! A party with many slow files must not hold up others. A party without a running process comes
//! first. If memory allows, it gets a process even if all cores are taken.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// Time for which a place is kept free for a party after its last document.
const KEPT: Duration = Duration::from_secs(120);

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
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    bounds: Bounds,
    quick: usize,
    slow: usize,
    parties: HashMap<Arc<str>, Party>,
    /// In the order of arrival.
    waiting: VecDeque<(Arc<str>, oneshot::Sender<Place>)>,
}

#[derive(Debug)]
struct Party {
    running: usize,
    seen: Instant,
}

/// The place of a process, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    party: Arc<str>,
    is_slow: bool,
    is_given_back: bool,
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        let (parties, waiting) = (HashMap::new(), VecDeque::new());
        Arc::new(Self(Mutex::new(State { bounds, quick: 0, slow: 0, parties, waiting })))
    }

    /// Waits for a place for a process of a party. Returns `None` if the runtime ends.
    pub(super) async fn take(self: &Arc<Self>, party: &Arc<str>) -> Option<Place> {
        let (give, given) = oneshot::channel();
        {
            let mut state = self.state();
            state.saw(party, Instant::now());
            state.waiting.push_back((Arc::clone(party), give));
        }
        self.share_out();
        given.await.ok()
    }

    /// Gives the free places to waiters. A place whose waiter has gone goes to the next.
    fn share_out(self: &Arc<Self>) {
        loop {
            let Some((party, give)) = self.state().start_next(Instant::now()) else { return };
            let places = Arc::clone(self);
            let place = Place { places, party, is_slow: false, is_given_back: false };
            if let Err(mut place) = give.send(place) {
                // Its drop would call this function again.
                place.give_back();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn saw(&mut self, party: &Arc<str>, now: Instant) {
        if self.parties.len() >= MAX_PARTIES {
            self.parties.retain(|_, party| party.running > 0);
        }
        let known = self.parties.entry(Arc::clone(party));
        known.or_insert(Party { running: 0, seen: now }).seen = now;
    }

    /// Starts the next waiter: of the parties that may start, one with the fewest processes.
    fn start_next(&mut self, now: Instant) -> Option<(Arc<str>, oneshot::Sender<Place>)> {
        self.waiting.retain(|(_, give)| !give.is_closed());
        let may = self.waiting.iter().enumerate().filter(|(_, (party, _))| self.may(party, now));
        let (at, _) = may.min_by_key(|(_, (party, _))| self.running(party))?;
        let (party, give) = self.waiting.remove(at)?;
        self.quick += 1;
        self.saw(&party, now);
        if let Some(party) = self.parties.get_mut(&party) {
            party.running += 1;
        }
        Some((party, give))
    }

    fn may(&self, party: &Arc<str>, now: Instant) -> bool {
        let running = self.quick + self.slow;
        if self.running(party) == 0 {
            return running < self.bounds.most;
        }
        let is_kept = self.parties.iter().any(|(other, known)| {
            other != party && known.running == 0 && now.duration_since(known.seen) < KEPT
        });
        let most = self.bounds.most.saturating_sub(usize::from(is_kept));
        running < most && self.quick < self.bounds.quick
    }

    fn running(&self, party: &Arc<str>) -> usize {
        self.parties.get(party).map_or(0, |party| party.running)
    }
}

impl Place {
    /// Marks the process as slow, so that another one may start. Does nothing if too many are slow.
    pub(super) fn is_slow(&mut self) {
        {
            let mut state = self.places.state();
            if self.is_slow || state.slow >= state.bounds.slow {
                return;
            }
            state.quick = state.quick.saturating_sub(1);
            state.slow += 1;
        }
        self.is_slow = true;
        self.places.share_out();
    }

    fn give_back(&mut self) {
        self.is_given_back = true;
        let mut state = self.places.state();
        let State { quick, slow, .. } = &mut *state;
        let of_it = if self.is_slow { slow } else { quick };
        *of_it = of_it.saturating_sub(1);
        if let Some(party) = state.parties.get_mut(&self.party) {
            party.running = party.running.saturating_sub(1);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_given_back {
            self.give_back();
            self.places.share_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Arc<str> {
        name.into()
    }

    /// Takes a place if one is free at once.
    async fn at_once(places: &Arc<Places>, name: &str) -> Option<Place> {
        tokio::time::timeout(Duration::from_millis(50), places.take(&party(name))).await.ok()?
    }

    #[tokio::test]
    async fn a_flood_leaves_a_place_to_who_has_none() {
        let places = Places::new(Bounds { quick: 2, slow: 1, most: 4 });
        let mut flood =
            [at_once(&places, "batch").await.unwrap(), at_once(&places, "batch").await.unwrap()];
        assert!(at_once(&places, "batch").await.is_none(), "each core has its process");
        flood[0].is_slow();
        let third = at_once(&places, "batch").await.unwrap();
        flood[1].is_slow();
        assert!(at_once(&places, "batch").await.is_none());
        let other = at_once(&places, "interactive").await.unwrap();
        assert!(at_once(&places, "interactive").await.is_none(), "one beyond the cores");
        drop(other);
        drop(third);
        assert!(at_once(&places, "batch").await.is_some());
    }

    #[tokio::test]
    async fn where_memory_binds_a_place_is_kept_for_who_came_lately() {
        let places = Places::new(Bounds { quick: 2, slow: 0, most: 2 });
        drop(at_once(&places, "interactive").await.unwrap());
        let first = at_once(&places, "batch").await.unwrap();
        assert!(at_once(&places, "batch").await.is_none(), "it is kept");
        let other = at_once(&places, "interactive").await.unwrap();
        drop((first, other));
        // A single party may use all places.
        let places = Places::new(Bounds { quick: 2, slow: 0, most: 2 });
        let _both =
            [at_once(&places, "batch").await.unwrap(), at_once(&places, "batch").await.unwrap()];
    }

    #[tokio::test]
    async fn who_has_fewer_comes_first_and_who_is_gone_takes_nothing() {
        let places = Places::new(Bounds { quick: 1, slow: 0, most: 1 });
        let first = at_once(&places, "batch").await.unwrap();
        assert!(at_once(&places, "batch").await.is_none(), "it is gone");
        let [one, other] = ["batch", "interactive"].map(|name| {
            let (places, name) = (Arc::clone(&places), party(name));
            tokio::spawn(
                async move { places.take(&name).await.map(|place| Arc::clone(&place.party)) },
            )
        });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(one.await.unwrap(), Some(party("batch")));
        assert_eq!(other.await.unwrap(), Some(party("interactive")));
        assert_eq!(places.state().quick, 0);
    }
}
