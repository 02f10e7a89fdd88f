//! What may go: a plan's numbers, each with the reason that people are shown. Times are microseconds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dimension::{Amounts, PerDimension};

/// Amounts with fractions.
pub(crate) type Units = PerDimension<f64>;

/// Whole amounts as such.
pub(crate) fn units(amounts: &Amounts) -> Units {
    amounts.map(crate::number::float)
}

/// What the mechanism keeps to, exactly, until another plan comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// No longer wait is told: soon more is known.
    pub horizon: f64,
    /// Calls at once; 0 for no limit.
    pub concurrent: f64,
    /// `None` is no limit.
    pub limits: PerDimension<Option<Allowance>>,
}

/// One dimension of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Units a microsecond.
    pub rate: Reasoned,
    /// Units that may be drawn ahead of the rate.
    pub capacity: Reasoned,
    /// Units that any window may have; infinite where there is none.
    pub window: Reasoned,
    /// A call of more never fits.
    pub most: f64,
}

/// A number and why it is what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reasoned {
    /// The number.
    pub value: f64,
    /// The reason.
    pub why: Why,
}

/// Why a plan's number is what it is.
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
    /// The provider refused, and let through so much between refusals.
    Refused,
    /// Nothing is known yet.
    First,
    /// No answer has told what the estimates are worth.
    Unproven,
    /// So much went well, and a step more is tried.
    Explored,
    /// A burst of more was refused.
    TooDeep,
    /// As much as is ever drawn.
    Full,
    /// A window may be strict.
    Strict,
    /// The provider's meter comes back evenly: there is no window.
    Even,
}

impl Reasoned {
    /// This number for this reason.
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
            Self::Refused => "the provider let through so much between refusals",
            Self::First => "nothing is known of the provider yet",
            Self::Unproven => "no answer has told yet what the estimates are worth",
            Self::Explored => "a burst of three quarters of it went well",
            Self::TooDeep => "a burst of more was refused",
            Self::Full => "the deepest burst that is drawn of such a provider",
            Self::Strict => "the provider may count a strict window",
            Self::Even => "the provider's meter comes back evenly",
        })
    }
}

impl Plan {
    /// A call's work: the part of a limit that it takes most of; where calls at once alone are limited,
    /// one of them.
    pub(crate) fn work_of(&self, amounts: &Units) -> f64 {
        let parts = self.limits.iter().filter_map(|(it, limit)| Some(amounts[it] / (*limit)?.most));
        let at_once = || if self.concurrent > 0.0 { 1.0 / self.concurrent } else { 0.0 };
        parts.reduce(f64::max).unwrap_or_else(at_once)
    }

    /// Rate and capacity in work: of the dimension that has least; nothing where none is limited.
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
        crate::number::whole((self.rate.value * crate::numbers::MINUTE).round_ties_even())
    }

    /// Whole units that may be drawn at once.
    pub fn at_once(&self) -> u64 {
        crate::number::whole(self.capacity.value)
    }

    /// What is drawn, where what fills the window counts as drawn.
    pub(crate) fn level(&self, drawn: f64, total: f64) -> f64 {
        let room = (self.window.value - total).max(0.0);
        drawn.max(self.capacity.value - room)
    }
}
