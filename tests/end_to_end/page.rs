//! The page that a worker serves, for a fleet with running batches.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, fleet};

const TOKEN: &str = "tide-of-the-test";

/// The page's address, from the worker's log.
pub(super) async fn url(fleet: &Fleet) -> String {
    let started = Instant::now();
    loop {
        let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap_or_default();
        let url = log.lines().find_map(|line| line.split("the page is at ").nth(1));
        if let Some(url) = url {
            return url.trim().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Fetches the snapshot until `ready`.
async fn seen(url: &str, mut ready: impl FnMut(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let seen = http().get(format!("{url}snapshot.json")).send().await.unwrap();
        let seen: Value = seen.json().await.unwrap();
        if ready(&seen) {
            return seen;
        }
        assert!(started.elapsed() < Duration::from_secs(90), "{seen:#}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(super) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn batch<'a>(seen: &'a Value, id: &str) -> &'a Value {
    let all = seen["batches"].as_array().unwrap();
    all.iter().find(|batch| batch["workflow_id"] == id).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_the_fleet_and_acts_on_it_for_those_with_the_token() {
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 120\n[gate]\njitter = \"1s\"\n[tenants.acme]\ndaily-budget-usd = 3.0\n"
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(200, 60);
    std::fs::write(fleet.path("broken.pdf"), "%PDF-1.7 and nothing else").unwrap();
    fleet.worker_with(&[
        ("TIDEGATE_DASHBOARD__LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_DASHBOARD__TOKEN_ENV", "PAGE_TOKEN"),
        ("PAGE_TOKEN", TOKEN),
    ]);
    let url = url(&fleet).await;
    fleet.start("shown", &fleet.batch("out")).await;
    let mut failing = fleet.batch("vain");
    failing["source"] = fleet.uri("broken.pdf").into();
    fleet.start("vain", &failing).await;

    // The page shows what the other commands print.
    let ready = |seen: &Value| {
        let models = &seen["models"][0];
        batch(seen, "shown")["documents"] == 200
            && batch(seen, "vain")["status"] == "completed"
            && !seen["workers"][0].is_null()
            && models["history"]["points"][0]["answered"].as_u64() > Some(0)
    };
    let busy = self::seen(&url, ready).await;
    assert_eq!(busy["models"][0]["limits"]["requests"]["limit"], 120, "{busy:#}");
    assert_eq!(busy["budgets"], json!([{"tenant": "acme", "budget_usd": 3.0, "spent_usd": 0.0}]));
    assert_eq!(busy["workers"][0]["configuration"].as_str().unwrap().len(), 12, "{busy:#}");
    let failure = &batch(&busy, "vain")["failures_by_type"][0];
    assert_eq!(
        (&failure["error_type"], &failure["documents"]),
        (&"UnreadableDocument".into(), &1.into())
    );
    assert_eq!(failure["samples"], json!(["broken.pdf"]), "{failure}");
    let text = http().get(&url).send().await.unwrap().text().await.unwrap();
    for part in ["shown", MODEL, "UnreadableDocument", "retry what failed", "<svg", "429s by day"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let act = async |action: Value, token: &str| {
        let request = http().post(format!("{url}actions")).bearer_auth(token).json(&action);
        request.send().await.unwrap().status().as_u16()
    };
    let pause = json!({"action": "pause", "model": MODEL, "why": "the test says so"});
    assert_eq!(act(pause.clone(), "wrong").await, 401);
    assert_eq!(act(pause, TOKEN).await, 204);
    let paused = self::seen(&url, |seen| seen["models"][0]["paused_until_resume"] == true).await;
    assert_eq!(paused["models"][0]["pause_reason"], "the test says so");
    assert!(paused["verdict"].as_str().unwrap().contains("is paused until it is resumed"));
    // The changing part is pushed.
    let mut events = http().get(format!("{url}events")).send().await.unwrap();
    let first = events.chunk().await.unwrap().unwrap();
    let first = String::from_utf8_lossy(&first).into_owned();
    assert!(first.starts_with("data:") && first.contains("paused until it is resumed"), "{first}");

    // A limit with an end ends by itself: this worker restores the configured one.
    let set = json!({"action": "set_limit", "model": MODEL, "limit": "rpm", "value": 600, "seconds": 4, "why": "in a hurry"});
    assert_eq!(act(set, TOKEN).await, 204);
    let limit = |seen: &Value| seen["models"][0]["limits"]["requests"]["set"].clone();
    self::seen(&url, |seen| limit(seen) == 600).await;
    self::seen(&url, |seen| limit(seen).is_null()).await;
    assert_eq!(act(json!({"action": "resume", "model": MODEL}), TOKEN).await, 204);

    // A batch is paused, resumed, and cancelled; its failures are retried.
    assert_eq!(act(json!({"action": "pause", "batch": "shown"}), TOKEN).await, 204);
    self::seen(&url, |seen| batch(seen, "shown")["paused"] == true).await;
    assert_eq!(act(json!({"action": "resume", "batch": "shown"}), TOKEN).await, 204);
    self::seen(&url, |seen| batch(seen, "shown")["paused"] == false).await;
    assert_eq!(act(json!({"action": "cancel", "batch": "shown"}), TOKEN).await, 204);
    self::seen(&url, |seen| batch(seen, "shown")["status"] != "running").await;
    let started = batch(&busy, "vain")["started_at"].clone();
    assert_eq!(act(json!({"action": "retry", "batch": "vain"}), TOKEN).await, 204);
    let again = |seen: &Value| {
        let again = batch(seen, "vain");
        again["started_at"] != started && again["status"] == "completed"
    };
    self::seen(&url, again).await;
    assert_eq!(act(json!({"action": "cancel", "batch": "vain"}), TOKEN).await, 400);

    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    let refused = log.lines().find(|line| line.contains("an action was refused")).unwrap();
    assert!(refused.contains("127.0.0.1"), "{refused}");
    let done = log.lines().find(|line| line.contains("done from the page")).unwrap();
    assert!(done.contains("the test says so") && done.contains("127.0.0.1"), "{done}");
    assert!(!log.contains(TOKEN), "a token was logged");
    fleet.stop().await;
}
