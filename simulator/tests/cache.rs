//! Prompt caching, as each vendor tells and counts it.

mod common;

use common::Stage;
use serde_json::{Value, json};

/// 1,163 tokens of 5,000 bytes.
fn instructions() -> String {
    "Do as told. ".repeat(417)[..5_000].to_owned()
}

const TOKENS: u64 = 1_163;

#[tokio::test]
async fn anthropics_is_asked_for_told_and_free() {
    let stage = Stage::new("[models.m]\nitpm = 100_000").await;
    let body = |document: &str, cached: bool| {
        let mut block = json!({"type": "text", "text": instructions()});
        if cached {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        json!({"model": "m", "max_tokens": 50, "system": [block], "messages": [{"role": "user", "content": document}]})
    };
    let usage = async |body: &Value| {
        let usage = stage.anthropic(body).await.unwrap().json()["usage"].clone();
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map(|key| usage[key].as_u64().unwrap())
    };
    let [rest, written, read] = usage(&body("One", true)).await;
    assert_eq!((written, read), (TOKENS, 0));
    assert!(rest < 5);
    assert_eq!(usage(&body("Two", true)).await[1..], [0, TOKENS]);
    let [whole, written, read] = usage(&body("Three", false)).await;
    assert!(whole > TOKENS && written + read == 0, "nobody asked");
    let account = stage.simulator.account().model("m");
    assert_eq!((account.cache_written, account.cache_read), (TOKENS, TOKENS));
    assert!(account.admitted.input < 2 * TOKENS + 20, "reads are free: {}", account.admitted.input);
    // Too short a prefix is not cached, and that is no error.
    let short = json!({"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}],
        "system": [{"type": "text", "text": "Short.", "cache_control": {"type": "ephemeral"}}]});
    assert_eq!(usage(&short).await[1..], [0, 0]);
}

#[tokio::test]
async fn openais_and_googles_need_no_asking_and_count() {
    let stage = Stage::new("").await;
    let chat = |document: &str| json!({"model": "gpt", "messages": [{"role": "system", "content": instructions()}, {"role": "user", "content": document}]});
    let response = |document: &str| json!({"model": "gpt-r", "instructions": instructions(), "input": document});
    let gemini = |document: &str| json!({"systemInstruction": {"parts": [{"text": instructions()}]}, "contents": [{"role": "user", "parts": [{"text": document}]}]});
    for (document, read) in [("One", 0), ("Two", TOKENS)] {
        let body = stage.openai(&chat(document)).await.unwrap().json();
        assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], read);
        assert!(body["usage"]["prompt_tokens"].as_u64().unwrap() > TOKENS, "cached tokens are inside");
        let body = stage.responses(&response(document)).await.unwrap().json();
        assert_eq!(body["usage"]["input_tokens_details"]["cached_tokens"], read);
        let body = stage.gemini("gemini", &gemini(document)).await.unwrap().json();
        assert_eq!(body["usageMetadata"]["cachedContentTokenCount"].as_u64().unwrap_or(0), read);
    }
    assert!(stage.simulator.account().model("gpt").admitted.input > 2 * TOKENS, "reads count");
}

#[tokio::test]
async fn bedrocks_has_cache_points() {
    let stage = Stage::new("").await;
    let body = |document: &str| {
        json!({"system": [{"text": instructions()}, {"cachePoint": {"type": "default"}}], "inferenceConfig": {"maxTokens": 50},
            "messages": [{"role": "user", "content": [{"text": document}]}]})
    };
    for (document, written, read) in [("One", TOKENS, 0), ("Two", 0, TOKENS)] {
        let usage = stage.bedrock("m", &body(document)).await.unwrap().json()["usage"].clone();
        assert_eq!((usage["cacheWriteInputTokens"].as_u64(), usage["cacheReadInputTokens"].as_u64()), (Some(written), Some(read)));
        assert!(usage["inputTokens"].as_u64().unwrap() < 5, "cached tokens are beside");
    }
}
