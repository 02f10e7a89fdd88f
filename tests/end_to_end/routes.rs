//! When a route may fall back: refused with the command that compares, and allowed for each of three
//! reasons.

use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    fleet::{Fleet, MODEL, fleet},
    why::tidegate,
};

const OTHER: &str = "anthropic:claude-haiku-4-5";

const DOCUMENTS: usize = 12;

fn settings(prefix: &str) -> String {
    let routes = [
        ("none", String::new()),
        ("compared", format!("compared = \"{prefix}\"")),
        ("unchecked", "unchecked = true".to_owned()),
        ("equal", format!("equivalent = [\"{OTHER}\"]")),
    ];
    let route = |(name, reason): &(&str, String)| {
        format!(
            "[routes.{name}]\nmodels = [\"{MODEL}\", \"{OTHER}\"]\nafter-refusals = 1\n{reason}\n"
        )
    };
    routes.iter().map(route).collect()
}

fn batch(fleet: &Fleet, route: &str) -> Value {
    json!({"source": fleet.uri("in/"), "output": fleet.uri(&format!("{route}/")), "route": route,
        "instructions": "Say what it is about; it's short.", "effort": "none"})
}

async fn run_refused(fleet: &Fleet, route: &str, id: &str) -> String {
    fleet.start(id, &batch(fleet, route)).await;
    let failure = fleet.result(id).await.unwrap_err().to_string();
    let failure = failure.replace("\\\"", "\"").replace("\\\\", "\\");
    assert!(failure.contains("InvalidInput") && failure.contains("were not compared"), "{failure}");
    let command = failure.split("tidegate compare").nth(1).unwrap_or_else(|| panic!("{failure}"));
    let command = command.split("\"}").next().unwrap().to_owned();
    println!("{route} is refused: tidegate compare{command}");
    command
}

/// Runs the command as a user who copies it does.
async fn compare(fleet: &Fleet, arguments: &str) {
    let program = env!("CARGO_BIN_EXE_tidegate");
    let config = fleet.path("tidegate.toml");
    let line = format!("{program} compare{arguments} --sample 5 --config {}", config.display());
    let ran = Command::new("sh").args(["-c", &line]).output().await.unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_is_refused_with_the_command_and_allowed_for_each_of_three_reasons() {
    let models: String =
        [MODEL, OTHER].iter().map(|name| format!("[models.\"{name}\"]\nrpm = 6000\n")).collect();
    let gate = "[gate]\njitter = \"50ms\"\nbase-backoff = \"20ms\"\nmax-backoff = \"200ms\"\n";
    let Some(mut fleet) = fleet("", &format!("{models}{gate}")).await else { return };
    let config = fleet.path("tidegate.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + &settings(&fleet.uri("comparisons/"))).unwrap();
    fleet.documents(DOCUMENTS, 60);
    fleet.worker();

    let without = run_refused(&fleet, "none", "none").await;
    assert!(without.contains(&fleet.uri("none/compared/")), "{without}");
    let command = run_refused(&fleet, "compared", "before").await;
    assert_eq!(fleet.simulator.account().model("claude-sonnet-5").requests, 0, "nothing was asked");
    compare(&fleet, &command).await;
    // A comparison for another question does not count.
    let mut other = batch(&fleet, "compared");
    other["instructions"] = json!("Sum up.");
    fleet.start("other", &other).await;
    let failure = fleet.result("other").await.unwrap_err().to_string();
    assert!(failure.contains("were not compared"), "{failure}");
    other["instructions"] = batch(&fleet, "compared")["instructions"].clone();
    other["effort"] = json!("low");
    fleet.start("thinks", &other).await;
    let failure = fleet.result("thinks").await.unwrap_err().to_string();
    assert!(failure.contains("were not compared"), "{failure}");

    let paused = tidegate(&fleet, &["pause", MODEL, "--for", "5m", "--reason", "test"]).await;
    assert!(paused.status.success());
    for (route, because) in
        [("compared", "compared"), ("unchecked", "unchecked"), ("equal", "equivalent")]
    {
        fleet.start(route, &batch(&fleet, route)).await;
        let result = fleet.result(route).await.unwrap();
        assert_eq!(result["succeeded"], json!(DOCUMENTS), "{route}: {result}");
        for answer in fleet.results(route).values() {
            let why = &answer["fallback"];
            assert_eq!(
                (&answer["model"], &why["from"], &why["because"]),
                (&json!(OTHER), &json!(MODEL), &json!(because)),
                "{answer}"
            );
        }
        let report = std::fs::read(fleet.path(&format!("{route}/report.json"))).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        let why = &report["fallbacks"][OTHER];
        assert_eq!((&why["from"], &why["because"]), (&json!(MODEL), &json!(because)), "{why}");
        if route == "compared" {
            assert_eq!(why["compared"], json!(5), "{why}");
            assert_eq!(why["interval"].as_array().unwrap().len(), 2, "{why}");
        }
    }
    let doctor = tidegate(&fleet, &["doctor", "--json"]).await;
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let seen = |name: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).map(|check| check["seen"].to_string())
    };
    assert!(seen("route unchecked").unwrap().contains("unchecked"), "{doctor}");
    assert!(seen("route none").unwrap().contains("refused") && seen("route equal").is_none());
    fleet.stop().await;
}

/// Too little agreement for `--at-least` allows no fallback; a route of one pool needs no reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agrees_too_little_allows_nothing() {
    let models = format!(
        "[models.\"{MODEL}\"]\nrpm = 6000\n[models.\"{OTHER}\"]\nrpm = 6000\n\
         [[providers.anthropic.pool]]\nname = \"a\"\n[[providers.anthropic.pool]]\nname = \"b\"\n\
         [routes.pool]\nmodels = [\"{MODEL}\"]\n"
    );
    let Some(mut fleet) = fleet("", &models).await else { return };
    let config = fleet.path("tidegate.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + &settings(&fleet.uri("comparisons/"))).unwrap();
    fleet.documents(DOCUMENTS, 60);
    fleet.worker();
    fleet.start("pool", &batch(&fleet, "pool")).await;
    assert_eq!(fleet.result("pool").await.unwrap()["succeeded"], json!(DOCUMENTS));
    assert!(fleet.results("pool").values().all(|result| result.get("fallback").is_none()));

    let command = run_refused(&fleet, "compared", "before").await;
    let program = env!("CARGO_BIN_EXE_tidegate");
    let config = fleet.path("tidegate.toml").display().to_string();
    let line = format!("{program} compare{command} --sample 5 --at-least 1 --config {config}");
    let ran = Command::new("sh").args(["-c", &line]).output().await.unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(run_refused(&fleet, "compared", "still").await, command);
    // Equal answers, and nothing is paid again.
    compare(&fleet, &command).await;
    fleet.start("allowed", &batch(&fleet, "compared")).await;
    assert_eq!(fleet.result("allowed").await.unwrap()["succeeded"], json!(DOCUMENTS));
    fleet.stop().await;
}
