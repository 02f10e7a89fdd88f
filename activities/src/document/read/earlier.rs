//! What there is of a document from before: its own result, the answer of another batch, its text.
//!
//! The extracted text of a document that will be retried is stored under
//! `<run's folder>/texts/<shard>-<index>.json`, with the fingerprint of the bytes and the stamp of the
//! object. An attempt that needed a parser writes it at its end if another attempt will follow. The last
//! attempt removes it, or else the end of the batch.
use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::DocumentTask;

use crate::{
    attempt::Attempt,
    document::read::content::{self, Care, Extracted, Raw},
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::{Document, Shard},
        layout,
        result::DocumentResult,
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// The existing answer to a document.
#[derive(Debug)]
pub(crate) enum ExistingResult {
    /// Its result.
    Done(Box<DocumentResult>),
    /// No result, or one that answers another question or content.
    Open(Open),
}

/// The facts known of a document that must be asked.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The content, if it was read for the decision.
    pub(crate) raw: Option<Box<Raw>>,
    /// Whether the existing result answers this question about an earlier content.
    pub(crate) updated: bool,
    /// Fingerprint of the existing result.
    pub(crate) instead_of: Option<Fingerprint>,
}

/// Reads a document's result. Reads the document itself only if its versions do not show whether it
/// has changed.
pub(crate) async fn find_existing(
    services: &Services,
    shard: &Shard,
    document: &Document,
    care: Care<'_>,
) -> Result<ExistingResult, Failure> {
    let location = DocumentResult::location(&shard.output, &document.id);
    let Some((mut result, name)) = DocumentResult::read_named(&location).await? else {
        return Ok(ExistingResult::Open(Open::default()));
    };
    let open = |raw, updated| ExistingResult::Open(Open { raw, updated, instead_of: Some(name) });
    if result.question != Some(shard.asks) {
        return Ok(open(None, false));
    }
    let known = match (&document.version.stamp, &result.version.stamp) {
        // The store is asked for the stamp of an object that was not listed, if there is a version
        // to compare it with.
        (None, Some(_)) if document.text.is_none() => {
            content::fetch_version(services, document).await?
        }
        _ => document.version.clone(),
    };
    let rereads = shard.job.reread && result.version.is_of_older_reader();
    let raw = match known.is_same(&result.version) {
        Some(true) if !rereads => return Ok(ExistingResult::Done(Box::new(result))),
        Some(false) => return Ok(open(None, true)),
        _ => content::fetch(services, document, &shard.job.lane).await?,
    };
    if raw.version.is_same(&result.version) != Some(true) {
        return Ok(open(Some(Box::new(raw)), true));
    }
    if rereads {
        if care.knows_an_update() {
            return Ok(open(Some(Box::new(raw)), true));
        }
        let Some(version) = reread(services, shard, raw, &result, care).await? else {
            return Ok(open(None, true));
        };
        // The version is recorded, so that the next batch need not read the document again.
        result.version = version;
        result.bought(&location, Some(name))?.write().await?;
    }
    Ok(ExistingResult::Done(Box::new(result)))
}

/// Returns the document's current version if the current reader extracts the text that the result
/// answers.
async fn reread(
    services: &Services,
    shard: &Shard,
    raw: Raw,
    result: &DocumentResult,
    care: Care<'_>,
) -> Result<Option<Version>, Failure> {
    match content::extract(services, raw, &shard.job, &shard.route, care).await {
        Ok(Extracted { version, .. }) => {
            let is_same = version.extracted == result.version.extracted;
            Ok(is_same.then(|| Version { stamp: result.version.stamp.clone(), ..version }))
        }
        Err(failure) if failure.is_retried() => Err(failure),
        // The error is reported when the document is asked about.
        Err(_) => Ok(None),
    }
}

/// Maximum length of a stored text, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// The extracted text of a document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredText {
    version: Version,
    text: String,
    /// Where each page begins in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pages: Vec<usize>,
}

/// Finds a document's stored text, if the document has not changed. Errors are ignored: the
/// document is read instead.
pub(crate) async fn find(
    services: &Services,
    shard: &Shard,
    task: &DocumentTask,
    document: &Document,
) -> Option<(String, Version, Vec<usize>)> {
    let bytes = place(shard, task).read_if_there().await.ok()??;
    let StoredText { version, text, pages } = serde_json::from_slice(&bytes).ok()?;
    let now = content::fetch_version(services, document).await.ok()?;
    (now.is_same(&version) == Some(true)).then_some((text, version, pages))
}

/// Stores a text for the next attempt.
pub(crate) async fn save(
    attempt: &Attempt,
    shard: &Shard,
    task: &DocumentTask,
    (text, pages): (&str, &[usize]),
    version: &Version,
) {
    if text.len() > MAX_BYTES {
        return;
    }
    let (version, pages) = (version.clone(), pages.to_vec());
    let reading = StoredText { version, text: text.to_owned(), pages };
    let Ok(json) = serde_json::to_vec(&reading) else { return };
    match place(shard, task).write(json).await {
        Ok(()) => attempt.mark_text_stored(),
        Err(error) => tracing::debug!(%error, "a document will be read again"),
    }
}

/// Removes the stored text. Failing to remove it does no harm.
pub(crate) async fn forget_text(attempt: &Attempt, shard: &Shard, task: &DocumentTask) {
    if attempt.state().document.has_text {
        place(shard, task).remove_or_log("a document's text stays behind").await;
    }
}

fn place(shard: &Shard, task: &DocumentTask) -> Location {
    layout::texts(&shard.folder).child(&format!("{:05}-{}.json", task.shard, task.index))
}

/// Returns the document's result if its answer was bought before, in any batch.
pub(crate) async fn bought_before(
    services: &Services,
    shard: &Shard,
    document: &Document,
    version: &Version,
) -> Option<DocumentResult> {
    let found = services.answers.as_ref()?.find(document, shard.asks, version).await;
    // The fingerprint covers a route's name, and its models may have changed.
    let found = found.filter(|result| shard.route.models.contains(&result.model));
    let found = found.filter(|it| !shard.job.reread || !it.version.is_of_older_reader());
    found.map(|result| result.with_fallback_of(&shard.job))
}

/// Stores an answer for other batches, before the result is written: if that write fails, the answer is
/// not lost.
pub(crate) async fn offer(services: &Services, result: &DocumentResult) {
    if let Some(answers) = &services.answers {
        answers.save(result).await;
    }
}

/// Removes the stored answers that were not accepted. Failing to remove them does no harm.
pub(crate) async fn forget(attempt: &Attempt, refused: &Location) {
    if attempt.state().document.refused_uri.is_some() {
        refused.remove_or_log("an answer that was no result stays behind").await;
    }
}
