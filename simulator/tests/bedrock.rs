//! AWS's wire format.

mod common;

use common::Stage;
use serde_json::{Value, json};

const MODEL: &str = "anthropic.claude-v1%3A0";

fn converse(document: &str) -> Value {
    json!({"system": [{"text": "Summarise."}], "inferenceConfig": {"maxTokens": 500},
        "messages": [{"role": "user", "content": [{"text": format!("<document>{document}</document>")}]}]})
}

#[tokio::test]
async fn a_success_has_the_vendors_shape() {
    let stage = Stage::new("").await;
    let reply = stage.bedrock(MODEL, &converse("The parties agree.")).await.unwrap();
    let body = reply.json();
    assert_eq!((reply.status, &body["stopReason"]), (200, &json!("end_turn")));
    assert!(
        body["output"]["message"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The parties agree.")
    );
    assert!(reply.header("x-amzn-requestid").is_some());
    assert_eq!(
        stage.simulator.account().model("anthropic.claude-v1:0").ok,
        1,
        "the name is decoded"
    );
    let mut schema = converse("x");
    schema["outputConfig"] = json!({"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"const\":7}"}}}});
    assert_eq!(
        stage.bedrock(MODEL, &schema).await.unwrap().json()["output"]["message"]["content"][0]["text"],
        "7"
    );
}

#[tokio::test]
async fn errors_are_told_in_a_header() {
    for (toml, status, class) in [
        ("[default]\ntpm = 10", 429, "ThrottlingException"),
        ("[[faults]]\nkind = \"overloaded\"\nrate = 1.0", 503, "ServiceUnavailableException"),
        ("[[faults]]\nkind = \"server-error\"\nrate = 1.0", 500, "InternalServerException"),
    ] {
        let stage = Stage::new(toml).await;
        let reply = stage.bedrock(MODEL, &converse("x")).await.unwrap();
        let told = reply.header("x-amzn-errortype").unwrap();
        assert_eq!((reply.status, told.split(':').next()), (status, Some(class)));
        assert!(reply.json()["message"].is_string() && reply.header("retry-after").is_none());
    }
    let stage = Stage::new("[[faults]]\nkind = \"spend-limit\"\nrate = 1.0").await;
    let spent = stage.bedrock(MODEL, &converse("x")).await.unwrap();
    assert!(spent.json()["message"].as_str().unwrap().contains("per day"));
    assert_eq!(
        stage.post("/model/m/converse", &[], converse("x").to_string()).await.unwrap().status,
        403
    );
}

#[tokio::test]
async fn a_bound_cuts_and_documents_are_input() {
    let stage = Stage::new("").await;
    let mut body = converse("The parties agree. They sign on Monday.");
    body["inferenceConfig"] = json!({"maxTokens": 3});
    let cut = stage.bedrock(MODEL, &body).await.unwrap().json();
    assert_eq!(
        (&cut["stopReason"], &cut["usage"]["outputTokens"]),
        (&json!("max_tokens"), &json!(3))
    );
    let before = cut["usage"]["inputTokens"].as_u64().unwrap();
    let document = json!({"document": {"name": "document", "format": "pdf", "source": {"bytes": "A".repeat(4_000)}}});
    body["messages"][0]["content"].as_array_mut().unwrap().push(document);
    let usage = stage.bedrock(MODEL, &body).await.unwrap().json()["usage"].clone();
    assert!((697..700).contains(&(usage["inputTokens"].as_u64().unwrap() - before)), "{usage}");
    assert_eq!(usage["totalTokens"], usage["inputTokens"].as_u64().unwrap() + 3);
    for wrong in [
        json!({"messages": []}),
        json!({"messages": body["messages"], "inferenceConfig": {"maxTokens": 0}}),
    ] {
        let reply = stage.bedrock(MODEL, &wrong).await.unwrap();
        assert_eq!(
            (reply.status, reply.header("x-amzn-errortype").unwrap().split(':').next()),
            (400, Some("ValidationException"))
        );
    }
    let signed = [(
        "authorization",
        "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/bedrock/aws4_request",
    )];
    assert_eq!(
        stage.post("/model/m/converse", &signed, converse("x").to_string()).await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn what_is_refused_is_said_in_words_and_no_time_with_them() {
    for (toml, words) in [
        (
            "[default]\nrpm = 1\nalgorithm = \"fixed-window\"",
            "Too many requests, please wait before trying again.",
        ),
        ("[default]\ntpm = 10", "Too many tokens, please wait before trying again."),
        (
            "[[faults]]\nkind = \"rate-limited\"\nretry-after = \"2s\"",
            "Your request rate is too high. Reduce the frequency of requests.",
        ),
    ] {
        let stage = Stage::new(toml).await;
        let mut reply = stage.bedrock(MODEL, &converse("x")).await.unwrap();
        if reply.status == 200 {
            reply = stage.bedrock(MODEL, &converse("y")).await.unwrap();
        }
        assert_eq!((reply.status, &reply.json()["message"]), (429, &json!(words)));
        assert_eq!((reply.header("retry-after"), reply.header("x-amz-retry-after")), (None, None));
    }
}

/// 100 tokens of output at a weight of 10 are a thousand of the limit, though 500 were held.
#[tokio::test]
async fn output_burns_down_faster_than_it_was_held() {
    let stage = Stage::new(
        "mean-output-tokens = 100\noutput-spread = 0.0\n[default]\ntpm = 1_500\nalgorithm = \"sliding-window\"\ncharge = \"max-tokens\"\noutput-weight = 10.0",
    )
    .await;
    assert_eq!(stage.bedrock(MODEL, &converse(&"A word. ".repeat(50))).await.unwrap().status, 200);
    assert_eq!(stage.bedrock(MODEL, &converse(&"B word. ".repeat(50))).await.unwrap().status, 429);
}
