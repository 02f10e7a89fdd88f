//! The thinking effort of a reasoning model.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The amount that a reasoning model thinks before it answers. Each vendor expresses it
/// differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all; refused for a model whose thinking cannot be switched off.
    None,
    /// A little.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::None, Self::Low, Self::Medium, Self::High];

    /// The word in inputs and configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Approximate maximum of thinking tokens. Most vendors give no figures; these are Google's for
    /// its models that take a budget (ai.google.dev/gemini-api/docs/openai#thinking). They widen an
    /// answer's bound and are the first estimates; the real use of calls is learned.
    pub fn thinking_tokens(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Low => 1_024,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Effort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|effort| effort.as_str() == text)
            .ok_or_else(|| format!("\"{text}\" is no effort; write none, low, medium or high"))
    }
}
