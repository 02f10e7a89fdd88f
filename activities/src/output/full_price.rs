//! The reason why documents that could wait pay the full price, for the report.

use tidegate_providers::Error;
use tidegate_types::ModelId;

use crate::storage::Location;

/// The object that a shard leaves in the job's folder if the provider's batch API did not take its
/// documents.
const OBJECT: &str = "full-price.txt";

/// Records that the provider refused the batch, so that its documents take the direct path. If this
/// cannot be written, the reason is only in the worker's log.
pub(crate) async fn record_refusal(folder: &Location, model: &ModelId, error: &Error) {
    let why = format!(
        "documents that could wait were asked directly, at the full price: {} takes no batches ({})",
        model.provider(),
        error.message
    );
    if let Err(error) = folder.child(OBJECT).write(why).await {
        tracing::warn!(%error, "that documents cost the full price is not in the report");
    }
}

/// The reason that a shard of this job has recorded.
pub(crate) async fn recorded_reason(folder: &Location) -> Option<String> {
    let said = folder.child(OBJECT).read_if_there().await.ok()??;
    Some(String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
mod tests {
    use tidegate_providers::Charged;

    use super::*;

    #[tokio::test]
    async fn what_a_shard_left_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}/", folder.path().canonicalize().unwrap().display());
        let folder = crate::Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        assert_eq!(recorded_reason(&folder).await, None);
        let error = Error::no_reply("404, no such page".to_owned(), Charged::No);
        // Two shards write the same object: the last one stays.
        for _ in 0..2 {
            record_refusal(&folder, &"odd:m".parse().unwrap(), &error).await;
        }
        let said = recorded_reason(&folder).await.unwrap();
        assert!(
            said.ends_with("at the full price: odd takes no batches (404, no such page)"),
            "{said}"
        );
    }
}
