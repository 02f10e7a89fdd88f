//! Anthropic's wire format.

mod common;

use common::{Stage, message};
use serde_json::json;

const LIMITS: &str = "[models.m]\nrpm = 50\nitpm = 30_000\notpm = 8_000";

#[tokio::test]
async fn a_success_has_the_vendors_shape_and_headers() {
    let stage = Stage::new(LIMITS).await;
    let reply = stage.ask(&"The parties agree. They sign.\n\n".repeat(80)).await.unwrap();
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["type"], &body["role"], &body["model"]),
        (200, &json!("message"), &json!("assistant"), &json!("m"))
    );
    assert_eq!(
        (&body["content"][0]["type"], &body["stop_reason"]),
        (&json!("text"), &json!("end_turn"))
    );
    let text = body["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The parties agree."), "{text}");
    let (input, output) = (
        body["usage"]["input_tokens"].as_u64().unwrap(),
        body["usage"]["output_tokens"].as_u64().unwrap(),
    );
    assert_eq!(output, (text.len() as u64 * 10).div_ceil(43));
    assert!(input > 500, "{input}");

    assert!(reply.header("request-id").unwrap().starts_with("req_"));
    assert_eq!(
        (
            reply.number("anthropic-ratelimit-requests-limit"),
            reply.number("anthropic-ratelimit-requests-remaining")
        ),
        (50, 49)
    );
    assert_eq!(reply.number("anthropic-ratelimit-input-tokens-limit"), 30_000);
    assert_eq!(reply.number("anthropic-ratelimit-input-tokens-remaining"), 29_000);
    assert_eq!(reply.number("anthropic-ratelimit-output-tokens-remaining"), 8_000);
    assert_eq!(reply.number("anthropic-ratelimit-tokens-limit"), 38_000);
    for what in ["requests", "tokens", "input-tokens", "output-tokens"] {
        let reset = reply.header(&format!("anthropic-ratelimit-{what}-reset")).unwrap();
        let reset = chrono::DateTime::parse_from_rfc3339(reset).expect("RFC 3339");
        assert!(
            (-1..=10).contains(&(reset.to_utc() - chrono::Utc::now()).num_seconds()),
            "{what}: {reset}"
        );
    }
    assert_eq!(reply.header("retry-after"), None);
}

#[tokio::test]
async fn a_refusal_has_the_vendors_shape_and_headers() {
    let stage = Stage::new("[models.m]\nrpm = 1").await;
    stage.ask("One.").await.unwrap();
    let reply = stage.ask("Two.").await.unwrap();
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["type"], &body["error"]["type"]),
        (429, &json!("error"), &json!("rate_limit_error"))
    );
    assert_eq!(body["request_id"], reply.header("request-id").unwrap());
    assert_eq!(reply.number("anthropic-ratelimit-requests-remaining"), 0);
    assert!((50..=60).contains(&reply.number("retry-after")));
}

#[tokio::test]
async fn bad_calls_are_rejected() {
    let stage = Stage::new("").await;
    let (version, key) = (("anthropic-version", "2023-06-01"), ("x-api-key", "k"));
    let good = message("One.", 10).to_string();
    let reply = stage.post("/v1/messages", &[version], good.clone()).await.unwrap();
    assert_eq!(
        (reply.status, &reply.json()["error"]["type"]),
        (401, &json!("authentication_error"))
    );
    let bodies = [
        "{".to_owned(),
        json!({"max_tokens": 5, "messages": [{"role": "user", "content": "a"}]}).to_string(),
        json!({"model": "m", "messages": [{"role": "user", "content": "a"}]}).to_string(),
        json!({"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "a"}]}).to_string(),
        json!({"model": "m", "max_tokens": 5}).to_string(),
        json!({"model": "m", "max_tokens": 5, "messages": []}).to_string(),
        json!({"model": "m", "max_tokens": 5, "stream": true, "messages": [{"role": "user", "content": "a"}]}).to_string(),
    ];
    for body in &bodies {
        let reply = stage.post("/v1/messages", &[version, key], body.clone()).await.unwrap();
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (400, &json!("invalid_request_error")),
            "{body}"
        );
    }
    assert_eq!(stage.post("/v1/messages", &[key], good.clone()).await.unwrap().status, 400);
    assert_eq!(
        stage
            .post("/v1/messages", &[version, ("authorization", "Bearer k")], good)
            .await
            .unwrap()
            .status,
        200
    );
    let account = stage.simulator.account();
    assert_eq!((account.rejected, account.model("m").requests), (bodies.len() as u64 + 2, 1));
}

#[tokio::test]
async fn max_tokens_cut_an_answer_off() {
    let stage = Stage::new("mean-output-tokens = 400").await;
    let body =
        stage.anthropic(&message(&"The parties agree. ".repeat(300), 20)).await.unwrap().json();
    assert_eq!(
        (&body["stop_reason"], &body["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(20))
    );
}

#[tokio::test]
async fn blocks_documents_and_system_are_input() {
    let stage = Stage::new("").await;
    let plain =
        stage.anthropic(&message("One.", 100)).await.unwrap().json()["usage"]["input_tokens"]
            .as_u64()
            .unwrap();
    let mut body = message("", 100);
    body["system"] = json!([{"type": "text", "text": "s".repeat(430)}]);
    body["messages"][0]["content"] = json!([
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Clause one binds."}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A".repeat(400)}},
        {"type": "text", "text": "Summarise."},
    ]);
    let reply = stage.anthropic(&body).await.unwrap().json();
    let input = reply["usage"]["input_tokens"].as_u64().unwrap();
    assert!((100 + 69 + plain / 2..100 + 69 + 4 * plain).contains(&input), "{input}");
    assert!(reply["content"][0]["text"].as_str().unwrap().starts_with("Clause one binds."));
}

#[tokio::test]
async fn a_schema_is_satisfied() {
    let stage = Stage::new("").await;
    let mut body = message("The parties agree. They sign.", 1_000);
    let schema = json!({"type": "object", "properties": {"summary": {"type": "string"}, "risk": {"enum": ["low", "high"]}}});
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let reply = stage.anthropic(&body).await.unwrap().json();
    let answer: serde_json::Value =
        serde_json::from_str(reply["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(answer["summary"], "The parties agree.");
    assert!(answer["risk"] == "low" || answer["risk"] == "high");
}

#[tokio::test]
async fn a_picture_counts_by_its_pixels_and_must_be_what_it_is_said_to_be() {
    // 280 pixels by 280, as far as its header goes.
    const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAARgAAAEYCAIAAAA=";
    let stage = Stage::new(LIMITS).await;
    let asked = |media_type: &str, data: &str| {
        let source = json!({"type": "base64", "media_type": media_type, "data": data});
        let content =
            json!([{"type": "image", "source": source}, {"type": "text", "text": "See."}]);
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]})
    };
    let reply = stage.anthropic(&asked("image/png", PICTURE)).await.unwrap();
    assert_eq!((reply.status, reply.json()["usage"]["input_tokens"].as_u64()), (200, Some(101)));
    for (media_type, data) in [("image/jpeg", PICTURE), ("image/png", "JVBERi0=")] {
        let refused = stage.anthropic(&asked(media_type, data)).await.unwrap();
        assert_eq!(refused.status, 400, "{media_type}");
        assert_eq!(refused.json()["error"]["type"], json!("invalid_request_error"));
    }
}
