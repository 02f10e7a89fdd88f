//! One model's limits, lanes and charging rules.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tidegate_types::{Charge, Lane, ModelId, Usage};

use crate::amounts::{Amounts, Dimension};

/// What a provider allows in a minute, as it states it. `None` is no limit of that kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Calls a minute.
    pub requests: Option<u64>,
    /// Input tokens a minute.
    pub input: Option<u64>,
    /// Output tokens a minute.
    pub output: Option<u64>,
    /// Input and output tokens a minute, counted together.
    pub combined: Option<u64>,
    /// Calls at once.
    pub concurrent: Option<u64>,
    /// Calls a day.
    pub requests_per_day: Option<u64>,
    /// Input and output tokens a day, counted together.
    pub tokens_per_day: Option<u64>,
    /// By how much the provider's day begins before 00:00 UTC. Default 0; a day that begins at
    /// 00:00 Pacific standard time begins 16 h before the next UTC day.
    pub day_offset: Duration,
    /// The part of each limit that is used. Default 0.98: with [`Self::window`], no refusal by any
    /// of seven provider models, strict sliding windows and 500 ms of skew included, at 96.7 % use.
    pub margin: f64,
    /// The window in which the limits hold. Default 60.5 s: the half second covers the skew between
    /// our clock and the provider's.
    pub window: Duration,
    /// How far calls may run ahead of an even pace. Default 1 s; providers that enforce "60 a
    /// minute" as "1 a second" refuse more.
    pub burst: Duration,
    /// A call that has outlived the window counts among the calls at once for this long after its
    /// admission or its last renewal. Default 120 s; a live permit renews its lease well before.
    /// Never shorter than the window and a half.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: None,
            input: None,
            output: None,
            combined: None,
            concurrent: None,
            requests_per_day: None,
            tokens_per_day: None,
            day_offset: Duration::ZERO,
            margin: 0.98,
            window: Duration::from_millis(60_500),
            burst: Duration::from_secs(1),
            lease: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// The limit of one dimension as stated.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Requests => self.requests,
            Dimension::Input => self.input,
            Dimension::Output => self.output,
            Dimension::Combined => self.combined,
        }
    }

    /// The lease in force.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease.max(self.window.mul_f64(1.5))
    }

    /// What may be admitted in one window: each limit times the margin, rounded down but never to
    /// nothing; 0 for none.
    #[must_use]
    pub fn effective(&self) -> Amounts {
        Amounts(
            Dimension::ALL
                .map(|dimension| self.get(dimension).map_or(0, |limit| self.with_margin(limit))),
        )
    }

    /// A limit times the margin, rounded down but never to nothing.
    #[must_use]
    pub fn with_margin(&self, limit: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "limits lie far below 2^53"
        )]
        let part = (limit as f64 * self.margin) as u64;
        part.max(1)
    }
}

/// What a limit or a lane may not be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// A limit of 0 would admit nothing, ever.
    #[error("the limit on {0} is 0, which would admit nothing; leave it out for no limit")]
    Zero(&'static str),
    /// Without any limit there is nothing to keep.
    #[error("there is no limit; give at least one of rpm, tpm, itpm, otpm, rpd, tpd, concurrent")]
    None,
    /// The margin is no part of 1.
    #[error("margin is {0}; it must lie above 0 and not above 1")]
    Margin(f64),
    /// A window or burst of nothing.
    #[error("{0} must be longer than 0")]
    Duration(&'static str),
    /// There must be a lane.
    #[error("there is no lane; define at least one")]
    NoLane,
    /// A lane's share or ceiling is no part of 1.
    #[error("lane {lane}: {what} is {value}; it must lie between 0 and 1")]
    Share {
        /// The lane.
        lane: Lane,
        /// `share` or `burst`.
        what: &'static str,
        /// As given.
        value: f64,
    },
    /// Together the lanes are promised more than there is.
    #[error("the lanes' shares add up to {0:.3}; together they must not exceed 1")]
    Sum(f64),
}

/// A lane's part of each limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Guaranteed, whatever the other lanes do.
    pub guaranteed: f64,
    /// The most it may borrow when the others are idle.
    pub ceiling: f64,
}

/// The lanes of all models, ordered by name: a lane's place in that order is its number in Redis.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes(Vec<(Lane, Share)>);

