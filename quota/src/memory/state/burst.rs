//! How far calls may run ahead of an even pace, where that is learned: `lua/include/burst.lua` and
//! `lua/include/headers.lua`.

use std::time::Duration;

use super::{Burst, Condition, PACE_SPEEDUP, State, TOGETHER, reserve::Asked};
use crate::{
    dimension::{Dimension, PerDimension},
    model::ModelQuota,
    number::{float, micros, whole},
    store::{Meter, Refill},
};

const GROWTH: f64 = 0.000_000_4;
const GROWS_AT_MOST: f64 = 1e6;
const UNPROVEN: f64 = 10e6;
const WENT_WELL: f64 = 0.5;
const LESSON_ONCE_IN: f64 = 10e6;
const A_WEEK: f64 = 604_800e6;
pub(super) const FULL: f64 = 0.8;
const TOO_FULL: f64 = 0.9;
const CUSHION: f64 = 0.04;
const CUSHION_OF_HELD: f64 = 0.1;
const SAVED_UP: f64 = 3e6;
const DOUBLES: f64 = 2.0;
const HEADERS_EVERY: f64 = 500e3;
const COUNTED_SINCE: usize = 1_000;
const RISES: f64 = 0.2;
const LIKELY: f64 = 2.0;
const WORTH_WAKING: f64 = 1e6;
const SPRINT: f64 = 12.0;
const HELD_UP: f64 = 1e6;
const SOON: f64 = 200e3;

impl State {
    /// Takes what was learned in hand, where the model's burst is learned; then lets what has left
    /// the window take its credit with it.
    pub(in crate::memory) fn open_burst(&mut self, model: &ModelQuota, now: f64) {
        if model.limits.burst_max.is_some_and(|most| most > model.limits.burst) {
            self.burst
                .get_or_insert_with(|| Burst::new(model, now))
                .clamp(now, micros(model.limits.window));
        } else {
            self.burst = None;
        }
    }

    pub(in crate::memory) fn expire_with_credit(&mut self, model: &ModelQuota, now: f64) {
        let before = self.total.window;
        self.expire(model, now);
        let after = self.total.window;
        if let Some(burst) = &mut self.burst {
            burst.credit = PerDimension::from_fn(|it| {
                (burst.credit[it] - (before[it] - after[it]).max(0.0)).max(0.0)
            });
        }
    }

    /// Calls from before what is known.
    pub(super) fn begin_steady(&mut self, model: &ModelQuota, now: f64) {
        let window = micros(model.limits.window);
        if let Some(burst) = self.burst.as_mut().filter(|burst| now - burst.born_at < window) {
            burst.steady_until = burst.born_at + window;
        }
    }

    fn most_allowed(burst: &Burst, model: &ModelQuota, now: f64) -> f64 {
        let mut most = micros(model.limits.burst_max.unwrap_or_default());
        if burst.ceiling > 0.0 {
            let weeks = ((now - burst.ceiling_at) / A_WEEK).floor();
            most = most.min((burst.ceiling * (1.0 + weeks)).max(micros(model.limits.burst)));
        }
        most
    }

    /// How far the fullest pace clock is ahead.
    fn pace_ahead(&self, limits: &PerDimension<f64>, now: f64) -> f64 {
        let limited = limits.iter().filter(|(_, limit)| **limit > 0.0);
        limited.map(|(it, _)| self.pace[it] - now).fold(0.0, f64::max)
    }

    /// The fullest limit's part of the window that is used, credit taken off.
    pub(super) fn fullness(&self, limits: &PerDimension<f64>, credit: &PerDimension<f64>) -> f64 {
        let limited = limits.iter().filter(|(_, limit)| **limit > 0.0);
        let used = limited.map(|(it, limit)| (self.total.window[it] - credit[it]) / limit);
        used.fold(0.0, f64::max)
    }

    fn widen(&mut self, to: f64) {
        let Some(burst) = &mut self.burst else { return };
        if to > burst.allowance {
            let by = burst.allowance - to;
            (burst.allowance, burst.widened) = (to, -by);
            self.shift_queues(by);
        }
    }

