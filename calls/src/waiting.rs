//! The waiting room: bounds the slots of attempts that only wait for quota.
//!
//! An attempt that waits in place starts the moment its turn comes. One that goes back to Temporal
//! keeps its turn by its ticket, and holds no slot. So only some attempts wait here, and the other
//! slots stay free for documents of other models: a model that is paused or has no quota fills at
//! most half of its lane's slots, a second one half of the rest.
//!
//! All ways to wait for quota:
//!
//! | where | which call waits | how long |
//! |---|---|---|
//! | Temporal, by [`tidegate_quota::intake`] | a document that no worker has taken | until the quota admits it soon |
//! | Temporal, by [`crate::failure::Retry::Turn`] | an attempt with a far turn, by its ticket | until a little before its turn |
//! | [`Quota::admit_until`](tidegate_quota::Quota::admit_until) | an attempt with a near turn | at most `max-slot-wait`; for a closed gate a second |
//! | below it, `wait_behind` | a new call behind others of this process | until the earlier call asks, at most a quarter of `max-slot-wait` |
//! | below it, `Waiters` | all that wait in place | less, if a script call of their group or a settlement makes room |
//! | `Watch` | one attempt of each lane and model | at most 5 minutes |
//! | [`Patience::Whole`](crate::attempt::Patience) | an attempt without a retry | until its deadline |
//! | `src/serve/in_turn.rs` | a client of the HTTP door | at most `max-wait`; then the client comes back with its ticket |

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_quota::Request;
use tidegate_types::{Lane, ModelId};

/// Interval after which the attempt that keeps watch asks again, unless a change by an operator
/// wakes it earlier.
const ASKS_AGAIN: Duration = Duration::from_mins(1);

/// Maximum time for which an attempt keeps watch, even for a turn further off.
pub(super) const WATCH: Duration = Duration::from_mins(5);

type Slots = dyn Fn(&Lane) -> usize + Send + Sync;

/// How many attempts wait for quota in this worker, by lane and model.
#[derive(Default)]
pub struct WaitingRoom {
    slots: Option<Box<Slots>>,
    waiting: Mutex<HashMap<(Lane, ModelId), usize>>,
    /// Lanes and models that have an attempt on watch.
    watched: Mutex<HashSet<(Lane, ModelId)>>,
}

impl fmt::Debug for WaitingRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingRoom").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl WaitingRoom {
    /// A room for lanes with this many usable slots. [`Self::default`] has room for every attempt.
    pub fn new(slots: impl Fn(&Lane) -> usize + Send + Sync + 'static) -> Self {
        Self { slots: Some(Box::new(slots)), ..Self::default() }
    }

    /// Returns the request with the time that it may wait in place, and its slot, which is dropped
    /// when the wait ends. If the room is full, the request may not wait.
    pub fn enter(self: &Arc<Self>, request: &Request) -> (Request, Option<WaitSlot>) {
        let key = (request.lane.clone(), request.model.clone());
        let slots = self.slots.as_ref().map_or(usize::MAX, |slots| slots(&request.lane));
        let mut waiting = self.waiting.lock();
        let others: usize = waiting
            .iter()
            .filter(|((lane, model), _)| *lane == key.0 && *model != key.1)
            .map(|(_, count)| count)
            .sum();
        let mine = waiting.entry(key.clone()).or_default();
        if *mine >= (slots.saturating_sub(others) / 2).max(1) {
            return (request.clone().max_wait(Duration::ZERO), None);
        }
        *mine += 1;
        (request.clone().max_wait(Duration::MAX), Some(WaitSlot { room: Arc::clone(self), key }))
    }
}

impl WaitSlot {
    /// Starts to keep watch, unless another attempt of this lane and model does. Documents that
    /// sleep in Temporal cannot be woken, so one attempt waits here for any turn, and is ready if
    /// room comes early. A room without bounds belongs to no worker and keeps no watch.
    pub(super) fn watch(&self) -> Option<Watch<'_>> {
        self.room.slots.as_ref()?;
        let is_new = self.room.watched.lock().insert(self.key.clone());
        is_new.then(|| Watch { slot: self, since: Instant::now() })
    }
}

/// Keeps watch until it is dropped.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    slot: &'a WaitSlot,
    since: Instant,
}

impl Watch<'_> {
    /// Waits for `wait`, or until there is news. Returns whether to ask again: not after it has
    /// watched for [`WATCH`].
    pub(super) async fn rest(&self, wait: Duration, news: impl Future<Output = ()>) -> bool {
        let goes_on = self.since.elapsed() < WATCH;
        if goes_on {
            let _ = tokio::time::timeout(wait.min(ASKS_AGAIN), news).await;
        }
        goes_on
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.slot.room.watched.lock().remove(&self.slot.key);
    }
}

/// A slot of a waiting attempt, until it is dropped.
#[derive(Debug)]
#[must_use = "a slot is given up when it is dropped"]
pub struct WaitSlot {
    room: Arc<WaitingRoom>,
    key: (Lane, ModelId),
}

impl Drop for WaitSlot {
    fn drop(&mut self) {
        let mut waiting = self.room.waiting.lock();
        let left = waiting.get(&self.key).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            waiting.remove(&self.key);
        } else {
            waiting.insert(self.key.clone(), left);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    fn request(model: &str) -> Request {
        Request::new(model.parse().unwrap(), "r")
    }

    /// Enters until the room is full.
    fn fill(room: &Arc<WaitingRoom>, model: &str) -> Vec<WaitSlot> {
        std::iter::from_fn(|| room.enter(&request(model)).1).collect()
    }

    #[test]
    fn a_model_may_fill_half_of_the_slots_and_the_next_half_of_the_rest() {
        let room = Arc::new(WaitingRoom::new(|_| 16));
        let one = fill(&room, "a:one");
        assert_eq!(one.len(), 8);
        assert_eq!(fill(&room, "a:two").len(), 4);
        assert_eq!(room.enter(&request("a:one")).0.max_wait, Some(Duration::ZERO));
        drop(one);
        assert_eq!(fill(&room, "a:two").len(), 8);
        assert!(room.waiting.lock().is_empty());
    }

    #[test]
    fn one_of_each_model_keeps_watch() {
        let room = Arc::new(WaitingRoom::new(|_| 16));
        let [one, two, other] = ["a:one", "a:one", "a:two"].map(|it| room.enter(&request(it)).1);
        let watch = one.as_ref().unwrap().watch();
        assert!(watch.is_some() && two.as_ref().unwrap().watch().is_none());
        assert!(other.unwrap().watch().is_some(), "another model has its own");
        drop(watch);
        assert!(two.unwrap().watch().is_some());
        drop(one);
        assert!(room.watched.lock().is_empty());
    }

    #[test]
    fn a_lane_with_one_slot_has_room_for_one() {
        let room = Arc::new(WaitingRoom::new(|_| 1));
        assert_eq!(fill(&room, "a:one").len(), 1);
    }
}
