//! What a batch or a model's section states beyond the question: fields of the vendor's request,
//! and how much the model thinks.
//!
//! Each vendor has a small table (`parameters.rs` in its folder): the names with their types, where
//! they stand in the vendor's body, how effort is said, and what some models refuse. The names are
//! the same at every vendor where the thing is (`temperature`, `top_p`, `seed`, `stop`,
//! `service_tier`, `thinking_budget`); the vendor's own name is known beside it. A field that the
//! table does not know goes where the vendor takes it, if the author says `allow_unknown`.

mod table;
mod takes;

use serde_json::{Map, Value};
use tidegate_types::Effort;

pub use table::ALLOW_UNKNOWN;
pub(crate) use table::{Refusal, Row, Table, merge};
pub(crate) use takes::Takes;

/// How one call is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters<'a> {
    /// How much the model thinks; as much as it likes, if absent.
    pub effort: Option<Effort>,
    /// Fields by their names, as [`Dialect::check`](crate::Dialect::check) has returned them.
    pub fields: Option<&'a Map<String, Value>>,
}

impl Parameters<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.effort.is_none() && self.fields.is_none_or(Map::is_empty)
    }
}

#[cfg(test)]
mod tests;
