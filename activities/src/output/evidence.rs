//! The words of a document that an answer rests on.

use serde::{Deserialize, Serialize};

/// A quote, as the model gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The field of the answer that it is of, by its path; `answer` of one without a schema.
    pub field: String,
    /// Empty where the field has an answer, and no words for it.
    pub quote: String,
    /// The first page that it is on, from 1; `null` where there are no pages, or it is not found.
    pub page: Option<usize>,
    /// The part of a document that was read in parts, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// Whether it stands in the text that was sent; `null` where that is not known, because pages were
    /// sent as they look.
    pub found: Option<bool>,
}