    /// Slow start: grows while the pace is as far ahead as it may be.
    pub(super) fn grow(
        &mut self,
        model: &ModelQuota,
        limits: &PerDimension<f64>,
        (credit, kept): (&PerDimension<f64>, &PerDimension<f64>),
        now: f64,
    ) {
        let ahead = self.pace_ahead(limits, now);
        let Some(burst) = &mut self.burst else { return };
        let elapsed = (now - burst.grew_at).min(GROWS_AT_MOST);
        if ahead < burst.allowance * (1.0 - most_of(kept)) {
            return;
        }
        burst.grew_at = now;
        let burst = burst.clone();
        if now >= burst.steady_until && self.fullness(limits, credit) < TOO_FULL {
            let to = burst.allowance * (1.0 + elapsed * GROWTH);
            let proven = self.latency.is_some_and(|latency| latency > 0.0);
            let unproven = if proven { f64::INFINITY } else { UNPROVEN };
            self.widen(to.min(unproven).min(Self::most_allowed(&burst, model, now)));
        }
    }

    /// What the fullest limit has left, as the time that it takes at an even pace.
    fn left_of(
        &self,
        model: &ModelQuota,
        limits: &PerDimension<f64>,
        (credit, kept): (&PerDimension<f64>, &PerDimension<f64>),
    ) -> f64 {
        let window = micros(model.limits.window);
        let limited = limits.iter().filter(|(_, limit)| **limit > 0.0);
        let left = limited.map(|(it, limit)| {
            ((limit + credit[it] - self.total.window[it]) / limit - kept[it]) * window
        });
        left.fold(f64::INFINITY, f64::min)
    }

    /// When a call whose turn is so far away comes again: sooner, while a burst has room.
    pub(super) fn wait_in_burst(&self, asked: &Asked<'_>, wait: f64) -> f64 {
        let Some(burst) = &self.burst else { return wait };
        let &Asked { model, ask, now, .. } = asked;
        let (limits, credit, kept) = (&asked.limits.window, &asked.credit, &asked.kept);
        let (mut room, ahead) = (0.0, self.pace_ahead(limits, now));
        let (mut to, bucket) = (burst.allowance, self.is_bucket(model));
        let held_up = self.lanes[ask.lane].head - now - (ahead - to).max(0.0);
        let grows = self.fullness(limits, credit) < TOO_FULL;
        if held_up <= HELD_UP && (grows || bucket) {
            if grows && now >= burst.steady_until {
                to = to.max(Self::most_allowed(burst, model, now));
            }
            let left =
                if bucket { self.left_of(model, limits, (credit, kept)) } else { f64::INFINITY };
            room = left.min(to * (1.0 - most_of(kept)) - ahead).max(0.0);
        }
        wait.min(SOON.max(wait / SPRINT).max(wait - room))
    }

    /// Whether the limits are known to be those of a token bucket; a refusal makes them unknown.
    pub(super) fn is_bucket(&self, model: &ModelQuota) -> bool {
        let known = |burst: &Burst| model.limits.token_bucket || burst.refilling;
        self.burst.as_ref().is_some_and(|burst| known(burst) && burst.ceiling <= 0.0)
    }

    /// Enough to compare its levels with what calls count as.
    pub(super) fn is_likely_bucket(&self, model: &ModelQuota) -> bool {
        let likely = |burst: &Burst| burst.likely && burst.ceiling <= 0.0;
        self.is_bucket(model) || self.burst.as_ref().is_some_and(likely)
    }

    /// How much faster than the limits the pace clock runs. A bucket's is its level; and one that
    /// has refused a burst must not be drained in its stead.
    pub(super) fn pace_speed(&self, model: &ModelQuota) -> f64 {
        let deep = 2.0 * micros(model.limits.burst);
        let refused =
            self.burst.as_ref().is_some_and(|it| it.ceiling > 0.0 && it.allowance >= deep);
        if refused || self.is_bucket(model) { 1.0 } else { PACE_SPEEDUP }
    }

    /// Whether room comes back evenly, and not as calls leave our window.
    pub(super) fn refills(&self, model: &ModelQuota) -> bool {
        self.is_bucket(model) || self.burst.as_ref().is_some_and(|burst| burst.told_at > 0.0)
    }

    /// How far ahead the pace is at least while the window is full and callers wait: nothing is
    /// saved up for another burst but three seconds' worth.
    pub(super) fn spent_burst(&self, model: &ModelQuota) -> f64 {
        let burst = self.burst.as_ref().filter(|_| !self.refills(model));
        burst.map_or(0.0, |burst| (burst.allowance - SAVED_UP).max(0.0))
    }

