//! Batch APIs: many requests at once, answered within a day, at a lower price and apart from the
//! limits per minute.
//!
//! As with single calls, no request is repeated: each function sends the stated requests once. Only
//! [`BatchApi::find`] reads as many pages of a list as it needs.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    call::{BoxFuture, Request},
    error::Error,
    verbatim::{Fields, Operation},
};

pub use crate::batch_endpoint::{Answer, Answers};

/// Price of a batch as a fraction of its requests' single price: half, at Anthropic, OpenAI and
/// Gemini.
pub const PRICE: f64 = 0.5;

/// A vendor's batch API.
pub trait BatchApi: Send + Sync + fmt::Debug {
    /// Writes one request as a line of a batch. `custom_id` names it there: 1 to 64 of `a-z`,
    /// `A-Z`, `0-9`, `_` and `-`.
    ///
    /// # Errors
    /// The request cannot be sent.
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error>;

    /// Writes a line with a body in the vendor's own form, unchanged except for the model's name.
    /// The provider must [take](crate::Provider::takes) the operation.
    ///
    /// # Errors
    /// The body cannot be written.
    fn line_as_it_is(
        &self,
        custom_id: &str,
        operation: Operation,
        model: &str,
        body: &Fields,
    ) -> Result<Vec<u8>, Error>;

    /// Submits a batch of [`Self::line`]s, or of [unchanged bodies](Self::line_as_it_is), all of
    /// this operation; returns its id. `name` is stored with the batch if the vendor allows notes;
    /// [`Self::find`] looks for it. Takes one request at Anthropic; two at OpenAI (a file and the
    /// batch); three at Gemini, where a file takes two.
    fn submit<'a>(
        &'a self,
        name: &'a str,
        operation: Option<Operation>,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>>;

    /// Finds batches that may have been submitted under this name, with this number of requests, at
    /// this time or later: for a worker that died before it stored the id. Finds at most one if the
    /// vendor stores notes; otherwise size and time must match, and clocks may differ by a minute.
    fn find<'a>(
        &'a self,
        name: &'a str,
        requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Whether the vendor stores notes, so that [`Self::find`] is certain.
    fn takes_notes(&self) -> bool;

    /// A batch's state.
    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>>;

    /// Asks to cancel the batch. Requests answered by then are kept, and charged.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes the stored requests of a batch, if the vendor keeps them until they are deleted:
    /// they contain documents.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// The answers of a batch that has ended, in any order.
    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>>;
}

/// A batch's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The provider works on it.
    Running,
    /// All requests have ended.
    Ended,
    /// The account's queue is full: the same batch can be submitted later.
    Full,
    /// Refused; holds the vendor's code. The vendor's messages may quote documents.
    Failed(String),
}
