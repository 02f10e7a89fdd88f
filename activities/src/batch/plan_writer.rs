//! Writes a plan page by page: ids, settled documents, the shards' manifests, and where the next page
//! begins.

use futures::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::{Job, Plan, SHARD_WINDOW};

use crate::{
    batch::{
        document_ids::{self, Added, DocumentIds},
        source::{Cursor, Page},
    },
    failure::Failure,
    output::{
        job::Document,
        jsonl::{json, written},
        layout,
        sealed::{EarlierResults, ReusePolicy, Settled},
    },
    storage::Location,
};

/// Documents of a shard: few enough for one workflow's history. A batch of at most this many is one
/// shard, which needs no workflow of its own.
const SHARD: u32 = SHARD_WINDOW;

/// Shards that are written at once.
const AT_ONCE: usize = 8;

/// Bytes from which a record is kept apart: a worker holds whole manifests in memory, and the documents
/// that do not fill a shard.
const LARGE: usize = 16 << 10;

/// Large records that are written at once.
const RECORDS_AT_ONCE: usize = 32;

/// Where a plan continues, as it is stored in the batch's folder.
#[derive(Debug, Serialize, Deserialize)]
struct Stop {
    cursor: Cursor,
    /// Documents that do not fill a shard; they come first in the next page.
    rest: Vec<Document>,
}

/// A plan that is being written.
#[derive(Debug)]
pub(super) struct PlanWriter<'a> {
    output: &'a Location,
    folder: &'a Location,
    /// Policy on which sealed answers settle a document.
    settles: ReusePolicy,
    pub(super) names: DocumentIds,
    earlier: EarlierResults,
    rest: Vec<Document>,
    /// The part of the plan that is written so far.
    pub(super) plan: Plan,
}

impl<'a> PlanWriter<'a> {
    pub(super) fn begin(
        output: &'a Location,
        folder: &'a Location,
        job: &Job,
        earlier: EarlierResults,
    ) -> Self {
        let plan = Plan { job: folder.uri(), shard_size: SHARD, ..Plan::default() };
        let (settles, names) = (ReusePolicy::from_job(job), DocumentIds::default());
        Self { output, folder, settles, names, earlier, rest: Vec::new(), plan }
    }

    /// Continues after the pages of a plan that are written.
    pub(super) async fn resume(
        output: &'a Location,
        folder: &'a Location,
        job: &Job,
        plan: &Plan,
    ) -> Result<(Self, Cursor), Failure> {
        let damaged = |object: &Location| {
            Failure::invalid_input(format!("{object} is damaged; start the batch again"))
        };
        let object = layout::page(folder, plan.pages);
        let stop = serde_json::from_slice::<Stop>(&object.read().await?);
        let Stop { cursor, rest } = stop.map_err(|_| damaged(&object))?;
        let object = layout::earlier(folder);
        let earlier =
            EarlierResults::from_bytes(&object.read().await?).ok_or_else(|| damaged(&object))?;
        let mut names = DocumentIds::default();
        for page in document_ids::stored_pages(plan.pages) {
            let object = layout::names(folder, page);
            let added = Added::from_bytes(&object.read().await?);
            names.add(&added.ok_or_else(|| damaged(&object))?);
        }
        let (settles, plan) = (ReusePolicy::from_job(job), plan.clone());
        Ok((Self { output, folder, settles, names, earlier, rest, plan }, cursor))
    }

    /// Documents so far, including those that are not written yet.
    pub(super) fn documents(&self) -> u64 {
        self.plan.documents + self.rest.len() as u64
    }

    /// Writes a page. Its documents get their final ids and order.
    pub(super) async fn write(&mut self, page: Page) -> Result<Option<Cursor>, Failure> {
        let Page { documents, files, next } = page;
        let (mut documents, renamed, added) = self.names.assign(documents, files);
        self.names.add(&added);
        let settled = self.earlier.settle(self.output, self.settles, &documents).await?;
        let (before, number) = (self.plan.asked(), self.plan.pages);
        let (mut asked, mut done) = (std::mem::take(&mut self.rest), Vec::new());
        let mut at = before + asked.len() as u64;
        let mut parts = settled.into_iter();
        documents.retain(|document| match parts.next().flatten() {
            Some(part) => {
                done.push(Settled { id: document.id.clone(), part, at });
                false
            }
            None => {
                at += 1;
                true
            }
        });
        let mut documents = self.set_apart(number, documents).await?;
        if asked.is_empty() {
            asked = documents;
        } else {
            asked.append(&mut documents);
        }
        if !done.is_empty() {
            layout::settled(self.folder, number).write(written(&done)?).await?;
        }
        let count = asked.len() as u64;
        let size = u64::from(self.plan.shard_size);
        let whole = if next.is_some() { count / size * size } else { count };
        let rest = asked.split_off(usize::try_from(whole).unwrap_or(usize::MAX));
        self.shards(before / size, &asked, size).await?;
        if let Some(cursor) = &next {
            if number == 0 {
                layout::earlier(self.folder).write(self.earlier.to_bytes()).await?;
            }
            let names = self.names.stored_after(number, &added);
            layout::names(self.folder, number).write(names).await?;
            let stop = json(&serde_json::json!({"cursor": cursor, "rest": rest}))?;
            layout::page(self.folder, number + 1).write(stop).await?;
        }
        self.rest = rest;
        self.plan = Plan {
            documents: self.plan.documents + whole + done.len() as u64,
            settled: self.plan.settled + done.len() as u64,
            renamed: self.plan.renamed + renamed,
            pages: number + 1,
            more: next.is_some(),
            ..self.plan.clone()
        };
        Ok(next)
    }

    /// Writes the large records of a page into objects of their own.
    async fn set_apart(
        &self,
        page: u32,
        documents: Vec<Document>,
    ) -> Result<Vec<Document>, Failure> {
        let writes = (0..).zip(documents).map(async |(number, document)| {
            if document.bytes() <= LARGE {
                return Ok::<_, Failure>(document);
            }
            layout::record(self.folder, page, number).write(json(&document)?).await?;
            let Document { id, uri, version, .. } = document;
            Ok(Document { version, apart: Some((page, number)), ..Document::file(id, uri) })
        });
        stream::iter(writes).buffered(RECORDS_AT_ONCE).try_collect().await
    }

    async fn shards(&self, first: u64, asked: &[Document], size: u64) -> Result<(), Failure> {
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        let mut writes = Vec::new();
        for (number, shard) in
            (first..).zip(asked.chunks(usize::try_from(size).unwrap_or(usize::MAX)))
        {
            writes.push(self.shard(number, shard));
            if writes.len() == AT_ONCE {
                try_join_all(std::mem::take(&mut writes)).await?;
            }
        }
        try_join_all(writes).await?;
        Ok(())
    }

    async fn shard(&self, number: u32, documents: &[Document]) -> Result<(), Failure> {
        Ok(layout::manifest(self.folder, number).write(written(documents)?).await?)
    }
}
