//! What makes a model's limits differ from the configured ones, and what is counted by the day:
//! `lua/include/tuning.lua`.

use crate::{
    dimension::{Change, Dimension, Limited, PerDimension, PerLimit},
    model::ModelQuota,
    number::{float, micros},
    store::{LimitChanges, Meter},
};

const STEP: f64 = 0.02;
const AGAIN: f64 = 0.05;
const LOWEST: f64 = 0.5;
const ONCE_IN: f64 = 10e6;
const QUIET: f64 = 60e6;
const ENOUGH_REFUSED: f64 = 3.0;
const CLEARLY: f64 = 0.25;
const MOST_AT_ONCE: f64 = 0.5;
const LEAST: f64 = 0.02;
const RECOVERY: f64 = 0.000_000_000_166_666_666_666_666_67;
const SHOWN: f64 = 0.000_000_006_666_666_666_666_667;
const CUT: f64 = 0.7;
const CUT_ONCE_IN: f64 = 2e6;
const RAISE: f64 = 0.05;
const CAP_FORGOTTEN: f64 = 300e6;
const FULL_DAY: f64 = 86_400e6;
const NOISE: f64 = 0.03;
const UNSURE: f64 = 0.5;
const MINUTES_KEPT: f64 = 65_536.0;
const STATED_FOR: f64 = 10.0;

/// Learned and set; everything at its default while the limits are as configured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tuning {
    pub(super) factor: f64,
    recovered_to: f64,
    /// The quiet time that was reckoned just now.
    quiet: f64,
    pub(super) cap: f64,
    peak: f64,
    capped_at: f64,
    day: f64,
    pub(super) day_requests: f64,
    pub(super) day_tokens: f64,
    /// Until when use by others on the same account is in the window.
    external: PerDimension<f64>,
    pub(super) set: PerLimit<f64>,
    pub(super) stated: PerDimension<f64>,
    /// The minute of the clock when it was stated.
    stated_in: PerDimension<f64>,
}

/// The limits in force; 0 for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct InForce {
    pub(super) limits: PerLimit<f64>,
    /// The same without what refusals and overloads have taken off: what waiting could restore.
    pub(super) whole: PerLimit<f64>,
}

impl Tuning {
    pub(super) fn new(now: f64) -> Self {
        Self {
            factor: 1.0,
            recovered_to: now,
            quiet: 0.0,
            cap: 0.0,
            peak: 0.0,
            capped_at: 0.0,
            day: 0.0,
            day_requests: 0.0,
            day_tokens: 0.0,
            external: PerDimension::default(),
            set: PerLimit::default(),
            stated: PerDimension::default(),
            stated_in: PerDimension::default(),
        }
    }

    /// Lets time pass. Times that lie ahead farther than they are ever set come from a clock that
    /// has been set back.
    pub(super) fn advance(&mut self, model: &ModelQuota, now: f64) {
        self.recovered_to = self.recovered_to.min(now + QUIET);
        self.capped_at = self.capped_at.min(now);
        self.external = self.external.map(|until| until.min(now + micros(model.limits.window)));
        for dimension in Dimension::ALL {
            if minutes_since(self.stated_in[dimension], now) > STATED_FOR {
                self.stated[dimension] = 0.0;
            }
        }
        self.quiet = 0.0;
        if self.factor < 1.0 && now > self.recovered_to {
            self.quiet = now - self.recovered_to;
            self.factor = (self.factor + self.quiet * RECOVERY).min(1.0);
            self.recovered_to = now;
        }
        if self.cap > 0.0 && now - self.capped_at > CAP_FORGOTTEN {
            self.cap = 0.0;
        }
        let day = day(model, now);
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if day != self.day {
            (self.day, self.day_requests, self.day_tokens) = (day, 0.0, 0.0);
        }
    }

    pub(super) fn in_force(&self, model: &ModelQuota) -> InForce {
        let configured = configured(model);
        let whole = PerLimit::from_fn(|limited| {
            let limit =
                if self.set[limited] > 0.0 { self.set[limited] } else { configured[limited] };
            match limited {
                Limited::Window(dimension) if limit > 0.0 && self.stated[dimension] > 0.0 => {
                    limit.min(self.stated[dimension])
                }
                _ => limit,
            }
        });
        let capped = self.cap > 0.0 && (whole.in_flight <= 0.0 || self.cap < whole.in_flight);
        let limits = PerLimit {
            window: whole.window.map(|limit| limit * self.factor),
            in_flight: if capped { self.cap.floor() } else { whole.in_flight },
        };
        InForce { limits, whole }
    }

    pub(super) fn external_use(
        &self,
        dimension: Dimension,
        limit: f64,
        window: f64,
        now: f64,
    ) -> f64 {
        (self.external[dimension] - now).max(0.0) * limit / window
    }

    /// Counts towards the day of the admission.
    pub(super) fn add_to_day(
        &mut self,
        model: &ModelQuota,
        admitted: f64,
        amounts: &PerDimension<f64>,
    ) {
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if day(model, admitted) == self.day {
            self.day_requests = (self.day_requests + amounts.requests).max(0.0);
            self.day_tokens = (self.day_tokens + amounts.combined).max(0.0);
        }
    }

    /// When the limits were lowered last, and a minute ago at most.
    pub(super) fn lowered_at(&self, now: f64) -> f64 {
        self.recovered_to.max(now) - QUIET
    }

    /// The provider's meter shows no more use than ours, of every limit.
    fn agreed(&mut self) {
        self.factor += (1.0 - self.factor) * (self.quiet * SHOWN).min(1.0);
    }

