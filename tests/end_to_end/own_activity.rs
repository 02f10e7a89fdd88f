//! The example of a user's own activity, with a real Temporal, a real Redis and a provider that enforces
//! its limit.

use std::path::Path;

use tokio::process::Command;

use crate::fleet::fleet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_the_limit_and_answers_everything() {
    let Some(fleet) = fleet("[models.\"claude-sonnet-5\"]\nrpm = 120\n", "").await else { return };
    let example =
        Path::new(env!("CARGO_BIN_EXE_tidegate")).with_file_name("examples").join("own_activity");
    assert!(
        example.exists(),
        "cargo builds examples with all tests, not with one: `cargo build --example own_activity` first"
    );
    let output = Command::new(example)
        .args([fleet.temporal.address(), fleet.redis_url.clone(), fleet.simulator.base_url()])
        .env("API_KEY", "sk-simulated-secret")
        .output()
        .await
        .unwrap();
    let (told, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{complaints}");
    assert_eq!(told.trim(), "40 of 40 questions were answered");

    let account = fleet.account();
    assert_eq!(account.refused.requests + account.refused.tokens, 0, "429s: {account:?}");
    assert_eq!(account.ok, 40, "one call a question: {account:?}");
    fleet.stop().await;
}
