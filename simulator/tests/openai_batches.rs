//! OpenAI's files and batches.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::collections::BTreeMap;

use common::{Reply, Stage};
use serde_json::{Value, json};

const KEY: (&str, &str) = ("authorization", "Bearer k");

const CHAT: &str = "/v1/chat/completions";

fn line(n: usize, endpoint: &str) -> Value {
    let text = format!("<document>Document {n} is here.</document>");
    let body = match endpoint {
        CHAT => json!({"model": "gpt", "messages": [{"role": "user", "content": text}]}),
        _ => json!({"model": "gpt", "input": text}),
    };
    json!({"custom_id": format!("documents/{n}.txt"), "method": "POST", "url": endpoint, "body": body})
}

fn lines(count: usize, endpoint: &str) -> String {
    (0..count).map(|n| format!("{}\n", line(n, endpoint))).collect()
}

async fn upload(stage: &Stage, purpose: &str, content: &str) -> Reply {
    let part = |name: &str, content: &str| {
        format!("--edge\r\ncontent-disposition: form-data; name={name}\r\n\r\n{content}\r\n")
    };
    let body = format!(
        "{}{}--edge--\r\n",
        part("\"purpose\"", purpose),
        part("\"file\"; filename=\"b.jsonl\"", content)
    );
    stage
        .post("/v1/files", &[KEY, ("content-type", "multipart/form-data; boundary=edge")], body)
        .await
        .unwrap()
}

