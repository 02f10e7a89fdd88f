//! Tidegate's workers in another program: documents and that program's activities share one limit.

use std::path::Path;

use serde_json::json;

use crate::fleet::{MODEL, fleet};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_and_ones_own_activities_share_a_quota() {
    const LIMIT: &str = "rpm = 120\nalgorithm = \"sliding-window\"\n";
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 120\n");
    let simulator = format!("[models.\"claude-sonnet-5\"]\n{LIMIT}");
    let Some(mut fleet) = fleet(&simulator, &settings).await else { return };
    let program =
        Path::new(env!("CARGO_BIN_EXE_tidegate")).with_file_name("examples").join("attached");
    assert!(
        program.exists(),
        "cargo builds examples with all tests, not with one: `cargo build --example attached` first"
    );
    fleet.documents(12, 200);
    let api = fleet.simulator.base_url();
    fleet.worker_of(&program, &[("API", api.as_str())]);
    fleet.start("documents", &fleet.batch("out")).await;
    let started = fleet
        .cli(&[
            "workflow",
            "start",
            "--type",
            "AskAll",
            "--task-queue",
            "own-questions",
            "--workflow-id",
            "questions",
            "--input",
            "20",
        ])
        .await;
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let documents = fleet.result("documents").await.unwrap();
    let questions = fleet.result("questions").await.unwrap();
    assert_eq!(documents["succeeded"], json!(12), "{documents}");
    assert_eq!(questions, json!(20));
    assert_eq!(fleet.results("out").len(), 12, "read in processes of that program");
    let account = fleet.account();
    assert_eq!(account.refused.requests + account.refused.tokens, 0, "429s: {account:?}");
    assert_eq!(account.ok, 32, "one call for each: {account:?}");
    fleet.stop().await;
}
