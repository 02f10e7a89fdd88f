//! The documents' slots of one worker process: one pool, of which each lane has its part.

use parking_lot::Mutex;
use tidegate_quota::Share;
use tokio::sync::Notify;

/// The part of a lane's guaranteed slots that is never lent, so that a document of an idle lane
/// starts at once. The rest is lent, and comes back with the first documents of other lanes that end.
const NEVER_LENT: f64 = 0.25;

/// Most polls of one lane that are open at once; the SDK's own number.
const POLLS: usize = 5;

/// A pool of slots that lanes share.
///
/// Each lane has one slot, and its share of the others. Of these it always finds a quarter free;
/// the rest may be lent to lanes that need more. Slots that come free go to lanes that wait below
/// their share before any lane borrows.
#[derive(Debug)]
pub struct Pool {
    shares: Vec<Share>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    limit: usize,
    held: Vec<usize>,
    waiting: Vec<usize>,
}

impl Pool {
    /// A pool of `limit` slots, and never fewer than one for each lane.
    pub fn new(shares: Vec<Share>, limit: usize) -> Self {
        let lanes = shares.len();
        let state =
            State { limit: limit.max(lanes), held: vec![0; lanes], waiting: vec![0; lanes] };
        Self { shares, state: Mutex::new(state), changed: Notify::new() }
    }

    /// All slots.
    pub fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// Slots that a lane holds.
    pub fn held(&self, lane: usize) -> usize {
        self.state.lock().held[lane]
    }

    /// Slots that all lanes hold together, and whether any lane waits for one.
    pub fn demand(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.held.iter().sum(), state.waiting.iter().any(|waiting| *waiting > 0))
    }

    /// Slots that a lane holds or could come to hold while the others hold what they do.
    pub fn reach(&self, lane: usize) -> usize {
        let state = self.state.lock();
        let others = (0..self.shares.len()).filter(|other| *other != lane);
        let taken: usize = others
            .map(|other| state.held[other].max(self.part(state.limit, other, NEVER_LENT)))
            .sum();
        state.limit.saturating_sub(taken).min(self.ceiling(state.limit, lane))
    }

    /// A lane's own slots.
    pub fn guaranteed(&self, lane: usize) -> usize {
        self.part(self.state.lock().limit, lane, 1.0)
    }

    /// Of [`Self::guaranteed`], what no other lane borrows.
    pub fn never_lent(&self, lane: usize) -> usize {
        self.part(self.state.lock().limit, lane, NEVER_LENT)
    }

    /// A lane's polls that may be open at once, in a pool of this size. A poll holds a slot while
    /// it waits: as many as are never lent, or idle lanes would keep slots from busy ones.
    pub fn polls(&self, lane: usize) -> usize {
        self.never_lent(lane).min(POLLS)
    }

    /// Waits for a slot. Dropped before the end, it takes none.
    pub async fn take(&self, lane: usize) {
        let _waiting = Waiting::new(self, lane);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before the look: a slot that comes free between the look and the wait must wake us.
            changed.as_mut().enable();
            if self.try_take(lane) {
                return;
            }
            changed.await;
        }
    }

    /// Takes a slot if one is free for this lane.
    pub fn try_take(&self, lane: usize) -> bool {
        let mut state = self.state.lock();
        let free = self.is_free(&state, lane);
        if free {
            state.held[lane] += 1;
        }
        free
    }

    /// Gives a slot back.
    pub fn give_back(&self, lane: usize) {
        let mut state = self.state.lock();
        state.held[lane] = state.held[lane].saturating_sub(1);
        drop(state);
        self.changed.notify_waiters();
    }

    fn is_free(&self, state: &State, lane: usize) -> bool {
        let held = state.held[lane];
        let total: usize = state.held.iter().sum();
        if total >= state.limit {
            return false;
        }
        if held < self.part(state.limit, lane, NEVER_LENT) {
            return true;
        }
        let others = (0..self.shares.len()).filter(|other| *other != lane);
        let kept: usize = others
            .clone()
            .map(|other| {
                self.part(state.limit, other, NEVER_LENT).saturating_sub(state.held[other])
            })
            .sum();
        if total + kept >= state.limit {
            return false;
        }
        let short = |lane: usize| state.held[lane] < self.part(state.limit, lane, 1.0);
        short(lane)
            || (held < self.ceiling(state.limit, lane)
                && !others.clone().any(|other| state.waiting[other] > 0 && short(other)))
    }

    /// One slot, and this part of the lane's share of the others: over all lanes never more than
    /// `limit`.
    fn part(&self, limit: usize, lane: usize, part: f64) -> usize {
        1 + scaled(limit - self.shares.len(), self.shares[lane].guaranteed * part)
    }

    fn ceiling(&self, limit: usize, lane: usize) -> usize {
        scaled(limit, self.shares[lane].ceiling).max(self.part(limit, lane, 1.0))
    }
}

// Slots are few.
fn scaled(slots: usize, part: f64) -> usize {
    (slots as f64 * part + 1e-9) as usize
}

/// Counts who waits, for as long as it waits.
struct Waiting<'a> {
    pool: &'a Pool,
    lane: usize,
}

impl<'a> Waiting<'a> {
    fn new(pool: &'a Pool, lane: usize) -> Self {
        pool.state.lock().waiting[lane] += 1;
        Self { pool, lane }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pool.state.lock().waiting[self.lane] -= 1;
        // A lane that our waiting kept from borrowing may look again.
        self.pool.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
