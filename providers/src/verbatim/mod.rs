//! Requests in a vendor's own form that are sent unchanged: the body of the vendor's client, with
//! the provider's key and the vendor's name of the model.
//!
//! One HTTP request, never a second, as with every call. The reply is status, headers and bytes as
//! they arrive, so that events pass as events; [`VerbatimReply::whole`] collects it and reads
//! errors.

mod fields;
mod operation;
mod reply;
mod words;

use http::HeaderMap;

pub use self::{
    fields::{Fields, FieldsError},
    operation::Operation,
    reply::VerbatimReply,
};
pub(crate) use self::{reply::Sender, words::words};

/// A request in the vendor's own form.
#[derive(Debug, Clone, Copy)]
pub struct Verbatim<'a> {
    /// The operation.
    pub operation: Operation,
    /// The vendor's name of the model; it replaces the one in the body.
    pub model: &'a str,
    /// The body.
    pub body: &'a Fields,
    /// Headers sent in addition to the provider's own, which they override: the version of an API,
    /// a beta. The key is always the provider's.
    pub headers: &'a HeaderMap,
}

#[cfg(test)]
mod tests;
