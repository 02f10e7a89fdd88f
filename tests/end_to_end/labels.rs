//! A batch in Temporal's lists: by search attributes if they are registered, otherwise by its memo.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_workflows::labels::NAMES;

use crate::fleet::{Fleet, MODEL, fleet};

async fn described(fleet: &Fleet, id: &str) -> Value {
    let seen = fleet.cli(&["workflow", "describe", "--workflow-id", id, "-o", "json"]).await;
    assert!(seen.status.success(), "{}", String::from_utf8_lossy(&seen.stderr));
    serde_json::from_slice(&seen.stdout).unwrap()
}

/// The batches that a query finds.
async fn found(fleet: &Fleet, query: &str) -> Vec<String> {
    let seen = fleet.cli(&["workflow", "list", "--query", query, "-o", "json"]).await;
    let list: Value = serde_json::from_slice(&seen.stdout).unwrap_or_default();
    let id = |it: &Value| it["execution"]["workflowId"].as_str().unwrap_or_default().to_owned();
    list.as_array().map(|list| list.iter().map(id).collect()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_found_by_its_search_attributes_or_shows_a_memo() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 3_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(2, 60);
    fleet.worker();
    let mut batch = fleet.batch("before");
    batch["tenant"] = json!("acme");
    fleet.start("before", &batch).await;
    fleet.result("before").await.unwrap();
    let seen = described(&fleet, "before").await.to_string();
    for name in NAMES {
        assert!(seen.contains(name), "{name} is not shown: {seen}");
    }
    assert!(found(&fleet, "TidegateTenant = 'acme'").await.is_empty(), "nothing is registered");

    let mut register = vec!["operator", "search-attribute", "create"];
    for name in NAMES {
        register.extend(["--name", name, "--type", "Keyword"]);
    }
    let registered = fleet.cli(&register).await;
    assert!(registered.status.success(), "{}", String::from_utf8_lossy(&registered.stderr));
    batch["output"] = json!(fleet.uri("after"));
    fleet.start("after", &batch).await;
    let result = tokio::time::timeout(Duration::from_secs(120), fleet.result("after")).await;
    assert_eq!(result.unwrap().unwrap()["succeeded"], 2);
    let query =
        format!("TidegateTenant = 'acme' AND TidegateModel = '{MODEL}' AND TidegateLane = 'batch'");
    let mut listed = Vec::new();
    for _ in 0..100 {
        listed = found(&fleet, &query).await;
        if !listed.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(listed, ["after"]);
    fleet.stop().await;
}
