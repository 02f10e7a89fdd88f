//! Reasons for which a model other than the route's first may answer a document.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_types::ModelId;

/// A model that a route may fall back to, from its first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// The route's first model.
    pub from: ModelId,
    /// The reason that allows it.
    #[serde(flatten)]
    pub because: Because,
}

/// The reason that allows a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// The route states that it is as good as the first.
    Equivalent,
    /// Both models answered the batch's question for the same documents.
    Compared {
        /// Documents with equal answers.
        agreed: u64,
        /// Documents that both have answered.
        compared: u64,
        /// 95 % confidence interval of the fraction of equal answers.
        interval: [f64; 2],
    },
    /// The route allows it unchecked.
    Unchecked,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equivalent => f.write_str("equivalent"),
            Self::Unchecked => f.write_str("unchecked"),
            Self::Compared { agreed, compared, interval: [from, to] } => write!(
                f,
                "compared: {agreed} of {compared} documents agree ({:.1} % to {:.1} %)",
                from * 100.0,
                to * 100.0
            ),
        }
    }
}
