//! The folder of a key's files and batches. Requests with another key never reach it.

use axum::http::StatusCode;
use object_store::buffered::BufWriter;
use serde::{Serialize, de::DeserializeOwned};
use tidegate_activities::storage::{Error, Location};
use tokio::io::AsyncWriteExt as _;

use super::id::{Kind, OutputFile};
use crate::{
    config::serve,
    serve::{keys::Holder, problem::Problem},
};

/// A key's folder.
#[derive(Debug, Clone)]
pub(super) struct KeyFolder(Location);

impl KeyFolder {
    /// The key's folder, below the prefix for files.
    pub(super) fn new(files: &Location, holder: &Holder) -> Self {
        Self::below(files, &holder.name)
    }

    /// The folder of the key of this name.
    pub(super) fn below(files: &Location, name: &str) -> Self {
        Self(files.child(serve::folder_of_key(name).as_str()))
    }

    /// Descriptions and contents of uploaded files.
    pub(super) fn files(&self) -> Location {
        self.0.child("files")
    }

    /// Requests for batches and their ends; the batches' folders are next to them.
    pub(super) fn batches(&self) -> Location {
        self.0.child("batches")
    }

    /// A file's description. It is written after the content.
    pub(super) fn file(&self, id: &str) -> Location {
        self.files().child(&format!("{id}.json"))
    }

    /// A file's content.
    pub(super) fn content(&self, id: &str) -> Location {
        self.files().child(&format!("{id}.jsonl"))
    }

    /// The request for a batch.
    pub(super) fn batch(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.json"))
    }

    /// The time at which the batch was asked to stop.
    pub(super) fn stopping(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.stopping.json"))
    }

    /// The end of the batch.
    pub(super) fn ended(&self, id: &str) -> Location {
        self.batches().child(&format!("{id}.ended.json"))
    }

    /// The folder that the batch's workflow writes to.
    pub(super) fn output(&self, id: &str) -> Location {
        self.batches().child(id)
    }

    /// The batch's report, which its workflow writes at the end.
    pub(super) fn report(&self, id: &str) -> Location {
        self.output(id).child("report.json")
    }

    /// The requests of a batch that came in one body.
    pub(super) fn requests(&self, id: &str) -> Location {
        self.output(id).child("requests.jsonl")
    }

    /// An output file of the batch.
    pub(super) fn output_file(&self, id: &str, put: OutputFile) -> Location {
        self.output(id).child(match put {
            OutputFile::Output => "results.jsonl",
            OutputFile::Errors => "failures.jsonl",
        })
    }

    /// Removes a batch. The request goes last, so that an interrupted removal can be repeated.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.output(id).clear().await?;
        for known in [self.stopping(id), self.ended(id), self.batch(id)] {
            known.delete().await?;
        }
        Ok(())
    }

    /// The ids in a folder, newest first.
    pub(super) async fn ids(folder: &Location, kind: Kind) -> Result<Vec<String>, Problem> {
        let names = folder.names().await?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(".json"));
        let mut ids: Vec<String> = ids.filter(|id| kind.is_id(id)).map(str::to_owned).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        Ok(ids)
    }
}

/// Reads a JSON object; `None` if it is missing.
pub(super) async fn read<T: DeserializeOwned>(location: &Location) -> Result<Option<T>, Problem> {
    let bytes = location.read_if_there().await?;
    let read = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    read.map_err(|error| {
        tracing::error!(%location, %error, "a stored file or batch is damaged; remove it");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the stored file or batch is damaged; tell the operator of this door",
        )
    })
}

/// Whether [`read`] found an object that is damaged.
pub(super) fn is_damage(problem: &Problem) -> bool {
    problem.status == StatusCode::INTERNAL_SERVER_ERROR
}

/// Writes a JSON object.
pub(super) async fn write(location: &Location, value: &impl Serialize) -> Result<(), Problem> {
    let json = serde_json::to_vec(value).unwrap_or_default();
    Ok(location.write(json).await?)
}

/// The problem when the store does not answer or denies access. Its message names locations and
/// stays out of the client's answer.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        store_failed(error)
    }
}

/// Like the conversion, for any error of the store.
pub(super) fn store_failed(error: impl std::fmt::Display) -> Problem {
    tracing::warn!(%error, "the store of files failed");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the store of files does not answer; try again later",
    )
}

/// Ends an object that was written in pieces. If that failed, removes the parts that are there.
pub(super) async fn complete<T>(
    mut writer: BufWriter,
    written: Result<T, Problem>,
) -> Result<T, Problem> {
    let ended = match written {
        Ok(written) => writer.shutdown().await.map(|()| written).map_err(store_failed),
        Err(problem) => Err(problem),
    };
    if ended.is_err()
        && let Err(error) = writer.abort().await
    {
        tracing::debug!(%error, "an object that broke off may stay behind in part");
    }
    ended
}