async fn create(stage: &Stage, content: &str, endpoint: &str) -> Value {
    let file = upload(stage, "batch", content).await.json();
    let body = json!({"input_file_id": file["id"], "endpoint": endpoint, "completion_window": "24h", "metadata": {"a": "b"}});
    let reply = stage.post("/v1/batches", &[KEY], body.to_string()).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

fn path(batch: &Value) -> String {
    format!("/v1/batches/{}", batch["id"].as_str().unwrap())
}

/// The batch when it has come to this.
async fn until(stage: &Stage, batch: &Value, status: &str) -> Value {
    let over = ["completed", "failed", "expired", "cancelled"];
    let batch = stage
        .until(&path(batch), |batch| {
            batch["status"] == status || over.iter().any(|over| batch["status"] == *over)
        })
        .await;
    assert_eq!(batch["status"], status);
    batch
}

/// A file of the batch, by the requests' names.
async fn file(stage: &Stage, id: &Value) -> BTreeMap<String, Value> {
    let reply = stage.get_with_key(&format!("/v1/files/{}/content", id.as_str().unwrap())).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply
        .lines()
        .into_iter()
        .map(|line| (line["custom_id"].as_str().unwrap().to_owned(), line))
        .collect()
}

#[tokio::test]
async fn a_batch_goes_its_way_and_puts_a_file_out() {
    let stage = Stage::new("[batches]\nduration = \"600ms\"\n[default]\nrpm = 1").await;
    let uploaded = upload(&stage, "batch", "anything").await.json();
    assert_eq!(
        (&uploaded["object"], &uploaded["bytes"], &uploaded["filename"]),
        (&json!("file"), &json!(8), &json!("b.jsonl"))
    );
    let path = format!("/v1/files/{}/content", uploaded["id"].as_str().unwrap());
    assert_eq!(stage.get_with_key(&path).await.text, "anything");
    let kept = path.trim_end_matches("/content");
    assert_eq!(stage.delete_with_key(kept).await.json()["deleted"], json!(true));
    assert_eq!(
        (stage.delete_with_key(kept).await.status, stage.get_with_key(&path).await.status),
        (404, 404)
    );

    let batch = create(&stage, &lines(20, CHAT), CHAT).await;
    assert_eq!(
        (&batch["object"], &batch["status"], &batch["endpoint"]),
        (&json!("batch"), &json!("validating"), &json!(CHAT))
    );
    assert_eq!(
        (&batch["metadata"]["a"], &batch["output_file_id"], &batch["model"]),
        (&json!("b"), &Value::Null, &json!("gpt"))
    );
    let running = until(&stage, &batch, "in_progress").await;
    assert!(running["in_progress_at"].is_number() && running["completed_at"].is_null());
    let done = until(&stage, &batch, "completed").await;
    assert_eq!(done["request_counts"], json!({"total": 20, "completed": 20, "failed": 0}));
    assert!(
        done["completed_at"].is_number()
            && done["error_file_id"].is_null()
            && done["errors"].is_null()
    );

    let answers = file(&stage, &done["output_file_id"]).await;
    let mut tokens = 0;
    for n in 0..20 {
        let line = &answers[&format!("documents/{n}.txt")];
        let body = &line["response"]["body"];
        assert_eq!((&line["response"]["status_code"], &line["error"]), (&json!(200), &Value::Null));
        assert_eq!(body["object"], "chat.completion");
        assert!(
            body["choices"][0]["message"]["content"]
                .as_str()
                .unwrap()
                .starts_with(&format!("Document {n} is here."))
        );
        tokens += body["usage"]["total_tokens"].as_u64().unwrap();
    }
    assert_eq!(done["usage"]["total_tokens"], tokens);
    let account = stage.simulator.account();
    assert_eq!(
        (account.batches, account.batch_requests, account.prompts, account.models.len()),
        (1, 20, 20, 0)
    );
}

#[tokio::test]
async fn responses_go_in_batches_too() {
    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let batch = create(&stage, &lines(2, "/v1/responses"), "/v1/responses").await;
    let answers = file(&stage, &batch["output_file_id"]).await;
    assert_eq!(answers["documents/1.txt"]["response"]["body"]["object"], "response");
    assert!(batch["usage"]["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn texts_are_embedded_in_batches_too() {
    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let url = "/v1/embeddings";
    let line = |n: usize, texts: usize| {
        let body = json!({"model": "text-embedding-3-small", "input": vec!["A tide."; texts], "dimensions": 1});
        let line = json!({"custom_id": n.to_string(), "method": "POST", "url": url, "body": body});
        format!("{line}\n")
    };
    let batch = create(&stage, &(line(0, 2) + &line(1, 3)), url).await;
    let answers = file(&stage, &batch["output_file_id"]).await;
    assert_eq!(answers["1"]["response"]["body"]["data"].as_array().unwrap().len(), 3);
    let many: String = (0..26).map(|n| line(n, 2_000)).collect();
    assert_eq!(create(&stage, &many, url).await["status"], "failed", "52,000 texts");
}

#[tokio::test]
async fn what_fails_or_expires_stands_in_the_other_file() {
    let stage =
        Stage::new("[batches]\nduration = \"0s\"\nerror-rate = 0.3\nexpire-rate = 0.2").await;
    let batch = create(&stage, &lines(100, CHAT), CHAT).await;
    assert_eq!((&batch["status"], batch["expired_at"].is_number()), (&json!("expired"), true));
    let (answers, errors) =
        (file(&stage, &batch["output_file_id"]).await, file(&stage, &batch["error_file_id"]).await);
    assert_eq!(
        (answers.len() + errors.len(), &batch["request_counts"]["failed"]),
        (100, &json!(errors.len()))
    );
    let expired = errors
        .values()
        .filter(|line| line["error"]["code"] == "batch_expired" && line["response"].is_null())
        .count();
    let failed = errors.values().filter(|line| {
        let response = &line["response"];
        line["error"].is_null()
            && response["status_code"] == 500
            && response["body"]["error"]["type"] == "server_error"
    });
    let failed = failed.count();
    assert!(
        expired + failed == errors.len()
            && (9..=33).contains(&expired)
            && (18..=42).contains(&failed),
        "{expired}, {failed}"
    );

    // A request that cannot be read fails alone, and the batch is complete.
    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let mut bad = line(1, CHAT);
    bad["body"]["messages"] = json!([]);
    let batch = create(&stage, &format!("{}\n\n{bad}", line(0, CHAT)), CHAT).await;
    assert_eq!(
        (&batch["status"], &batch["request_counts"]),
        (&json!("completed"), &json!({"total": 2, "completed": 1, "failed": 1}))
    );
    assert_eq!(
        file(&stage, &batch["error_file_id"]).await["documents/1.txt"]["response"]["status_code"],
        400
    );
}

#[tokio::test]
async fn a_file_that_is_none_fails_the_batch() {
    let stage = Stage::new("[batches]\nduration = \"0s\"").await;
    let (mut got, mut other) = (line(0, CHAT), line(1, CHAT));
    got["method"] = json!("GET");
    other["body"]["model"] = json!("gpt-other");
    for (content, code, n) in [
        (String::new(), "empty_file", Value::Null),
        (format!("{}\n{{", line(0, CHAT)), "invalid_json_line", json!(2)),
        (format!("{}\n{}", line(0, CHAT), line(0, CHAT)), "duplicate_custom_id", json!(2)),
        (format!("{}\n{other}", line(0, CHAT)), "mismatched_model", json!(2)),
        (line(0, "/v1/responses").to_string(), "invalid_url", json!(1)),
        (got.to_string(), "invalid_method", json!(1)),
        (json!({"custom_id": "a"}).to_string(), "missing_required_parameter", json!(1)),
    ] {
        let batch = create(&stage, &content, CHAT).await;
        assert_eq!(
            (&batch["status"], batch["failed_at"].is_number()),
            (&json!("failed"), true),
            "{code}"
        );
        let error = &batch["errors"]["data"][0];
        assert_eq!((&error["code"], &error["line"]), (&json!(code), &n));
        assert_eq!(
            (&batch["output_file_id"], &batch["error_file_id"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(batch["request_counts"]["total"], 0);
        assert_eq!(
            stage
                .post(&format!("{}/cancel", path(&batch)), &[KEY], String::new())
                .await
                .unwrap()
                .status,
            400
        );
    }
    assert_eq!(stage.simulator.account().prompts, 0);
}

#[tokio::test]
async fn a_cancelled_batch_ends_soon_with_what_it_has() {
    let stage = Stage::new("[batches]\nduration = \"5s\"").await;
    let batch = create(&stage, &lines(10, CHAT), CHAT).await;
    let cancelling = stage
        .post(&format!("{}/cancel", path(&batch)), &[KEY], String::new())
        .await
        .unwrap()
        .json();
    assert_eq!(
        (&cancelling["status"], cancelling["cancelling_at"].is_number()),
        (&json!("cancelling"), true)
    );
    let cancelled = until(&stage, &batch, "cancelled").await;
    assert!(stage.simulator.uptime().as_secs() < 4, "it did not wait for the end of its time");
    assert!(
        cancelled["cancelled_at"].is_number()
            && cancelled["request_counts"]["failed"].as_u64() > Some(5)
    );
    let errors = file(&stage, &cancelled["error_file_id"]).await;
    assert!(
        errors
            .values()
            .all(|line| line["error"]["code"] == "batch_cancelled" && line["response"].is_null())
    );
}

/// The queue has room for one of two; the newest batch stands first in the list.
#[tokio::test]
async fn a_batch_without_room_in_the_queue_fails() {
    let stage = Stage::new("[batches]\nduration = \"1s\"\nqueue-tokens = 500").await;
    let first = create(&stage, &lines(8, CHAT), CHAT).await;
    let second = create(&stage, &lines(8, CHAT), CHAT).await;
    let failed = until(&stage, &second, "failed").await;
    assert_eq!(failed["errors"]["data"][0]["code"], "token_limit_exceeded", "{failed}");
    until(&stage, &first, "completed").await;
    let third = create(&stage, &lines(8, CHAT), CHAT).await;
    until(&stage, &third, "completed").await;
    let list = stage.get_with_key("/v1/batches?limit=2").await.json();
    let ids: Vec<_> =
        list["data"].as_array().unwrap().iter().map(|batch| batch["id"].clone()).collect();
    assert_eq!(ids, [third["id"].clone(), second["id"].clone()], "{list}");
    assert_eq!(
        (&list["object"], &list["first_id"], &list["has_more"]),
        (&json!("list"), &third["id"], &json!(true))
    );
    let after = format!("/v1/batches?limit=2&after={}", second["id"].as_str().unwrap());
    let list = stage.get_with_key(&after).await.json();
    assert_eq!(
        (&list["data"][0]["id"], &list["has_more"]),
        (&first["id"], &json!(false)),
        "{list}"
    );
    assert_eq!(stage.get("/v1/batches").await.status, 401);
}

#[tokio::test]
async fn bad_calls_are_rejected() {
    let stage = Stage::new("").await;
    let reply = upload(&stage, "fine-tune", "x").await;
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!("purpose")));
    assert_eq!(stage.post("/v1/files", &[KEY], "x".into()).await.unwrap().status, 400, "no form");
    assert_eq!(stage.post("/v1/files", &[], "x".into()).await.unwrap().status, 401);
    let id = upload(&stage, "batch", &lines(1, CHAT)).await.json()["id"].clone();
    for (key, value) in
        [("input_file_id", "file-ffff"), ("endpoint", "/v1/messages"), ("completion_window", "1h")]
    {
        let mut body = json!({"input_file_id": id, "endpoint": CHAT, "completion_window": "24h"});
        body[key] = json!(value);
        let reply = stage.post("/v1/batches", &[KEY], body.to_string()).await.unwrap();
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(key)));
        assert_eq!(stage.post("/v1/batches", &[], body.to_string()).await.unwrap().status, 401);
    }
    for path in [
        "/v1/batches/batch_ffff",
        "/v1/files/file-ffff/content",
        "/v1/files/file-output-ffff/content",
    ] {
        let reply = stage.get_with_key(path).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (404, &json!("invalid_request_error")),
            "{path}"
        );
        assert_eq!(stage.get(path).await.status, 401);
    }
    assert_eq!(stage.simulator.account().batches, 0);
}
