//! Whether a document is done already: an answer exists to this question about this content.

use crate::{
    document::read::content::{self, Care, Extracted, Raw},
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    services::Services,
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
