//! The limits of a provider.

use std::time::Duration;

use tidegate_types::Lane;

use crate::{
    conversions::{float, whole},
    dimension::{Amounts, DayLimit, Dimension, Limited, PerDimension},
};

/// Limits as the provider states them; `None` for no limit of that kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Limits of a minute.
    pub per_minute: PerDimension<Option<u64>>,
    /// Calls at once.
    pub concurrent: Option<u64>,
    /// Calls a day.
    pub requests_per_day: Option<u64>,
    /// Input and output tokens a day, counted together.
    pub tokens_per_day: Option<u64>,
    /// Time by which the provider's day begins before 00:00 UTC. Default 0; a day that begins at
    /// 00:00 Pacific standard time begins 16 h before the next UTC day.
    pub day_offset: Duration,
    /// The part of each limit that is used. Default 0.98: with [`Self::window`], no refusal by any
    /// of seven provider models, strict sliding windows and 500 ms of skew included, at 96.7 % use.
    pub margin: f64,
    /// The window in which the limits hold. Default 60.5 s: the half second covers the skew between
    /// our clock and the provider's.
    pub window: Duration,
    /// The amount that may be drawn at once, as a time at the rate; `None`, the default, if it is
    /// learned. With one second, "60 a minute" is kept as "1 a second".
    pub burst: Option<Duration>,
    /// Whether the limits are known to be token buckets as deep as a minute, refilled evenly: full
    /// bucket and refill may both be used, until a refusal. Default false.
    pub token_bucket: bool,
    /// A call that has outlived the window counts as in flight for this long after its admission or
    /// its last renewal. Default 120 s; a live permit renews its lease well before. Never shorter
    /// than the window and a half.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_minute: PerDimension::default(),
            concurrent: None,
            requests_per_day: None,
            tokens_per_day: None,
            day_offset: Duration::ZERO,
            margin: 0.98,
            window: Duration::from_millis(60_500),
            burst: None,
            token_bucket: false,
            lease: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// Sets the limit of a minute.
    pub fn with(mut self, dimension: Dimension, limit: u64) -> Self {
        self.per_minute[dimension] = Some(limit);
        self
    }

    /// A limit as stated.
    pub fn get(&self, limited: Limited) -> Option<u64> {
        match limited {
            Limited::Window(dimension) => self.per_minute[dimension],
            Limited::InFlight => self.concurrent,
        }
    }

    /// A limit of the day as stated.
    pub fn day(&self, day: DayLimit) -> Option<u64> {
        match day {
            DayLimit::Requests => self.requests_per_day,
            DayLimit::Tokens => self.tokens_per_day,
        }
    }

    /// The lease in force.
    pub fn lease(&self) -> Duration {
        self.lease.max(self.window.mul_f64(1.5))
    }

    /// The maximum that is admitted in one window: each limit times the margin, rounded down but at
    /// least 1; 0 for no limit.
    pub fn effective(&self) -> Amounts {
        self.per_minute.map(|limit| limit.map_or(0, |limit| self.with_margin(limit)))
    }

    /// Time that an even pace takes for the amounts, in the dimension where it is longest.
    pub(crate) fn pace_of(&self, amounts: &Amounts) -> Duration {
        let limits = self.effective();
        let part = |(it, amount): (Dimension, &u64)| float(*amount) / float(limits[it].max(1));
        let counted = amounts.iter().filter(|(it, _)| limits[*it] > 0);
        self.window.mul_f64(counted.map(part).fold(0.0, f64::max).min(1.0))
    }

    /// A limit times the margin, rounded down but at least 1.
    pub fn with_margin(&self, limit: u64) -> u64 {
        whole(float(limit) * self.margin).max(1)
    }
}

/// An invalid limit or lane.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// A limit of 0, which would never admit anything.
    #[error("the limit on {0} is 0, which would admit nothing; leave it out for no limit")]
    Zero(&'static str),
    /// A limit that the scripts could not count exactly.
    #[error("the limit on {0} is above 2^53; leave it out for no limit")]
    TooLarge(&'static str),
    /// There is no limit at all.
    #[error("there is no limit; give at least one of rpm, tpm, itpm, otpm, rpd, tpd, concurrent")]
    None,
    /// The margin is not a part of 1.
    #[error("margin is {0}; it must lie above 0 and not above 1")]
    Margin(f64),
    /// A window or burst of zero.
    #[error("{0} must be longer than 0")]
    Duration(&'static str),
    /// There is no lane.
    #[error("there is no lane; define at least one")]
    NoLane,
    /// A lane's share or ceiling is not a part of 1.
    #[error("lane {lane}: {what} is {value}; it must lie between 0 and 1")]
    Share {
        /// The lane.
        lane: Lane,
        /// `share` or `burst`.
        what: &'static str,
        /// As given.
        value: f64,
    },
    /// A lane's ceiling is 0 or below its share.
    #[error("lane {lane}: burst is {burst}; it must lie above 0 and not below its share, {share}")]
    Ceiling {
        /// The lane.
        lane: Lane,
        /// Its guaranteed share.
        share: f64,
        /// Its ceiling.
        burst: f64,
    },
    /// The lanes' shares add up to more than 1.
    #[error("the lanes' shares add up to {0:.3}; together they must not exceed 1")]
    Sum(f64),
}
