//! What of a document goes to the provider.
//!
//! * [`content`]: its text, or its pages; `readings`: texts of documents that come back
//! * `done`: whether its answer is there already

pub mod content;
pub(crate) mod done;
pub(crate) mod readings;
