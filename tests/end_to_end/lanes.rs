//! Lanes and models in one worker process: none takes the slots that another needs.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{Fleet, MODEL, fleet};

const OTHER: &str = "anthropic:claude-haiku-4-5";

/// The duration of a call.
const CALL: Duration = Duration::from_secs(12);

/// Long calls hold all slots that a batch can get, and more of its documents wait. A document of a higher
/// lane starts at once: it takes no longer than alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interactive_document_does_not_wait_for_the_slots_of_a_batch() {
    let settings =
        format!("[models.\"{MODEL}\"]\ntpm = 2_000_000\n[worker]\nmax-concurrent-documents = 6\n");
    let Some(mut fleet) =
        fleet(&format!("[latency]\nbase = \"{}s\"\n", CALL.as_secs()), &settings).await
    else {
        return;
    };
    fleet.documents(60, 60);
    fleet.worker();
    let interactive = async |fleet: &Fleet, id: &str| {
        let began = Instant::now();
        let one = json!({
            "documents": [fleet.uri("in/report-0001.md")], "output": fleet.uri(id), "lane": "interactive",
            "instructions": "Summarise in three points.", "model": MODEL, "max_output_tokens": 256, "on_cut": "keep",
        });
        fleet.start(id, &one).await;
        assert_eq!(fleet.result(id).await.unwrap()["succeeded"], json!(1));
        began.elapsed()
    };
    let alone = interactive(&fleet, "alone").await;
    let mut batch = fleet.batch("out");
    batch["max_in_flight"] = json!(60);
    fleet.start("backlog", &batch).await;
    calls(&fleet, 1 + 4).await;
    let took = interactive(&fleet, "urgent").await;
    let backlog = fleet.progress("backlog").await.unwrap();
    println!(
        "interactive: {:.1} s, alone {:.1} s, of which the call {:.0} s; the batch: {backlog}",
        took.as_secs_f64(),
        alone.as_secs_f64(),
        CALL.as_secs_f64()
    );
    assert!(took < alone + CALL / 2, "it waited for a slot: {took:?}, and alone {alone:?}");
    assert!(backlog["succeeded"].as_u64() < Some(12), "the batch was nearly over: {backlog}");
    fleet.stop().await;
}

/// Many documents wait behind a closed gate, each for up to a minute in its slot. That delays no other
/// model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_model_does_not_fill_the_slots_of_another() {
    let settings = format!(
        "[models.\"{MODEL}\"]\ntpm = 2_000_000\n[models.\"{OTHER}\"]\ntpm = 2_000_000\n[gate]\njitter = \"1s\"\n\
         [worker]\nmax-concurrent-documents = 8\nmax-slot-wait = \"90s\"\n"
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(40, 60);
    fleet.worker();
    let paused = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["pause", MODEL, "--for", "80s", "--reason", "a test", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .env("SIMULATED_KEY", "sk-simulated-secret")
        .output()
        .await
        .unwrap();
    assert!(paused.status.success(), "{}", String::from_utf8_lossy(&paused.stderr));
    fleet.start("paused", &fleet.batch("paused")).await;
    fleet.until("paused", |progress| progress["in_flight"].as_u64() >= Some(20)).await;

    let began = Instant::now();
    let mut other = fleet.batch("other");
    other["model"] = json!(OTHER);
    fleet.start("other", &other).await;
    assert_eq!(fleet.result("other").await.unwrap()["succeeded"], json!(40));
    let took = began.elapsed();
    println!("the other model's 40 documents: {:.1} s", took.as_secs_f64());
    assert!(took < Duration::from_secs(30), "it waited for the paused model: {took:?}");
    assert_eq!(fleet.progress("paused").await.unwrap()["succeeded"], json!(0), "the gate was open");
    fleet.stop().await;
}

/// Waits until the provider has had this many calls.
async fn calls(fleet: &Fleet, count: u64) {
    for _ in 0..600 {
        if fleet.account().requests >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the provider was never called {count} times: {:?}", fleet.account());
}
