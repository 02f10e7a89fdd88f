//! What may go: a plan's numbers, each with the reason that people are shown.

use std::fmt;

use tidegate_quota::PerDimension;

/// What the mechanism keeps to, exactly, until another plan comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    /// Counts the plans of this quota; a plan made from another one's reading is refused.
    pub(crate) version: u64,
    /// No wait of more seconds is told: soon more is known.
    pub(crate) horizon: f64,
    /// `None` is no limit.
    pub(crate) limits: PerDimension<Option<Allowance>>,
}

/// One dimension of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Allowance {
    /// Units a second.
    pub(crate) rate: Reasoned,
    /// Units that may be drawn ahead of the rate.
    pub(crate) capacity: Reasoned,
    /// Units that any window may have.
    pub(crate) window: Reasoned,
    /// A call of more never fits.
    pub(crate) most: f64,
}

/// A number and why it is what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reasoned {
    pub(crate) value: f64,
    pub(crate) why: Why,
}

/// Why a plan's number is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// As it is configured.
    Configured,
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
            Self::Refused => "the provider let through so much between refusals",
            Self::First => "nothing is known yet",
            Self::Unproven => "no answer has told yet what the estimates are worth",
            Self::Explored => "half of it went well",
            Self::TooDeep => "a burst of more was refused",
            Self::Full => "a full bucket, less what estimates may be wrong by",
            Self::Strict => "the provider may count a strict window",
            Self::Even => "the provider's meter comes back evenly",
        })
    }
}

impl Plan {
    /// Nothing is limited, and all may change at once.
    pub(crate) const NONE: Self = Self {
        version: 0,
        horizon: 0.0,
        limits: PerDimension { requests: None, input: None, output: None, combined: None },
    };

    /// A call's work: the part of the limit that it takes most of.
    pub(crate) fn work_of(&self, amounts: &PerDimension<f64>) -> f64 {
        let parts = self.limits.iter().filter_map(|(it, limit)| Some(amounts[it] / (*limit)?.most));
        parts.fold(0.0, f64::max)
    }

    /// Rate and capacity in work: of the dimension that has least.
    pub(crate) fn work(&self) -> (f64, f64) {
        let least = |number: fn(&Allowance) -> f64| {
            let all = self.limits.iter().filter_map(|(_, limit)| limit.as_ref().map(number));
            all.fold(f64::INFINITY, f64::min)
        };
        (
            least(|limit| limit.rate.value / limit.most),
            least(|limit| limit.capacity.value / limit.most),
        )
    }

    /// A process's part, while it is alone.
    pub(crate) fn part(&self, part: f64) -> Self {
        let of = |number: Reasoned| Reasoned { value: number.value * part, ..number };
        let limits = self.limits.map(|limit| {
            limit.map(|limit| Allowance {
                rate: of(limit.rate),
                capacity: of(limit.capacity),
                window: of(limit.window),
                most: limit.most * part,
            })
        });
        Self { limits, ..*self }
    }
}
