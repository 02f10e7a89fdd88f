//! Sealing: a shard's results and failures become one object each, while the batch continues.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{FailedDocument, FailureFacts, SealShard};

use crate::{
    failure::Failure,
    output::{
        job::Shards,
        jsonl::written,
        layout::{self, READ_AHEAD},
        part::Part,
        result::{DocumentResult, read_line},
        sealed::IndexLine,
    },
    storage::{Error, Location, Storage},
};

/// One line of `failures.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureLine {
    /// The document.
    pub id: DocumentId,
    /// The document's location.
    #[serde(default)]
    pub uri: String,
    /// Its failure.
    #[serde(flatten)]
    pub facts: FailureFacts,
}

/// Merges the results and failures of a shard's documents into one object each. Can be repeated.
///
/// # Errors
/// `Transient` when a store fails.
pub async fn seal(storage: &Storage, shards: &Shards, sealed: &SealShard) -> Result<(), Failure> {
    let shard = shards.get(storage, &sealed.job, sealed.shard).await?;

    let failed = |failure: &FailedDocument| {
        let document = shard.documents.get(usize::try_from(failure.index).ok()?)?;
        let (id, uri) = (document.id.clone(), document.uri.clone());
        Some(FailureLine { id, uri, facts: failure.facts.clone() })
    };
    let failures = written(sealed.failures.iter().filter_map(failed))?;
    layout::failures_part(&shard.folder, sealed.shard).write(failures).await?;

    let (output, number) = (&shard.output, shard.first_part + sealed.shard);
    let written_as = shard.job.results;
    let part = Part::new(output, number, written_as);
    // A worker may have sealed the shard, and died while it removed the results' own objects.
    let mut there = if shard.job.per_document { HashMap::new() } else { part.results().await? };
    let locations: Vec<(DocumentId, Location)> = shard
        .documents
        .iter()
        .map(|document| (document.id.clone(), DocumentResult::location(output, &document.id)))
        .collect();
    let results = stream::iter(locations)
        .map(|(id, location)| async { Ok::<_, Failure>((id, read_line(location).await?)) })
        .buffered(READ_AHEAD);
    let mut results = std::pin::pin!(results);
    let mut writer = part.writer();
    let (mut index, mut alone) = (Vec::new(), Vec::new());
    while let Some((id, read)) = results.try_next().await? {
        let (line, object) = match read {
            Some((line, stamp)) => {
                alone.push(id);
                (line, Some(stamp))
            }
            None => match there.remove(&id) {
                Some(line) => (line, None),
                None => continue,
            },
        };
        writer.add(&line.json).await?;
        let DocumentResult { id, question, version, .. } = line.result;
        let object = object.filter(|_| shard.job.per_document);
        index.push(IndexLine { id, question, version, object });
    }
    writer.complete().await?;
    layout::part_index(output, number).write(written(index)?).await?;
    // Removes a part in the other format, left by a worker that died before it wrote the index.
    match Part::new(output, number, written_as.other()).delete().await {
        Err(error @ Error::Failed(_)) => return Err(error.into()),
        Err(error) => tracing::debug!(%error, "a part may be there twice"),
        Ok(()) => {}
    }
    if !shard.job.per_document {
        // The part has these results, and its index lists them.
        let removed = stream::iter(alone)
            .map(|id| async move { DocumentResult::location(output, &id).delete().await })
            .buffer_unordered(READ_AHEAD);
        removed.try_collect::<()>().await?;
    }
    Ok(())
}
