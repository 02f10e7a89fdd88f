//! The content of a document that is sent to the provider.
//!
//! * [`content`]: its text, or its pages; `readings`: stored texts of documents that are retried
//! * `done`: whether its answer exists already

pub mod content;
pub(crate) mod done;
pub(crate) mod readings;