impl Lanes {
    /// Checks shares and ceilings.
    ///
    /// # Errors
    /// [`LimitError`] when there is no lane, a part lies outside 0..=1, or the shares exceed 1
    /// together.
    pub fn new(lanes: BTreeMap<Lane, Share>) -> Result<Self, LimitError> {
        if lanes.is_empty() {
            return Err(LimitError::NoLane);
        }
        for (lane, share) in &lanes {
            for (what, value) in [("share", share.guaranteed), ("burst", share.ceiling)] {
                if !(0.0..=1.0).contains(&value) {
                    return Err(LimitError::Share { lane: lane.clone(), what, value });
                }
            }
        }
        let sum: f64 = lanes.values().map(|share| share.guaranteed).sum();
        if sum > 1.0 + 1e-9 {
            return Err(LimitError::Sum(sum));
        }
        Ok(Self(lanes.into_iter().collect()))
    }

    /// The whole of every limit for one lane, named `batch`.
    #[must_use]
    pub fn single() -> Self {
        Self(vec![(Lane::default(), Share { guaranteed: 1.0, ceiling: 1.0 })])
    }

    /// The lane's place, counted from 0.
    #[must_use]
    pub fn index(&self, lane: &Lane) -> Option<usize> {
        self.0.iter().position(|(name, _)| name == lane)
    }

    /// Names and shares in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Lane, Share)> {
        self.0.iter()
    }
}

/// One model as the limiter knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelQuota {
    /// The model.
    pub id: ModelId,
    /// Its limits.
    pub limits: Limits,
    /// What counts towards them.
    pub charge: Charge,
    /// Who may use how much of them.
    pub lanes: Arc<Lanes>,
}

impl ModelQuota {
    /// Checks a model's limits.
    ///
    /// # Errors
    /// [`LimitError`] says which value cannot be and what to write instead.
    pub fn new(
        id: ModelId,
        limits: Limits,
        charge: Charge,
        lanes: Arc<Lanes>,
    ) -> Result<Self, LimitError> {
        let stated = [
            ("requests", limits.requests),
            ("input", limits.input),
            ("output", limits.output),
            ("tokens", limits.combined),
            ("calls at once", limits.concurrent),
            ("requests a day", limits.requests_per_day),
            ("tokens a day", limits.tokens_per_day),
        ];
        if let Some((what, _)) = stated.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(LimitError::Zero(what));
        }
        if stated.iter().all(|(_, limit)| limit.is_none()) {
            return Err(LimitError::None);
        }
        if !(limits.margin > 0.0 && limits.margin <= 1.0) {
            return Err(LimitError::Margin(limits.margin));
        }
        if limits.window.is_zero() {
            return Err(LimitError::Duration("window"));
        }
        if limits.burst.is_zero() {
            return Err(LimitError::Duration("burst"));
        }
        Ok(Self { id, limits, charge, lanes })
    }

    /// Amounts of one call with so many tokens.
    #[must_use]
    pub fn amounts(&self, input: u64, output: u64) -> Amounts {
        Amounts([1, input, output, self.charge.combined(input, output)])
    }

    /// Amounts that a finished call is charged for.
    #[must_use]
    pub fn used(&self, usage: &Usage, max_output_tokens: u64) -> Amounts {
        let mut amounts = self.amounts(self.charge.input(usage), usage.output);
        if !self.charge.unused_returns {
            amounts.0[3] = amounts.0[3].max(max_output_tokens);
        }
        amounts
    }

    /// Amounts that a call is charged for which was refused, or failed before any work: no tokens,
    /// and a request where the provider counts such calls.
    #[must_use]
    pub fn unused(&self) -> Amounts {
        Amounts([u64::from(self.charge.failed_calls), 0, 0, 0])
    }

    /// This model with `1 / parts` of its limits: a worker's own share while Redis is away.
    #[must_use]
    pub fn share(&self, parts: u64) -> Self {
        let parts = parts.max(1);
        let part = |limit: Option<u64>| limit.map(|limit| (limit / parts).max(1));
        let limits = Limits {
            requests: part(self.limits.requests),
            input: part(self.limits.input),
            output: part(self.limits.output),
            combined: part(self.limits.combined),
            concurrent: part(self.limits.concurrent),
            requests_per_day: part(self.limits.requests_per_day),
            tokens_per_day: part(self.limits.tokens_per_day),
            ..self.limits
        };
        Self { limits, ..self.clone() }
    }
}
