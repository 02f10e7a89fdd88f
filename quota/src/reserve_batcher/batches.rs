//! Calls that wait for the next script call of their group. While a script call is under way, calls
//! of the same model, lane, tenant and template gather for the next one. A script call costs the
//! server several times as much as each further call in it; a call that comes alone does not wait
//! for others.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::reserve_batcher::caller::{Caller, Group};

/// The largest batch. The server is busy with it for about half a millisecond.
pub(crate) const MAX_CALLS: usize = 32;

/// For each group with a sender, the calls of its next batch.
#[derive(Debug, Default)]
pub(crate) struct Batches(Mutex<HashMap<Group, Vec<Caller>>>);

impl Batches {
    /// Adds a caller to its group's next batch. Returns true if the group has no sender: then this
    /// caller starts one.
    pub(crate) fn join(&self, caller: Caller) -> bool {
        let mut batches = self.0.lock();
        let next = batches.entry(caller.group());
        let is_first = matches!(next, std::collections::hash_map::Entry::Vacant(_));
        next.or_default().push(caller);
        is_first
    }

    /// Takes the next batch, in the order of turns, without callers that were dropped. If it is
    /// empty, the group has no sender any more.
    fn take_next(&self, group: &Group) -> Vec<Caller> {
        let mut batches = self.0.lock();
        let Some(next) = batches.get_mut(group) else { return Vec::new() };
        next.retain(|caller| !caller.answer.is_closed());
        next.sort_by_key(Caller::turn);
        let now: Vec<Caller> = next.drain(..next.len().min(MAX_CALLS)).collect();
        if now.is_empty() {
            batches.remove(group);
        }
        now
    }

    /// Drops the group's callers without an answer: each continues as if Redis were away.
    fn abandon(&self, group: &Group) {
        self.0.lock().remove(group);
    }
}

/// Sends a group's batches. If it is dropped before its end (Redis is away, or the first caller's
/// runtime ends), it drops the waiting callers, so that none waits for an answer that never comes.
pub(crate) struct BatchSender<'a> {
    batches: &'a Batches,
    group: &'a Group,
    ended: bool,
}

impl<'a> BatchSender<'a> {
    pub(crate) fn new(batches: &'a Batches, group: &'a Group) -> Self {
        Self { batches, group, ended: false }
    }

    /// The next batch; `None` ends the sender.
    pub(crate) fn take_next(&mut self) -> Option<Vec<Caller>> {
        let next = self.batches.take_next(self.group);
        self.ended = next.is_empty();
        (!self.ended).then_some(next)
    }
}

impl Drop for BatchSender<'_> {
    fn drop(&mut self) {
        // After the end another sender may have the group.
        if !self.ended {
            self.batches.abandon(self.group);
        }
    }
}
