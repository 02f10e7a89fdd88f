//! Documents that start too early: how often a document goes back to Temporal to wait for quota, and how
//! many limiter calls each provider call takes, in the cases where that is likely.
//!
//! `cargo bench --bench deferrals` (some fifteen minutes), or `cargo bench --bench deferrals --
//! twelve-workers` for one case. The provider is a token bucket, 60 s deep, that reports its limits. Use
//! is the used fraction of the provider's limit, from 30 s after the first admission to the last 15 s.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

mod figures;
#[path = "../tests/end_to_end/fleet.rs"]
mod fleet;

use std::time::Instant;

use figures::{questions, steady};
use fleet::{Fleet, MODEL, fleet, free_address};
use serde_json::Value;

/// One case: its differences from the usual case.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Tokens a minute.
    limit: u64,
    workers: usize,
    /// The number of workers whose key the provider refuses.
    bad_keys: usize,
    documents: usize,
    /// The number of batches that run at the same time.
    batches: usize,
    max_in_flight: Option<u32>,
    /// Text with few characters for each token: more tokens are used than estimated.
    dense: bool,
}

const PLAIN: Case = Case {
    name: "nothing-stated",
    limit: 400_000,
    workers: 2,
    bad_keys: 0,
    documents: 700,
    batches: 1,
    max_in_flight: None,
    dense: false,
};

const CASES: [Case; 6] = [
    PLAIN,
    Case { name: "400-in-flight", max_in_flight: Some(400), ..PLAIN },
    Case { name: "dense-text", dense: true, documents: 300, ..PLAIN },
    Case { name: "twelve-workers", limit: 60_000, workers: 12, documents: 150, ..PLAIN },
    Case { name: "four-batches", batches: 4, documents: 150, ..PLAIN },
    Case { name: "one-bad-key", bad_keys: 1, documents: 300, ..PLAIN },
];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!(
        "| case | documents | seconds | possible | 429s | deferrals a document | questions an admission | steady use |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for case in CASES {
        if wanted.is_empty() || wanted.iter().any(|one| one == case.name) {
            run(case).await;
        }
    }
}

async fn run(case: Case) {
    let limit = case.limit;
    let simulator = format!(
        "refused-keys = [{{ key = \"sk-refused\" }}]\nlatency = {{ base = \"1s\", per-output-token = \"15ms\", jitter = 0 }}\n[default]\ntpm = {limit}\nalgorithm = \"token-bucket\"\nbucket = \"60s\"\n"
    );
    let settings = format!("[models.\"{MODEL}\"]\ntpm = {limit}\n");
    let Some(mut fleet) = fleet(&simulator, &settings).await else { return };
    write(&fleet, case);
    let pages: Vec<String> = (0..case.workers).map(|_| free_address()).collect();
    for (number, page) in pages.iter().enumerate() {
        let key = if number < case.bad_keys { "sk-refused" } else { "sk-simulated-secret" };
        fleet.worker_with(&[("TIDEGATE_WORKER__METRICS_LISTEN", page), ("SIMULATED_KEY", key)]);
    }
    fleet.working().await;
    let started = Instant::now();
    let batches = (0..case.batches).map(|number| batch(&fleet, case, number));
    let results = futures::future::join_all(batches).await;
    let took = started.elapsed().as_secs_f64();
    let sum = |field: &str| -> f64 { results.iter().filter_map(|it| it[field].as_f64()).sum() };
    let account = fleet.simulator.account().model("claude-sonnet-5");
    let beyond = account.admitted.tokens.saturating_sub(limit) as f64;
    println!(
        "| {} | {} | {took:.1} | {:.1} | {} | {:.2} | {:.2} | {} |",
        case.name,
        sum("documents"),
        60.0 * beyond / limit as f64,
        account.refused.requests + account.refused.tokens,
        sum("deferrals") / sum("documents"),
        questions(&pages).await,
        steady(&account, limit).map_or_else(String::new, |part| format!("{:.1} %", 100.0 * part)),
    );
    fleet.stop().await;
}

fn write(fleet: &Fleet, case: Case) {
    if !case.dense {
        return fleet.documents(case.documents, 1_950);
    }
    for number in 0..case.documents {
        let digits = (0..4_000).map(|line| format!("{:x};", line * 7_919 + number));
        let text: String = digits.collect();
        std::fs::write(fleet.path(&format!("in/table-{number:04}.txt")), &text[..6_000]).unwrap();
    }
}

async fn batch(fleet: &Fleet, case: Case, number: usize) -> Value {
    let id = format!("{}-{number}", case.name);
    let mut batch = fleet.batch(&id);
    batch["max_output_tokens"] = 1_024.into();
    if let Some(most) = case.max_in_flight {
        batch["max_in_flight"] = most.into();
    }
    fleet.start(&id, &batch).await;
    let result = fleet.result(&id).await.unwrap();
    assert_eq!(result["succeeded"], case.documents, "{result}");
    result
}
