//! What answers should be, as a batch's author knows it: JSONL of `{"id", "expected"}`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use tidegate_types::DocumentId;

use super::{job::resolve, jsonl::lines};
use crate::{
    failure::{Failure, OfStore as _},
    storage::Storage,
};

/// It is held whole while a batch ends: at most so many bytes.
const MOST: u64 = 64 << 20;

/// What is expected of each document, by its id.
#[derive(Debug, Default)]
pub(crate) struct Truth(HashMap<String, Value>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    expected: Value,
}

impl Truth {
    /// Reads it.
    ///
    /// # Errors
    /// `InvalidInput` names the line that is wrong; `Transient` when the store fails.
    pub(crate) async fn read(storage: &Storage, uri: &str) -> Result<Self, Failure> {
        let location = resolve(storage, "truth", uri)?;
        let of_field = |error| Failure::of_field("truth", error);
        if location.size().await.map_err(of_field)?.is_some_and(|size| size > MOST) {
            return Err(Failure::invalid_input(format!(
                "truth {uri} is larger than {} MiB; give what is expected of a sample",
                MOST >> 20
            )));
        }
        let bytes = location.read().await.map_err(of_field)?;
        let mut rows = HashMap::new();
        for (number, line) in (1..).zip(lines(&bytes)) {
            let said = |why: String| {
                Failure::invalid_input(format!(
                    "truth {uri}, row {number}: {why}; each row is {{\"id\": …, \"expected\": …}}"
                ))
            };
            let Row { id, expected } =
                serde_json::from_slice(&line).map_err(|error| said(error.to_string()))?;
            let key = key(&id);
            if rows.insert(key, expected).is_some() {
                return Err(said(format!("{id} is there twice")));
            }
        }
        if rows.is_empty() {
            return Err(Failure::invalid_input(format!("truth {uri} has no rows")));
        }
        Ok(Self(rows))
    }

    /// What is expected of a document, if anything is.
    pub(crate) fn of(&self, id: &DocumentId) -> Option<&Value> {
        self.0.get(id.as_str())
    }
}

/// A document is named by its id, or by its path below the source, of which the id is made.
fn key(id: &str) -> String {
    let is_id = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '#'));
    if is_id { id.to_owned() } else { DocumentId::from_relative_path(id).to_string() }
}
