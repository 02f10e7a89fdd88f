//! OpenAI's wire format.

mod common;

use common::Stage;
use serde_json::{Value, json};

fn chat(content: &str) -> Value {
    json!({"model": "gpt", "max_completion_tokens": 500, "messages": [
        {"role": "system", "content": "Summarise."},
        {"role": "user", "content": content},
    ]})
}

#[tokio::test]
async fn a_success_has_the_vendors_shape_and_headers() {
    let stage = Stage::new("[models.gpt]\nrpm = 60\ntpm = 150_000").await;
    let reply = stage.openai(&chat("<document>The parties agree.</document>")).await.unwrap();
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["object"], &body["model"]),
        (200, &json!("chat.completion"), &json!("gpt"))
    );
    let choice = &body["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["role"]),
        (&json!("stop"), &json!("assistant"))
    );
    assert!(choice["message"]["content"].as_str().unwrap().starts_with("The parties agree."));
    let usage = |key: &str| body["usage"][key].as_u64().unwrap();
    assert_eq!(usage("total_tokens"), usage("prompt_tokens") + usage("completion_tokens"));

    assert!(reply.header("x-request-id").unwrap().starts_with("req_"));
    assert_eq!(
        (
            reply.number("x-ratelimit-limit-requests"),
            reply.number("x-ratelimit-remaining-requests")
        ),
        (60, 59)
    );
    assert_eq!(reply.number("x-ratelimit-limit-tokens"), 150_000);
    let remaining = reply.number("x-ratelimit-remaining-tokens");
    assert!((150_000 - usage("total_tokens")..150_000).contains(&remaining), "{remaining}");
    let reset = reply.header("x-ratelimit-reset-requests").unwrap();
    assert!(reset == "1s" || reset.ends_with("ms"), "{reset}");
    assert!(reply.header("x-ratelimit-reset-tokens").unwrap().ends_with("ms"));
    assert_eq!(reply.header("retry-after"), None);
}

#[tokio::test]
async fn a_refusal_says_limit_used_requested_and_when() {
    let stage = Stage::new(
        "[models.gpt]\ntpm = 300\nalgorithm = \"fixed-window\"\ncharge = \"max-tokens-kept\"",
    )
    .await;
    let mut body = chat("One.");
    body["max_completion_tokens"] = json!(200);
    assert_eq!(stage.openai(&body).await.unwrap().status, 200);
    let reply = stage.openai(&body).await.unwrap();
    let error = &reply.json()["error"];
    assert_eq!(
        (reply.status, &error["type"], &error["code"]),
        (429, &json!("tokens"), &json!("rate_limit_exceeded"))
    );
    let message = error["message"].as_str().unwrap();
    let start = "Rate limit reached for gpt in organization org-sim on tokens per min (TPM): Limit 300, Used 204, Requested 204. ";
    let wait = message.strip_prefix(start).unwrap_or_else(|| panic!("{message}"));
    assert!(wait.starts_with("Please try again in 5") && wait.ends_with("s."), "{wait}");
    assert!((50..=60).contains(&reply.number("retry-after")));
    assert_eq!(reply.number("x-ratelimit-remaining-tokens"), 96);

    body["max_completion_tokens"] = json!(400);
    let reply = stage.openai(&body).await.unwrap();
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Request too large for gpt in organization org-sim on tokens per min (TPM): Limit 300, Requested 404."),
        "{message}"
    );
    assert_eq!((reply.status, reply.header("retry-after")), (429, None));
}

#[tokio::test]
async fn requests_are_refused_as_requests() {
    let stage = Stage::new("[default]\nrpm = 1").await;
    stage.openai(&chat("One.")).await.unwrap();
    let error = stage.openai(&chat("Two.")).await.unwrap().json()["error"].clone();
    assert_eq!(error["type"], "requests");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("on requests per min (RPM): Limit 1, Used 1, Requested 1.")
    );
}

#[tokio::test]
async fn bad_calls_are_rejected() {
    let stage = Stage::new("").await;
    let path = "/v1/chat/completions";
    assert_eq!(stage.post(path, &[], chat("One.").to_string()).await.unwrap().status, 401);
    let bodies = [
        "{".to_owned(),
        json!({"messages": [{"role": "user", "content": "a"}]}).to_string(),
        json!({"model": "gpt"}).to_string(),
        json!({"model": "gpt", "max_tokens": 0, "messages": [{"role": "user", "content": "a"}]})
            .to_string(),
    ];
    for body in bodies {
        let reply = stage.post(path, &[("authorization", "Bearer k")], body.clone()).await.unwrap();
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (400, &json!("invalid_request_error")),
            "{body}"
        );
    }
}

#[tokio::test]
async fn either_name_of_the_maximum_cuts_an_answer_off() {
    let stage = Stage::new("").await;
    for key in ["max_tokens", "max_completion_tokens"] {
        let body = json!({"model": "gpt", key: 9, "messages": [{"role": "user", "content": "The parties agree. ".repeat(99)}]});
        let reply = stage.openai(&body).await.unwrap().json();
        assert_eq!(
            (&reply["choices"][0]["finish_reason"], &reply["usage"]["completion_tokens"]),
            (&json!("length"), &json!(9))
        );
    }
}

#[tokio::test]
async fn a_schema_is_satisfied() {
    let stage = Stage::new("").await;
    let mut body = chat("The parties agree.");
    let schema = json!({"type": "object", "properties": {"points": {"type": "array", "items": {"type": "string"}}}});
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
    let reply = stage.openai(&body).await.unwrap().json();
    let answer: Value =
        serde_json::from_str(reply["choices"][0]["message"]["content"].as_str().unwrap()).unwrap();
    assert!(answer["points"][1].is_string());
}
