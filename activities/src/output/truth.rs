//! The expected answers that a batch's author knows: JSONL of `{"id", "expected"}`. The object is read
//! when the batch is planned, and copied to its job: later changes of the author's object must not fail
//! answers that are bought.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tidegate_types::DocumentId;

use super::{job::resolve, jsonl::lines};
use crate::{
    failure::{Failure, OfStore as _},
    storage::{Location, Storage},
};

/// Largest object, in bytes: it is held in memory while a batch ends.
const MOST: u64 = 64 << 20;

/// The expected answer of each document, by its id.
#[derive(Debug, Default)]
pub(crate) struct Truth(HashMap<String, Value>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    expected: Value,
}

impl Truth {
    /// Reads and checks the author's object.
    ///
    /// # Errors
    /// `InvalidInput` names the line that is wrong; `Transient` when the store fails.
    pub(crate) async fn checked(storage: &Storage, uri: &str) -> Result<Bytes, Failure> {
        let location = resolve(storage, "truth", uri)?;
        let of_field = |error| Failure::of_field("truth", error);
        if location.size().await.map_err(of_field)?.is_some_and(|size| size > MOST) {
            return Err(Failure::invalid_input(format!(
                "truth {uri} is larger than {} MiB; give what is expected of a sample",
                MOST >> 20
            )));
        }
        let bytes = location.read().await.map_err(of_field)?;
        let rows = Self::parse(&bytes)
            .map_err(|why| Failure::invalid_input(format!("truth {uri}, {why}")))?;
        if rows.0.is_empty() {
            return Err(Failure::invalid_input(format!("truth {uri} has no rows")));
        }
        Ok(bytes)
    }

    /// Copies it to a batch's job.
    pub(crate) async fn keep(folder: &Location, truth: Bytes) -> Result<(), Failure> {
        Ok(kept(folder).write(truth).await?)
    }

    /// Reads the copy of a batch's job, if there is one.
    pub(crate) async fn of_job(folder: &Location) -> Result<Option<Self>, Failure> {
        let Some(bytes) = kept(folder).read_if_there().await? else { return Ok(None) };
        let damaged = |why| Failure::invalid_input(format!("{}, {why}", kept(folder)));
        Self::parse(&bytes).map(Some).map_err(damaged)
    }

    fn parse(bytes: &Bytes) -> Result<Self, String> {
        let mut rows = HashMap::new();
        for (number, line) in (1..).zip(lines(bytes)) {
            let said = |why: String| {
                format!("row {number}: {why}; each row is {{\"id\": …, \"expected\": …}}")
            };
            let Row { id, expected } =
                serde_json::from_slice(&line).map_err(|error| said(error.to_string()))?;
            if rows.insert(key(&id), expected).is_some() {
                return Err(said(format!("{id} is there twice")));
            }
        }
        Ok(Self(rows))
    }

    /// The expected answer of a document, if there is one.
    pub(crate) fn of(&self, id: &DocumentId) -> Option<&Value> {
        self.0.get(id.as_str())
    }
}

/// The author may name a document by its id, or by its path below the source, from which the id is
/// made.
fn key(id: &str) -> String {
    let is_id = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '#'));
    if is_id { id.to_owned() } else { DocumentId::from_relative_path(id).to_string() }
}

fn kept(folder: &Location) -> Location {
    folder.child("truth.jsonl")
}
