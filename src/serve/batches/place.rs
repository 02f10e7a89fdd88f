//! Where a key's files and batches lie: in a folder of its own, which no other key's requests reach.

use axum::http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use tidegate_activities::storage::{Error, Location};
use tidegate_types::DocumentId;

use super::id::{Kind, Put};
use crate::serve::{keys::Holder, problem::Problem};

/// A key's folder.
#[derive(Debug, Clone)]
pub(super) struct Place(Location);

impl Place {
    /// The holder's, below the prefix for files.
    pub(super) fn of(files: &Location, holder: &Holder) -> Self {
        let name = DocumentId::from_relative_path(&holder.name);
        Self(files.child(name.as_str()))
    }

    /// What is known of files that were uploaded.
    pub(super) fn files(&self) -> Location {
        self.0.child("files")
    }

    /// What is known of batches; beside it their folders.
    pub(super) fn batches(&self) -> Location {
        self.0.child("batches")
    }

    /// What is known of a file. It is there when its content is.
    pub(super) fn file(&self, id: &str) -> Location {
        self.files().child(&format!("{id}.json"))
    }

    /// A file's content.
    pub(super) fn content(&self, id: &str) -> Location {
        self.files().child(&format!("{id}.jsonl"))
    }

    /// What was asked for with a batch.
    pub(super) fn batch(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.json"))
    }

    /// When it was asked to stop.
    pub(super) fn stopping(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.stopping.json"))
    }

    /// How it ended.
    pub(super) fn ended(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.ended.json"))
    }

    /// What its workflow writes.
    pub(super) fn output(&self, id: &str) -> Location {
        self.batches().child(id)
    }

    /// What it came to, as its workflow tells at its end.
    pub(super) fn report(&self, id: &str) -> Location {
        self.output(id).child("report.json")
    }

    /// The requests of a batch that came in one body.
    pub(super) fn requests(&self, id: &str) -> Location {
        self.output(id).child("requests.jsonl")
    }

    /// A file of what it has put out.
    pub(super) fn put(&self, id: &str, put: Put) -> Location {
        self.output(id).child(match put {
            Put::Output => "results.jsonl",
            Put::Errors => "failures.jsonl",
        })
    }

    /// Removes a batch. What is known of it goes last, so that a removal that breaks off can be repeated.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.output(id).clear().await?;
        for known in [self.stopping(id), self.ended(id), self.batch(id)] {
            known.delete().await?;
        }
        Ok(())
    }

    /// The names of what is known, the newest first.
    pub(super) async fn ids(folder: &Location, kind: Kind) -> Result<Vec<String>, Problem> {
        let mut ids: Vec<String> = match folder.names().await {
            Ok(names) => names
                .iter()
                .filter_map(|name| name.strip_suffix(".json"))
                .filter(|name| kind.is_id(name))
                .map(str::to_owned)
                .collect(),
            Err(Error::Missing(_)) => Vec::new(),
            Err(error) => return Err(away(&error)),
        };
        ids.sort_unstable_by(|one, other| other.cmp(one));
        Ok(ids)
    }
}

/// Reads what was written as JSON; `None` where there is nothing.
pub(super) async fn read<T: DeserializeOwned>(location: &Location) -> Result<Option<T>, Problem> {
    let bytes = location.read_if_there().await.map_err(|error| away(&error))?;
    let read = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    read.map_err(|error| {
        tracing::error!(%location, %error, "what the door has written is damaged");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "what was kept of it is damaged")
    })
}

/// Writes it.
pub(super) async fn write(location: &Location, value: &impl Serialize) -> Result<(), Problem> {
    let json = serde_json::to_vec(value).unwrap_or_default();
    location.write(json).await.map_err(|error| away(&error))
}

/// The store does not answer, or does not let us. Its words name places that are no client's business.
pub(super) fn away(error: &Error) -> Problem {
    tracing::warn!(%error, "the store of files failed");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the store of files does not answer now; try again later",
    )
}
