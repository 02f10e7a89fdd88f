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
    assert_eq!(
        (&body["output"][0]["type"], &part["type"]),
        (&json!("message"), &json!("output_text"))
    );
    assert!(part["text"].as_str().unwrap().starts_with("The parties agree."));
    let usage = |key: &str| body["usage"][key].as_u64().unwrap();
    assert_eq!(usage("total_tokens"), usage("input_tokens") + usage("output_tokens"));
    assert_eq!(reply.number("x-ratelimit-remaining-requests"), 59);
}

#[tokio::test]
async fn a_bound_cuts_and_a_schema_is_kept() {
    let stage = Stage::new("").await;
    let mut body =
        response("The parties agree. They sign on Monday, and the rest follows from the annex.");
    body["max_output_tokens"] = json!(16);
    let cut = stage.responses(&body).await.unwrap().json();
    assert_eq!(
        (&cut["status"], &cut["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    body["max_output_tokens"] = json!(15);
    assert_eq!(stage.responses(&body).await.unwrap().status, 400);
    body["max_output_tokens"] = json!(500);
    let schema = json!({"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":3}},"required":["n"]});
    body["text"] =
        json!({"format":{"type":"json_schema","name":"answer","strict":true,"schema":schema}});
    let filled = stage.responses(&body).await.unwrap().json();
    assert_eq!(filled["output"][0]["content"][0]["text"], json!("{\"n\":3}"));
    assert_eq!(stage.post("/v1/responses", &[], body.to_string()).await.unwrap().status, 401);
}

#[tokio::test]
async fn items_and_files_are_input() {
    let stage = Stage::new("").await;
    let mut body = response("");
    body["input"] = json!([{"role": "user", "content": [
        {"type": "input_file", "filename": "a.pdf", "file_data": format!("data:application/pdf;base64,{}", "A".repeat(4_000))},
        {"type": "input_text", "text": "<document>The parties agree.</document>"},
    ]}]);
    let reply = stage.responses(&body).await.unwrap().json();
    assert!(
        (698..720).contains(&reply["usage"]["input_tokens"].as_u64().unwrap()),
        "{}",
        reply["usage"]
    );
    assert!(
        reply["output"][0]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The parties agree.")
    );
    for input in [json!(null), json!([])] {
        body["input"] = input;
        assert_eq!(stage.responses(&body).await.unwrap().json()["error"]["param"], "input");
    }
}

#[tokio::test]
async fn refusals_and_faults_are_those_of_chat_completions() {
    let stage = Stage::new(
        "[models.gpt]\ntpm = 600\nalgorithm = \"fixed-window\"\ncharge = \"max-tokens-kept\"",
    )
    .await;
    assert_eq!(stage.responses(&response("One.")).await.unwrap().status, 200);
    let reply = stage.responses(&response("Two.")).await.unwrap();
    let error = reply.json()["error"].clone();
    assert_eq!(
        (reply.status, &error["type"], &error["code"]),
        (429, &json!("tokens"), &json!("rate_limit_exceeded"))
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("on tokens per min (TPM): Limit 600, Used 509, Requested 509."),
        "{error}"
    );
    assert!(
        (50..=60).contains(&reply.number("retry-after"))
            && reply.number("x-ratelimit-remaining-tokens") < 100
    );

    for (kind, status, code) in [
        ("overloaded", 503, json!("server_is_overloaded")),
        ("server-error", 500, Value::Null),
        ("rate-limited", 429, json!("slow_down")),
        ("spend-limit", 429, json!("credit_balance_exhausted")),
        ("unknown-model", 404, json!("model_not_found")),
    ] {
        let stage =
            Stage::new(&format!("[[faults]]\nkind = \"{kind}\"\nretry-after = \"2s\"")).await;
        let reply = stage.responses(&response("One.")).await.unwrap();
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &code), "{kind}");
        assert_eq!(
            reply.header("retry-after"),
            Some("2").filter(|_| kind != "spend-limit"),
            "{kind}"
        );
    }
}
