//! Google's wire format.

mod common;

use common::Stage;
use serde_json::{Value, json};

fn content(document: &str) -> Value {
    json!({"systemInstruction": {"parts": [{"text": "Summarise."}]},
        "contents": [{"role": "user", "parts": [{"text": format!("<document>{document}</document>")}]}],
        "generationConfig": {"maxOutputTokens": 500}})
}

#[tokio::test]
async fn a_success_has_the_vendors_shape_and_tells_no_limit() {
    let stage = Stage::new("[models.gemini]\nrpm = 60").await;
    let reply = stage.gemini("gemini", &content("The parties agree.")).await.unwrap();
    let body = reply.json();
    let candidate = &body["candidates"][0];
    assert_eq!(
        (reply.status, &candidate["finishReason"], &body["modelVersion"]),
        (200, &json!("STOP"), &json!("gemini"))
    );
    assert!(
        candidate["content"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The parties agree.")
    );
    let usage = |key: &str| body["usageMetadata"][key].as_u64().unwrap();
    assert_eq!(usage("totalTokenCount"), usage("promptTokenCount") + usage("candidatesTokenCount"));
    assert!(
        reply.headers.keys().all(|name| !name.as_str().contains("ratelimit")),
        "{:?}",
        reply.headers
    );
    let mut cut = content("The parties agree. They sign on Monday.");
    cut["generationConfig"] = json!({"maxOutputTokens": 3});
    assert_eq!(
        stage.gemini("gemini", &cut).await.unwrap().json()["candidates"][0]["finishReason"],
        "MAX_TOKENS"
    );
}

#[tokio::test]
async fn refusals_tell_the_quota_and_the_wait_in_the_body() {
    let stage = Stage::new("[models.gemini]\nrpm = 1\nalgorithm = \"fixed-window\"").await;
    assert_eq!(stage.gemini("gemini", &content("One.")).await.unwrap().status, 200);
    let reply = stage.gemini("gemini", &content("Two.")).await.unwrap();
    let error = &reply.json()["error"];
    assert_eq!((reply.status, &error["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
    assert_eq!(
        error["details"][0]["violations"][0]["quotaId"],
        "GenerateRequestsPerMinutePerProjectPerModel"
    );
    let wait = error["details"][2]["retryDelay"].as_str().unwrap();
    assert!(wait.strip_suffix('s').unwrap().parse::<f64>().unwrap() > 50.0, "{wait}");
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!(stage.simulator.account().model("gemini").refused.requests, 1);
}

#[tokio::test]
async fn input_tokens_have_a_quota_of_their_own_and_output_has_none() {
    let stage = Stage::new("[models.gemini]\nitpm = 100\nalgorithm = \"fixed-window\"").await;
    assert_eq!(stage.gemini("gemini", &content(&"A word. ".repeat(30))).await.unwrap().status, 200);
    let reply = stage.gemini("gemini", &content(&"B word. ".repeat(30))).await.unwrap();
    let violation = reply.json()["error"]["details"][0]["violations"][0].clone();
    assert_eq!(violation["quotaId"], "GenerateContentInputTokensPerModelPerMinute");
    assert_eq!(
        (&violation["quotaValue"], &violation["quotaDimensions"]["model"]),
        (&json!("100"), &json!("gemini"))
    );
    // A call that needs more than the limit is told no time, for none would help.
    let large = stage.gemini("gemini", &content(&"A word. ".repeat(300))).await.unwrap();
    assert!(
        large.status == 429
            && !large.text.contains("RetryInfo")
            && !large.text.contains("retry in"),
        "{}",
        large.text
    );
}

#[tokio::test]
async fn a_schema_is_satisfied_under_either_name_and_files_are_input() {
    let stage = Stage::new("").await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 3}}, "required": ["n"]});
    // As the SDK writes the older kind.
    let n = json!({"type": "INTEGER", "minimum": 3, "maximum": 3});
    let capitals = json!({"type": "OBJECT", "properties": {"n": n}, "required": ["n"]});
    for config in [
        json!({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}}),
        json!({"generation_config": {"response_mime_type": "application/json", "response_schema": schema}}),
        json!({"generationConfig": {"responseMimeType": "application/json", "responseSchema": capitals}}),
    ] {
        let mut body = content("x");
        let file =
            json!({"inlineData": {"mimeType": "application/pdf", "data": "A".repeat(4_000)}});
        body["contents"][0]["parts"].as_array_mut().unwrap().push(file);
        body["generationConfig"].take();
        body.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let answer = stage.gemini("gemini", &body).await.unwrap().json();
        assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], "{\"n\":3}", "{config}");
        assert!(answer["usageMetadata"]["promptTokenCount"].as_u64().unwrap() > 690);
    }
    let mut snake = content("x");
    snake["system_instruction"] = snake["systemInstruction"].take();
    let plain = stage.gemini("gemini", &content("x")).await.unwrap().json();
    assert_eq!(
        stage.gemini("gemini", &snake).await.unwrap().json()["usageMetadata"],
        plain["usageMetadata"]
    );
}

#[tokio::test]
async fn a_faults_wait_is_told_in_the_body() {
    for (kind, told) in [
        ("overloaded", true),
        ("server-error", true),
        ("rate-limited", true),
        ("spend-limit", false),
    ] {
        for (retry_after, wanted) in [("", false), ("retry-after = \"1500ms\"", told)] {
            let stage = Stage::new(&format!("[[faults]]\nkind = \"{kind}\"\n{retry_after}")).await;
            let reply = stage.gemini("gemini", &content("x")).await.unwrap();
            assert_eq!(
                reply.text.contains(r#""retryDelay":"1.500s""#),
                wanted,
                "{kind}: {}",
                reply.text
            );
            assert_eq!(reply.header("retry-after"), None);
            // A spent day has its own, which is wrong, as with the vendor; a bare ramp has no
            // details at all.
            assert_eq!(
                reply.json()["error"]["details"].is_null(),
                !wanted && kind != "spend-limit",
                "{kind}"
            );
        }
    }
}

#[tokio::test]
async fn faults_speak_the_vendors_language() {
    for (kind, status, word) in [
        ("overloaded", 503, "UNAVAILABLE"),
        ("server-error", 500, "INTERNAL"),
        ("rate-limited", 429, "RESOURCE_EXHAUSTED"),
        ("spend-limit", 429, "RESOURCE_EXHAUSTED"),
    ] {
        let stage = Stage::new(&format!("[[faults]]\nkind = \"{kind}\"\nrate = 1.0")).await;
        let reply = stage.gemini("gemini", &content("x")).await.unwrap();
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["status"]), (status, &json!(word)), "{kind}");
        let day = error["details"][0]["violations"][0]["quotaId"]
            .as_str()
            .is_some_and(|id| id.contains("PerDay"));
        assert_eq!(day, kind == "spend-limit");
    }
    let stage = Stage::new("").await;
    let key = [("x-goog-api-key", "k")];
    assert_eq!(
        stage
            .post("/v1/models/gemini:generateContent", &key, content("x").to_string())
            .await
            .unwrap()
            .status,
        200
    );
    let path = "/v1beta/models/gemini:generateContent";
    assert_eq!(
        stage.post(path, &[], content("x").to_string()).await.unwrap().json()["error"]["status"],
        "PERMISSION_DENIED"
    );
    assert_eq!(
        stage.gemini("gemini", &json!({})).await.unwrap().json()["error"]["status"],
        "INVALID_ARGUMENT"
    );
}
