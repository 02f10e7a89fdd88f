//! A plan: the numbers by which calls are admitted, each with the reason that is shown to people.
//! Times are microseconds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    conversions::{float, whole},
    dimension::{Amounts, PerDimension},
};

/// Amounts with fractions.
pub(crate) type Units = PerDimension<f64>;

/// Converts whole amounts.
pub(crate) fn units(amounts: &Amounts) -> Units {
    amounts.map(float)
}

/// The numbers that the mechanism follows exactly until the next plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The longest wait given: by then more will be known.
    pub horizon: f64,
    /// Calls at once; 0 for no limit.
    pub concurrent: f64,
    /// Each dimension's allowance; `None` for no limit.
    pub limits: PerDimension<Option<Allowance>>,
}

/// One dimension of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Units a microsecond.
    pub rate: Reasoned,
    /// Units that may be drawn ahead of the rate.
    pub capacity: Reasoned,
    /// Units allowed in any window; infinite for no limit on windows.
    pub window: Reasoned,
    /// The largest call that can ever fit.
    pub most: f64,
}

/// A number and its reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reasoned {
    /// The number.
    pub value: f64,
    /// The reason.
    pub why: Why,
}

/// The reason of a plan's number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// As it is configured.
    #[default]
    Configured,
    /// An operator has set it.
    Set,
    /// The provider states less than is configured.
    Stated,
    /// The rate that the provider let through between refusals.
    Refused,
    /// Nothing is known yet.
    First,
    /// No answer has checked the estimates yet.
    Unproven,
    /// The deepest burst went well, so one step more is tried.
    Explored,
    /// A burst of more was refused.
    TooDeep,
    /// The deepest burst that is ever drawn.
    Full,
    /// The provider may count a strict window.
    Strict,
    /// The provider's meter refills evenly: there is no window.
    Even,
}

impl Reasoned {
    /// A number with its reason.
    pub(crate) fn new(value: f64, why: Why) -> Self {
        Self { value, why }
    }

    /// The smaller.
    pub(crate) fn min(self, other: Self) -> Self {
        if other.value < self.value { other } else { self }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "as configured",
            Self::Set => "as an operator has set it",
            Self::Stated => "the provider states less than is configured",
            Self::Refused => "what the provider let through between two refusals",
            Self::First => "nothing is known of the provider yet",
            Self::Unproven => "no answer has checked the estimates yet",
            Self::Explored => "a burst of three quarters of this went well",
            Self::TooDeep => "a burst of more was refused",
            Self::Full => "the deepest burst that is tried with this kind of provider",
            Self::Strict => "the provider may count a strict window",
            Self::Even => "the provider's meter refills evenly",
        })
    }
}

impl Plan {
    /// A call's work: the largest part that it takes of a limit. Where only calls at once are
    /// limited, one part of them.
    pub(crate) fn work_of(&self, amounts: &Units) -> f64 {
        let parts = self.limits.iter().filter_map(|(it, limit)| Some(amounts[it] / (*limit)?.most));
        let at_once = || if self.concurrent > 0.0 { 1.0 / self.concurrent } else { 0.0 };
        parts.reduce(f64::max).unwrap_or_else(at_once)
    }

    /// Rate and capacity in work, each from its tightest dimension; 0 without limits.
    pub(crate) fn work(&self) -> (f64, f64) {
        let least = |number: fn(&Allowance) -> f64| {
            let all = self.limits.iter().filter_map(|(_, limit)| limit.as_ref().map(number));
            all.min_by(f64::total_cmp).unwrap_or(0.0)
        };
        (
            least(|limit| limit.rate.value / limit.most),
            least(|limit| limit.capacity.value / limit.most),
        )
    }
}

impl Allowance {
    /// Whole units a minute.
    pub fn a_minute(&self) -> u64 {
        whole((self.rate.value * crate::numbers::MINUTE).round_ties_even())
    }

    /// Whole units that may be drawn at once.
    pub fn at_once(&self) -> u64 {
        whole(self.capacity.value)
    }

    /// The drawn amount, if the content of the window counts as drawn.
    pub(crate) fn level(&self, drawn: f64, total: f64) -> f64 {
        let room = (self.window.value - total).max(0.0);
        drawn.max(self.capacity.value - room)
    }
}
