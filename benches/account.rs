//! One batch that uses a whole account: 12,000 requests a minute, calls of 12 s, two worker processes. By
//! Little's law, full use of the quota keeps 2,400 calls in flight.
//!
//! `cargo bench --bench account` runs 36,000 tiny documents, which the limit allows in three minutes;
//! `... -- 18000 6000 24` sets documents, requests a minute and seconds of a call: as many calls in
//! flight at half the rate, for a machine that cannot process 200 documents a second. The simulated
//! provider measures use, from 30 s after the first admission to the last quarter minute.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

#[path = "../tests/end_to_end/fleet.rs"]
mod fleet;

use std::time::{Duration, Instant};

use fleet::fleet_with_its_own_redis;
use tidegate_simulator::ModelAccount;
use tidegate_testkit::processor_time;

/// Documents, requests a minute, and seconds of a call.
const ACCOUNT: [u32; 3] = [36_000, 12_000, 12];
const WORKERS: usize = 2;

/// Of a worker's slots, the lanes `interactive` and `standard` keep 22.5 % to themselves: two workers
/// have 3,720 left, more than the 2,400 calls in flight.
const SLOTS: &str = "2400";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let [documents, a_minute, call] = ACCOUNT.map(|default| numbers.next().unwrap_or(default));
    let provider = format!(
        "latency = {{ base = \"{call}s\", per-output-token = \"0s\", jitter = 0 }}\n\
         [default]\nrpm = {a_minute}\nalgorithm = \"token-bucket\"\nbucket = \"60s\"\n"
    );
    let settings = format!("[models.\"anthropic:claude-sonnet-5\"]\nrpm = {a_minute}\n");
    let Some(mut fleet) = fleet_with_its_own_redis(&provider, &settings).await else { return };
    fleet.documents(documents as usize, 60);
    for _ in 0..WORKERS {
        fleet.worker_with(&[("TIDEGATE_WORKER__MAX_CONCURRENT_DOCUMENTS", SLOTS)]);
    }
    fleet.working().await;
    let started = Instant::now();
    fleet.start("whole", &fleet.batch("out")).await;
    let result = fleet.result("whole").await.unwrap();
    let took = started.elapsed().as_secs_f64();
    assert_eq!(result["succeeded"], documents, "{result}");
    let account = fleet.account();
    println!("calls admitted in each ten seconds: {}", admissions(&account));
    println!(
        "{documents} documents in {took:.1} s (the limit and a last call allow {:.1} s); {:.1} % of the limit in steady use; {} refused, {:.3} calls and {:.2} \
         deferrals a document; at most {} in flight; {} MB in a worker; processor time for one document: \
         Temporal {:.2} ms, workers {:.2} ms, provider {:.2} ms",
        (f64::from(documents) / f64::from(a_minute) - 1.0).max(0.0) * 60.0 + f64::from(call),
        100.0 * steady(&account, f64::from(a_minute)),
        account.refused.requests,
        account.requests as f64 / f64::from(documents),
        result["deferrals"].as_f64().unwrap() / f64::from(documents),
        account.max_in_flight,
        fleet.peak_memory(),
        each(fleet.temporal.processor_time(), documents),
        each(Some(fleet.processor_time()), documents),
        each(processor_time(std::process::id()), documents),
    );
    fleet.stop().await;
}

fn each(time: Option<Duration>, documents: u32) -> f64 {
    1e3 * time.unwrap_or_default().as_secs_f64() / f64::from(documents)
}

fn admissions(account: &ModelAccount) -> String {
    let ends = |at: &u64| (*at as f64) < account.last_admission.unwrap();
    let tens = (0..).step_by(10).take_while(ends).map(|at| {
        let (from, to) = (Duration::from_secs(at), Duration::from_secs(at + 10));
        account.tokens_between(from, to).requests.to_string()
    });
    tens.collect::<Vec<_>>().join(" ")
}

/// The used fraction of the limit.
fn steady(account: &ModelAccount, a_minute: f64) -> f64 {
    let from = Duration::from_secs_f64(account.first_admission.unwrap().ceil() + 30.0);
    let to = Duration::from_secs_f64(account.last_admission.unwrap().floor() - 15.0);
    let calls = account.tokens_between(from, to).requests as f64;
    calls / (to - from).as_secs_f64() / (a_minute / 60.0)
}