    pub(super) fn spend_burst(&mut self, model: &ModelQuota, over: &PerDimension<f64>, now: f64) {
        if self.burst.is_none() {
            return;
        }
        let least = now + self.spent_burst(model);
        for (it, _) in over.iter().filter(|(_, over)| **over > 0.0) {
            self.pace[it] = self.pace[it].max(least);
        }
    }

    /// What is left of a bucket for calls in flight that were estimated too low.
    fn cushion(&self, it: Dimension, limit: f64) -> f64 {
        CUSHION * limit + CUSHION_OF_HELD * self.held[it]
    }

    /// What each limit may be exceeded by in our window.
    pub(super) fn credits(
        &self,
        model: &ModelQuota,
        limits: &PerDimension<f64>,
        now: f64,
    ) -> PerDimension<f64> {
        let Some(burst) = &self.burst else { return PerDimension::default() };
        let mut credit = burst.credit;
        if self.is_bucket(model) {
            for (it, limit) in limits.iter().filter(|(_, limit)| **limit > 0.0) {
                let used = (self.pace[it] - now).max(0.0) * limit / micros(model.limits.window);
                credit[it] = self.total.window[it] - used - self.cushion(it, *limit);
            }
        }
        credit
    }

    /// How much may go at once now, of pace, if that has just been learned or is a bucket's.
    pub(in crate::memory) fn room_now(&self, model: &ModelQuota, now: f64) -> Duration {
        let known = |burst: &&Burst| self.is_bucket(model) || burst.widened >= WORTH_WAKING;
        let Some(burst) = self.burst.as_ref().filter(known) else { return Duration::ZERO };
        if self.closed_for(now) > 0.0 {
            return Duration::ZERO;
        }
        let limits = self.in_force(model).limits.window;
        let credit = self.credits(model, &limits, now);
        let kept = self.kept_for_others(model, None, &limits, now);
        let room = burst.allowance * (1.0 - most_of(&kept)) - self.pace_ahead(&limits, now);
        let room = room.min(self.left_of(model, &limits, (&credit, &kept)));
        Duration::from_millis(if room < WORTH_WAKING { 0 } else { whole(room / 1e3) })
    }

    /// Whether resets are those of a token bucket as deep as a minute, at two levels.
    pub(super) fn learn_refill(&mut self, refill: Refill) {
        let Some(burst) = &mut self.burst else { return };
        match refill {
            Refill::Unknown => {}
            Refill::Otherwise => {
                (burst.lowest, burst.refilling, burst.likely) = (0.0, false, false);
                burst.told_exactly = false;
            }
            Refill::Evenly(level) | Refill::Exactly(level) => {
                // As it travels.
                let exact = matches!(refill, Refill::Exactly(_));
                let sent = if exact { 4.0 } else { 2.0 };
                let level = (sent + level.min(1.0) - sent).max(1e-6);
                burst.lowest = if burst.lowest > 0.0 { burst.lowest.min(level) } else { level };
                burst.refilling |= level - burst.lowest >= RISES;
                burst.likely |= exact && level >= LIKELY * burst.lowest;
                burst.told_exactly |= exact;
            }
        }
    }

    /// What a meter that was told with a call of `told_at` cannot have counted, and the output of
    /// those under way.
    fn uncounted(&self, told_at: f64) -> Option<(PerDimension<f64>, f64)> {
        let after = self.ledger.iter().rev().take_while(|(at, _)| *at > told_at - TOGETHER);
        let ids: Vec<&String> = after.map(|(_, id)| id).collect();
        if ids.len() >= COUNTED_SINCE {
            return None;
        }
        let (mut sums, mut output) = (PerDimension::<f64>::default(), 0.0);
        for entry in ids.into_iter().rev().filter_map(|id| self.entries.get(id)) {
            if entry.condition == Condition::Reserved || entry.admitted > told_at + TOGETHER {
                sums = PerDimension::from_fn(|it| sums[it] + entry.amounts[it]);
            }
            if entry.condition == Condition::Reserved {
                output += entry.amounts.output;
            }
        }
        Some((sums, output))
    }

