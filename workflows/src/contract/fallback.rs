//! Why a document may be answered by a model that is not the first of its route.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_types::ModelId;

/// A model that a route may fall back to, from its first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// The route's first model.
    pub from: ModelId,
    /// What allows it.
    #[serde(flatten)]
    pub because: Because,
}

/// What allows a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// The route says that it is as good as the first.
    Equivalent,
    /// Both were asked the batch's question about the same documents.
    Compared {
        /// Documents of which they say the same.
        agreed: u64,
        /// All that both have answered.
        compared: u64,
        /// It holds the part of all such documents in 95 of 100 samples.
        interval: [f64; 2],
    },
    /// The route says that nobody has looked.
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
