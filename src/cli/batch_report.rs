//! Reads the report in a batch's output, if this machine can access it.

use serde::Deserialize;
use tidegate_activities::{
    Storage,
    output::{
        agreement::Agreement,
        finish::{Checks, GivenUp},
    },
};
use tidegate_workflows::contract::Progress;

use crate::config::Config;

/// Some fields of `report.json`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BatchReport {
    started_at: Option<String>,
    /// The messages of failed documents.
    pub(super) given_up: Option<GivenUp>,
    /// The reason why documents that could wait were charged the full price.
    pub(super) full_price: Option<String>,
    /// The agreement of the answers with the truth.
    pub(super) agreement: Option<Agreement>,
    /// The outcomes of the answers' checks.
    #[serde(default)]
    pub(super) checks: Checks,
    /// The number of results from files that an older version of the reader has read.
    #[serde(default)]
    pub(super) older_reader: u64,
}

impl BatchReport {
    /// The report of an ended batch; empty for a running batch, and if the output has the report of a
    /// later batch.
    pub(super) async fn read(config: &Config, progress: &Progress) -> Self {
        let report = async {
            if !progress.done {
                return None;
            }
            let output = Storage::new(config.roots()).ok()?.resolve(&progress.output).ok()?;
            let report = output.child("report.json").read_if_there().await.ok()??;
            let report = serde_json::from_slice::<Self>(&report).ok()?;
            (report.started_at == progress.started_at).then_some(report)
        };
        report.await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_workflows::contract::Totals;

    use super::*;

    #[tokio::test]
    async fn an_outputs_own_batch_is_told_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let output = url::Url::from_directory_path(&path).unwrap().to_string();
        let mut config = Config::default();
        config.storage.roots = vec![output.clone()];
        let write = |report: serde_json::Value| {
            std::fs::write(path.join("report.json"), report.to_string()).unwrap();
        };
        let totals = Totals { failed: 2, ..Totals::default() };
        let started_at = Some("2026-11-22T10:00:00Z".to_owned());
        let progress = Progress { totals, done: true, output, started_at, ..Progress::default() };
        let said = async |progress: &Progress| {
            let given_up = BatchReport::read(&config, progress).await.given_up?;
            Some(given_up.0["TooLarge"].messages.0[0].message.clone())
        };
        let messages = json!([{"message": "in the report", "documents": 2}]);
        let given_up =
            json!({"TooLarge": {"documents": 2, "messages": messages, "samples": ["a"]}});
        write(
            json!({"started_at": "2026-11-22T10:00:00Z", "given_up": given_up, "full_price": "no"}),
        );
        assert_eq!(said(&progress).await.as_deref(), Some("in the report"));
        assert_eq!(BatchReport::read(&config, &progress).await.full_price.as_deref(), Some("no"));
        let mut door = Config::default();
        door.serve.files = Some(config.storage.roots[0].clone());
        let of_door = BatchReport::read(&door, &progress).await;
        assert!(of_door.given_up.is_some(), "a batch of a door, whose files lie apart");
        let earlier = Some("2026-11-21T10:00:00Z".to_owned());
        assert_eq!(said(&Progress { started_at: earlier, ..progress.clone() }).await, None);
        assert_eq!(said(&Progress { done: false, ..progress }).await, None);
    }
}
