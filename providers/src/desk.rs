//! What differs from one vendor's batch API to another's, and knows nothing of prompts.

use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    batch::State,
    error::Error,
    exchange::{Lines, Reply},
    provider::BoxFuture,
};

/// One vendor's batches.
pub(crate) trait Desk: Send + Sync + fmt::Debug {
    /// One request of a batch; `body` is JSON.
    fn line(&self, custom_id: &str, body: &[u8]) -> Vec<u8>;
    fn submit<'a>(
        &'a self,
        name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<Reply, Error>>;
    /// The newest batches.
    fn list(&self) -> BoxFuture<'_, Result<Reply, Error>>;
    /// Whether a batch of that list is meant.
    fn is(&self, batch: &Value, name: &str, requests: usize, since: DateTime<Utc>) -> bool;
    fn takes_notes(&self) -> bool;
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>>;
    /// Removes what was stored for this batch; `None` where nothing is.
    fn forget<'a>(&'a self, batch: &'a Value) -> BoxFuture<'a, Result<Option<Reply>, Error>>;
    fn state(&self, batch: &Value) -> Option<State>;
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>>;
    /// The files with a batch's answers, as [`Self::open`] takes them.
    fn files(&self, batch: &Value) -> Vec<Vec<String>>;
    fn open<'a>(&'a self, file: &'a [String])
    -> BoxFuture<'a, Result<Result<Lines, Reply>, Error>>;
    /// The request's name, and the reply that it would have had alone.
    fn answer(&self, line: &Value) -> Option<(String, Option<Reply>)>;
}

/// A text in JSON.
pub(crate) fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}
