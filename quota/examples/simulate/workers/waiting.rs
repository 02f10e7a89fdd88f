//! Documents in slots until their admission: they ask, wait in place, keep watch, or go back.

use std::time::Duration;

use super::{At, Event, Fleet, SLOTS, Task};
use crate::{
    driver::{Answer, Call, Held},
    event::{Micros, SECOND},
    fleet::{
        BACKOFF_MAX, JITTER, MAX_BEHIND, MAX_CALLS, MAX_QUOTA_WAIT, MAX_SLOT_WAIT, SOON, come_back,
        early,
    },
};

/// `MAX_PAUSE_IN_PLACE` in `quota/src/admit.rs`, `WATCH` and `ASKS_AGAIN` in `calls/src/waiting.rs`.
const MAX_PAUSE_IN_PLACE: Micros = SECOND;
const WATCH: Micros = 300 * SECOND;
const ASKS_AGAIN: Micros = 60 * SECOND;

impl Fleet<'_> {
    pub(super) fn plan_ask(&mut self, at: usize, when: Micros) {
        self.tasks[at].asks = when;
        self.events.plan(when, Event::Ask(at));
    }

    pub(super) fn ask(&mut self, now: Micros, at: usize) {
        let task = &self.tasks[at];
        if task.asks != now || !matches!(task.at, At::Admission | At::Watch) {
            // It was woken earlier.
            return;
        }
        let (worker, model) = (task.worker, task.model);
        if task.place.is_none() {
            let place = self.workers[worker].intake.join_queue(&self.lane, &self.models[model]);
            let waits = self.has_room(worker, model);
            let task = &mut self.tasks[at];
            (task.place, task.waits) = (Some(place), waits);
        }
        let task = &mut self.tasks[at];
        let is_new = task.admitting.is_none();
        task.admitting.get_or_insert(now);
        (task.in_place, task.at) = (false, At::Admission);
        let waits = task.waits;
        let first = self.beside(at).first().copied();
        let earlier = first.filter(|first| self.turn(*first) < self.turn(at));
        if let Some(earlier) = earlier.filter(|_| is_new && waits) {
            self.tasks[at].in_place = true;
            return self.plan_ask(at, self.tasks[earlier].asks.min(now + MAX_BEHIND));
        }
        let soon = |other: &usize| self.tasks[*other].asks <= now + SOON;
        let beside = self.beside(at).into_iter().filter(soon).take(MAX_CALLS - 1);
        let mut asked: Vec<usize> = beside.chain([at]).collect();
        asked.sort_by_key(|at| self.turn(*at));
        for at in &asked {
            (self.tasks[*at].in_place, self.tasks[*at].asks) = (false, 0);
        }
        let call = |at: &usize| {
            let task = &self.tasks[*at];
            let (id, tenant) = (format!("{at}#{}", task.attempt), task.batch as u64);
            Call { id, lane: 0, tenant, document: &task.document, ticket: task.ticket }
        };
        let calls = asked.iter().map(call).collect();
        let answers = self.quotas[model].reserve(now, worker, calls);
        self.figures.questions += 1;
        for (at, answer) in asked.into_iter().zip(answers) {
            self.answered(now, at, answer);
        }
        self.check_worker(now, worker);
    }

    /// `WaitingRoom::enter` in `calls/src/waiting.rs`.
    fn has_room(&self, worker: usize, model: usize) -> bool {
        let tasks = self.workers[worker].tasks.iter().map(|at| &self.tasks[*at]);
        let waiting = tasks.filter(|it| it.waits && matches!(it.at, At::Admission | At::Watch));
        let (mine, others): (Vec<&Task>, Vec<&Task>) = waiting.partition(|it| it.model == model);
        mine.len() < (SLOTS.saturating_sub(others.len()) / 2).max(1)
    }

    /// Documents without a ticket come last, in order of arrival.
    fn turn(&self, at: usize) -> (u64, Micros) {
        let task = &self.tasks[at];
        (task.ticket.map_or(u64::MAX, |ticket| ticket.position), task.taken)
    }

    /// Documents that wait in place in the same process for the same model and tenant, by their
    /// turns.
    fn beside(&self, at: usize) -> Vec<usize> {
        let own = &self.tasks[at];
        let group = |task: &Task| (task.worker, task.model, task.batch);
        let is_beside = |task: &Task| task.in_place && group(task) == group(own);
        let tasks = self.workers[own.worker].tasks.iter().copied().filter(|other| *other != at);
        let mut beside: Vec<usize> = tasks.filter(|it| is_beside(&self.tasks[*it])).collect();
        beside.sort_by_key(|at| self.turn(*at));
        beside
    }

    /// `Shared::record_wait` in `quota/src/shared.rs`.
    fn record_wait(&self, at: usize, wait: Micros) {
        let task = &self.tasks[at];
        let cost = Duration::from_micros(self.quotas[task.model].pace_of(&task.document));
        let (wait, model) = (Duration::from_micros(wait), &self.models[task.model]);
        let intake = &self.workers[task.worker].intake;
        match task.ticket {
            None => intake.record_wait(&self.lane, model, wait, cost),
            Some(_) if wait.is_zero() => {}
            Some(_) => intake.record_least_wait(&self.lane, model, wait, cost),
        }
    }

    fn answered(&mut self, now: Micros, at: usize, answer: Answer) {
        let started = self.tasks[at].admitting.unwrap_or(now);
        let (sleep, wait, back, most) = match answer {
            Answer::Granted(held) => return self.granted(now, at, held),
            Answer::Wait { wait, ticket, in_turn } => {
                self.record_wait(at, wait);
                (self.tasks[at].ticket, self.tasks[at].in_turn) = (Some(ticket), in_turn);
                (early(wait), wait, come_back(wait, MAX_QUOTA_WAIT), MAX_SLOT_WAIT)
            }
            Answer::Paused { wait, ticket } => {
                self.record_wait(at, wait);
                (self.tasks[at].ticket, self.tasks[at].in_turn) = (Some(ticket), false);
                let wait = wait + self.chance.within(JITTER);
                (wait, wait, wait.min(BACKOFF_MAX), MAX_PAUSE_IN_PLACE)
            }
        };
        let task = &mut self.tasks[at];
        if task.waits && now - started + wait <= most {
            task.in_place = true;
            return self.plan_ask(at, now + sleep);
        }
        let key = (task.worker, task.model);
        if task.waits && task.watching.is_none() && !self.watches.contains_key(&key) {
            self.watches.insert(key, at);
            self.tasks[at].watching = Some(now);
        }
        let task = &mut self.tasks[at];
        if task.watching.is_some_and(|since| now - since < WATCH) {
            (task.at, task.admitting) = (At::Watch, None);
            return self.plan_ask(at, now + wait.min(ASKS_AGAIN));
        }
        self.deferred(now, at, back);
    }

    /// Sends a document back to the task queue, behind all others, at its time.
    fn deferred(&mut self, now: Micros, at: usize, back: Micros) {
        self.figures.deferred += 1;
        self.figures.beyond += 1;
        self.leave(at);
        let task = &mut self.tasks[at];
        (task.at, task.place) = (At::Away, None);
        task.attempt += 1;
        self.workers[task.worker].tasks.remove(&at);
        self.events.plan(now + back.min(BACKOFF_MAX), Event::Queued(at));
    }

    /// Ends a document's wait.
    fn leave(&mut self, at: usize) {
        let task = &self.tasks[at];
        if task.watching.is_some() {
            self.watches.remove(&(task.worker, task.model));
        }
    }

    fn granted(&mut self, now: Micros, at: usize, held: Held) {
        self.record_wait(at, 0);
        self.leave(at);
        let task = &mut self.tasks[at];
        let late = now - task.taken - self.plan.reads > MAX_SLOT_WAIT && task.watching.is_none();
        self.figures.admitted += 1;
        self.figures.tokens[task.model] += task.document.tokens();
        self.figures.beyond += u64::from(late);
        if let Some((.., opened)) = self.plan.gate
            && now >= opened
        {
            self.figures.reopened.get_or_insert(now - opened);
        }
        (task.at, task.held) = (At::Calling, Some(held));
        if let Some(place) = &mut task.place {
            place.start_call();
        }
        self.events.plan(now + task.document.latency, Event::Complete(at));
    }

    /// `Shared::wake` in `quota/src/decide.rs`.
    pub(super) fn wake(&mut self, now: Micros, worker: usize, model: usize, room: Micros) {
        let intake = &self.workers[worker].intake;
        intake.record_room(&self.models[model], Duration::from_micros(room));
        let cost = |task: &Task| self.quotas[model].pace_of(&task.document);
        let waits = |task: &Task| task.in_place && task.model == model;
        let before = |task: &Task| if task.in_turn { task.asks.saturating_sub(now) } else { 0 };
        let fits = |task: &Task| waits(task) && before(task) + cost(task) <= room;
        let tasks = self.workers[worker].tasks.iter().copied();
        let woken: Vec<usize> = tasks.filter(|at| fits(&self.tasks[*at])).collect();
        woken.into_iter().for_each(|at| self.plan_ask(at, now));
    }

    /// Has the documents that keep watch ask again.
    pub(super) fn news(&mut self, now: Micros, worker: usize) {
        let watches = self.watches.range((worker, 0)..(worker + 1, 0));
        let mut watching: Vec<usize> = watches.map(|(_, at)| *at).collect();
        watching.retain(|at| self.tasks[*at].at == At::Watch);
        watching.into_iter().for_each(|at| self.plan_ask(at, now));
    }
}
