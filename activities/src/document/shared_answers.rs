//! Answers shared between batches, and the removal of answers that were not accepted once there is a
//! result.

use crate::{
    attempt::Attempt,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    services::Services,
    storage::Location,
};

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
    if attempt.state().document.refused_uri.is_some()
        && let Err(error) = refused.delete().await
    {
        tracing::debug!(%error, "an answer that was no result stays behind");
    }
}
