//! The content of a document that is sent to the provider.
//!
//! * [`content`]: its text, or its pages; `stored_text`: stored texts of documents that are retried
//! * `existing_result`: whether its answer exists already

pub mod content;
pub(crate) mod existing_result;
pub(crate) mod stored_text;
