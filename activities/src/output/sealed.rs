//! The sealed parts of an output: `results/part-00000.jsonl` …, each with an index of its lines,
//! `_tidegate/sealed/index-00000.jsonl` ….
//!
//! Every batch continues the numbers of existing parts and only adds parts. If several parts have a
//! line for a document, the last one counts, and the end of the batch removes the others. A part
//! without an index was never sealed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Job, ResultsAs};

use crate::{
    failure::{Failure, field_fault},
    fingerprint::{Fingerprint, Key, key},
    output::{
        job::Document,
        jsonl::lines,
        layout::{self, READ_AHEAD, index_number, part_index, part_number},
        part::{self, Part},
        question::StatedQuestion,
        result::DocumentResult,
        version::Version,
    },
    storage::{Entry, Error, Location, Stamp},
};

/// One line of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexLine {
    /// The document.
    pub(crate) id: DocumentId,
    /// Fingerprint of the question about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<Fingerprint>,
    /// The version of it that was answered.
    #[serde(flatten)]
    pub(crate) version: Version,
    /// The stamp of the result's own object when it was sealed; absent where only the part has the
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Stamp>,
}

/// The parts that earlier batches have sealed in an output and that are unchanged. Takes 16 bytes
/// for each result, and as much again while it is read.
#[derive(Debug, Default)]
pub(crate) struct EarlierResults {
    /// Ordered by key: the part with the document's last line.
    parts: Vec<(Key, u32)>,
    /// The number of the next part.
    pub(crate) next: u32,
}

/// A document that a batch need not ask, and the part with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    /// The document.
    pub(crate) id: DocumentId,
    /// The part with its result.
    pub(crate) part: u32,
    /// Number of documents before it in the plan that are asked.
    pub(crate) at: u64,
}

/// Selects the sealed answers that a batch accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReusePolicy {
    asks: Fingerprint,
    /// [`Job::reread`].
    rereads: bool,
}

impl ReusePolicy {
    pub(crate) fn from_job(job: &Job) -> Self {
        Self { asks: StatedQuestion::from_job(job).fingerprint(), rereads: job.reread }
    }

    fn accepts(self, line: &IndexLine, document: &Document) -> bool {
        line.question == Some(self.asks)
            && document.version.is_same(&line.version) == Some(true)
            && !(self.rereads && line.version.is_of_older_reader())
    }
}

impl EarlierResults {
    /// Lists the parts and results, and reads the indexes.
    ///
    /// # Errors
    /// `Transient` when a store fails.
    pub(crate) async fn load(output: &Location) -> Result<Self, Failure> {
        // Where workers may not list objects, each document is looked up separately.
        let indexes = indexes(output).await?;
        let Some(last) = indexes.last() else { return Ok(Self::default()) };
        let (mut parts, mut objects) = (BTreeSet::new(), Vec::new());
        let results = output.child("results");
        let listed = results.entries(|entry| {
            let Entry::Object(location, stamp) = entry else { return };
            let name = location.relative_to(&results);
            if let Some(part) = part_number(&name) {
                parts.insert(part);
            } else if let Some(id) = name.strip_suffix(".json") {
                objects.push((key(id), stamp_key(&stamp)));
            }
        });
        listed.await.map_err(|error| field_fault("output", error))?;
        objects.sort_unstable();
        let object = |id: Key| {
            let place = objects.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            objects.get(place).map(|(_, stamp)| *stamp)
        };
        let mut earlier = Vec::new();
        let there = indexes.iter().filter(|part| parts.contains(part)).copied().collect();
        let mut there = std::pin::pin!(read_indexes(output, there));
        while let Some((part, whole)) = there.try_next().await? {
            for line in lines(&whole) {
                let Ok(line) = serde_json::from_slice::<IndexLine>(&line) else { continue };
                let id = key(line.id.as_str());
                let is_there = object(id) == line.object.as_ref().map(stamp_key);
                // A result that was changed after its seal invalidates its earlier lines too.
                earlier.push((id, is_there.then_some(part)));
            }
        }
        // Stable, so that each document's last line is the latest.
        earlier.sort_by_key(|(id, _)| *id);
        let mut last_of_each = Vec::with_capacity(earlier.len());
        for (place, (id, part)) in earlier.iter().enumerate() {
            if earlier.get(place + 1).is_none_or(|(next, _)| next != id)
                && let Some(part) = part
            {
                last_of_each.push((*id, *part));
            }
        }
        Ok(Self { parts: last_of_each, next: last + 1 })
    }

