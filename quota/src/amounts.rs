//! The dimensions that a provider counts, and amounts of them.

use std::fmt;

/// What a limit counts. The numbers are those of the wire protocol (`lua/README.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Calls.
    Requests = 1,
    /// Input tokens.
    Input = 2,
    /// Output tokens.
    Output = 3,
    /// Input and output tokens together.
    Combined = 4,
}

impl Dimension {
    /// All of them, in the order of the wire protocol.
    pub const ALL: [Self; 4] = [Self::Requests, Self::Input, Self::Output, Self::Combined];

    /// The name in configuration, output and metric labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Input => "input",
            Self::Output => "output",
            Self::Combined => "tokens",
        }
    }

    /// Where the dimension stands in [`Self::ALL`] and in arrays of amounts.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize - 1
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        usize::try_from(code).ok()?.checked_sub(1).and_then(|index| Self::ALL.get(index).copied())
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An amount of each dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts(pub [u64; 4]);

impl Amounts {
    /// The amount of one dimension.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> u64 {
        self.0[dimension.index()]
    }
}
