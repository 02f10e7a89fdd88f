//! Keys that the provider refuses, and that are corrected while workers run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, MODEL, fleet},
    why::{tidegate, why},
};

const BAD: &str = "sk-simulated-refused";
const GOOD: &str = "sk-simulated-good";

/// A worker whose key is in an environment file of its own.
fn worker(fleet: &mut Fleet, name: &str, key: &str) {
    put(fleet, name, key);
    let file = fleet.path(name).display().to_string();
    fleet.worker_with(&[("TIDEGATE_PROVIDERS__ANTHROPIC__API_KEY_FILE", &file)]);
}

fn put(fleet: &Fleet, name: &str, key: &str) {
    let file = fleet.path(name);
    // Replaces the file atomically, as key managers do.
    std::fs::write(file.with_extension("new"), format!("# keys\nSIMULATED_KEY={key}\n")).unwrap();
    std::fs::rename(file.with_extension("new"), file).unwrap();
}

async fn logged(fleet: &Fleet, text: &str, times: usize) {
    let started = Instant::now();
    let log = || std::fs::read_to_string(fleet.path("worker.log")).unwrap_or_default();
    while log().matches(text).count() < times {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn doctors_faults(fleet: &Fleet) -> Vec<String> {
    let output = tidegate(fleet, &["doctor", "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let of_keys = checks.filter(|check| check["name"] == "key of a worker");
    of_keys.map(|check| check["seen"].as_str().unwrap().to_owned()).collect()
}

/// One of two keys is refused: no document fails. The key is corrected: the worker goes on without a
/// restart. Both keys are refused: documents fail soon, with the vendor's message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_go_where_a_good_key_is_and_fail_where_none_is() {
    let simulator = format!("[latency]\nbase = \"200ms\"\n[[refused-keys]]\nkey = \"{BAD}\"\n");
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 3_000\nconcurrent = 20\n");
    let Some(mut fleet) = fleet(&simulator, &settings).await else { return };
    fleet.documents(200, 60);
    worker(&mut fleet, "one", BAD);
    worker(&mut fleet, "two", GOOD);
    fleet.start("half", &fleet.batch("half")).await;
    let result = fleet.result("half").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(200), &json!(0)), "{result}");
    let rejected = fleet.simulator.account().rejected;
    println!("{rejected} calls with a refused key for 200 documents, two workers");
    // Calls that were under way at the first refusal, and one probe every 30 s.
    assert!((1..=20 + 10).contains(&rejected), "{rejected}");
    let faults = doctors_faults(&fleet).await;
    assert!(
        matches!(faults.as_slice(), [one] if one.contains("anthropic does not accept its key (401)")),
        "{faults:?}"
    );

    // The other worker is gone, and this worker's key is corrected.
    fleet.kill_worker(1).await;
    put(&fleet, "one", GOOD);
    let few = |output: &str| {
        let mut batch = fleet.batch(output);
        batch["source"] = json!(fleet.uri("in/report-000*.md"));
        batch
    };
    let (mended, none) = (few("mended"), few("none"));
    fleet.start("mended", &mended).await;
    let result = fleet.result("mended").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(10), &json!(0)), "{result}");

    put(&fleet, "one", BAD);
    worker(&mut fleet, "three", BAD);
    // The corrected key was the first that was read again.
    logged(&fleet, "another key was read", 2).await;
    let before = fleet.simulator.account().rejected;
    fleet.start("none", &none).await;
    let answer = why(&fleet, "none", |answer| {
        answer["why"].as_str().is_some_and(|why| why.contains("does not accept its key"))
    });
    println!("{}", answer.await["why"]);
    let result = fleet.result("none").await.unwrap();
    let failures = fleet.lines("none/failures.jsonl");
    assert_eq!((&result["failed"], failures.len()), (&json!(10), 10), "{result}");
    for failure in failures {
        assert_eq!(failure["error_type"], "Unauthorized", "{failure}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("invalid x-api-key"), "{failure}");
    }
    let rejected = fleet.simulator.account().rejected - before;
    assert!(rejected <= 20 + 10, "{rejected} calls for 10 documents");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(log.contains("a key is refused (401)") && log.contains("another key was read"));
    assert!(!log.contains(BAD) && !log.contains(GOOD), "a key was logged");
    fleet.stop().await;
}

/// The worker reports the missing key at its start, and each document's failure names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_not_set_is_named() {
    let provider = tidegate_simulator::Simulator::start(tidegate_simulator::Config::default());
    let provider = provider.await.unwrap();
    let settings = format!(
        "[models.\"openai:m\"]\nrpm = 6_000\n[providers.openai]\nbase-url = \"{}/v1\"\n",
        provider.base_url()
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(5, 60);
    fleet.worker_with(&[("OPENAI_API_KEY", "")]);
    logged(&fleet, "there is no key for openai:m (provider openai): OPENAI_API_KEY is not set", 1)
        .await;
    let mut batch = fleet.batch("none");
    batch["model"] = json!("openai:m");
    fleet.start("none", &batch).await;
    let result = fleet.result("none").await.unwrap();
    assert_eq!(result["failures"], json!({ "Unauthorized": 5 }), "{result}");
    for failure in fleet.lines("none/failures.jsonl") {
        let message = failure["message"].as_str().unwrap();
        let words = "for openai:m: the key of openai (OPENAI_API_KEY is not set";
        assert!(message.contains(words), "{failure}");
    }
    fleet.stop().await;
    provider.shutdown().await;
}