    /// Serialized as pairs of eight bytes each.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let all = self.parts.iter().map(|(id, part)| (*id, u64::from(*part)));
        let all = all.chain([(u64::MAX, u64::from(self.next))]);
        all.flat_map(|(id, part)| [id, part]).flat_map(u64::to_le_bytes).collect()
    }

    /// Parses [`Self::to_bytes`]; returns `None` for anything else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let (pairs, []) = numbers.as_chunks::<2>() else { return None };
        let pair = |[id, part]: &[[u8; 8]; 2]| {
            let part = u32::try_from(u64::from_le_bytes(*part)).ok()?;
            Some((u64::from_le_bytes(*id), part))
        };
        let mut parts = pairs.iter().map(pair).collect::<Option<Vec<_>>>()?;
        let (_, next) = parts.pop()?;
        Some(Self { parts, next })
    }

    fn part_of(&self, document: &Document) -> Option<u32> {
        let id = key(document.id.as_str());
        let place = self.parts.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.parts.get(place).map(|(_, part)| *part)
    }

    /// Finds, for each document, the part that answers the question about its content as listed. If
    /// only a part has a result and that cannot be decided, copies the result to an object of its
    /// own again, which is read when the document is processed.
    ///
    /// # Errors
    /// `Transient` when a store fails.
    pub(crate) async fn settle(
        &self,
        output: &Location,
        settles: ReusePolicy,
        documents: &[Document],
    ) -> Result<Vec<Option<u32>>, Failure> {
        let (settled, alone) = self.find(output, settles, documents).await?;
        for (number, ids) in alone {
            let results = part::results(output, number).await?;
            for id in ids {
                let Some(line) = results.get(id) else { continue };
                match DocumentResult::location(output, id).create(line.json.clone()).await {
                    Ok(()) | Err(Error::Exists(_)) => {}
                    Err(error) => return Err(field_fault("output", error)),
                }
            }
        }
        Ok(settled)
    }

    /// How many of these documents no sealed part answers. Changes nothing.
    ///
    /// # Errors
    /// `Transient` when a store fails.
    pub(crate) async fn count_unsettled(
        &self,
        output: &Location,
        settles: ReusePolicy,
        documents: &[Document],
    ) -> Result<u64, Failure> {
        let (settled, _) = self.find(output, settles, documents).await?;
        Ok(settled.iter().filter(|part| part.is_none()).count() as u64)
    }

    /// The part that answers each document; and by part the other documents whose results only that
    /// part has.
    async fn find<'a>(
        &self,
        output: &Location,
        settles: ReusePolicy,
        documents: &'a [Document],
    ) -> Result<(Vec<Option<u32>>, BTreeMap<u32, Vec<&'a DocumentId>>), Failure> {
        let mut by_part: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, document) in documents.iter().enumerate() {
            if let Some(part) = self.part_of(document) {
                by_part.entry(part).or_default().push(place);
            }
        }
        let mut settled = vec![None; documents.len()];
        let mut alone: BTreeMap<u32, Vec<&DocumentId>> = BTreeMap::new();
        let mut indexes = std::pin::pin!(read_indexes(output, by_part.keys().copied().collect()));
        while let Some((number, whole)) = indexes.try_next().await? {
            let places = by_part.remove(&number).unwrap_or_default();
            let index: HashMap<DocumentId, IndexLine> = lines(&whole)
                .filter_map(|line| serde_json::from_slice::<IndexLine>(&line).ok())
                .map(|line| (line.id.clone(), line))
                .collect();
            for place in places {
                let id = &documents[place].id;
                let Some(line) = index.get(id) else { continue };
                if settles.accepts(line, &documents[place]) {
                    settled[place] = Some(number);
                } else if line.object.is_none() {
                    alone.entry(number).or_default().push(id);
                }
            }
        }
        Ok((settled, alone))
    }
}

