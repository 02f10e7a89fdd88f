//! Across dialects: each of the two clients asks a model of the other's vendor.

use super::{
    vendor::{RawVendor, Reply},
    *,
};

const LIMITS: &str = "rpm = 6000\ntpm = 10_000_000";

#[tokio::test]
async fn openais_dialect_asks_anthropics_model() {
    let vendor = RawVendor::start(|_| {
        Reply::json(200, r#"{"content":[{"type":"text","text":"Yes"}],"stop_reason":"max_tokens","usage":{"input_tokens":9,"output_tokens":2}}"#)
    })
    .await;
    let settings = provider("anthropic", &vendor.url, LIMITS);
    let Some(doors) = Doors::start(&settings).await else { return };
    let messages =
        json!([{"role": "system", "content": "Brief."}, {"role": "user", "content": "Well?"}]);
    let body =
        json!({"model": "anthropic:m", "messages": messages, "max_tokens": 5, "stop": "END"});
    let got = doors.post("/v1/chat/completions", &body).send().await.unwrap();
    let said: Value = got.json().await.unwrap();
    let choice = &said["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("Yes"), &json!("length")),
        "{said}"
    );
    assert_eq!(
        (&said["usage"]["total_tokens"], &said["model"]),
        (&json!(11), &json!("anthropic:m"))
    );
    let sent: Value = serde_json::from_str(&vendor.sent()[0].body).unwrap();
    let expected = json!({"model": "m", "max_tokens": 5, "system": "Brief.", "stop_sequences": ["END"],
        "messages": [{"role": "user", "content": "Well?"}]});
    assert_eq!(sent, expected);
    let tools =
        json!({"model": "anthropic:m", "messages": messages, "tools": [{"type": "function"}]});
    let got = doors.post("/v1/chat/completions", &tools).send().await.unwrap();
    let status = got.status();
    let said: Value = got.json().await.unwrap();
    assert_eq!((status.as_u16(), &said["error"]["param"]), (400, &json!("tools")), "{said}");
    assert_eq!(vendor.sent().len(), 1, "nothing was asked");
    doors.stop().await;
}

#[tokio::test]
async fn anthropics_dialect_asks_openais_model_and_a_refusal_is_in_its_form() {
    let vendor = RawVendor::start(|sent| match sent.body.contains("Refuse") {
        true => Reply::json(400, r#"{"error":{"message":"no","type":"invalid_request_error","code":"invalid_value"}}"#),
        false => Reply::json(200, r#"{"choices":[{"message":{"content":"{\"a\":1}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#),
    })
    .await;
    let settings = provider("openai", &vendor.url, LIMITS);
    let Some(doors) = Doors::start(&settings).await else { return };
    let body = |text: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false});
        json!({"model": "openai:m", "max_tokens": 50, "temperature": 0.5,
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "messages": [{"role": "user", "content": text}]})
    };
    let got = doors.post("/v1/messages", &body("Well?")).send().await.unwrap();
    let said: Value = got.json().await.unwrap();
    assert_eq!(
        (&said["content"][0]["text"], &said["stop_reason"]),
        (&json!("{\"a\":1}"), &json!("end_turn")),
        "{said}"
    );
    assert_eq!(said["usage"]["output_tokens"], 2);
    let sent: Value = serde_json::from_str(&vendor.sent()[0].body).unwrap();
    assert_eq!(
        (&sent["temperature"], &sent["response_format"]["type"]),
        (&json!(0.5), &json!("json_schema")),
        "{sent}"
    );
    let got = doors.post("/v1/messages", &body("Refuse this one")).send().await.unwrap();
    assert_eq!(got.status(), 400);
    let said: Value = got.json().await.unwrap();
    assert_eq!(
        (&said["type"], &said["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
    doors.stop().await;
}

/// A route goes on to a model of the other dialect if the body can be translated, and otherwise stays
/// with its own.
#[tokio::test]
async fn a_route_goes_across_dialects_where_the_body_can_be_translated() {
    let vendor = RawVendor::start(|sent| match sent.path.as_str() {
        "/v1/chat/completions" => Reply::json(429, r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#),
        _ => Reply::json(200, r#"{"content":[{"type":"text","text":"Yes"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}"#),
    })
    .await;
    let settings = provider("openai", &vendor.url, LIMITS)
        + &provider("anthropic", &vendor.url, LIMITS)
        + "[routes.both]\nmodels = [\"openai:m\", \"anthropic:m\"]\nunchecked = true\n"
        + "[routes.unlike]\nmodels = [\"openai:m\", \"anthropic:m\"]\n";
    let Some(doors) = Doors::start(&settings).await else { return };
    let (_, listed) = doors.send(doors.get("/v1/models")).await;
    let listed: Vec<&str> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect();
    assert_eq!(listed, ["anthropic:m", "both", "openai:m"], "a call of `unlike` is refused");
    let send = async |more: Value| {
        let mut body = chat("Well?", json!({"max_tokens": 5}));
        body["model"] = "both".into();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let post = doors.post("/v1/chat/completions", &body).header("x-tidegate-max-wait", "0");
        let got = post.send().await.unwrap();
        (got.status().as_u16(), got.json::<Value>().await.unwrap())
    };
    let (status, said) = send(json!({"model": "unlike"})).await;
    let why = said["error"]["message"].as_str().unwrap();
    assert!(status == 400 && why.contains("falls back from openai:m to anthropic:m"), "{said}");
    assert_eq!(vendor.sent().len(), 0, "nothing was asked");
    let asked = |path: &str| vendor.sent().iter().filter(|sent| sent.path == path).count();
    assert_eq!(send(json!({})).await.0, 429, "the first model's account is spent");
    // From time to time, one call probes whether the model is still refused.
    let mut answered = None;
    for _ in 0..3 {
        answered = Some(send(json!({})).await).filter(|(status, _)| *status == 200);
        if answered.is_some() {
            break;
        }
    }
    assert_eq!(answered.unwrap().1["choices"][0]["message"]["content"], "Yes");
    assert_eq!(asked("/v1/messages"), 1);
    let (status, said) = send(json!({"seed": 7})).await;
    assert_eq!((status, asked("/v1/messages")), (429, 1), "its own dialect has a seed: {said}");
    doors.stop().await;
}
