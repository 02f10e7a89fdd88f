//! How far a finish is: the next worker goes on there.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::counted::{Answered, Counted};
use crate::{
    failure::Failure,
    storage::{Assembled, Location},
};

/// What is written of an object: what the store has in parts, and what follows.
pub(super) type Written = (Assembled, Bytes);

/// After so many shards.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    pub(super) shards: u32,
    pub(super) counted: Counted,
    pub(super) answered: Answered,
    pub(super) results: Written,
    pub(super) failures: Written,
}

/// Its first line; the bytes that are in no part follow, those of the results first.
#[derive(Serialize, Deserialize)]
struct Header {
    shards: u32,
    counted: Counted,
    answered: Answered,
    results: (Assembled, usize),
    failures: (Assembled, usize),
}

impl Checkpoint {
    fn location(folder: &Location) -> Location {
        folder.child("finish.state")
    }

    /// `None` where no worker has come so far, or what lies there cannot be read.
    pub(super) async fn read(folder: &Location) -> Result<Option<Self>, Failure> {
        let whole = Self::location(folder).read_if_there().await?;
        Ok(whole.and_then(|whole| Self::parse(&whole)))
    }

    fn parse(whole: &Bytes) -> Option<Self> {
        let end = whole.iter().position(|byte| *byte == b'\n')?;
        let Header { shards, counted, answered, results, failures } =
            serde_json::from_slice(whole.get(..end)?).ok()?;
        let rest = whole.slice(end + 1..);
        if rest.len() != results.1.checked_add(failures.1)? {
            return None;
        }
        let (of_results, of_failures) = (rest.slice(..results.1), rest.slice(results.1..));
        let (results, failures) = ((results.0, of_results), (failures.0, of_failures));
        Some(Self { shards, counted, answered, results, failures })
    }

    pub(super) async fn save(self, folder: &Location) -> Result<(), Failure> {
        let Self { shards, counted, answered, results, failures } = self;
        let header = Header {
            shards,
            counted,
            answered,
            results: (results.0, results.1.len()),
            failures: (failures.0, failures.1.len()),
        };
        let mut whole = serde_json::to_vec(&header)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        whole.push(b'\n');
        whole.extend_from_slice(&results.1);
        whole.extend_from_slice(&failures.1);
        Ok(Self::location(folder).write(whole).await?)
    }

    /// What stays behind does no harm: a finish that is repeated goes on from there.
    pub(super) async fn forget(folder: &Location) {
        if let Err(error) = Self::location(folder).delete().await {
            tracing::debug!(%error, "a finish's state stays behind");
        }
    }
}
