//! Whether a document is done already: there is an answer to this question about this content.

use crate::{
    document::read::content::{self, Care, Raw, Read},
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    services::Services,
};

/// What exists of a document's answer.
#[derive(Debug)]
pub(crate) enum Before {
    /// Its result.
    Done(Box<DocumentResult>),
    /// No result, or one that answers something else.
    Open(Open),
}

/// What is known of a document that must be asked.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// What was read of it to decide that.
    pub(crate) raw: Option<Box<Raw>>,
    /// Whether the existing result answers this question about an earlier content.
    pub(crate) updated: bool,
    /// Fingerprint of the existing result.
    pub(crate) instead_of: Option<Fingerprint>,
}

/// Reads a document's result. The document itself is read only where nothing else tells whether it has
/// changed.
pub(crate) async fn before(
    services: &Services,
    shard: &Shard,
    document: &Document,
    care: Care<'_>,
) -> Result<Before, Failure> {
    let location = DocumentResult::location(&shard.output, &document.id);
    let Some((mut result, name)) = DocumentResult::read_named(&location).await? else {
        return Ok(Before::Open(Open::default()));
    };
    let open = |raw, updated| Before::Open(Open { raw, updated, instead_of: Some(name) });
    if result.question != Some(shard.asks) {
        return Ok(open(None, false));
    }
    let known = match (&document.version.stamp, &result.version.stamp) {
        // The store is asked about an object that was not listed, if there is a version to compare
        // with.
        (None, Some(_)) if document.text.is_none() => content::look(services, document).await?,
        _ => document.version.clone(),
    };
    let rereads = shard.job.reread && result.version.is_of_older_reader();
    let raw = match known.is_same(&result.version) {
        Some(true) if !rereads => return Ok(Before::Done(Box::new(result))),
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
        // Its version is recorded, so that it need not be read again for this.
        result.version = version;
        result.bought(&location, Some(name))?.write().await?;
    }
    Ok(Before::Done(Box::new(result)))
}

/// The document's version, if the current reader extracts the text that has the answer.
async fn reread(
    services: &Services,
    shard: &Shard,
    raw: Raw,
    result: &DocumentResult,
    care: Care<'_>,
) -> Result<Option<Version>, Failure> {
    match content::extract(services, raw, &shard.job, &shard.route, care).await {
        Ok(Read { version, .. }) => {
            let is_same = version.extracted == result.version.extracted;
            Ok(is_same.then(|| Version { stamp: result.version.stamp.clone(), ..version }))
        }
        Err(failure) if failure.is_retried() => Err(failure),
        // The error is reported when the document is asked about.
        Err(_) => Ok(None),
    }
}
