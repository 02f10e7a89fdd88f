//! Refills levels with time, and computes the time until there is room.

use super::{
    Gate, LaneState, Mechanism, Obstacle, Terms, queue::QueuePosition, state::CloseReason,
};
use crate::{
    conversions::index,
    dimension::Dimension,
    numbers::{GRAIN, Numbers},
    plan::{Allowance, Units},
    store::Hold,
};

/// Work that is kept for other lanes.
#[derive(Debug, Clone, Copy, Default)]
struct Standby {
    /// Room for the next calls of other lanes.
    idle: f64,
    /// Work saved in the window for a larger call of another lane, which otherwise would never find
    /// room among smaller ones.
    saved: f64,
    /// The part of it that suffices for that call; levels are left to it too.
    ready: f64,
}

impl Mechanism {
    /// Brings the state to `clock`. If the clock steps back, time stands still; if it steps back by
    /// more than a window, time continues from there.
    pub(crate) fn advance(&mut self, terms: &Terms<'_>, clock: f64) {
        if self.at - clock > terms.window {
            self.rebase(self.at - clock);
        }
        if self.lanes.len() < terms.lanes.iter().len() {
            self.lanes.resize_with(terms.lanes.iter().len(), LaneState::default);
        }
        let now = clock.max(self.at);
        self.refill(terms, now);
        self.at = now;
        self.begin_day(terms);
        self.expire(terms);
    }

    /// The time from which levels refill. A provider that refuses states when it has room for the
    /// probe call, but not for more.
    fn refills_from(&self, numbers: &Numbers) -> f64 {
        let gate = self.gate.as_ref().filter(|gate| gate.closed == CloseReason::Refused);
        gate.map_or(0.0, |gate| gate.until + numbers.quiet)
    }