    /// What the provider's meter, told with the answer to a call admitted at `admitted`, teaches.
    /// Whether it was taken up.
    pub(super) fn believe(
        &mut self,
        model: &ModelQuota,
        limits: &PerDimension<f64>,
        meter: &Meter,
        admitted: f64,
        now: f64,
    ) -> bool {
        let window = micros(model.limits.window);
        let idle = self.total.in_flight <= 0.0;
        let Some(burst) = &mut self.burst else { return false };
        if admitted < burst.told_at - TOGETHER || now - burst.refused_at < window {
            return false;
        }
        let limited: Vec<(Dimension, f64)> = limits
            .iter()
            .filter(|(_, limit)| **limit > 0.0)
            .map(|(it, limit)| (it, *limit))
            .collect();
        if limited.iter().any(|(it, _)| meter.used[*it].is_none()) {
            return false;
        }
        let later = admitted > burst.told_at + TOGETHER;
        for it in Dimension::ALL {
            let told = float(meter.used[it].unwrap_or_default());
            burst.told[it] = if later { told } else { burst.told[it].max(told) };
        }
        if later {
            burst.told_at = admitted;
        }
        if now - burst.looked_at < HEADERS_EVERY && !idle {
            return true;
        }
        let burst = burst.clone();
        let Some((since, output)) = self.uncounted(burst.told_at) else { return true };
        let (mut left, mut credit) = (f64::INFINITY, burst.credit);
        let (bucket, mut pace) = (self.is_bucket(model), self.pace);
        for (it, limit) in limited {
            let mut by_now = burst.told[it] + since[it];
            if matches!(it, Dimension::Output | Dimension::Combined) {
                by_now += self.held.output - output;
            }
            let used = by_now + self.cushion(it, limit);
            credit[it] = (self.total.window[it] - used).max(0.0);
            left = left.min((limit - used) / limit * window);
            if bucket {
                let most = now + by_now * window / limit;
                pace[it] =
                    (burst.told_at + burst.told[it] * window / limit).max(pace[it].min(most));
            }
        }
        let allowed = Self::most_allowed(&burst, model, now);
        self.pace = pace;
        let to = self.pace_ahead(limits, now) + left;
        // Headers may tell of a minute where less time is enforced as well.
        let tells_of_bucket = (burst.told_exactly || burst.refilling) && burst.ceiling <= 0.0;
        let most = UNPROVEN.max(DOUBLES * burst.allowance);
        let to = if bucket || tells_of_bucket { to } else { to.min(most) };
        let to = to.min(allowed);
        if let Some(burst) = &mut self.burst {
            burst.credit = credit;
            burst.looked_at = now;
        }
        self.widen(to);
        true
    }

    /// A refusal ends all credit. If the window was not full it was the burst that was refused; else
    /// nothing is left of a bucket now. One that went `alone`, before all others, is no burst.
    pub(super) fn learn_refusal(
        &mut self,
        model: &ModelQuota,
        limits: &PerDimension<f64>,
        alone: bool,
        now: f64,
    ) {
        let credit = self.credits(model, limits, now);
        let full = self.fullness(limits, &credit) >= FULL;
        let ahead = self.pace_ahead(limits, now);
        let (tolerance, bucket) = (micros(model.limits.burst), self.is_bucket(model));
        let window = micros(model.limits.window);
        let Some(burst) = &mut self.burst else { return };
        if !full && !alone {
            self.counting.refused(now);
        }
        burst.credit = PerDimension::default();
        if !alone {
            (burst.refused_at, burst.steady_until) = (now, now + window);
        }
        if full {
            for (it, limit) in limits.iter().filter(|(_, limit)| bucket && **limit > 0.0) {
                if self.total.window[it] - credit[it] >= FULL * limit {
                    self.pace[it] = self.pace[it].max(now + window);
                }
            }
        } else if !alone && now - burst.ceiling_at >= LESSON_ONCE_IN && burst.allowance > tolerance
        {
            burst.ceiling = tolerance.max(burst.allowance.min(ahead) * WENT_WELL);
            (burst.ceiling_at, burst.allowance) = (now, burst.ceiling);
        }
    }
}

fn most_of(kept: &PerDimension<f64>) -> f64 {
    kept.iter().map(|(_, part)| *part).fold(0.0, f64::max)
}
