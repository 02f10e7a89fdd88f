//! Which results count as done: tests with another question, another content and another batch.

use serde_json::{Value, json};

use crate::fleet::{MODEL, fleet};

/// Whichever batch asks, a document has one complete answer for each question and content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_knows_what_it_answers_and_an_output_has_one_batch() {
    let slow = "[latency]\nbase = \"300ms\"\n";
    let settings =
        format!("[models.\"{MODEL}\"]\ntpm = 120_000\n[worker]\nmax-concurrent-documents = 4\n");
    let Some(mut fleet) = fleet(slow, &settings).await else { return };
    fleet.documents(12, 60);
    fleet.worker();
    let batch = fleet.batch("out");
    let figures = |value: &Value| {
        ["succeeded", "failed", "skipped", "cancelled", "updated"]
            .map(|name| value[name].as_u64().unwrap())
    };

    // Two batches at once. A paused batch counts as running.
    fleet.start_paused("first", &batch).await;
    fleet.until("first", |progress| progress["documents"].as_u64() == Some(12)).await;
    fleet.start("second", &batch).await;
    let refused = fleet.result("second").await.unwrap_err().to_string();
    assert!(
        refused.contains("InvalidInput") && refused.contains("belongs to the batch"),
        "{refused}"
    );
    assert!(refused.contains("first") && refused.contains("(run "), "{refused}");
    fleet.signal("first", "resume").await;
    assert_eq!(figures(&fleet.result("first").await.unwrap()), [12, 0, 0, 0, 0]);
    assert_eq!(fleet.account().requests, 12, "nothing was bought twice");

    // A changed document.
    std::fs::write(fleet.path("in/report-0003.md"), "The harbour is closed now.").unwrap();
    fleet.start("changed", &batch).await;
    assert_eq!(figures(&fleet.result("changed").await.unwrap()), [1, 0, 11, 0, 1]);
    let report = std::fs::read(fleet.path("out/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!((figures(&report), fleet.account().requests), ([1, 0, 11, 0, 1], 13));

    // Another question.
    let mut other = batch.clone();
    other["instructions"] = json!("Translate it.");
    fleet.start("other", &other).await;
    let refused = fleet.result("other").await.unwrap_err().to_string();
    for part in ["InvalidInput", "instructions differs", "another output", "--replace"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(fleet.account().requests, 13);
    let before = fleet.results("out");
    let questions = |results: &std::collections::BTreeMap<String, Value>| -> Vec<Value> {
        results.values().map(|result| result["question"].clone()).collect()
    };
    let old = questions(&before)[0].clone();
    assert!(questions(&before).iter().all(|question| *question == old && old.is_string()));

    // Results are replaced, by workers of which one is killed.
    other["replace"] = json!(true);
    other["max_in_flight"] = json!(2);
    fleet.start("replaced", &other).await;
    fleet.until("replaced", |progress| progress["succeeded"].as_u64() >= Some(2)).await;
    fleet.kill_worker(0).await;
    // Each result is read, which fails unless it is complete.
    let middle = questions(&fleet.results("out"));
    assert_eq!(middle.len(), 12);
    assert!(middle.iter().any(|question| *question != old), "some are replaced");
    fleet.worker();
    assert_eq!(figures(&fleet.result("replaced").await.unwrap()), [12, 0, 0, 0, 0]);
    let (results, lines) = (fleet.results("out"), fleet.lines("out/results.jsonl"));
    assert!(questions(&results).iter().all(|question| *question != old));
    assert_eq!(lines.len(), 12);
    assert!(lines.iter().all(|line| line["question"] != old && line["content"].is_string()));
    let calls = fleet.account().requests;
    assert!((25..=29).contains(&calls), "{calls}: at most what was in flight is asked again");

    // A terminated batch leaves the output to the next batch.
    fleet.documents(14, 60);
    fleet.start_paused("ended", &other).await;
    fleet.until("ended", |progress| progress["documents"].as_u64() == Some(14)).await;
    let ended =
        fleet.cli(&["workflow", "terminate", "--workflow-id", "ended", "--reason", "test"]).await;
    assert!(ended.status.success());
    fleet.start("next", &other).await;
    // Of the twelve rewritten documents, one has another text.
    assert_eq!(figures(&fleet.result("next").await.unwrap()), [3, 0, 11, 0, 1]);
    assert!(fleet.path("out/_tidegate/lease-1").exists(), "a lease is only ever created");
    fleet.stop().await;
}
