//! Extracted texts of documents that will be retried: the next attempt does not extract them again.
//!
//! Stored under `<run's folder>/texts/<shard>-<index>.json`, with the fingerprint of the bytes and
//! the stamp of the object. An attempt that needed a parser writes it at its end if another attempt
//! will follow. The last attempt removes it.

use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::DocumentTask;

use crate::{
    attempt::Attempt,
    document::read::content,
    output::{
        job::{Document, Shard},
        version::Version,
    },
    services::Services,
    storage::Location,
};

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
pub(crate) async fn forget(attempt: &Attempt, shard: &Shard, task: &DocumentTask) {
    if attempt.state().document.has_text
        && let Err(error) = place(shard, task).delete().await
    {
        tracing::debug!(%error, "a document's text stays behind");
    }
}

fn place(shard: &Shard, task: &DocumentTask) -> Location {
    shard.folder.child("texts").child(&format!("{:05}-{}.json", task.shard, task.index))
}
