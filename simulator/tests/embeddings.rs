//! Vectors as OpenAI and Gemini hand them out, and what they refuse.
#![allow(clippy::unwrap_used, reason = "a test stops at the first fault")]

mod common;

use common::{Reply, Stage};
use serde_json::{Value, json};

async fn openai(stage: &Stage, body: Value) -> Reply {
    let key = [("authorization", "Bearer k")];
    stage.post("/v1/embeddings", &key, body.to_string()).await.unwrap()
}

async fn gemini(stage: &Stage, model: &str, body: Value) -> Reply {
    let path = format!("/v1beta/models/{model}:batchEmbedContents");
    stage.post(&path, &[("x-goog-api-key", "k")], body.to_string()).await.unwrap()
}

#[tokio::test]
async fn openais_form() {
    let stage = Stage::new("[models.text-embedding-3-small]\nrpm = 60\ntpm = 1_000_000").await;
    let model = "text-embedding-3-small";
    let both = openai(&stage, json!({"model": model, "input": ["high tide", "low tide"]})).await;
    let body = both.json();
    assert_eq!(
        (both.status, &body["object"], &body["model"]),
        (200, &json!("list"), &json!(model))
    );
    assert_eq!(body["data"][1]["index"], 1);
    assert_eq!(body["data"][0]["embedding"].as_array().unwrap().len(), 1_536);
    assert_eq!(body["usage"], json!({"prompt_tokens": 5, "total_tokens": 5}));
    assert_eq!(both.number("x-ratelimit-remaining-requests"), 59);
    let alone = openai(&stage, json!({"model": model, "input": "low tide"})).await.json();
    assert_eq!(
        alone["data"][0]["embedding"], body["data"][1]["embedding"],
        "whatever stands beside"
    );
    let long = "tide ".repeat(8_000);
    for (body, status, said) in [
        (json!({"model": model, "input": ["a", ""]}), 400, "input"),
        (json!({"model": model, "input": []}), 400, "input"),
        (json!({"model": model, "input": long}), 400, "maximum context length is 8192 tokens"),
        (json!({"model": model, "input": vec!["tide ".repeat(6_000); 50]}), 400, "300000"),
        (json!({"model": model, "input": "a", "dimensions": 2_000}), 400, "dimensions"),
        (json!({"model": model, "input": "a", "top_p": 1}), 400, "top_p"),
        (
            json!({"model": "text-embedding-ada-002", "input": "a", "dimensions": 8}),
            400,
            "dimensions",
        ),
        (json!({"model": "gpt-6-luna", "input": "a"}), 403, "permissions"),
    ] {
        let reply = openai(&stage, body).await;
        assert!(reply.status == status && reply.text.contains(said), "{said}: {}", reply.text);
    }
    assert_eq!(stage.simulator.account().model(model).ok, 2);
}

#[tokio::test]
async fn geminis_form() {
    let stage = Stage::new("").await;
    let model = "gemini-embedding-001";
    let one = |text: &str, more: Value| {
        let mut one =
            json!({"model": format!("models/{model}"), "content": {"parts": [{"text": text}]}});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    let short = json!({"outputDimensionality": 16, "taskType": "CLUSTERING"});
    let requests = json!({"requests": [one("high", short.clone()), one("low", short)]});
    let both = gemini(&stage, model, requests).await.json();
    assert_eq!(both["embeddings"][1]["values"].as_array().unwrap().len(), 16);
    assert_eq!(both["usageMetadata"]["promptTokenCount"], 2);
    let long = json!({"requests": [one(&"tide ".repeat(4_000), json!({}))]});
    let cut = gemini(&stage, model, long).await.json();
    assert_eq!(
        cut["usageMetadata"]["promptTokenCount"], 2_048,
        "the rest is cut, and nothing said"
    );
    let many = vec![one("a", json!({})); 101];
    for (body, said) in [
        (json!({"requests": []}), "empty"),
        (json!({"requests": many}), "at most 100"),
        (json!({"requests": [one("", json!({}))]}), "content is empty"),
        (json!({"requests": [one("a", json!({"dimensions": 3}))]}), "Unknown name"),
    ] {
        let reply = gemini(&stage, model, body).await;
        assert!(reply.status == 400 && reply.text.contains(said), "{said}: {}", reply.text);
    }
    let none = gemini(&stage, "gemini-3.8-flash", json!({"requests": [one("a", json!({}))]})).await;
    assert_eq!(none.status, 404);
}
