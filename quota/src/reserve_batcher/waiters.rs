//! Callers of this process that wait in place. Two things end a wait early: a batch of their group,
//! and a settlement that leaves room for them and for the calls before them.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::reserve_batcher::caller::{Caller, Group};

/// Waiters due within this time join the next batch, so that all of them get room that comes in
/// lumps.
const SOON: Duration = Duration::from_millis(500);

/// Turn, then the number of the wait for equal turns.
type Turn = ((u64, Instant), u64);

#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    /// The queues of each model's groups. An empty one goes with the last [`Waiting`].
    models: HashMap<ModelId, HashMap<Group, Queue>>,
}

/// The waiters of a group.
type Queue = BTreeMap<Turn, Wait>;

#[derive(Debug)]
struct Wait {
    /// When it is due.
    until: Instant,
    /// Whether other calls come first.
    in_turn: bool,
    /// The time that an even pace takes for the call.
    cost: Duration,
    caller: Caller,
}

impl Waiters {
    /// Time until the group's first waiter is due, if its turn is before this one.
    pub(crate) fn until_earlier(
        &self,
        model: &ModelId,
        group: &Group,
        turn: (u64, Instant),
    ) -> Option<Duration> {
        let waits = self.0.lock();
        let ((first, _), wait) = waits.models.get(model)?.get(group)?.first_key_value()?;
        (*first < turn).then(|| wait.until.saturating_duration_since(Instant::now()))
    }

    /// Adds a caller that waits for `length` at most; `in_turn` if others come first. Dropping the
    /// result ends its wait.
    pub(crate) fn add(&self, caller: Caller, length: Duration, in_turn: bool) -> Waiting<'_> {
        let (model, group) = (caller.model.id.clone(), caller.group());
        let mut waits = self.0.lock();
        let turn = (caller.turn(), waits.next);
        waits.next += 1;
        let cost = caller.model.limits.pace_of(&caller.ask.amounts);
        let wait = Wait { until: Instant::now() + length, in_turn, cost, caller };
        let groups = waits.models.entry(model.clone()).or_default();
        groups.entry(group.clone()).or_default().insert(turn, wait);
        Waiting { waiters: self, model, group, turn }
    }

    /// Takes the callers for which `room`, as the time that an even pace takes to use it, is enough:
    /// for their calls and for those before them, here or in other processes. These take the time
    /// until a caller in turn is due.
    pub(crate) fn take_fitting(&self, model: &ModelId, room: Duration) -> Vec<Caller> {
        let now = Instant::now();
        let left = |it: &Wait| it.until.saturating_duration_since(now);
        let before = |it: &Wait| if it.in_turn { left(it) } else { Duration::ZERO };
        let fits = |it: &Wait| before(it) + it.cost <= room;
        let mut waits = self.0.lock();
        let Some(groups) = waits.models.get_mut(model) else { return Vec::new() };
        let mut taken = Vec::new();
        for queue in groups.values_mut() {
            while let Some(first) = queue.first_entry().filter(|first| fits(first.get())) {
                taken.push(first.remove().caller);
            }
        }
        taken
    }

    /// Takes at most `most` callers of the group that are due within [`SOON`].
    pub(crate) fn take_due(&self, model: &ModelId, group: &Group, most: usize) -> Vec<Caller> {
        let mut waits = self.0.lock();
        let groups = waits.models.get_mut(model);
        let Some(queue) = groups.and_then(|groups| groups.get_mut(group)) else {
            return Vec::new();
        };
        let soon = Instant::now() + SOON;
        let due = queue.extract_if(.., |_, wait| wait.until <= soon);
        due.take(most).map(|(_, wait)| wait.caller).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    model: ModelId,
    group: Group,
    turn: Turn,
}

impl Waiting<'_> {
    /// Ends the wait. Returns false if a batch has taken the caller: then its answer comes.
    pub(crate) fn end(self) -> bool {
        self.leave()
    }

    fn leave(&self) -> bool {
        let mut waits = self.waiters.0.lock();
        let Some(groups) = waits.models.get_mut(&self.model) else { return false };
        let Some(queue) = groups.get_mut(&self.group) else { return false };
        let waited = queue.remove(&self.turn).is_some();
        if queue.is_empty() {
            groups.remove(&self.group);
        }
        if groups.is_empty() {
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
    fn callers_are_taken_if_there_is_room_for_them_and_for_those_before_them() {
        const COST: Duration = Duration::from_secs(1);
        let waiters = Waiters::default();
        let [late, early, newcomer, last] = [30, 10, 0, 40].map(|at| caller(at, "a").0);
        let model = late.model.id.clone();
        let other = waiters.add(caller(20, "b").0, 9 * COST, true);
        let held = waiters.add(caller(50, "c").0, 9 * COST, false);
        let waiting = [(late, 2), (newcomer, 4), (early, 1), (last, 3)]
            .map(|(caller, seconds)| waiters.add(caller, seconds * COST, true));
        assert!(waiters.take_fitting(&model, Duration::ZERO).is_empty());
        assert!(waiters.take_fitting(&model, COST / 2).is_empty());
        let taken = waiters.take_fitting(&model, COST + COST / 2);
        assert_eq!(names(taken), ["50"], "nobody is before it");
        assert!(!held.end(), "its answer comes");
        assert_eq!(names(waiters.take_fitting(&model, 3 * COST)), ["10", "30"]);
        let [late, newcomer, early, last] = waiting;
        assert!(!late.end() && !early.end(), "their answers come");
        assert_eq!(names(waiters.take_fitting(&model, 5 * COST)), ["40", "0"]);
        assert!(other.end(), "calls of other processes use the room before it is due");
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
            .map(|(caller, length)| waiters.add(caller, length, true));
        let until_earlier =
            |it: &Caller| waiters.until_earlier(&it.model.id, &it.group(), it.turn());
        assert!(until_earlier(&before_far).is_some_and(|due| due <= SOON / 2));
        assert_eq!(until_earlier(&first), None);
        assert_eq!(names(waiters.take_due(&model, &group, 1)), ["20"]);
        assert_eq!(names(waiters.take_due(&model, &group, 9)), ["0"]);
        assert_eq!(until_earlier(&before_far), None, "nobody is before it");
    }
}
