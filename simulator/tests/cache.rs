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
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
            .map(|key| usage[key].as_u64().unwrap())
    };
    let [rest, written, read] = usage(&body("One", true)).await;
    assert_eq!((written, read), (TOKENS, 0));
    assert!(rest < 5);
    assert_eq!(usage(&body("Two", true)).await[1..], [0, TOKENS]);
    let [whole, written, read] = usage(&body("Three", false)).await;
    assert!(whole > TOKENS && written + read == 0, "caching was not asked for");
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
        assert!(
            body["usage"]["prompt_tokens"].as_u64().unwrap() > TOKENS,
            "cached tokens are inside"
        );
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
        assert_eq!(
            (usage["cacheWriteInputTokens"].as_u64(), usage["cacheReadInputTokens"].as_u64()),
            (Some(written), Some(read))
        );
        assert!(usage["inputTokens"].as_u64().unwrap() < 5, "cached tokens are beside");
    }
}

#[tokio::test]
async fn calls_at_once_all_write_and_later_ones_read() {
    let stage = Stage::new("latency = { base = \"300ms\" }").await;
    let body = |document: &str| {
        json!({"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": document}],
            "system": [{"type": "text", "text": instructions(), "cache_control": {"type": "ephemeral"}}]})
    };
    let (one, two) = (body("One"), body("Two"));
    let (one, two) = tokio::join!(stage.anthropic(&one), stage.anthropic(&two));
    for reply in [one, two] {
        assert_eq!(reply.unwrap().json()["usage"]["cache_creation_input_tokens"], TOKENS);
    }
    assert_eq!(
        stage.anthropic(&body("Three")).await.unwrap().json()["usage"]["cache_read_input_tokens"],
        TOKENS
    );
    let account = stage.simulator.account().model("m");
    assert_eq!((account.cache_written, account.cache_read), (2 * TOKENS, TOKENS));
}

/// Instructions that are the same for all, then a long document of one's own, both marked.
#[tokio::test]
async fn the_longest_mark_that_is_remembered_is_read_and_the_rest_written() {
    let stage = Stage::new("").await;
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let body = |document: &str| {
        json!({"model": "m", "max_tokens": 50, "system": [marked(&instructions())],
            "messages": [{"role": "user", "content": [marked(&document.repeat(1_000)), {"type": "text", "text": "And?"}]}]})
    };
    let usage = async |document: &str| {
        let usage = stage.anthropic(&body(document)).await.unwrap().json()["usage"].clone();
        ["cache_creation_input_tokens", "cache_read_input_tokens"]
            .map(|key| usage[key].as_u64().unwrap())
    };
    let [all, none] = usage("One. ").await;
    assert!(all > 2 * TOKENS && none == 0, "{all}");
    assert_eq!(
        usage("Two. ").await,
        [all - TOKENS, TOKENS],
        "another document, the same instructions"
    );
    assert_eq!(usage("One. ").await, [0, all]);
    let mut body = body("One. ");
    body["system"] = json!(vec![marked("Short."); 4]);
    assert_eq!(stage.anthropic(&body).await.unwrap().status, 400, "five marks");
}

#[tokio::test]
async fn documents_that_are_no_text_are_told_apart() {
    let stage = Stage::new("").await;
    let body = |data: &str| {
        json!({"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data.repeat(8_000)},
                "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Summarise."},
        ]}]})
    };
    for data in ["AAAA", "BBBB"] {
        let usage = stage.anthropic(&body(data)).await.unwrap().json()["usage"].clone();
        assert_eq!(
            (&usage["cache_creation_input_tokens"], &usage["cache_read_input_tokens"]),
            (&json!(5_582), &json!(0)),
            "{data}"
        );
    }
    let account = stage.simulator.account();
    assert_eq!((account.prompts, account.answered_twice), (2, 0));
    assert_eq!(
        stage.anthropic(&body("AAAA")).await.unwrap().json()["usage"]["cache_read_input_tokens"],
        5_582
    );
}
