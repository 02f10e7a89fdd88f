//! The expected answers that a batch's author knows: JSONL of `{"id", "expected"}`. The object is
//! read when the batch is planned, and copied to its job, so that later changes of the author's
//! object do not fail answers that are bought.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tidegate_documents::records::memory_of;
use tidegate_types::DocumentId;

use crate::{
    failure::{Failure, field_fault},
    output::{
        agreement::Unmatched,
        job::resolve,
        jsonl::{json, objects},
    },
    storage::{Location, Storage},
};

/// Maximum size of the object, in bytes: it is held in memory while a batch ends.
const MOST: u64 = 64 << 20;

/// Maximum memory of its values, in bytes; they may take ninety times the bytes of the object.
const MAX_MEMORY: usize = 256 << 20;

/// Bytes that a row takes beside its ids and value.
const ROW_BYTES: usize = 200;

/// The expected answer of each document, by its id.
#[derive(Debug, Default)]
pub struct Truth(HashMap<String, Expected>);

#[derive(Debug)]
struct Expected {
    value: Value,
    /// The id as the author wrote it.
    id: String,
    /// From 1.
    line: u64,
    /// Whether a document of the source has this id.
    is_met: bool,
}

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
    pub async fn read_checked(storage: &Storage, uri: &str) -> Result<(Bytes, Self), Failure> {
        let location = resolve(storage, "truth", uri)?;
        let of_field = |error| field_fault("truth", error);
        if location.size().await.map_err(of_field)?.is_some_and(|size| size > MOST) {
            return Err(Failure::invalid_input(format!(
                "truth {uri} is larger than {} MiB; give the expected answers of a sample",
                MOST >> 20
            )));
        }
        let (bytes, _) = location.read_at_most(MOST).await.map_err(of_field)?;
        let rows = Self::parse(&bytes)
            .map_err(|why| Failure::invalid_input(format!("truth {uri}, {why}")))?;
        if rows.0.is_empty() {
            return Err(Failure::invalid_input(format!("truth {uri} has no rows")));
        }
        Ok((bytes, rows))
    }

    /// Copies it to a batch's job.
    pub(crate) async fn save(folder: &Location, truth: Bytes) -> Result<(), Failure> {
        Ok(copy_location(folder).write(truth).await?)
    }

    /// Records in the job of a sample which ids no document of the source has: the batch's end does
    /// not see the documents that are not in the sample.
    pub(crate) async fn save_unmet(&self, folder: &Location) -> Result<(), Failure> {
        Ok(unmet_location(folder).write(json(&self.unmet())?).await?)
    }

    /// The ids that no document of the source has, at the end of a batch that has met all of its
    /// documents.
    pub(crate) async fn read_unmet(&self, folder: &Location) -> Result<Unmatched, Failure> {
        let place = unmet_location(folder);
        match place.read_if_there().await? {
            None => Ok(self.unmet()),
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Failure::invalid_input(format!("{place} is damaged: {error}"))),
        }
    }

    /// Reads the copy of a batch's job, if there is one.
    pub(crate) async fn read_of_job(folder: &Location) -> Result<Option<Self>, Failure> {
        let Some(bytes) = copy_location(folder).read_if_there().await? else { return Ok(None) };
        let damaged = |why| Failure::invalid_input(format!("{}, {why}", copy_location(folder)));
        Self::parse(&bytes).map(Some).map_err(damaged)
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (mut rows, mut memory) = (HashMap::new(), 0);
        for (line, row) in objects(bytes, "a row") {
            let said = |why: String| {
                format!("line {line}: {why}; each row is {{\"id\": …, \"expected\": …}}")
            };
            let Row { id, expected } = row.map_err(said)?;
            memory += ROW_BYTES + 2 * id.len() + memory_of(&expected);
            if memory > MAX_MEMORY {
                return Err(format!(
                    "line {line}: the expected answers up to here take more than {} MiB of memory; give those of a sample",
                    MAX_MEMORY >> 20
                ));
            }
            let expected = Expected { value: expected, line, id, is_met: false };
            if let Some(twice) = rows.insert(key(&expected.id), expected) {
                return Err(said(format!("{} is there twice", twice.id)));
            }
        }
        Ok(Self(rows))
    }

    /// The expected answer of a document, if there is one.
    pub fn expected(&self, id: &str) -> Option<&Value> {
        self.0.get(id).map(|expected| &expected.value)
    }

    /// Marks the id of a document of the source. Returns whether there is an expected answer for it.
    pub(crate) fn mark_seen(&mut self, id: &DocumentId) -> bool {
        let expected = self.0.get_mut(id.as_str());
        expected.map(|expected| expected.is_met = true).is_some()
    }

    /// The ids that no document has, in the order of their lines.
    fn unmet(&self) -> Unmatched {
        let mut unmet: Vec<_> = self.0.values().filter(|expected| !expected.is_met).collect();
        unmet.sort_unstable_by_key(|expected| expected.line);
        let mut named = Unmatched::default();
        unmet.into_iter().for_each(|expected| named.add(&expected.id));
        named
    }
}

