//! Batch APIs: many requests at once, answered within a day, at a lower price and apart from the
//! limits of a minute.
//!
//! As with single calls, nothing is sent twice: each function puts on the wire what it says, once. Only
//! [`BatchApi::find`] asks for as many pages of a list as it takes.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    call::{BoxFuture, Request},
    error::Error,
    verbatim::{Fields, Operation},
};

pub use crate::batch_endpoint::{Answer, Answers};

/// What a batch costs of what its requests would cost alone: half, at Anthropic, OpenAI and Gemini.
pub const PRICE: f64 = 0.5;

/// What a vendor's batch API does.
pub trait BatchApi: Send + Sync + fmt::Debug {
    /// One request, as it stands in a batch. `custom_id` names it there: 1 to 64 of `a-z`, `A-Z`,
    /// `0-9`, `_` and `-`.
    ///
    /// # Errors
    /// A request that cannot be sent.
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error>;

    /// The same of a body in the vendor's own form, as it is but for the model's name, of a provider that
    /// [takes](crate::Provider::takes) the operation.
    ///
    /// # Errors
    /// A body that cannot be written.
    fn line_as_it_is(
        &self,
        custom_id: &str,
        operation: Operation,
        model: &str,
        body: &Fields,
    ) -> Result<Vec<u8>, Error>;

    /// Hands in a batch of [`Self::line`]s, or of bodies [as they are](Self::line_as_it_is), all of this
    /// operation; its id. `name` is noted beside it where the vendor takes notes, and [`Self::find`]
    /// looks for it. One request at Anthropic; at OpenAI two, a file and the batch; at Gemini three, as
    /// a file takes two.
    fn submit<'a>(
        &'a self,
        name: &'a str,
        operation: Option<Operation>,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>>;

    /// The batches that may have been handed in under this name, with so many requests, at this
    /// time or later: for a worker that died before it could write down the id. One at most where
    /// the vendor takes notes; elsewhere size and time must do, and a clock may be a minute wrong.
    fn find<'a>(
        &'a self,
        name: &'a str,
        requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Whether [`Self::find`] goes by notes, and is sure.
    fn takes_notes(&self) -> bool;

    /// How far a batch is.
    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>>;

    /// Asks for the batch's end. What is answered by then is kept, and is paid for.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes the requests that were stored for a batch, where a vendor keeps them until they are
    /// deleted: documents are in them.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// The answers of a batch that has ended, in any order.
    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>>;
}

/// How far a batch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The provider works on it.
    Running,
    /// There are answers to all requests that will have any.
    Ended,
    /// The account has as many requests waiting as it may: the same batch is taken later.
    Full,
    /// Not taken; says why, in the vendor's code. Its sentences may quote documents.
    Failed(String),
}
