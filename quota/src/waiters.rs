//! Callers of this process that wait in place, and what ends a wait before its time: a question about
//! others of their group, and an answer whose headers say that more may go at once than was known.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::asker::{Asker, Group};

/// Who would ask within this time is asked about with the next question: room that comes in lumps is
/// given to all of them at once. For such a question a caller behind others waits so long at most.
pub(crate) const SOON: Duration = Duration::from_millis(500);

/// By turn, and the number of the wait where turns are the same.
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
    /// What the call takes of an even pace.
    cost: Duration,
    asker: Asker,
}

impl Waiters {
    /// Whether one of its group waits here that is to go first.
    pub(crate) fn are_before(&self, asker: &Asker) -> bool {
        let (waits, group) = (self.0.lock(), asker.group());
        let Some(waiting) = waits.models.get(&asker.model.id) else { return false };
        let mut before = waiting.range(..(asker.turn(), 0));
        before.any(|(_, wait)| wait.group == group)
    }

    /// Waits for its turn until it is taken, or for so long; dropped, it waits no more.
    pub(crate) fn wait(&self, asker: Asker, length: Duration) -> Waiting<'_> {
        let (model, group) = (asker.model.id.clone(), asker.group());
        let mut waits = self.0.lock();
        let turn = (asker.turn(), waits.next);
        waits.next += 1;
        let cost = asker.model.limits.pace_of(&asker.ask.amounts);
        let wait = Wait { group, until: Instant::now() + length, cost, asker };
        waits.models.entry(model.clone()).or_default().insert(turn, wait);
        Waiting { waiters: self, model, turn }
    }

    /// Takes those first in turn for whom there is room.
    pub(crate) fn with_room(&self, model: &ModelId, mut room: Duration) -> Vec<Asker> {
        let mut waits = self.0.lock();
        let Some(waiting) = waits.models.get_mut(model) else { return Vec::new() };
        let mut taken = Vec::new();
        while let Some(first) = waiting.first_entry()
            && let Some(left) = room.checked_sub(first.get().cost)
        {
            room = left;
            taken.push(first.remove().asker);
        }
        taken
    }

    /// Takes those of the group that would ask soon, so many at most.
    pub(crate) fn soon(&self, model: &ModelId, group: &Group, most: usize) -> Vec<Asker> {
        let mut waits = self.0.lock();
        let Some(waiting) = waits.models.get_mut(model) else { return Vec::new() };
        let soon = Instant::now() + SOON;
        let due = waiting.extract_if(.., |_, wait| wait.group == *group && wait.until <= soon);
        due.take(most).map(|(_, wait)| wait.asker).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    model: ModelId,
    turn: Turn,
}

impl Waiting<'_> {
    /// Ends the wait. False if the caller has been taken: then its answer comes.
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
    use crate::{Amounts, Dimension, Lanes, Limits, ModelQuota, Ticket, asker::Answer, store::Ask};

    /// One of a model of a request a second; a position of 0 is a newcomer's.
    fn asker(position: u64, tenant: &str) -> (Asker, Answer) {
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
        Asker::new(&Arc::new(model), &ask, Instant::now())
    }

    fn names(askers: Vec<Asker>) -> Vec<String> {
        askers.into_iter().map(|asker| asker.ask.reservation).collect()
    }

    #[test]
    fn who_is_first_is_taken_first_and_only_for_what_there_is_room() {
        let waiters = Waiters::default();
        let [late, early, newcomer, last] = [30, 10, 0, 40].map(|at| asker(at, "a").0);
        let model = late.model.id.clone();
        let waiting = [late, newcomer, early, last].map(|it| waiters.wait(it, SOON));
        assert!(waiters.with_room(&model, Duration::ZERO).is_empty());
        let taken = waiters.with_room(&model, Duration::from_millis(2_500));
        assert_eq!(names(taken), ["10", "30"]);
        let [late, newcomer, early, last] = waiting;
        assert!(!late.end() && !early.end(), "their answers come");
        assert_eq!(names(waiters.with_room(&model, Duration::from_mins(1))), ["40", "0"]);
        drop((newcomer, last));
        assert!(waiters.0.lock().models.is_empty());
    }

    #[test]
    fn the_next_question_is_about_those_of_the_group_who_would_ask_soon() {
        let waiters = Waiters::default();
        let [soon, far, other, newcomer] =
            [(20, "a"), (30, "a"), (40, "b"), (0, "a")].map(|(at, tenant)| asker(at, tenant).0);
        let (model, group) = (soon.model.id.clone(), soon.group());
        let (first, before_far) = (asker(10, "a").0, asker(25, "a").0);
        let _waiting = [(soon, SOON / 2), (far, 9 * SOON), (other, SOON / 2), (newcomer, SOON)]
            .map(|(asker, length)| waiters.wait(asker, length));
        assert!(waiters.are_before(&before_far) && !waiters.are_before(&first));
        assert_eq!(names(waiters.soon(&model, &group, 1)), ["20"]);
        assert_eq!(names(waiters.soon(&model, &group, 9)), ["0"]);
        assert!(!waiters.are_before(&before_far), "another tenant is not of its group");
    }
}
