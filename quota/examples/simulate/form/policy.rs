//! The policy's side: what is configured, and which variant says what may go.

use tidegate_quota::PerDimension;

use super::{
    candidates, log::Reading, mechanism::Units, numbers::Numbers, one, plan::Plan, store::Variant,
};

/// What an operator states of a quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Configured {
    /// Limits of a window, times the margin.
    pub(crate) most: PerDimension<Option<f64>>,
    /// In seconds.
    pub(crate) window: f64,
    /// The part of the provider's rate that this leaves: margin, and a window longer than a minute.
    pub(crate) kept: f64,
    /// Known to be buckets as deep as the window.
    pub(crate) bucket: bool,
    /// Seconds of the rate that may be drawn, where that is not to be learned.
    pub(crate) burst: Option<f64>,
}

/// What a run of the policy comes to.
#[derive(Debug, Clone)]
pub(crate) struct Outcome<K> {
    pub(crate) knowledge: K,
    pub(crate) plan: Plan,
    /// To be added to what is drawn.
    pub(crate) change: Units,
}

/// What is known, by the variant that knows it.
#[derive(Debug, Clone)]
pub(crate) enum Knowledge {
    One(Box<one::Known>),
    Candidates(Box<candidates::Known>),
}

impl Knowledge {
    /// Nothing is known.
    pub(crate) fn new(variant: Variant) -> Self {
        match variant {
            Variant::One => Self::One(Box::default()),
            Variant::Candidates => Self::Candidates(Box::default()),
        }
    }

    /// What it takes to keep it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::One(known) => size_of_val(&**known),
            Self::Candidates(known) => size_of_val(&**known),
        }
    }

    /// A process's part, while it is alone.
    pub(crate) fn part(&self, part: f64) -> Self {
        match self {
            Self::One(known) => Self::One(Box::new(known.part(part))),
            Self::Candidates(known) => Self::Candidates(Box::new(known.part(part))),
        }
    }

    /// One run of the policy.
    pub(crate) fn run(
        self,
        reading: &Reading,
        configured: &Configured,
        numbers: &Numbers,
    ) -> Outcome<Self> {
        match self {
            Self::One(known) => {
                let Outcome { knowledge, plan, change } =
                    one::run(*known, reading, configured, numbers);
                Outcome { knowledge: Self::One(Box::new(knowledge)), plan, change }
            }
            Self::Candidates(known) => {
                let Outcome { knowledge, plan, change } =
                    candidates::run(*known, reading, configured, numbers);
                Outcome { knowledge: Self::Candidates(Box::new(knowledge)), plan, change }
            }
        }
    }
}
