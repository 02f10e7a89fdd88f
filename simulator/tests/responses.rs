//! OpenAI's newer wire format.

mod common;

use common::Stage;
use serde_json::{Value, json};

fn response(document: &str) -> Value {
    json!({"model": "gpt", "max_output_tokens": 500, "store": false, "instructions": "Summarise.",
        "input": format!("<document>{document}</document>")})
}

#[tokio::test]
async fn a_success_has_the_vendors_shape_and_headers() {
    let stage = Stage::new("[models.gpt]\nrpm = 60\ntpm = 150_000").await;
    let reply = stage.responses(&response("The parties agree.")).await.unwrap();
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["object"], &body["status"], &body["model"]),
        (200, &json!("response"), &json!("completed"), &json!("gpt"))
    );
    let part = &body["output"][0]["content"][0];
    assert_eq!((&body["output"][0]["type"], &part["type"]), (&json!("message"), &json!("output_text")));
    assert!(part["text"].as_str().unwrap().starts_with("The parties agree."));
    let usage = |key: &str| body["usage"][key].as_u64().unwrap();
    assert_eq!(usage("total_tokens"), usage("input_tokens") + usage("output_tokens"));
    assert_eq!(reply.number("x-ratelimit-remaining-requests"), 59);
}

#[tokio::test]
async fn a_bound_cuts_and_a_schema_is_kept() {
    let stage = Stage::new("").await;
    let mut body = response("The parties agree. They sign on Monday, and the rest follows from the annex.");
    body["max_output_tokens"] = json!(16);
    let cut = stage.responses(&body).await.unwrap().json();
    assert_eq!((&cut["status"], &cut["incomplete_details"]["reason"]), (&json!("incomplete"), &json!("max_output_tokens")));
    body["max_output_tokens"] = json!(15);
    assert_eq!(stage.responses(&body).await.unwrap().status, 400);
    body["max_output_tokens"] = json!(500);
    let schema = json!({"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":3}},"required":["n"]});
    body["text"] = json!({"format":{"type":"json_schema","name":"answer","strict":true,"schema":schema}});
    let filled = stage.responses(&body).await.unwrap().json();
    assert_eq!(filled["output"][0]["content"][0]["text"], json!("{\"n\":3}"));
    assert_eq!(stage.post("/v1/responses", &[], body.to_string()).await.unwrap().status, 401);
}
