//! Anthropic's Message Batches.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Stage, message};
use serde_json::{Value, json};

const PATH: &str = "/v1/messages/batches";

const HEADERS: [(&str, &str); 2] = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];

fn requests(count: usize) -> Value {
    let request = |n| json!({"custom_id": format!("document-{n}"), "params": message(&format!("Document {n} is here."), 500)});
    json!({"requests": (0..count).map(request).collect::<Vec<_>>()})
}

async fn create(stage: &Stage, body: &Value) -> Value {
    let reply = stage.post(PATH, &HEADERS, body.to_string()).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// Each request's kind of result, when the batch has ended.
async fn results(stage: &Stage, batch: &Value) -> BTreeMap<String, Value> {
    let path = format!("{PATH}/{}", batch["id"].as_str().unwrap());
    let ended = stage.until(&path, |batch| batch["processing_status"] == "ended").await;
    let url =
        ended["results_url"].as_str().unwrap().strip_prefix(&stage.simulator.base_url()).unwrap();
    let lines = stage.get_with_key(url).await.lines();
    let name = |line: &Value| line["custom_id"].as_str().unwrap().to_owned();
    let results: BTreeMap<_, _> =
        lines.iter().map(|line| (name(line), line["result"].clone())).collect();
    assert_eq!(results.len(), lines.len(), "each request has one result");
    for (count, kind) in ["succeeded", "errored", "canceled", "expired"]
        .map(|kind| (&ended["request_counts"][kind], kind))
    {
        assert_eq!(
            count,
            results.values().filter(|result| result["type"] == kind).count(),
            "{kind}"
        );
    }
    assert_eq!(ended["request_counts"]["processing"], 0);
    results
}

#[tokio::test]
async fn a_batch_is_taken_in_worked_on_and_answered_in_an_order_of_its_own() {
    let stage = Stage::new("[batches]\nduration = \"500ms\"\n[default]\nrpm = 1\nitpm = 10").await;
    let batch = create(&stage, &requests(20)).await;
    assert_eq!(
        (&batch["type"], &batch["processing_status"]),
        (&json!("message_batch"), &json!("in_progress"))
    );
    assert!(batch["id"].as_str().unwrap().starts_with("msgbatch_"));
    let waiting =
        json!({"processing": 20, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0});
    assert_eq!(
        (&batch["request_counts"], &batch["results_url"], &batch["ended_at"]),
        (&waiting, &Value::Null, &Value::Null)
    );
    let moment = |key: &str| {
        chrono::DateTime::parse_from_rfc3339(batch[key].as_str().unwrap()).expect("RFC 3339")
    };
    assert_eq!((moment("expires_at") - moment("created_at")).num_hours(), 24);
    let early =
        stage.get_with_key(&format!("{PATH}/{}/results", batch["id"].as_str().unwrap())).await;
    assert_eq!((early.status, &early.json()["error"]["type"]), (404, &json!("not_found_error")));

    let results = results(&stage, &batch).await;
    for (name, result) in &results {
        let message = &result["message"];
        assert_eq!(
            (&result["type"], &message["type"], &message["model"]),
            (&json!("succeeded"), &json!("message"), &json!("m"))
        );
        let text = message["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with(&format!("Document {} is here.", &name["document-".len()..])),
            "{name}: {text}"
        );
        assert_eq!(message["usage"]["service_tier"], "batch");
    }
    let ids: BTreeSet<_> =
        results.values().map(|result| result["message"]["id"].as_str()).collect();
    assert_eq!(ids.len(), 20);
    let lines =
        stage.get_with_key(&format!("{PATH}/{}/results", batch["id"].as_str().unwrap())).await;
    assert_eq!(lines.header("content-type"), Some("application/x-jsonl"));
    let order: Vec<_> =
        lines.lines().iter().map(|line| line["custom_id"].as_str().unwrap().to_owned()).collect();
    assert_ne!(order, (0..20).map(|n| format!("document-{n}")).collect::<Vec<_>>());

    // A batch has nothing to do with the limits of a minute, though its documents are answered.
    let account = stage.simulator.account();
    assert_eq!((account.batches, account.batch_requests, account.rejected), (1, 20, 1));
    assert_eq!((account.prompts, account.answered_twice, account.models.len()), (20, 0, 0));
    assert_eq!(stage.ask("Document 7 is here.").await.unwrap().status, 200);
    assert_eq!(stage.simulator.account().answered_twice, 1, "the same document, paid for twice");
    stage.simulator.reset_account();
    let account = stage.simulator.account();
    assert_eq!((account.batches, account.batch_requests, account.prompts), (0, 0, 0));
}

#[tokio::test]
async fn requests_fail_and_expire_each_for_itself() {
    let stage =
        Stage::new("[batches]\nduration = \"0s\"\nerror-rate = 0.3\nexpire-rate = 0.2").await;
    let batch = create(&stage, &requests(100)).await;
    let results = results(&stage, &batch).await;
    let of =
        |kind: &str| results.values().filter(|result| result["type"] == kind).collect::<Vec<_>>();
    let [succeeded, errored, expired] =
        ["succeeded", "errored", "expired"].map(|kind| of(kind).len());
    assert!(
        (35..=65).contains(&succeeded)
            && (18..=42).contains(&errored)
            && (9..=33).contains(&expired),
        "{errored}, {expired}"
    );
    let error = &of("errored")[0]["error"];
    assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("api_error")));
    assert_eq!(of("expired")[0], &json!({"type": "expired"}));
    assert_eq!(stage.simulator.account().prompts, succeeded as u64);
}

