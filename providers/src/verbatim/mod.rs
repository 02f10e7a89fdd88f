//! Requests in a vendor's own form that are sent as they are: what a client of the vendor wrote, with
//! the provider's key and the vendor's name of the model.
//!
//! One HTTP request, never a second, as with every call. The reply is status, headers and bytes as
//! they come, so that events pass as events; [`VerbatimReply::whole`] collects it and says what an
//! error means.

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
    /// What is asked of the vendor.
    pub operation: Operation,
    /// The model, as the vendor calls it: it stands in the place of the body's own.
    pub model: &'a str,
    /// The body.
    pub body: &'a Fields,
    /// Sent beside the provider's own, and before them where both have one: the version of an API, a
    /// beta. The key is the provider's.
    pub headers: &'a HeaderMap,
}

#[cfg(test)]
mod tests;
