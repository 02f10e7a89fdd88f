//! Whole batches, started by the Temporal CLI, on worker processes.

use std::time::Duration;

use serde_json::json;

use crate::{
    fleet::{MODEL, fleet, private_folder},
    why::tidegate,
};

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
    // The whole run: first what the provider admits at once, then the rest.
    let (first, last) = (account.first_admission.unwrap(), account.last_admission.unwrap());
    let (from, to) = (first.floor(), last.ceil());
    let (begin, end) = (Duration::from_secs_f64(from), Duration::from_secs_f64(to));
    let used = account.tokens_between(begin, end).tokens as f64 / (2_000.0 * (to - from));
    println!("use of the limit: {:.1} %", used * 100.0);
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
    fleet.signal("steered", "pause").await;
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
    fleet.signal("steered", "resume").await;
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

/// Rows with equal ids, entries that are no files, and a rerun that is cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_vanishes_between_the_source_and_the_report() {
    let slow = "[latency]\nbase = \"300ms\"\n";
    let small = format!("{}[worker]\nmax-concurrent-documents = 8\n", settings());
    let Some(mut fleet) = fleet(slow, &small).await else { return };
    let rows: String =
        (0..9).map(|row| format!("ship-{},Row {row} of the log.\n", row % 3)).collect();
    std::fs::write(fleet.path("in/log.csv"), format!("ship,note\n{rows}")).unwrap();
    std::fs::write(fleet.path("in/new\nline.md"), "A line break in a name.").unwrap();
    std::os::unix::fs::symlink("circle", fleet.path("in/circle")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(fleet.path("in/pipe")).status().unwrap();
    assert!(pipe.success());
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["records"] = json!({"id": "ship"});
    fleet.start("first", &batch).await;
    let result = fleet.result("first").await.unwrap();
    let figures = |value: &serde_json::Value| {
        ["documents", "succeeded", "failed", "skipped", "cancelled", "renamed"]
            .map(|name| value[name].as_u64().unwrap())
    };
    assert_eq!(figures(&result), [12, 9, 3, 0, 0, 6], "{result}");
    let report = || {
        let bytes = std::fs::read(fleet.path("out/report.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
    };
    assert_eq!(figures(&report()), figures(&result));
    let ids = |name: &str| -> Vec<String> {
        fleet.lines(name).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let ships = |ship: u32| {
        [
            format!("log.csv__ship-{ship}"),
            format!("log.csv__ship-{ship}~2"),
            format!("log.csv__ship-{ship}~3"),
        ]
    };
    assert_eq!(ids("out/results.jsonl"), [ships(0), ships(1), ships(2)].concat());
    assert!(fleet.path("out/results/log.csv__ship-0~3.json").exists());
    let failures = fleet.lines("out/failures.jsonl");
    for (failure, name) in failures.iter().zip(["circle: ", "new\\nline.md: ", "pipe: "]) {
        let message = failure["message"].as_str().unwrap();
        assert!(message.starts_with(name), "{failures:?}");
        assert_eq!(failure["error_type"], json!("UnreadableDocument"));
    }
    assert_eq!((failures.len(), fleet.account().requests), (3, 9));

    fleet.documents(120, 60);
    batch["max_in_flight"] = json!(4);
    fleet.start("second", &batch).await;
    fleet.until("second", |progress| progress["succeeded"].as_u64() >= Some(1)).await;
    let cancel = fleet.cli(&["workflow", "cancel", "--workflow-id", "second"]).await;
    assert!(cancel.status.success());
    assert!(
        fleet.result("second").await.unwrap_err().to_string().to_lowercase().contains("cancel")
    );
    let [documents, succeeded, failed, skipped, cancelled, _] = figures(&report());
    assert_eq!(succeeded + failed + skipped + cancelled, documents, "{}", report());
    assert!(documents == 132 && cancelled > 0 && skipped == 9, "{}", report());
    let seen = tidegate(&fleet, &["status", "second", "--json"]).await;
    let seen: serde_json::Value = serde_json::from_slice(&seen.stdout).unwrap();
    assert_eq!(figures(&seen), figures(&report()), "{seen}");
    let (results, mut lines) = (fleet.results("out"), ids("out/results.jsonl"));
    lines.sort();
    assert_eq!(lines, results.keys().cloned().collect::<Vec<_>>());
    assert_eq!(
        (results.len() as u64, ids("out/failures.jsonl").len() as u64),
        (9 + succeeded, failed)
    );
    let progress = fleet.progress("second").await.unwrap();
    assert_eq!(figures(&progress), figures(&report()));
    fleet.stop().await;
}

/// Three batches with one question: two with a document a call, one with several. Only the first one
/// pays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_share_answers() {
    let price = "price = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 40.0 }";
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 6_000\n{price}\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(12, 60);
    let (_folder, store) = private_folder();
    fleet.worker_with(&[("TIDEGATE_STORAGE__ANSWERS", &store)]);
    fleet.start("first", &with_room(&fleet, "first")).await;
    let first = fleet.result("first").await.unwrap();
    assert_eq!(first["provider_calls"], json!(12), "{first}");
    let mut in_packs = with_room(&fleet, "third");
    in_packs["pack"] = json!(5);
    for (id, batch) in [("second", with_room(&fleet, "second")), ("third", in_packs)] {
        fleet.start(id, &batch).await;
        let again = fleet.result(id).await.unwrap();
        assert_eq!((&again["succeeded"], &again["provider_calls"]), (&json!(12), &json!(0)));
        let report = std::fs::read(fleet.path(&format!("{id}/report.json"))).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["reused"], json!(12), "{report}");
        let saved = report["saved_usd"].as_f64().unwrap();
        assert!((saved - first["cost_usd"].as_f64().unwrap()).abs() < 1e-9, "{report}");
        let answers = |id: &str| -> Vec<_> {
            fleet.results(id).into_values().map(|result| result["answer"].clone()).collect()
        };
        assert_eq!(answers(id), answers("first"));
    }
    assert_eq!(fleet.account().requests, 12);
    fleet.stop().await;
}

/// Truncated answers are not shared.
fn with_room(fleet: &crate::fleet::Fleet, output: &str) -> serde_json::Value {
    let mut batch = fleet.batch(output);
    batch["max_output_tokens"] = json!(4_000);
    batch
}
