//! The content of a document that is sent to the provider.
//!
//! * [`content`]: its text, or its pages
//! * `earlier`: what there is of it from before: its result, the answer of another batch, its text

pub mod content;
pub(crate) mod earlier;
