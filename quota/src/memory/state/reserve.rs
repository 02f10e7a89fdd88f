//! What `reserve-8.lua` does: read, decide, write.

use super::{
    Canary, Condition, State,
    lanes::Capacity,
    obstacles::{CANARY_PATIENCE, Obstacle, Over},
};
use crate::{
    dimension::{DayLimit, Dimension, Limited, PerDimension, PerLimit},
    memory::tuning::{self, InForce},
    model::ModelQuota,
    number::{duration, float, micros, whole},
    request::Ticket,
    store::{Ask, Decision},
};

const NEARLY: f64 = 10e6;
const GONE: f64 = 60e6;
const MIN_WAIT: f64 = 1e3;

/// A question, and what of the limits it may use.
pub(super) struct Asked<'a> {
    pub(super) model: &'a ModelQuota,
    pub(super) ask: &'a Ask,
    ticket: Option<Ticket>,
    pub(super) amounts: PerDimension<f64>,
    /// The limits in force, but never less than the call: what a refusal has taken off comes back,
    /// so a call as large as the whole limit waits and is not turned away.
    pub(super) limits: PerLimit<f64>,
    pub(super) capacity: Capacity,
    /// By how much the window may exceed each limit, and the limits with it.
    pub(super) credit: PerDimension<f64>,
    /// The part of each limit that is kept for other lanes.
    pub(super) kept: PerDimension<f64>,
    pub(super) roomy: PerDimension<f64>,
    /// How far the pace may be ahead, and how much faster than the limits its clock runs.
    pub(super) tolerance: f64,
    pub(super) speed: f64,
    pub(super) window: f64,
    pub(super) now: f64,
}

/// Where a caller stands in its lane, and whether it goes.
struct Verdict {
    /// There is a queue.
    queued: bool,
    /// Those who waited are gone.
    forgets: bool,
    position: f64,
    shift: f64,
    due: f64,
    turn_ends: f64,
    over: Over,
    /// What is in its way; `None` if it goes.
    obstacle: Option<Obstacle>,
}

impl State {
    pub(in crate::memory) fn reserve(
        &mut self,
        model: &ModelQuota,
        ask: &Ask,
        now: f64,
    ) -> Decision {
        let asked = match self.read(model, ask, now) {
            Ok(asked) => asked,
            Err(answer) => return answer,
        };
        let mut verdict = self.decide(&asked);
        if verdict.forgets {
            self.lanes[ask.lane].waiting = 0;
        }
        match verdict.obstacle.take() {
            None => self.admit(&asked, &verdict),
            Some(obstacle) => self.give_turn(&asked, &verdict, &obstacle),
        }
    }

