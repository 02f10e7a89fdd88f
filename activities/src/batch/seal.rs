//! Sealing a shard: its results and failures become one object each, next to its manifest.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::SealShard;
use tokio::io::AsyncWriteExt;

use crate::{
    batch::job::{self, resolve},
    document::{result::DocumentResult, version::Version},
    failure::Failure,
    fingerprint::Fingerprint,
    services::Services,
    storage::{Error, Location},
};

/// Results read at once.
pub(super) const READ_AHEAD: usize = 32;

/// One line of `failures.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureLine {
    /// The document.
    pub id: DocumentId,
    /// Where it lies.
    pub uri: String,
    /// One of the failure types.
    pub error_type: String,
    /// What went wrong.
    pub message: String,
    /// Provider calls that were spent on it.
    pub provider_calls: u64,
    /// URI of the answer that came and is no result: cut, or not what the schema says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// Gathers what a shard's documents left. Can be repeated.
///
/// # Errors
/// `Transient` when a store fails.
pub async fn seal(services: &Services, sealed: &SealShard) -> Result<(), Failure> {
    let shard = services.shards.get(&services.storage, &sealed.job, sealed.shard).await?;
    let folder = resolve(&services.storage, "job", &sealed.job)?;

    let failed = |failure: &tidegate_workflows::contract::FailedDocument| {
        let document = shard.documents.get(usize::try_from(failure.index).ok()?)?;
        Some(FailureLine {
            id: document.id.clone(),
            uri: document.uri.clone(),
            error_type: failure.error_type.clone(),
            message: failure.message.clone(),
            provider_calls: failure.provider_calls,
            kept: failure.kept.clone(),
        })
    };
    let mut failures = Vec::new();
    for line in sealed.failures.iter().filter_map(failed) {
        serde_json::to_writer(&mut failures, &line)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        failures.push(b'\n');
    }
    job::failures_part(&folder, sealed.shard).write(failures).await?;

    let locations: Vec<Location> = shard
        .documents
        .iter()
        .map(|document| DocumentResult::location(&shard.output, &document.id))
        .collect();
    let results = stream::iter(locations).map(read_line).buffered(READ_AHEAD);
    let mut results = std::pin::pin!(results);
    let mut writer = job::results_part(&folder, sealed.shard).writer();
    let mut index = Vec::new();
    while let Some(line) = results.try_next().await? {
        if let Some(line) = line {
            writer.write_all(&line.json).await.map_err(write_failure)?;
            let DocumentResult { id, question, version, .. } = line.result;
            serde_json::to_writer(&mut index, &IndexLine { id, question, version })
                .map_err(|error| Failure::invalid_input(error.to_string()))?;
            index.push(b'\n');
        }
    }
    writer.shutdown().await.map_err(write_failure)?;
    Ok(job::index(&folder, sealed.shard).write(index).await?)
}

/// One line of a shard's index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexLine {
    /// The document.
    pub(super) id: DocumentId,
    /// What was asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<Fingerprint>,
    /// Which version of it has the answer.
    #[serde(flatten)]
    pub(super) version: Version,
}

/// A result as one line.
#[derive(Debug)]
pub(super) struct Line {
    /// With its newline.
    pub json: Bytes,
    /// The same, read.
    pub result: DocumentResult,
}

impl Line {
    /// `None` for what is no result.
    pub(super) fn of(json: Bytes) -> Option<Self> {
        let result = serde_json::from_slice(&json).ok()?;
        Some(Self { json, result })
    }
}

/// The result that lies there, if one does: not another program's object of the same name.
pub(super) async fn read_line(location: Location) -> Result<Option<Line>, Failure> {
    let Some(bytes) = location.read_if_there().await? else { return Ok(None) };
    let mut line: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    line.push(b'\n');
    Ok(Line::of(line.into()))
}

pub(crate) fn write_failure(error: std::io::Error) -> Failure {
    Error::of_writing(&error).into()
}
