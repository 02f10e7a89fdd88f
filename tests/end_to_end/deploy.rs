//! The files in `deploy/` fit the program: configurations, metrics, probes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use serde_json::Value;
use tidegate::config::Config;

use crate::fleet::{Fleet, MODEL, fleet};

fn files(folder: &str, kind: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == kind) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_configuration_is_accepted() {
    let mut accepted = 0;
    for file in files("deploy", "toml") {
        let text = std::fs::read_to_string(&file).unwrap();
        if file.ends_with("simulator.toml") {
            let config = tidegate_simulator::Config::from_toml(&text);
            assert!(config.is_ok(), "{}: {:?}", file.display(), config.err());
        } else if let Err(error) = Config::from_layers(Some(&file), []) {
            panic!("{}: {error}", file.display());
        }
        accepted += 1;
    }
    assert!(accepted >= 7, "{accepted}");
}

/// Names of metrics with this prefix in the alerts, their tests, the dashboards, and the autoscaler. The
/// series of a histogram count by its name.
fn used(prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let kinds = ["yaml", "yml", "json"];
    for file in kinds.into_iter().flat_map(|kind| files("deploy", kind)) {
        let text = std::fs::read_to_string(file).unwrap();
        for (start, _) in text.match_indices(prefix) {
            let rest = &text[start..];
            let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            let parts = ["_bucket", "_sum", "_count"];
            let whole = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            let inside =
                text[..start].ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
            if !inside {
                names.insert(whole.to_owned());
            }
        }
    }
    names
}

/// Records the names of described metrics.
#[derive(Default)]
struct Described(Arc<Mutex<BTreeSet<String>>>);

impl Described {
    fn add(&self, name: &KeyName) {
        self.0.lock().unwrap().insert(name.as_str().to_owned());
    }
}

