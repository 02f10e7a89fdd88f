//! The slots for documents of one worker process: one pool that the lanes share.

use parking_lot::Mutex;
use tidegate_quota::Share;
use tokio::sync::Notify;

/// The fraction of a lane's guaranteed slots that is never lent, so that a document of an idle lane
/// starts at once. The rest is lent, and returns as documents of other lanes end.
const NEVER_LENT: f64 = 0.25;

/// Maximum number of open polls of one lane; the SDK's own number.
const POLLS: usize = 5;

/// A pool of slots that lanes share.
///
/// Each lane has one slot, and its share of the others. A quarter of that share is always free for it;
/// the rest may be lent to lanes that need more. Freed slots go first to waiting lanes below their share,
/// then to borrowers.
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
    /// A pool of `limit` slots, but at least one for each lane.
    pub fn new(shares: Vec<Share>, limit: usize) -> Self {
        let lanes = shares.len();
        let state =
            State { limit: limit.max(lanes), held: vec![0; lanes], waiting: vec![0; lanes] };
        Self { shares, state: Mutex::new(state), changed: Notify::new() }
    }

    /// The number of slots.
    pub fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// The number of slots that a lane holds.
    pub fn held(&self, lane: usize) -> usize {
        self.state.lock().held[lane]
    }

    /// The number of slots that all lanes hold, and whether any lane waits for one.
    pub fn demand(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.held.iter().sum(), state.waiting.iter().any(|waiting| *waiting > 0))
    }

    /// The number of slots that a lane holds or could take while the others keep theirs.
    pub fn reach(&self, lane: usize) -> usize {
        let state = self.state.lock();
        let others = (0..self.shares.len()).filter(|other| *other != lane);
        let taken: usize = others
            .map(|other| state.held[other].max(self.part(state.limit, other, NEVER_LENT)))
            .sum();
        state.limit.saturating_sub(taken).min(self.ceiling(state.limit, lane))
    }

    /// The number of a lane's guaranteed slots.
    pub fn guaranteed(&self, lane: usize) -> usize {
        self.part(self.state.lock().limit, lane, 1.0)
    }

    /// The part of [`Self::guaranteed`] that no other lane borrows.
    pub fn never_lent(&self, lane: usize) -> usize {
        self.part(self.state.lock().limit, lane, NEVER_LENT)
    }

    /// The maximum of a lane's open polls. A waiting poll holds a slot, so there are only as many as are
    /// never lent: otherwise idle lanes would keep slots from busy ones.
    pub fn polls(&self, lane: usize) -> usize {
        self.never_lent(lane).min(POLLS)
    }

    /// Waits for a slot. If dropped before the end, it takes none.
    pub async fn take(&self, lane: usize) {
        let _waiting = Waiting::new(self, lane);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Register before the check: a slot that is freed between check and wait must wake this task.
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

    /// One slot, plus this part of the lane's share of the others. The sum over all lanes never exceeds
    /// `limit`.
    fn part(&self, limit: usize, lane: usize, part: f64) -> usize {
        1 + scaled(limit - self.shares.len(), self.shares[lane].guaranteed * part)
    }

    fn ceiling(&self, limit: usize, lane: usize) -> usize {
        scaled(limit, self.shares[lane].ceiling).max(self.part(limit, lane, 1.0))
    }
}

// Slots are few, so the conversions are exact.
fn scaled(slots: usize, part: f64) -> usize {
    (slots as f64 * part + 1e-9) as usize
}

/// Counts a waiting task while it waits.
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
        // A lane that could not borrow because of this task may check again.
        self.pool.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
