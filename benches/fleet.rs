//! A fleet against a limit: two worker processes, documents of about 2,000 tokens, 400,000 tokens a
//! minute as the model's only configuration, and providers that enforce the limit in different ways. Each
//! batch runs twice, the second time after the provider has forgotten the first.
//!
//! `cargo bench --bench fleet` (some twenty minutes), or `cargo bench --bench fleet -- token-bucket 100`
//! for one provider and this many documents. A batch's time is from its start, on idle workers, to its
//! result. The simulated provider measures use, from 30 s after the first admission to the last quarter
//! minute. Deferrals are those that the two batches report. Questions are script calls that ask for
//! admission, as the workers' metrics count them, for each admission; one script call may ask for several
//! calls.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

mod figures;
#[path = "../tests/end_to_end/fleet.rs"]
mod fleet;

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use figures::{questions, steady};
use fleet::{Fleet, fleet, free_address};
use tidegate_simulator::ModelAccount;

const LIMIT: u64 = 400_000;
const TOKENS: usize = 1_950;
const WORKERS: usize = 2;

/// A provider: its name here, the section of its model, and its algorithm.
struct Provider {
    name: &'static str,
    vendor: &'static str,
    model: &'static str,
    limits: &'static str,
}

/// Gemini reports nothing of its limits; Anthropic reports what is left, and when all of it is back.
const PROVIDERS: [Provider; 5] = [
    Provider {
        name: "token-bucket",
        vendor: "anthropic",
        model: "claude-sonnet-5",
        limits: "algorithm = \"token-bucket\"\nbucket = \"60s\"",
    },
    Provider {
        name: "silent-shallow",
        vendor: "gemini",
        model: "gemini-3-flash",
        limits: "algorithm = \"token-bucket\"\nbucket = \"5s\"",
    },
    Provider {
        name: "shallow-bucket",
        vendor: "anthropic",
        model: "claude-sonnet-5",
        limits: "algorithm = \"token-bucket\"\nbucket = \"5s\"",
    },
    Provider {
        name: "fixed-window",
        vendor: "anthropic",
        model: "claude-sonnet-5",
        limits: "algorithm = \"fixed-window\"",
    },
    Provider {
        name: "sliding-window",
        vendor: "anthropic",
        model: "claude-sonnet-5",
        limits: "algorithm = \"sliding-window\"",
    },
];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let number = wanted.iter().find_map(|argument| argument.parse().ok());
    let wanted: Vec<String> =
        wanted.into_iter().filter(|argument| argument.parse::<usize>().is_err()).collect();
    println!(
        "| provider | documents | first s | second s | bound s | 429s first | 429s second | calls a document | deferrals first | deferrals second | questions | steady use |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for provider in PROVIDERS {
        if wanted.is_empty() || wanted.iter().any(|one| one == provider.name) {
            for documents in number.map_or_else(|| vec![100, 700], |number| vec![number]) {
                run(&provider, documents).await;
            }
        }
    }
}

/// The measurements of one batch.
struct Batch {
    took: Duration,
    refused: u64,
    /// How often a document went back to Temporal, on average.
    deferrals: f64,
    /// The duration of the longest call, in seconds.
    longest: f64,
}

async fn run(provider: &Provider, documents: usize) {
    let Provider { name, vendor, model, limits } = provider;
    // Latency without randomness, so that the longest call follows from its answer.
    let simulator = format!(
        "latency = {{ base = \"1s\", per-output-token = \"15ms\", jitter = 0 }}\n[default]\ntpm = {LIMIT}\n{limits}\n"
    );
    let settings = format!("[models.\"{vendor}:{model}\"]\ntpm = {LIMIT}\n");
    let Some(mut fleet) = fleet(&simulator, &settings).await else { return };
    if *vendor != "anthropic" {
        let section = format!(
            "[providers.{vendor}]\nbase-url = \"{}\"\napi-key-env = \"SIMULATED_KEY\"\n",
            fleet.simulator.base_url()
        );
        let mut file =
            std::fs::OpenOptions::new().append(true).open(fleet.path("tidegate.toml")).unwrap();
        file.write_all(section.as_bytes()).unwrap();
    }
    fleet.documents(documents, TOKENS);
    let pages = [(); WORKERS].map(|()| free_address());
    for page in &pages {
        fleet.worker_with(&[("TIDEGATE_WORKER__METRICS_LISTEN", page)]);
    }
    fleet.working().await;
    let first = batch(&fleet, provider, documents, "first").await;
    let account = fleet.simulator.account().model(model);
    let rate = LIMIT as f64 / 60.0;
    let full = (account.admitted.tokens as f64 - LIMIT as f64) / rate;
    let bound = if full <= 0.0 { first.longest + 2.5 } else { 1.05 * full };
    // A minute after the last admission, no provider here remembers it.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let second = batch(&fleet, provider, documents, "second").await;
    println!(
        "| {name} | {documents} | {:.1} | {:.1} | {bound:.1} | {} | {} | {:.3} | {:.2} | {:.2} | {:.2} | {} |",
        first.took.as_secs_f64(),
        second.took.as_secs_f64(),
        first.refused,
        second.refused,
        fleet.simulator.account().model(model).requests as f64 / (2 * documents) as f64,
        first.deferrals,
        second.deferrals,
        questions(&pages).await,
        steady(&account, LIMIT).map_or_else(String::new, |part| format!("{:.1} %", 100.0 * part)),
    );
    fleet.stop().await;
}

async fn batch(fleet: &Fleet, provider: &Provider, documents: usize, id: &str) -> Batch {
    let Provider { name, vendor, model, .. } = provider;
    let account = || fleet.simulator.account().model(model);
    let before = account();
    let mut batch = fleet.batch(id);
    batch["max_output_tokens"] = 1_024.into();
    batch["model"] = format!("{vendor}:{model}").into();
    let (started, id) = (Instant::now(), format!("{name}-{id}"));
    fleet.start(&id, &batch).await;
    let result = fleet.result(&id).await.unwrap();
    let took = started.elapsed();
    assert_eq!(result["succeeded"], documents, "{result}");
    let after = account();
    if std::env::var_os("TIDEGATE_TRACE").is_some() {
        eprintln!("{}", admissions(&before, &after));
    }
    let refused = |account: &ModelAccount| account.refused.requests + account.refused.tokens;
    let deferrals = result["deferrals"].as_f64().unwrap() / result["documents"].as_f64().unwrap();
    let output = batch["output"].as_str().unwrap().rsplit('/').next().unwrap();
    let answers = fleet.results(output).into_values();
    let longest = answers.filter_map(|answer| answer["output_tokens"].as_f64()).fold(0.0, f64::max);
    let refused = refused(&after) - refused(&before);
    Batch { took, refused, deferrals, longest: 1.0 + 0.015 * longest }
}

/// Calls admitted in each second.
fn admissions(before: &ModelAccount, after: &ModelAccount) -> String {
    let from =
        before.last_admission.map_or_else(|| after.first_admission.unwrap(), |last| last + 1.0);
    let seconds = Duration::from_secs_f64(from.floor()).as_secs()
        ..Duration::from_secs_f64(after.last_admission.unwrap().ceil()).as_secs() + 1;
    let each = seconds.map(|at| {
        let calls = after.tokens_between(Duration::from_secs(at), Duration::from_secs(at + 1));
        calls.requests.to_string()
    });
    format!("admitted in each second: {}", each.collect::<Vec<_>>().join(" "))
}
