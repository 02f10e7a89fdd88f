//! Quotes of a document that an answer rests on.

use serde::{Deserialize, Serialize};

/// A quote, as the model gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Path of the field of the answer; `answer` where there is no schema.
    pub field: String,
    /// Empty where the field has an answer and no quote was given.
    pub quote: String,
    /// The first page with the quote, from 1; `null` where there are no pages, or it was not found.
    pub page: Option<usize>,
    /// The part with the quote, from 1, of a document that was read in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// Whether the quote is in the text that was sent; `null` where that is unknown because pages were
    /// sent as pictures.
    pub found: Option<bool>,
}
