//! Whether a document is done already: this question about this content has its answer.

use crate::{
    batch::job::{Document, Shard},
    document::{
        content::{self, Raw},
        result::DocumentResult,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    services::Services,
};

/// What lies there of a document.
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
    /// What was read of it to find that out.
    pub(crate) raw: Option<Box<Raw>>,
    /// The result there answers this question about an earlier content.
    pub(crate) updated: bool,
    /// The result there.
    pub(crate) instead_of: Option<Fingerprint>,
}

/// Reads a document's result, and the document itself only where nothing else tells whether it is
/// the same.
pub(crate) async fn before(
    services: &Services,
    shard: &Shard,
    document: &Document,
) -> Result<Before, Failure> {
    let location = DocumentResult::location(&shard.output, &document.id);
    let Some((result, name)) = DocumentResult::read_named(&location).await? else {
        return Ok(Before::Open(Open::default()));
    };
    let open = |raw, updated| Before::Open(Open { raw, updated, instead_of: Some(name) });
    if result.question != Some(shard.asks) {
        return Ok(open(None, false));
    }
    let known = match (&document.version.stamp, &result.version.stamp) {
        // What is not listed is looked at, if there is something to hold it against.
        (None, Some(_)) if document.text.is_none() => content::look(services, document).await?,
        _ => document.version.clone(),
    };
    match known.is_same(&result.version) {
        Some(true) => return Ok(Before::Done(Box::new(result))),
        Some(false) => return Ok(open(None, true)),
        None => {}
    }
    let raw = content::fetch(services, document).await?;
    match raw.version.is_same(&result.version) {
        Some(true) => Ok(Before::Done(Box::new(result))),
        _ => Ok(open(Some(Box::new(raw)), true)),
    }
}