    /// What is asked; or an answer that needs no more.
    fn read<'a>(
        &mut self,
        model: &'a ModelQuota,
        ask: &'a Ask,
        now: f64,
    ) -> Result<Asked<'a>, Decision> {
        let lane = ask.lane;
        let amounts = PerLimit { window: self.reserved(model, ask, now), in_flight: 1.0 };
        self.lanes[lane].seen_at = Some(now);
        if self.entries.contains_key(&ask.reservation) {
            return Err(Decision::Granted);
        }
        let InForce { limits, whole } = self.in_force(model);
        let ceiling = whole.window.map(|limit| limit * model.lanes.at(lane).ceiling);
        let too_large = |dimension: &Dimension| {
            limits.window[*dimension] > 0.0 && amounts.window[*dimension] > ceiling[*dimension]
        };
        if let Some(dimension) = Dimension::ALL.into_iter().find(too_large) {
            return Err(Decision::Never { dimension, capacity: above(ceiling[dimension]) });
        }
        let limits = PerLimit::from_fn(|limited| match limits[limited] {
            limit if limit > 0.0 => limit.max(amounts[limited]),
            none => none,
        });
        let shown = ask.ticket.filter(|ticket| ticket.position > 0);
        let ticket = shown.filter(|ticket| ticket.epoch == self.epoch);
        if shown.is_some() && ticket.is_none() {
            self.begin_steady(model, now);
        }
        if let Some(closed) = self.closed(now, ticket) {
            return Err(closed);
        }
        if let Some(spent) = self.day_spent(model, &amounts.window, now) {
            return Err(spent);
        }
        let credit = self.credits(model, &limits.window, now);
        let kept = self.kept_for_others(model, Some(lane), &limits.window, now);
        self.grow(model, &limits.window, (&credit, &kept), now);
        let roomy = PerLimit::from_fn(|limited| match limited {
            Limited::Window(it) if limits[limited] > 0.0 => {
                (limits[limited] + credit[it]).max(amounts[limited])
            }
            _ => limits[limited],
        });
        let asked = Asked {
            model,
            ask,
            ticket,
            amounts: amounts.window,
            limits,
            capacity: self.capacity(model, lane, &roomy, &amounts, now),
            credit,
            kept,
            roomy: roomy.window,
            tolerance: self
                .burst
                .as_ref()
                .map_or_else(|| micros(model.limits.burst), |burst| burst.allowance),
            speed: self.pace_speed(model),
            window: micros(model.limits.window),
            now,
        };
        if asked.limits.in_flight > 0.0 && self.over_in_flight(&asked) > 0.0 {
            self.end_leases(now);
        }
        if matches!(self.canary, Canary::Admitted(at) if now >= at + CANARY_PATIENCE) {
            self.canary = Canary::None;
        }
        Ok(asked)
    }

    /// Whether the call goes now; else its turn.
    fn decide(&self, asked: &Asked<'_>) -> Verdict {
        let &Asked { ask, ticket, now, .. } = asked;
        let own = &self.lanes[ask.lane];
        let (shift, front) = (own.shift, now - own.shift);
        let queued = own.tail > front;
        let position = match ticket {
            Some(ticket) => float(ticket.position),
            // Behind its tenant's others, if there is a queue at all.
            None if queued => own.tenants.get(&ask.tenant).map_or(front, |tail| front.max(*tail)),
            None => front,
        };
        let mut due = position + shift;
        if due > now {
            due = now + self.hastened(asked, due - now);
        }
        let mut obstacle = Obstacle::NONE;
        let idle = self.keep_pace(asked, &mut obstacle);
        let over = self.over(asked);
        self.keep_in_flight(asked, &mut obstacle);
        self.keep_canary(now, &mut obstacle);
        self.make_room(asked, &mut obstacle);
        let near = ticket.is_some() && own.head <= now && due - now < NEARLY;
        let goes = obstacle.wait <= 0.0 && !over.any() && (due <= now || idle || near);
        if due > now {
            obstacle = Obstacle { wait: due - now, ..Obstacle::NONE };
            // While a burst has room, those who are within it come in order and much sooner.
            if !over.any() {
                obstacle.wait = self.wait_in_burst(asked, obstacle.wait);
            }
            let model = asked.model;
            let unknown = model.learns_counting() || !model.charge.cached_input;
            if ask.curious && unknown {
                let template = model.learns_as(ask.template);
                obstacle.wait = obstacle.wait.min(self.longest_unknowing(template, now));
            }
        } else {
            if over.any() {
                self.wait_for_room(asked, &over, &mut obstacle);
            }
            obstacle.wait = obstacle.wait.max(MIN_WAIT);
        }
        Verdict {
            queued,
            forgets: ticket.is_none() && !queued && own.tail < front - GONE,
            position,
            shift,
            due,
            turn_ends: self.turn_ends(asked, position),
            over,
            obstacle: (!goes).then_some(obstacle),
        }
    }

    fn admit(&mut self, asked: &Asked<'_>, verdict: &Verdict) -> Decision {
        let &Asked { model, ask, amounts, window, now, speed, .. } = asked;
        let own = &mut self.lanes[ask.lane];
        if asked.ticket.is_some() {
            own.waiting = own.waiting.saturating_sub(1);
            if own.waiting == 0 {
                own.backlogged_at = None;
            }
        }
        if verdict.due > now {
            own.shift = now - verdict.position;
        } else if verdict.queued && asked.ticket.is_none() {
            own.move_tail(&ask.tenant, verdict.turn_ends, now - verdict.shift);
        }
        self.enter(&ask.reservation, ask.lane, Condition::Reserved, amounts, now);
        self.counting.admitted(&amounts, now);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, &amounts);
        }
        self.add_in_flight(ask.lane, 1.0);
        self.end_starving(ask.lane);
        for (dimension, limit) in asked.limits.window.iter().filter(|(_, limit)| **limit > 0.0) {
            let cost = amounts[dimension] * window / (limit * speed);
            self.pace[dimension] = self.pace[dimension].max(now) + cost;
        }
        if self.canary == Canary::Wanted {
            self.canary = Canary::Admitted(now);
        }
        Decision::Granted
    }

    /// A caller that is due and blocked holds the lane: none behind it goes first.
    fn give_turn(&mut self, asked: &Asked<'_>, verdict: &Verdict, obstacle: &Obstacle) -> Decision {
        let &Asked { model, ask, now, .. } = asked;
        let &Verdict { position, .. } = verdict;
        let mut shift = verdict.shift;
        if verdict.due <= now {
            if verdict.over.any() {
                self.lanes[ask.lane].backlogged_at = Some(now);
                self.spend_burst(model, &verdict.over.total, now);
                self.note_starving(asked);
            }
            shift = shift.max(now + obstacle.wait - position);
            self.lanes[ask.lane].shift = shift;
            self.lanes[ask.lane].head = now + obstacle.wait;
        }
        if asked.ticket.is_none() {
            self.lanes[ask.lane].move_tail(&ask.tenant, verdict.turn_ends, now - shift);
            self.lanes[ask.lane].waiting += 1;
        }
        Decision::Wait {
            wait: duration(obstacle.wait),
            binding: obstacle.binding,
            deficit: above(obstacle.deficit),
            ticket: Ticket { epoch: self.epoch, position: whole(position) },
        }
    }

    fn closed(&self, now: f64, ticket: Option<Ticket>) -> Option<Decision> {
        let gate = self.gate.as_ref().filter(|gate| gate.until > now)?;
        let wait = duration(gate.until - now);
        Some(if gate.exhausted {
            Decision::Exhausted { wait, day: None }
        } else {
            Decision::Paused { wait, ticket }
        })
    }

    fn day_spent(
        &self,
        model: &ModelQuota,
        amounts: &PerDimension<f64>,
        now: f64,
    ) -> Option<Decision> {
        let tuning = self.tuning.as_ref()?;
        let spent = |day: &DayLimit| {
            let after = match day {
                DayLimit::Requests => tuning.day_requests + amounts.requests,
                DayLimit::Tokens => tuning.day_tokens + amounts.combined,
            };
            model.limits.day(*day).is_some_and(|limit| after > float(limit))
        };
        let day = DayLimit::ALL.into_iter().find(spent)?;
        Some(Decision::Exhausted { wait: duration(tuning::day_left(model, now)), day: Some(day) })
    }
}

impl Asked<'_> {
    /// Each limited dimension that the call uses, with its limit and amount.
    pub(super) fn counted(&self) -> impl Iterator<Item = (Dimension, f64, f64)> {
        let each = self.limits.window.iter().map(|(it, limit)| (it, *limit, self.amounts[it]));
        each.filter(|(_, limit, amount)| *limit > 0.0 && *amount > 0.0)
    }
}

fn above(number: f64) -> u64 {
    whole(number.ceil())
}