    fn refill(&mut self, terms: &Terms<'_>, now: f64) {
        let numbers = terms.numbers;
        let from = self.refills_from(numbers).max(self.at);
        let passed = (now - from).max(0.0);
        if passed <= 0.0 {
            return;
        }
        let mut unused = f64::INFINITY;
        for (it, limit) in self.plan.limits.iter() {
            let Some(limit) = limit else { continue };
            let left = self.drawn[it] - passed * limit.rate.value;
            self.drawn[it] = left.max(0.0);
            unused = unused.min(-left / limit.most);
        }
        let full = self.in_flight.limit(self.plan.concurrent);
        if unused == f64::INFINITY && full > 0.0 {
            // If only calls at once are limited, all of them pass in the time of one.
            unused = passed / self.latency.max(numbers.pace);
        }
        let is_full = full > 0.0 && self.in_flight.calls >= full;
        let was_open = self.gate.as_ref().is_none_or(|gate| from >= gate.until);
        let is_unclaimed = unused > 0.0 && unused < f64::INFINITY && was_open && !is_full;
        let (rate, capacity) = self.plan.work();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if is_unclaimed {
                lane.passed += unused;
            }
            let share = terms.share(number);
            let most = (numbers.standby * share * capacity).max(lane.saves_for(now));
            lane.standby = (lane.standby + passed * rate * share).min(most);
        }
    }

    /// The part of the capacity that may be drawn now. While calls are under way, a bucket of tokens
    /// keeps a margin, because their use is estimated.
    pub(super) fn usable(&self, it: Dimension, limit: &Allowance, numbers: &Numbers) -> f64 {
        let capacity = limit.capacity.value;
        if it == Dimension::Requests || limit.window.value < f64::INFINITY {
            return capacity;
        }
        capacity - (numbers.half * self.held[it]).min(numbers.never_drawn * capacity)
    }

    /// Time until there is room at the present rate for a call behind those before it.
    pub(super) fn until_room(
        &self,
        terms: &Terms<'_>,
        lane: usize,
        position: QueuePosition,
        need: &Units,
        work: f64,
    ) -> Obstacle {
        let (mut obstacle, mut level) = (Obstacle::NONE, 0.0_f64);
        // A lane gets the work that it has saved at the whole rate.
        let has_saved = self.lanes[lane].standby >= work;
        let (part, mix) = (if has_saved { 1.0 } else { self.rate_part(terms, lane) }, self.mix());
        let Standby { idle, saved, ready } = self.standby_of_others(terms, lane, work);
        let share = terms.lanes.at(lane);
        let turn = |hold| if position.ahead > 0.0 { Hold::Turn } else { hold };
        for (it, limit) in self.plan.limits.iter() {
            let (Some(limit), need) = (limit, need[it]) else { continue };
            level = level.max(self.drawn[it]);
            if need <= 0.0 {
                continue;
            }
            let (capacity, rate) = (self.usable(it, limit, terms.numbers), limit.rate.value * part);
            let ahead = position.ahead * limit.most * mix[it];
            let kept = ((idle + ready) * limit.most).min(capacity);
            // A call larger than the capacity is admitted when nothing is drawn: then the lack is
            // exactly zero. But it leaves to other lanes the work that they have saved.
            let largest = capacity - (idle * limit.most).min(capacity);
            let wanted = if ahead > 0.0 { ahead + need } else { need.min(largest) };
            let lack = wanted + self.drawn[it] - (capacity - kept);
            let hold = if lack > kept { Hold::Level(it) } else { Hold::Lane };
            obstacle.raise(lack / rate, turn(hold), lack);
            let saved = saved * limit.most;
            let over = self.total[it] + ahead + need + saved - limit.window.value;
            if over > 0.0 {
                let wait = self.until_freed(terms, it, over, rate);
                let hold = if over > saved { Hold::Window(it) } else { Hold::Lane };
                obstacle.raise(wait, turn(hold), over);
            }
            if share.ceiling < 1.0 {
                let over = self.lanes[lane].used[it] + ahead + need - share.most_of(limit.most);
                obstacle.raise(over / rate, turn(Hold::Lane), over);
            }
        }
        // Absent callers hold no place: they pass while nothing is drawn, else the first is expected.
        let is_awaited = level <= 0.0 || self.lanes[lane].saves_for(self.at) > 0.0;
        let ahead = if is_awaited { position.ahead } else { 0.0 };
        self.limit_in_flight(terms, lane, ahead, work, &mut obstacle);
        obstacle
    }

    /// Time until the amount `over` has left the window.
    fn until_freed(&self, terms: &Terms<'_>, it: Dimension, over: f64, rate: f64) -> f64 {
        let (mut left, mut wait) = (over, 0.0);
        let walk = index(terms.numbers.walk);
        for (at, id) in self.ledger.iter().take(walk) {
            if left <= 0.0 {
                break;
            }
            left -= self.entries.get(id).map_or(0.0, |entry| entry.amounts[it]);
            wait = at + terms.window - self.at;
        }
        wait + left.max(0.0) / rate
    }

    /// The wait to return: none beyond the horizon. Longer ones are spread over the horizon's
    /// second half by their turns, so that the callers do not come back together.
    pub(super) fn spread_wait(&self, terms: &Terms<'_>, lane: usize, wait: f64) -> f64 {
        let horizon = self.plan.horizon.max(self.closed_for());
        let near = horizon * terms.numbers.half;
        let last = self.queue_time(terms, lane).max(wait);
        if last <= horizon || wait <= near {
            return wait;
        }
        near + (wait - near) / (last - near) * (horizon - near)
    }

    /// Time that the present rate takes for all waiting callers of a lane.
    pub(super) fn queue_time(&self, terms: &Terms<'_>, lane: usize) -> f64 {
        let (part, mix, waiting) =
            (self.rate_part(terms, lane), self.mix(), self.lanes[lane].waiting_work());
        let times = self.plan.limits.iter().filter_map(|(it, limit)| {
            let limit = (*limit)?;
            Some(waiting * limit.most * mix[it] / (limit.rate.value * part))
        });
        times.fold(0.0, f64::max)
    }

    /// The work of a mean call in the window.
    pub(super) fn mean_work(&self) -> Option<f64> {
        let calls = self.total[Dimension::Requests];
        (calls > 0.0).then(|| self.progress / GRAIN / calls)
    }

    /// The work that is kept for other lanes from a call of this work.
    fn standby_of_others(&self, terms: &Terms<'_>, lane: usize, work: f64) -> Standby {
        let (_, capacity) = self.plan.work();
        let mean = self.mean_work().unwrap_or(f64::INFINITY);
        let mut kept = Standby::default();
        for (other, it) in self.lanes.iter().enumerate().filter(|(it, _)| *it != lane) {
            let need = it.saves_for(self.at);
            if need > work {
                kept.saved += it.standby;
                kept.ready += if it.standby >= need { it.standby } else { 0.0 };
            } else {
                let standby = terms.numbers.standby * terms.share(other) * capacity;
                // A lane without recent calls finds room for its first.
                let most = if it.has_calls() { standby } else { standby.min(mean) };
                kept.idle += it.standby.min(most);
            }
        }
        kept
    }

    /// A lane's part of the rate while other lanes wait too.
    fn rate_part(&self, terms: &Terms<'_>, lane: usize) -> f64 {
        let mut sum = 0.0;
        for (other, it) in self.lanes.iter().enumerate() {
            if other == lane || it.waiting_work() > 0.0 {
                sum += terms.share(other);
            }
        }
        let share = terms.share(lane);
        // A lane with nothing guaranteed gets the rest of the others.
        if share > 0.0 { share / sum } else { 1.0 }
    }

    /// The part of a dimension's limit that a unit of work takes on average. An estimate that is
    /// too small is better: a caller that comes too early asks again, and one that comes too late
    /// leaves room unused.
    pub(super) fn mix(&self) -> Units {
        Units::from_fn(|it| match self.plan.limits[it] {
            Some(limit) if self.progress > 0.0 => {
                (self.total[it] / limit.most / self.progress * GRAIN).clamp(0.0, 1.0)
            }
            _ => 1.0,
        })
    }

    /// Moves every time back, so that ages and remaining times stay the same.
    fn rebase(&mut self, by: f64) {
        self.at -= by;
        self.ledger.iter_mut().for_each(|(admitted, _)| *admitted -= by);
        self.entries.values_mut().for_each(|entry| entry.admitted -= by);
        self.leases.values_mut().for_each(|end| *end -= by);
        if let Some(Gate { until, probe, .. }) = &mut self.gate {
            *until -= by;
            *probe = probe.map(|probe| probe - by);
        }
        for lane in &mut self.lanes {
            lane.need.1 -= by;
            if let Some(late) = &mut lane.queue.late {
                late.until -= by;
            }
        }
        self.in_flight.capped_at -= by;
        self.log.forget_handout();
    }
}
