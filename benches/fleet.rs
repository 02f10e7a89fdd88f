//! A fleet against a limit: two worker processes, 700 documents of about 2,000 tokens, 400,000
//! tokens a minute, and providers that enforce the limit in different ways.
//!
//! `cargo bench --bench fleet` (some four minutes for each provider), or
//! `cargo bench --bench fleet -- sliding-window` for one, `… -- 100` for as many documents. Use is measured by the simulated
//! provider, from 30 s after the first admission to the last quarter minute.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

#[path = "../tests/end_to_end/fleet.rs"]
mod fleet;

use std::time::{Duration, Instant};

use fleet::{MODEL, fleet};

const LIMIT: u64 = 400_000;
const DOCUMENTS: usize = 700;
const TOKENS: usize = 1_950;

const PROVIDERS: [(&str, &str); 4] = [
    ("token-bucket", "algorithm = \"token-bucket\"\nbucket = \"60s\""),
    ("shallow-bucket", "algorithm = \"token-bucket\"\nbucket = \"5s\""),
    ("fixed-window", "algorithm = \"fixed-window\""),
    ("sliding-window", "algorithm = \"sliding-window\""),
];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let documents = wanted.iter().find_map(|argument| argument.parse().ok()).unwrap_or(DOCUMENTS);
    let wanted: Vec<String> =
        wanted.into_iter().filter(|argument| argument.parse::<usize>().is_err()).collect();
    println!(
        "{:<16} {:>8} {:>14} {:>8} {:>12} {:>14}",
        "provider", "time", "calls/document", "429s", "steady use", "worst minute"
    );
    for (name, limits) in PROVIDERS {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            run(name, limits, documents).await;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
async fn run(name: &str, limits: &str, documents: usize) {
    let simulator = format!(
        "latency = {{ base = \"1s\", per-output-token = \"15ms\", jitter = 0.3 }}\n[default]\ntpm = {LIMIT}\n{limits}\n"
    );
    let Some(mut fleet) =
        fleet(&simulator, &format!("[models.\"{MODEL}\"]\ntpm = {LIMIT}\n")).await
    else {
        return;
    };
    fleet.documents(documents, TOKENS);
    fleet.worker();
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["max_output_tokens"] = 1_024.into();
    let started = Instant::now();
    fleet.start(name, &batch).await;
    let result = fleet.result(name).await.unwrap();
    let took = started.elapsed();
    assert_eq!(result["succeeded"], documents, "{result}");
    assert_eq!(fleet.results("out").len(), documents);
    let account = fleet.account();
    let (first, last) = (account.first_admission.unwrap(), account.last_admission.unwrap());
    let (from, to) = (
        Duration::from_secs_f64(first.ceil() + 30.0),
        Duration::from_secs_f64((last.floor() - 15.0).max(0.0)),
    );
    let refused = account.refused.requests + account.refused.tokens;
    if to <= from {
        println!(
            "{name:<16} {:>6.1} s {:>14.3} {refused:>8}",
            took.as_secs_f64(),
            account.requests as f64 / documents as f64
        );
        return fleet.stop().await;
    }
    let used = account.tokens_between(from, to).tokens as f64
        / (to - from).as_secs_f64()
        / (LIMIT as f64 / 60.0);
    println!(
        "{name:<16} {:>6.0} s {:>14.3} {refused:>8} {:>10.1} % {:>12.1} %",
        took.as_secs_f64(),
        account.requests as f64 / documents as f64,
        used * 100.0,
        account.worst_window.tokens as f64 / LIMIT as f64 * 100.0
    );
    fleet.stop().await;
}
