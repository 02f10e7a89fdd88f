//! Whole batches, started by the Temporal CLI, on worker processes.

use std::time::Duration;

use serde_json::json;

use crate::fleet::{MODEL, fleet};

const LIMIT: &str = "tpm = 120_000";

fn settings() -> String {
    format!("[models.\"{MODEL}\"]\n{LIMIT}\n")
}

fn strict() -> String {
    format!("[default]\n{LIMIT}\nalgorithm = \"sliding-window\"\n")
}

/// Two workers, one quota, a provider that counts every 60 seconds strictly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_keeps_to_the_limit_and_uses_it() {
    let Some(mut fleet) = fleet(&strict(), &settings()).await else { return };
    fleet.documents(300, 550);
    fleet.worker();
    fleet.worker();
    fleet.start("use", &fleet.batch("out")).await;
    let result = fleet.result("use").await.unwrap();

    assert_eq!(
        (&result["documents"], &result["succeeded"], &result["failed"]),
        (&json!(300), &json!(300), &json!(0)),
        "{result}"
    );
    assert_eq!(result["done"], json!(true));
    let (results, account) = (fleet.results("out"), fleet.account());
    assert_eq!(results.len(), 300);
    assert!(
        results
            .values()
            .all(|result| result["answer"].as_str().is_some_and(|answer| !answer.is_empty()))
    );
    assert_eq!(account.refused.requests + account.refused.tokens, 0, "429s: {account:?}");
    assert_eq!(account.requests, 300, "calls");
    assert!(account.worst_window.tokens <= 120_000, "{account:?}");
    // From a quarter to three quarters of the run, when neither start nor end disturbs.
    let (first, last) = (account.first_admission.unwrap(), account.last_admission.unwrap());
    let (from, to) = (
        Duration::from_secs_f64(first + (last - first) * 0.25).as_secs(),
        Duration::from_secs_f64(first + (last - first) * 0.75).as_secs(),
    );
    let used = account.tokens_between(Duration::from_secs(from), Duration::from_secs(to)).tokens
        as f64
        / (2_000.0 * (to - from) as f64);
    println!("steady use of the limit: {:.1} %", used * 100.0);
    assert!(used >= 0.85, "{used}");

    let ids: Vec<_> = fleet
        .lines("out/results.jsonl")
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.is_sorted() && ids.len() == 300);
    assert!(fleet.lines("out/failures.jsonl").is_empty());
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fleet.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(
        (&report["succeeded"], &report["models"][MODEL]["documents"]),
        (&json!(300), &json!(300))
    );
    let (forecast, input) =
        (&report["forecast"]["input_tokens"], result["input_tokens"].as_f64().unwrap());
    assert!(
        forecast["from"].as_f64().unwrap() <= input && input <= forecast["to"].as_f64().unwrap(),
        "{forecast}: {input}"
    );
    assert!(report["tokens_per_minute"].as_f64().unwrap() > 60_000.0, "{report}");
    assert_eq!(
        report["input_tokens"].as_u64().unwrap() + report["output_tokens"].as_u64().unwrap(),
        account.admitted.tokens
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_runs_again_skips_what_is_done_and_retries_what_failed() {
    let faults = "[[faults]]\nkind = \"server-error\"\nmatching = \"poisoned\"\n";
    let fast = format!("{}[gate]\nbase-backoff = \"20ms\"\nmax-backoff = \"50ms\"\n", settings());
    let Some(mut fleet) = fleet(faults, &fast).await else { return };
    fleet.documents(20, 200);
    std::fs::write(fleet.path("in/bad.md"), "This one is poisoned.").unwrap();
    std::fs::write(fleet.path("in/empty.md"), "").unwrap();
    std::fs::write(fleet.path("in/picture.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    fleet.worker();
    fleet.start("first", &fleet.batch("out")).await;
    let result = fleet.result("first").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(20), &json!(3)), "{result}");
    let failures = fleet.lines("out/failures.jsonl");
    let reasons: Vec<_> = failures
        .iter()
        .map(|line| {
            (
                line["id"].as_str().unwrap(),
                line["error_type"].as_str().unwrap(),
                line["provider_calls"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        reasons,
        [
            ("bad.md", "Transient", 8),
            ("empty.md", "UnreadableDocument", 0),
            ("picture.png", "UnreadableDocument", 0)
        ]
    );

    std::fs::write(
        fleet.path("in/empty.md"),
        "Not empty any more, but a document with a sentence.",
    )
    .unwrap();
    let calls = fleet.account().requests;
    fleet.start("second", &fleet.batch("out")).await;
    let result = fleet.result("second").await.unwrap();
    assert_eq!(
        (&result["succeeded"], &result["failed"], &result["skipped"]),
        (&json!(1), &json!(2), &json!(20)),
        "{result}"
    );
    assert_eq!(fleet.account().requests - calls, 1 + 8);
    assert_eq!(fleet.lines("out/results.jsonl").len(), 21);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_fails_the_workflow_with_a_sentence() {
    let Some(mut fleet) = fleet("", &settings()).await else { return };
    fleet.documents(1, 50);
    fleet.worker();
    let with = |field: &str, value: serde_json::Value| {
        let mut batch = fleet.batch("out");
        batch[field] = value;
        batch
    };
    let cases = [
        (
            "unknown-model",
            with("model", json!("anthropic:claude-none")),
            "is not configured; configured: anthropic:claude-sonnet-5",
        ),
        ("missing-folder", with("source", json!(fleet.uri("nowhere/"))), "no such folder"),
        ("unknown-field", with("instruction", json!("x")), "did you mean \\\"instructions\\\""),
        ("empty-instructions", with("instructions", json!("")), "instructions is empty"),
        ("outside-roots", with("source", json!("file:///etc/")), "outside the allowed roots"),
        (
            "output-outside",
            with("output", json!("file:///var/tmp/out/")),
            "outside the allowed roots",
        ),
        (
            "unknown-lane",
            with("lane", json!("express")),
            "choose one of batch, interactive, standard",
        ),
        ("no-object", json!([1, 2]), "must be a JSON object"),
    ];
    for (id, input, sentence) in cases {
        fleet.start(id, &input).await;
        let failure = tokio::time::timeout(Duration::from_secs(20), fleet.result(id))
            .await
            .expect(id)
            .unwrap_err()
            .to_string();
        assert!(failure.contains("InvalidInput") && failure.contains(sentence), "{id}: {failure}");
    }
    fleet.start("dear", &with("budget_usd", json!(0.000_000_1))).await;
    let failure = fleet.result("dear").await.unwrap_err().to_string();
    assert!(
        failure.contains("BudgetExceeded") && failure.contains("nothing was spent"),
        "{failure}"
    );
    assert_eq!(fleet.account().requests, 0);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_resume_and_cancel_from_the_cli() {
    let slow = "[latency]\nbase = \"400ms\"\n";
    let small = format!("{}[worker]\nmax-concurrent-documents = 4\n", settings());
    let Some(mut fleet) = fleet(slow, &small).await else { return };
    fleet.documents(120, 60);
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["max_in_flight"] = json!(4);
    fleet.start("steered", &batch).await;
    fleet.until("steered", |progress| progress["succeeded"].as_u64() >= Some(8)).await;
    let signal = async |name| {
        assert!(
            fleet
                .cli(&["workflow", "signal", "--workflow-id", "steered", "--name", name])
                .await
                .status
                .success()
        )
    };
    signal("pause").await;
    fleet.until("steered", |progress| progress["paused"] == json!(true)).await;
    let mut before = u64::MAX;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = fleet.account().requests;
        if now == before {
            break;
        }
        before = now;
    }
    assert!(before < 120, "the batch was over before it was paused");
    signal("resume").await;
    fleet.until("steered", |progress| progress["succeeded"].as_u64() >= Some(before + 8)).await;

    assert!(fleet.cli(&["workflow", "cancel", "--workflow-id", "steered"]).await.status.success());
    let failure = fleet.result("steered").await.unwrap_err().to_string();
    assert!(failure.to_lowercase().contains("cancel"), "{failure}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fleet.path("out/report.json")).unwrap()).unwrap();
    let succeeded = report["succeeded"].as_u64().unwrap();
    assert_eq!(report["done"], json!(false));
    assert!(succeeded > before && succeeded < 120, "{report}");
    assert!(fleet.lines("out/results.jsonl").len() as u64 >= succeeded);
    fleet.stop().await;
}