/// The key of an id as the author writes it: a document's id, or its path below the source, from
/// which the id is made.
fn key(id: &str) -> String {
    // A later document of the same name is numbered: `a.md~2`.
    let numbered = id.rsplit_once('~').filter(|(_, number)| number.parse::<u64>().is_ok());
    let own = numbered.map_or(id, |(own, _)| own);
    let is_id = own.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if is_id { id.to_owned() } else { DocumentId::from_relative_path(id).to_string() }
}

fn copy_location(folder: &Location) -> Location {
    folder.child("truth.jsonl")
}

fn unmet_location(folder: &Location) -> Location {
    folder.child("truth-without-document.json")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_beginning_is_none_of_the_first_row() {
        let rows = "\u{feff}{\"id\": \"a\", \"expected\": 1}\r\n{\"id\": \"b\", \"expected\": 2}";
        let truth = Truth::parse(&Bytes::from(rows)).unwrap();
        let expected = |id: &str| truth.expected(id).cloned();
        assert_eq!((expected("a"), expected("b")), (Some(1.into()), Some(2.into())));
    }

    #[test]
    fn a_row_may_have_the_id_of_a_second_document_of_the_same_name() {
        let truth = Truth::parse(&Bytes::from(r#"{"id": "a.md~2", "expected": 1}"#)).unwrap();
        let first = DocumentId::from_relative_path("a.md");
        assert_eq!(truth.expected(first.numbered(2).as_str()), Some(&1.into()));
        assert_eq!(truth.expected(first.as_str()), None);
        // No id has these: they are paths.
        for path in ["a#b", "a~b.md", "~2/a"] {
            let row = format!("{{\"id\": \"{path}\", \"expected\": 1}}");
            let truth = Truth::parse(&Bytes::from(row)).unwrap();
            assert!(
                truth.expected(DocumentId::from_relative_path(path).as_str()).is_some(),
                "{path}"
            );
        }
    }

    /// In memory the values would take ninety times these bytes.
    #[test]
    fn values_that_take_all_memory_are_refused() {
        let row = |id: usize, values: usize| {
            format!("{{\"id\": \"{id}\", \"expected\": [{}0]}}\n", "{\"\":0},".repeat(values))
        };
        let why = Truth::parse(row(1, 100_000).as_bytes()).unwrap_err();
        assert!(why.starts_with("line 1: it has more than 1000000 values"), "{why}");
        let rows: String = (1..=10).map(|id| row(id, 80_000)).collect();
        let why = Truth::parse(rows.as_bytes()).unwrap_err();
        assert!(why.starts_with("line 5: the expected answers up to here take more than"), "{why}");
    }

    #[test]
    fn a_row_that_is_no_object_is_told() {
        let why = Truth::parse(&Bytes::from("\n[\"a\", 1]\n")).unwrap_err();
        assert!(
            why.starts_with("line 2: it is an array; a row is an object; each row is"),
            "{why}"
        );
    }

    #[test]
    fn what_no_document_has_met_is_named_as_it_was_written() {
        let row = |id: &str| format!("{{\"id\": \"{id}\", \"expected\": 1}}\n");
        let rows: String = ["z/ä.md", "b", "a"].map(row).concat();
        let mut truth = Truth::parse(&Bytes::from(rows)).unwrap();
        assert!(truth.mark_seen(&DocumentId::from_relative_path("b")));
        assert!(!truth.mark_seen(&DocumentId::from_relative_path("c")));
        let unmet = truth.unmet();
        assert_eq!((unmet.count, unmet.first), (2, vec!["z/ä.md".to_owned(), "a".to_owned()]));
    }
}