/// The documents whose results are only in parts before `first`, part by part.
///
/// # Errors
/// `Transient` when a store fails.
pub(crate) async fn alone_before(
    output: &Location,
    first: u32,
    mut each: impl FnMut(u32, DocumentId),
) -> Result<(), Failure> {
    let parts = indexes(output).await?.range(..first).copied().collect();
    let mut parts = std::pin::pin!(read_indexes(output, parts));
    while let Some((number, whole)) = parts.try_next().await? {
        for line in lines(&whole) {
            if let Ok(IndexLine { id, object: None, .. }) = serde_json::from_slice(&line) {
                each(number, id);
            }
        }
    }
    Ok(())
}

/// Reads the indexes of these parts, several at once and in this order. An index that does not exist
/// is empty.
pub(crate) fn read_indexes(
    output: &Location,
    parts: Vec<u32>,
) -> impl Stream<Item = Result<(u32, Bytes), Failure>> + use<> {
    let output = output.clone();
    let read = move |part: u32| {
        let index = part_index(&output, part);
        async move { Ok::<_, Failure>((part, index.read_if_there().await?.unwrap_or_default())) }
    };
    stream::iter(parts).map(read).buffered(READ_AHEAD)
}

/// The numbers of all indexes; none where the workers may not list them.
pub(crate) async fn indexes(output: &Location) -> Result<BTreeSet<u32>, Failure> {
    match layout::indexes(output).names().await {
        Ok(names) => Ok(names.iter().filter_map(|name| index_number(name)).collect()),
        Err(error @ Error::Failed(_)) => Err(field_fault("output", error)),
        Err(_) => Ok(BTreeSet::new()),
    }
}

fn stamp_key(stamp: &Stamp) -> Key {
    key(&format!("{:?} {} {}", stamp.etag, stamp.size, stamp.modified.to_rfc3339()))
}

/// Removes the lines of these documents from the parts before `first`, because later parts have newer
/// ones. A part without lines is deleted.
///
/// # Errors
/// `Transient` when a store fails.
pub(crate) async fn supersede(
    output: &Location,
    first: u32,
    is_later: impl Fn(Key) -> bool,
) -> Result<(), Failure> {
    let parts = indexes(output).await?.range(..first).copied().collect();
    let mut parts = std::pin::pin!(read_indexes(output, parts));
    while let Some((number, whole)) = parts.try_next().await? {
        let index = part_index(output, number);
        let stays = |id: &DocumentId| !is_later(key(id.as_str()));
        let entries = lines(&whole)
            .filter_map(|line| Some((serde_json::from_slice::<IndexLine>(&line).ok()?.id, line)));
        let (stay, go): (Vec<_>, Vec<_>) = entries.partition(|(id, _)| stays(id));
        if go.is_empty() {
            continue;
        }
        if stay.is_empty() {
            // The index is removed last: an index without its part is ignored, and its removal is
            // repeated.
            for written_as in [ResultsAs::Jsonl, ResultsAs::Parquet] {
                Part::new(output, number, written_as).delete().await?;
            }
            index.delete().await?;
            continue;
        }
        if let Some((part, lines)) = Part::find(output, number, ResultsAs::Jsonl).await? {
            let mut writer = part.writer();
            for line in lines.iter().filter(|line| stays(&line.result.id)) {
                writer.add(&line.json).await?;
            }
            writer.complete().await?;
        }
        index.write(stay.into_iter().flat_map(|(_, line)| line).collect::<Vec<u8>>()).await?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::sync::Arc;

    use axum::{Router, extract::Path, routing::get};
    use tokio::sync::Barrier;

    use super::*;
    use crate::storage::Storage;

    /// The server answers only when three requests are there at once.
    #[tokio::test]
    async fn indexes_are_read_at_once_and_come_in_order() {
        let all = Arc::new(Barrier::new(3));
        let reply = move |Path(path): Path<String>| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                path
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}/", listener.local_addr().unwrap());
        let app = Router::new().route("/{*path}", get(reply));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let output = Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        let read = read_indexes(&output, vec![7, 5, 6]).try_collect::<Vec<_>>();
        let limit = std::time::Duration::from_secs(60);
        let read = tokio::time::timeout(limit, read).await.unwrap().unwrap();
        let expected = [7, 5, 6]
            .map(|part| (part, Bytes::from(part_index(&output, part).relative_to(&output))));
        assert_eq!(read, expected);
    }
}