impl Recorder for Described {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.add(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.add(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.add(&name);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn every_metric_that_is_watched_is_one_of_ours() {
    let described = Described::default();
    with_local_recorder(&described, || {
        tidegate_quota::metrics::describe();
        tidegate_activities::metrics::describe();
        tidegate_calls::metrics::describe();
        tidegate::metrics::describe();
    });
    let described = described.0.lock().unwrap();
    let used = used("tidegate_");
    let unknown: Vec<_> = used.difference(&described).collect();
    assert!(unknown.is_empty(), "{unknown:?} is told by no worker");
    assert!(used.len() >= 20, "{used:?}");
}

#[test]
fn every_alert_has_a_runbook() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let alerts = std::fs::read_to_string(root.join("deploy/prometheus/alerts.yaml")).unwrap();
    let page = std::fs::read_to_string(root.join("docs/runbooks.md")).unwrap();
    let sections: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    let mut links = 0;
    let link = "runbook_url: \"{{ $externalLabels.runbooks }}#";
    for section in alerts.lines().filter_map(|line| line.trim().strip_prefix(link)) {
        let section = section.trim_end_matches('"');
        assert!(sections.iter().any(|it| it == section), "{section}: {sections:?}");
        links += 1;
    }
    assert_eq!(links, alerts.matches("- alert: ").count(), "each alert has one");
}

/// Grafana asks nothing and changes nothing when it imports a dashboard: the data source is a variable.
#[test]
fn every_dashboard_is_imported_as_it_is() {
    let mut boards = 0;
    for file in files("deploy/grafana", "json") {
        let board: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let named = file.display();
        assert!(board["id"].is_null() && board["__inputs"].is_null(), "{named}");
        let variables = board["templating"]["list"].as_array().unwrap();
        let is_source = |it: &Value| it["name"] == "source" && it["type"] == "datasource";
        assert!(variables.iter().any(is_source), "{named}");
        for panel in board["panels"].as_array().unwrap() {
            assert_eq!(panel["datasource"]["uid"], "${source}", "{named}: {}", panel["title"]);
        }
        let mut parts = vec![&board];
        while let Some(part) = parts.pop() {
            match part {
                Value::Object(fields) => {
                    if let Some(source) = fields.get("datasource") {
                        assert_eq!(source["uid"], "${source}", "{named}");
                    }
                    parts.extend(fields.values());
                }
                Value::Array(items) => parts.extend(items),
                _ => {}
            }
        }
        boards += 1;
    }
    assert_eq!(boards, 2);
}

/// The answer of a worker's metrics page at this path.
async fn ask(page: &str, path: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    match client.get(format!("{page}{path}")).send().await {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap()),
        Err(_) => (0, String::new()),
    }
}

async fn until_answered(page: &str, path: &str, status: u16) {
    for _ in 0..600 {
        if ask(page, path).await.0 == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} never answered {status}");
}

/// The address of the page, from the worker's log.
async fn page(fleet: &Fleet) -> String {
    for _ in 0..600 {
        let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap_or_default();
        if let Some((_, rest)) = log.split_once("metrics at ") {
            return rest.split("/metrics").next().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_ready_while_it_takes_work_and_tells_what_is_watched() {
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 1_000\n[tenants.acme]\ndaily-budget-usd = 5.0\n\
         [gate]\njitter = \"0s\"\nbase-backoff = \"1s\"\n"
    );
    // One call is refused, so that a pause is counted.
    let simulator = "[latency]\nbase = \"3s\"\n[[faults]]\nkind = \"rate-limited\"\ntimes = 1\n";
    let Some(mut fleet) = fleet(simulator, &settings).await else { return };
    fleet.documents(5, 60);
    fleet.worker_with(&[("TIDEGATE_WORKER__METRICS_LISTEN", "127.0.0.1:0")]);
    let page = page(&fleet).await;
    until_answered(&page, "/readyz", 200).await;
    let mut batch = fleet.batch("out");
    batch["tenant"] = serde_json::json!("acme");
    fleet.start("watched", &batch).await;
    fleet.result("watched").await.unwrap();

    // The worker checks limits and useful work every 5 s, and counts batches every 15 s.
    let mut text = String::new();
    for _ in 0..300 {
        text = ask(&page, "/metrics").await.1;
        if text.contains("\ntidegate_admissible_documents ")
            && text.contains("tidegate_quota_limit{")
            && text.contains("tidegate_batches{state=\"completed\"} 1\n")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for name in used("temporal_worker_task_slots").iter().chain(&used("temporal_num_pollers")) {
        assert!(text.contains(&format!("\n{name}{{")), "{name} is not on the page: {text}");
    }
    for name in [
        "tidegate_build_info{version=",
        "tidegate_provider_calls_total{",
        "tidegate_admissible_documents ",
        "tidegate_batches{state=\"completed\"} 1\n",
        "tidegate_batches{state=\"running\"} 0\n",
        "tidegate_batches{state=\"paused\"} 0\n",
        "tidegate_temporal_away 0\n",
    ] {
        assert!(text.contains(&format!("\n{name}")), "{name} is not on the page: {text}");
    }

    // All metrics that dashboards and alerts name are present, except those that only trouble or a
    // refusal of the limiter creates: an alert must not fire because its metric is missing.
    let trouble = [
        "tidegate_circuit_open",
        "tidegate_denials_total",
        "tidegate_key_refused",
        "tidegate_spooled_answers",
        "tidegate_unwritten_answers",
    ];
    let there = |name: &str| {
        let parts = ["{", " ", "_bucket{", "_sum{", "_count{"];
        parts.iter().any(|part| text.contains(&format!("\n{name}{part}")))
    };
    let missing: Vec<String> = used("tidegate_").into_iter().filter(|name| !there(name)).collect();
    assert!(missing.iter().all(|name| trouble.contains(&name.as_str())), "{missing:?}: {text}");

    // A paused batch does not count as running.
    let mut held = fleet.batch("held");
    held["max_in_flight"] = serde_json::json!(1);
    fleet.start_paused("held", &held).await;
    for _ in 0..600 {
        text = ask(&page, "/metrics").await.1;
        if text.contains("tidegate_batches{state=\"paused\"} 1\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for state in ["paused\"} 1", "running\"} 0"] {
        assert!(text.contains(&format!("tidegate_batches{{state=\"{state}\n")), "{state}: {text}");
    }
    fleet.signal("held", "resume").await;
    fleet.result("held").await.unwrap();

    let before = fleet.account().requests;
    fleet.start("stopping", &fleet.batch("other")).await;
    for _ in 0..600 {
        if fleet.account().requests > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pid = fleet.workers[0].id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    until_answered(&page, "/readyz", 503).await;
    assert_eq!(ask(&page, "/livez").await.0, 200, "it lives while its calls are under way");
    fleet.stop().await;
}
