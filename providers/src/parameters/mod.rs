//! Parameters that a batch or a model's section states in addition to the question: fields of the
//! vendor's request, and the thinking effort.
//!
//! Each vendor has a small table (`parameters.rs` in its folder): the names with their types, their
//! places in the vendor's body, the words for the effort, and what some models refuse. Equal
//! parameters have the same name at every vendor (`temperature`, `top_p`, `seed`, `stop`,
//! `service_tier`, `thinking_budget`); the vendor's own name is accepted too. A field that the
//! table does not know is sent where the vendor takes it, if the author sets `allow_unknown`.

mod table;
mod takes;

use serde_json::{Map, Value};
use tidegate_types::Effort;

pub use table::ALLOW_UNKNOWN;
pub(crate) use table::{Refusal, Row, Table, merge};
pub(crate) use takes::Takes;

/// The parameters of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters<'a> {
    /// The thinking effort; the model's default if absent.
    pub effort: Option<Effort>,
    /// Fields by name, as returned by [`Dialect::check`](crate::Dialect::check).
    pub fields: Option<&'a Map<String, Value>>,
}

#[cfg(test)]
mod tests;