#[tokio::test]
async fn a_request_that_cannot_be_read_fails_alone() {
    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let mut body = requests(3);
    body["requests"][1]["params"]["max_tokens"] = json!(0);
    let batch = create(&stage, &body).await;
    let results = results(&stage, &batch).await;
    assert_eq!(results["document-1"]["error"]["error"]["type"], "invalid_request_error");
    assert_eq!(
        (&results["document-0"]["type"], &results["document-2"]["type"]),
        (&json!("succeeded"), &json!("succeeded"))
    );
}

#[tokio::test]
async fn a_cancelled_batch_ends_soon_with_what_it_has() {
    let stage = Stage::new("[batches]\nduration = \"5s\"").await;
    let batch = create(&stage, &requests(10)).await;
    let path = format!("{PATH}/{}", batch["id"].as_str().unwrap());
    let cancelled =
        stage.post(&format!("{path}/cancel"), &HEADERS, String::new()).await.unwrap().json();
    assert_eq!(
        (&cancelled["processing_status"], &cancelled["request_counts"]["processing"]),
        (&json!("canceling"), &json!(10))
    );
    assert!(cancelled["cancel_initiated_at"].is_string());
    let results = results(&stage, &batch).await;
    assert!(
        results.values().filter(|result| **result == json!({"type": "canceled"})).count() > 5,
        "{results:?}"
    );
    assert!(stage.simulator.uptime().as_secs() < 4, "it did not wait for the end of its time");
    assert!(stage.simulator.account().prompts < 5);
    assert_eq!(
        stage.post(&format!("{path}/cancel"), &HEADERS, String::new()).await.unwrap().status,
        200,
        "as before"
    );

    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let batch = create(&stage, &requests(1)).await;
    let path = format!("{PATH}/{}/cancel", batch["id"].as_str().unwrap());
    assert_eq!(stage.post(&path, &HEADERS, String::new()).await.unwrap().status, 400, "too late");
}

#[tokio::test]
async fn bad_batches_are_rejected() {
    let stage = Stage::new("").await;
    let named = |names: &[&str]| {
        let requests: Vec<_> = names
            .iter()
            .map(|name| json!({"custom_id": name, "params": message("One.", 9)}))
            .collect();
        json!({ "requests": requests })
    };
    let long = "x".repeat(65);
    for body in [
        json!({}),
        json!({"requests": []}),
        json!({"requests": [{"params": message("One.", 9)}]}),
        json!({"requests": [{"custom_id": "a"}]}),
        named(&["a", "a"]),
        named(&["contracts/a.txt"]),
        named(&[""]),
        named(&[&long]),
    ] {
        let reply = stage.post(PATH, &HEADERS, body.to_string()).await.unwrap();
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (400, &json!("invalid_request_error")),
            "{body}"
        );
    }
    assert_eq!(stage.post(PATH, &[], requests(1).to_string()).await.unwrap().status, 401);
    assert_eq!(stage.get("/v1/messages/batches/msgbatch_0000000000000001").await.status, 401);
    for path in ["/msgbatch_00000000000000ff", "/msgbatch_x", "/x", "/msgbatch_1/results"] {
        let reply = stage.get_with_key(&format!("{PATH}{path}")).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (404, &json!("not_found_error")),
            "{path}"
        );
    }
    let account = stage.simulator.account();
    assert_eq!((account.batches, account.rejected), (0, 14));
}

/// How often a client asks after its batch must not change what befalls its calls.
#[tokio::test]
async fn asking_does_not_stir_chance() {
    let mut runs = Vec::new();
    for asks in [0, 9] {
        let stage = Stage::new("seed = 3\nfaults = [{ kind = \"overloaded\", rate = 0.3 }]").await;
        let batch = create(&stage, &requests(2)).await;
        let mut statuses = Vec::new();
        for n in 0..30 {
            for _ in 0..asks {
                assert_eq!(
                    stage
                        .get_with_key(&format!("{PATH}/{}", batch["id"].as_str().unwrap()))
                        .await
                        .status,
                    200
                );
            }
            statuses.push(stage.ask(&format!("Document {n}.")).await.unwrap().status);
        }
        assert!(statuses.contains(&529));
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
}
