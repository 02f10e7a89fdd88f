//! Callers of this process that wait in place. Two things end a wait early: a batch of their group,
//! and a settlement that leaves more room than was known.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::reserve_batcher::caller::{Caller, Group};

/// Waiters due within this time join the next batch, so that all of them get room that comes in
/// lumps. A caller behind others waits this long at most for such a batch.
pub(crate) const SOON: Duration = Duration::from_millis(500);

/// Turn, then the number of the wait for equal turns.
type Turn = ((u64, Instant), u64);

#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    models: HashMap<ModelId, BTreeMap<Turn, Wait>>,
}

#[derive(Debug)]
struct Wait {
    group: Group,
    until: Instant,
    /// The time that an even pace takes for the call.
    cost: Duration,
    caller: Caller,
}

impl Waiters {
    /// Whether a caller of this group with an earlier turn waits here.
    pub(crate) fn has_earlier(&self, model: &ModelId, group: &Group, turn: (u64, Instant)) -> bool {
        let waits = self.0.lock();
        let Some(waiting) = waits.models.get(model) else { return false };
        let mut before = waiting.range(..(turn, 0));
        before.any(|(_, wait)| wait.group == *group)
    }

    /// Adds a caller that waits for `length` at most. Dropping the result ends its wait.
    pub(crate) fn add(&self, caller: Caller, length: Duration) -> Waiting<'_> {
        let (model, group) = (caller.model.id.clone(), caller.group());
        let mut waits = self.0.lock();
        let turn = (caller.turn(), waits.next);
        waits.next += 1;
        let cost = caller.model.limits.pace_of(&caller.ask.amounts);
        let wait = Wait { group, until: Instant::now() + length, cost, caller };
        waits.models.entry(model.clone()).or_default().insert(turn, wait);
        Waiting { waiters: self, model, turn }
    }

    /// Takes the callers that fit into `room`, in the order of turns.
    pub(crate) fn take_fitting(&self, model: &ModelId, mut room: Duration) -> Vec<Caller> {
        let mut waits = self.0.lock();
        let Some(waiting) = waits.models.get_mut(model) else { return Vec::new() };
        let mut taken = Vec::new();
        while let Some(first) = waiting.first_entry()
            && let Some(left) = room.checked_sub(first.get().cost)
        {
            room = left;
            taken.push(first.remove().caller);
        }
        taken
    }

    /// Takes at most `most` callers of the group that are due within [`SOON`].
    pub(crate) fn take_due(&self, model: &ModelId, group: &Group, most: usize) -> Vec<Caller> {
        let mut waits = self.0.lock();
        let Some(waiting) = waits.models.get_mut(model) else { return Vec::new() };
        let soon = Instant::now() + SOON;
        let due = waiting.extract_if(.., |_, wait| wait.group == *group && wait.until <= soon);
        due.take(most).map(|(_, wait)| wait.caller).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    model: ModelId,
    turn: Turn,
}

impl Waiting<'_> {
    /// Ends the wait. Returns false if a batch has taken the caller: then its answer comes.
    pub(crate) fn end(self) -> bool {
        self.leave()
    }

    fn leave(&self) -> bool {
        let mut waits = self.waiters.0.lock();
        let Some(waiting) = waits.models.get_mut(&self.model) else { return false };
        let waited = waiting.remove(&self.turn).is_some();
        if waiting.is_empty() {
            waits.models.remove(&self.model);
        }
        waited
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_types::{Charge, Tenant};

    use super::*;
    use crate::{
        Amounts, Dimension, Lanes, Limits, ModelQuota, Ticket, reserve_batcher::caller::Answer,
        store::Ask,
    };

    /// A caller of a model with a limit of one request a second; position 0 has no ticket.
    fn caller(position: u64, tenant: &str) -> (Caller, Answer) {
        let limits = Limits { margin: 1.0, window: Duration::from_mins(1), ..Limits::default() };
        let limits = limits.with(Dimension::Requests, 60);
        let lanes = Arc::new(Lanes::single());
        let id = "test:model".parse().unwrap();
        let model = ModelQuota::new(id, limits, Charge::default(), lanes).unwrap();
        let ask = Ask {
            reservation: position.to_string(),
            lane: 0,
            amounts: Amounts::call(0, 0),
            ticket: (position > 0).then_some(Ticket { epoch: 1, position }),
            template: 0,
            curious: false,
            tenant: Tenant::new(tenant).unwrap(),
        };
        Caller::new(&Arc::new(model), &ask, Instant::now())
    }

    fn names(callers: Vec<Caller>) -> Vec<String> {
        callers.into_iter().map(|caller| caller.ask.reservation).collect()
    }

    #[test]
    fn the_first_in_turn_are_taken_as_far_as_there_is_room() {
        let waiters = Waiters::default();
        let [late, early, newcomer, last] = [30, 10, 0, 40].map(|at| caller(at, "a").0);
        let model = late.model.id.clone();
        let waiting = [late, newcomer, early, last].map(|it| waiters.add(it, SOON));
        assert!(waiters.take_fitting(&model, Duration::ZERO).is_empty());
        let taken = waiters.take_fitting(&model, Duration::from_millis(2_500));
        assert_eq!(names(taken), ["10", "30"]);
        let [late, newcomer, early, last] = waiting;
        assert!(!late.end() && !early.end(), "their answers come");
        assert_eq!(names(waiters.take_fitting(&model, Duration::from_mins(1))), ["40", "0"]);
        drop((newcomer, last));
        assert!(waiters.0.lock().models.is_empty());
    }

    #[test]
    fn a_batch_takes_the_callers_of_its_group_that_are_due_soon() {
        let waiters = Waiters::default();
        let [soon, far, other, newcomer] =
            [(20, "a"), (30, "a"), (40, "b"), (0, "a")].map(|(at, tenant)| caller(at, tenant).0);
        let (model, group) = (soon.model.id.clone(), soon.group());
        let (first, before_far) = (caller(10, "a").0, caller(25, "a").0);
        let _waiting = [(soon, SOON / 2), (far, 9 * SOON), (other, SOON / 2), (newcomer, SOON)]
            .map(|(caller, length)| waiters.add(caller, length));
        let has_earlier = |it: &Caller| waiters.has_earlier(&it.model.id, &it.group(), it.turn());
        assert!(has_earlier(&before_far) && !has_earlier(&first));
        assert_eq!(names(waiters.take_due(&model, &group, 1)), ["20"]);
        assert_eq!(names(waiters.take_due(&model, &group, 9)), ["0"]);
        assert!(!has_earlier(&before_far), "another tenant is not of its group");
    }
}
