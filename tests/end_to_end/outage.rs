//! Six faults, and whether an operator learns the cause: from `why`, `status`, the page, `top`, and the
//! log.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, fleet, fleet_with_its_own_redis},
    why::tidegate,
};

const SETTINGS: &str = "[gate]\nbase-backoff = \"1s\"\nmax-backoff = \"5s\"\njitter = \"1s\"\n[worker]\nmax-slot-wait = \"1s\"\n";

/// Each model has its own fault; the batch's instructions select it.
const SIMULATOR: &str = "[[faults]]\nkind = \"overloaded\"\nmatching = \"The phase is down.\"\n\
    [[faults]]\nkind = \"spend-limit\"\nmatching = \"The phase is spent.\"\n\
    [[faults]]\nkind = \"rate-limited\"\nretry-after = \"20s\"\nmatching = \"The phase is storm.\"\n\
    [[refused-keys]]\nkey = \"sk-simulated-secret\"\nmodels = [\"refused\"]\n";

/// The snapshot behind the page and `tidegate top`.
const SNAPSHOT: [&str; 2] = ["top", "--json"];

async fn output_of(fleet: &Fleet, arguments: &[&str]) -> String {
    let output = tidegate(fleet, arguments).await;
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Repeats the command until its output contains all of these words.
async fn wait_for_words(fleet: &Fleet, arguments: &[&str], words: &[&str]) -> String {
    let started = Instant::now();
    loop {
        let answer = output_of(fleet, arguments).await;
        if words.iter().all(|word| answer.contains(word)) {
            return answer;
        }
        assert!(started.elapsed() < Duration::from_secs(90), "{arguments:?}, {words:?}: {answer}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn logs(fleet: &Fleet, words: &[&str]) {
    let started = Instant::now();
    let log = || std::fs::read_to_string(fleet.path("worker.log")).unwrap_or_default();
    while !log().lines().any(|line| words.iter().all(|word| line.contains(word))) {
        assert!(started.elapsed() < Duration::from_secs(60), "{words:?}: {}", log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn batch(fleet: &Fleet, phase: &str) -> Value {
    let instructions = format!("The phase is {phase}.");
    json!({"source": fleet.uri("in/"), "output": fleet.uri(phase), "instructions": instructions, "model": format!("anthropic:{phase}"), "max_output_tokens": 256, "on_cut": "keep"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_provider_does_each_face_names_it() {
    let phases = ["down", "spent", "storm", "refused"];
    let models: String = phases
        .iter()
        .map(|phase| format!("[models.\"anthropic:{phase}\"]\nrpm = 6_000\n"))
        .collect();
    let Some(mut fleet) = fleet(SIMULATOR, &format!("{SETTINGS}{models}")).await else { return };
    fleet.documents(12, 60);
    for phase in phases {
        fleet.start(phase, &batch(&fleet, phase)).await;
    }
    // There is no worker yet.
    for face in ["why", "status"] {
        wait_for_words(
            &fleet,
            &[face, "down"],
            &["no worker answers on the task queue \"tidegate\""],
        )
        .await;
    }
    wait_for_words(
        &fleet,
        &SNAPSHOT,
        &["no worker is alive on the task queue; next: start one with `tidegate worker`"],
    )
    .await;

    fleet.worker();
    let words = [
        "anthropic answers with errors, for",
        "Overloaded (529)",
        "`tidegate pause anthropic:down`",
    ];
    for face in ["why", "status"] {
        println!("{}", wait_for_words(&fleet, &[face, "down"], &words).await);
    }
    println!("{}", wait_for_words(&fleet, &["quota", "anthropic:down"], &words[..2]).await);
    wait_for_words(&fleet, &SNAPSHOT, &words).await;
    let status: Value =
        serde_json::from_str(&output_of(&fleet, &["status", "down", "--json"]).await).unwrap();
    assert_eq!(status["eta"], Value::Null, "nobody knows when: {status}");
    wait_for_words(
        &fleet,
        &["doctor"],
        &["FAIL  calls to anthropic:down: anthropic answers with errors"],
    )
    .await;
    logs(
        &fleet,
        &[
            "WARN",
            "anthropic:down",
            "calls to this model fail; this worker makes one test call",
            "verload",
        ],
    )
    .await;

    let words = ["the gate: paused for", "RateLimited (429)", "`tidegate limits set`"];
    for face in ["why", "status"] {
        println!("{}", wait_for_words(&fleet, &[face, "storm"], &words).await);
    }
    wait_for_words(&fleet, &SNAPSHOT, &words).await;
    logs(&fleet, &["WARN", "anthropic:storm", "the gate is closed"]).await;

    // These batches end: documents that cannot succeed fail.
    for (phase, kind, next) in [
        ("spent", "QuotaExhausted", "pay, or raise the account's limit"),
        ("refused", "Unauthorized", "api-key-file"),
    ] {
        let result = fleet.result(phase).await.unwrap();
        assert_eq!(result["failures"], json!({ kind: 12 }), "{result}");
        let failure = fleet.lines(&format!("{phase}/failures.jsonl")).remove(0);
        // The provider's message; the text before it differs between documents.
        let (_, words) = failure["message"].as_str().unwrap().split_once(": status ").unwrap();
        let words = words.split(';').next().unwrap();
        let twelve = format!("12 × {kind}: ");
        for face in ["why", "status"] {
            println!("{}", wait_for_words(&fleet, &[face, phase], &[&twelve, words, next]).await);
        }
        let kind = json!(kind).to_string();
        wait_for_words(&fleet, &SNAPSHOT, &[&kind, words, next, "report-0000.md"]).await;
    }
    logs(&fleet, &["WARN", "anthropic:spent", "the model is exhausted"]).await;
    logs(&fleet, &["ERROR", "anthropic:refused", "a key is refused (403)"]).await;
    logs(&fleet, &["INFO", "the batch has begun", "spent", "documents=12"]).await;
    logs(&fleet, &["INFO", "the batch has ended", "spent", "failed=12"]).await;
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(log.lines().count() < 80, "one line for a change and none for a call: {log}");
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_away_is_named() {
    let settings = format!("{SETTINGS}[models.\"anthropic:away\"]\nrpm = 20\n");
    let Some(mut fleet) = fleet_with_its_own_redis("", &settings).await else { return };
    fleet.documents(60, 60);
    fleet.worker();
    fleet.start("away", &batch(&fleet, "away")).await;
    fleet.until("away", |progress| progress["in_flight"].as_u64() > Some(0)).await;
    drop(fleet.own_redis.take());
    for face in ["why", "status"] {
        println!(
            "{}",
            wait_for_words(&fleet, &[face, "away"], &["Redis is away", "start it"]).await
        );
    }
    wait_for_words(&fleet, &SNAPSHOT, &["\"verdict\": \"Redis is away", "start it"]).await;
    logs(&fleet, &["WARN", "Redis is away"]).await;
    wait_for_words(&fleet, &["doctor"], &["FAIL  redis"]).await;
    let model = "anthropic:away";
    for refused in [
        &["pause", model, "--for", "9s"][..],
        &["resume", model],
        &["limits", "set", model, "--rpm", "9"],
    ] {
        let told = tidegate(&fleet, refused).await;
        let why = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(1), "{why}");
        assert!(why.contains("Redis is away") && why.contains("`tidegate doctor`"), "{why}");
    }
    fleet.stop().await;
}

#[tokio::test]
async fn a_temporal_cli_that_is_not_there_is_a_wrong_configuration() {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("dev").env("TIDEGATE_TEMPORAL_CLI", "/nowhere/temporal").kill_on_drop(true);
    let told = command.output().await.unwrap();
    let why = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(2), "{why}");
    assert!(why.contains("/nowhere/temporal; correct it"), "{why}");
}