    /// Whether refusals are counted anew: after a quiet minute.
    pub(super) fn is_quiet(&self, now: f64) -> bool {
        self.factor >= 1.0 || now >= self.recovered_to
    }

    /// A refusal takes a little off; much, where what went well since the last one shows a lower
    /// rate (`shown` is the part of the limits in force that it is), or many of the calls since
    /// then were refused as well (`part` of them). Says whether the limits were lowered.
    pub(super) fn lower(&mut self, refused: f64, part: f64, shown: f64, now: f64) -> bool {
        let (whole, quiet) = (self.factor >= 1.0, self.is_quiet(now));
        let many = refused >= ENOUGH_REFUSED && part >= CLEARLY;
        let well = if many { shown.min(1.0 - part) } else { shown };
        if part >= 1.0 {
            return false;
        } else if well < 1.0 - AGAIN {
            self.factor = (self.factor * MOST_AT_ONCE.max(well)).max(LEAST);
        } else if whole || now >= self.lowered_at(now) + ONCE_IN {
            if self.factor > LOWEST {
                self.factor = (self.factor - if quiet { STEP } else { AGAIN }).max(LOWEST);
            } else if part >= STEP {
                self.factor = (self.factor * (1.0 - STEP)).max(LEAST);
            }
        } else {
            return false;
        }
        self.recovered_to = now + QUIET;
        true
    }

    pub(super) fn cut(&mut self, in_flight: f64, now: f64) {
        if self.cap <= 0.0 || now - self.capped_at > CUT_ONCE_IN {
            if self.cap <= 0.0 {
                (self.cap, self.peak) = (in_flight, in_flight);
            }
            self.cap = (self.cap.min(in_flight) * CUT).max(1.0);
            self.capped_at = now;
        }
    }

    pub(super) fn raise(&mut self) {
        if self.cap > 0.0 {
            self.cap += (RAISE * self.peak).max(1.0) / self.cap;
            if self.cap >= self.peak {
                self.cap = 0.0;
            }
        }
    }

    /// Who sets a limit knows better than what refusals have taught.
    pub(super) fn set(&mut self, model: &ModelQuota, changes: &LimitChanges) {
        for (limited, change) in changes.iter() {
            if *change != Change::Keep {
                self.factor = 1.0;
            }
            self.set[limited] = match (*change, limited) {
                (Change::Keep, _) => self.set[limited],
                (Change::Clear, _) => 0.0,
                (Change::Set(limit), Limited::Window(_)) => float(model.limits.with_margin(limit)),
                (Change::Set(limit), Limited::InFlight) => float(limit),
            };
        }
    }
}

/// What the answer to a call that was admitted at `admitted` says, `None` where nobody knows of it.
/// Tuning begins only when there is something to keep.
pub(super) fn observe(
    tuning: &mut Option<Tuning>,
    model: &ModelQuota,
    meter: &Meter,
    (total, held): (&PerDimension<f64>, &PerDimension<f64>),
    admitted: Option<f64>,
    now: f64,
) {
    let (limits, window) = (model.limits.effective().map(float), micros(model.limits.window));
    let mut agrees = admitted.is_some();
    for (dimension, limit) in limits.iter() {
        let limit = *limit;
        let stated =
            meter.limits[dimension].map_or(0.0, |stated| float(model.limits.with_margin(stated)));
        let observed = meter.used[dimension].map(float).zip(admitted);
        agrees = agrees && (limit <= 0.0 || (observed.is_some() && stated > 0.0));
        if limit <= 0.0 || (stated <= 0.0 && observed.is_none()) {
            continue;
        }
        let lower = stated > 0.0 && stated < limit * 0.999;
        let external = observed.map_or(0.0, |(observed, _)| observed - total[dimension]);
        let left = observed.map_or(0.0, |(_, admitted)| (now - admitted) / window * limit);
        let others = external > NOISE * limit + left + UNSURE * held[dimension];
        agrees = agrees && !others;
        if lower || others {
            tuning.get_or_insert_with(|| Tuning::new(now));
        }
        let Some(tuning) = tuning else { continue };
        if stated > 0.0 {
            tuning.stated[dimension] = if lower { stated } else { 0.0 };
            tuning.stated_in[dimension] = minute_of(now);
        }
        if observed.is_some() {
            // Never more than a window of it: it fades at the limit's rate.
            let fades = (external / limit).min(1.0) * window;
            tuning.external[dimension] = if others { now + fades } else { 0.0 };
        }
    }
    if let Some(tuning) = tuning.as_mut().filter(|_| agrees) {
        tuning.agreed();
    }
}

pub(super) fn minute_of(now: f64) -> f64 {
    (now / 60e6).floor().rem_euclid(MINUTES_KEPT)
}

/// How long ago a minute was.
pub(super) fn minutes_since(minute: f64, now: f64) -> f64 {
    (minute_of(now) - minute).rem_euclid(MINUTES_KEPT)
}

pub(super) fn configured(model: &ModelQuota) -> PerLimit<f64> {
    PerLimit {
        window: model.limits.effective().map(float),
        in_flight: model.limits.concurrent.map_or(0.0, float),
    }
}

pub(super) fn day_left(model: &ModelQuota, now: f64) -> f64 {
    let since = now + micros(model.limits.day_offset);
    FULL_DAY - (since - (since / FULL_DAY).floor() * FULL_DAY)
}

fn day(model: &ModelQuota, time: f64) -> f64 {
    ((time + micros(model.limits.day_offset)) / FULL_DAY).floor()
}
