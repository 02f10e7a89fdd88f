//! One dialect: the vendor gets exactly what the client wrote, and the client gets exactly what the
//! vendor answered.

use super::{
    vendor::{RawVendor, Reply},
    *,
};

const LIMITS: &str = "rpm = 6000\ntpm = 10_000_000";

async fn doors(kind: &str, vendor: &RawVendor) -> Option<Doors> {
    Doors::start(&provider(kind, &vendor.url, LIMITS)).await
}

#[tokio::test]
async fn a_body_passes_as_it_is_and_so_does_its_answer() {
    let answer = r#"{"id":"x",  "unknown":1.50,"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#;
    let vendor = RawVendor::start(move |_| Reply::json(200, answer)).await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let cases = [
        (
            "/v1/chat/completions",
            r#"{"zeta":[1.50, {"b":1,"a":2}],"model":"openai:m","messages":[{"role":"user","content":"é"}],"tools":[],"seed":123456789012345678901}"#,
        ),
        ("/v1/responses", r#"{"model":"openai:m","input":"hi","reasoning":{"effort":"low"}}"#),
        ("/v1/embeddings", r#"{"model":"openai:m","input":["a","b"],"encoding_format":"base64"}"#),
    ];
    for (path, body) in cases {
        let request = doors.http.post(format!("{}{path}", doors.url())).bearer_auth(KEY);
        let got = request
            .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (got.status(), got.headers()["content-type"].as_bytes()),
            (reqwest::StatusCode::OK, &b"application/json"[..])
        );
        assert_eq!(got.text().await.unwrap(), answer, "{path}");
        let sent = vendor.sent().pop().unwrap();
        assert_eq!((sent.path.as_str(), sent.body), (path, body.replace("openai:m", "m")));
        assert!(sent.headers.contains_key("traceparent"));
        assert_ne!(
            sent.headers["authorization"],
            format!("Bearer {KEY}"),
            "the provider's own key"
        );
    }
    assert_eq!(vendor.sent().len(), 3);
    doors.stop().await;
}

#[tokio::test]
async fn anthropics_dialect_passes_with_its_headers_and_counts_tokens() {
    let vendor = RawVendor::start(|sent| match sent.path.as_str() {
        "/v1/messages/count_tokens" => Reply::json(200, r#"{"input_tokens":7}"#),
        _ => Reply::json(200, r#"{"content":[],"usage":{"input_tokens":9,"output_tokens":1}}"#),
    })
    .await;
    let Some(doors) = doors("anthropic", &vendor).await else { return };
    let body = json!({"model": "anthropic:m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let post = |path: &str| {
        let request = doors.http.post(format!("{}{path}", doors.url())).header("x-api-key", KEY);
        request
            .header("anthropic-version", "2026-10-21")
            .header("anthropic-beta", "b-1")
            .json(&body)
    };
    let got = post("/v1/messages").send().await.unwrap();
    assert_eq!(got.status(), 200);
    let sent = vendor.sent().pop().unwrap();
    assert_eq!(
        (&sent.headers["anthropic-version"], &sent.headers["anthropic-beta"]),
        (&"2026-10-21".parse().unwrap(), &"b-1".parse().unwrap())
    );
    let counted: Value =
        post("/v1/messages/count_tokens").send().await.unwrap().json().await.unwrap();
    assert_eq!(counted["input_tokens"], 7);
    doors.stop().await;
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte_except_unrequested_usage() {
    let delta = r#"data: {"choices":[{"index":0,"delta":{"content":"é"}}]}"#;
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let events = [delta, ": ping", delta, usage, "data: [DONE]"];
    let vendor = RawVendor::start(move |_| Reply::events(&events)).await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let whole = |events: &[&str]| events.iter().map(|it| format!("{it}\n\n")).collect::<String>();
    let ask = async |more: Value| {
        let got = doors.post("/v1/chat/completions", &chat("hi", more)).send().await.unwrap();
        assert_eq!(got.headers()["content-type"], "text/event-stream");
        got.text().await.unwrap()
    };
    let without = ask(json!({"stream": true})).await;
    assert_eq!(without, whole(&[delta, ": ping", delta, "data: [DONE]"]));
    let sent: Value = serde_json::from_str(&vendor.sent()[0].body).unwrap();
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    let with = ask(json!({"stream": true, "stream_options": {"include_usage": true}})).await;
    assert_eq!(with, whole(&events), "the client asked for it");
    doors.stop().await;
}

#[tokio::test]
async fn a_vendor_that_refuses_stream_options_is_not_asked_for_use_again() {
    let vendor = RawVendor::start(|sent| match sent.body.contains("stream_options") {
        true => Reply::json(400, r#"{"error":{"message":"unknown field stream_options","type":"invalid_request_error","code":"invalid_value"}}"#),
        false => Reply::events(&["data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"}}]}", "data: [DONE]"]),
    })
    .await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    for calls in [2, 3] {
        let body = chat("hi", json!({"stream": true}));
        let got = doors.post("/v1/chat/completions", &body).send().await.unwrap();
        assert_eq!(got.status(), 200);
        assert!(got.text().await.unwrap().ends_with("data: [DONE]\n\n"));
        assert_eq!(vendor.sent().len(), calls);
    }
    doors.stop().await;
}

/// A vendor that quotes the client's words refuses the client's request, not the door's field.
#[tokio::test]
async fn a_quotation_of_stream_options_does_not_switch_usage_off() {
    let vendor = RawVendor::start(|sent| match sent.body.contains("Please explain") {
        true => Reply::json(400, r#"{"error":{"message":"bad content: Please explain stream_options to me","type":"invalid_request_error","code":"invalid_value"}}"#),
        false => Reply::events(&["data: {\"choices\":[]}", "data: [DONE]"]),
    })
    .await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let send = async |text: &str| {
        let body = chat(text, json!({"stream": true}));
        doors.post("/v1/chat/completions", &body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("Please explain stream_options to me").await, 400);
    assert_eq!(send("hi").await, 200);
    let sent = vendor.sent();
    assert_eq!(sent.len(), 2, "the refused request is not sent twice");
    assert!(sent[1].body.contains("include_usage"), "{}", sent[1].body);
    doors.stop().await;
}

/// A provider's 404 belongs to the client that asked: other clients are not affected.
#[tokio::test]
async fn what_one_client_is_refused_holds_no_other() {
    let vendor = RawVendor::start(|sent| match sent.body.contains("Well?") {
        true => Reply::json(200, r#"{"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#),
        false => Reply::json(404, r#"{"error":{"message":"the model m does not exist, container ourprivateone","type":"invalid_request_error","code":"model_not_found"}}"#),
    })
    .await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let send = async |text: &str| {
        let post = doors.post("/v1/chat/completions", &chat(text, json!({})));
        let got = post.header("x-tidegate-max-wait", "0").send().await.unwrap();
        (got.status().as_u16(), got.text().await.unwrap())
    };
    // Before the model's first answer, and after it.
    for _ in 0..2 {
        for _ in 0..4 {
            let (status, said) = send("Ask for something else.").await;
            assert!(status == 404 && said.contains("ourprivateone"), "{status}: {said}");
        }
        let (status, said) = send("Well?").await;
        assert!(status == 200 && !said.contains("ourprivateone"), "{status}: {said}");
    }
    assert_eq!(vendor.sent().len(), 10);
    doors.stop().await;
}

/// A proxy's login page, or an error with a success status; asked as a whole or as a stream.
#[tokio::test]
async fn a_success_that_is_no_answer_is_a_fault_of_the_provider() {
    let page = |body: &str, kind| Reply { kind, ..Reply::json(200, body) };
    let vendor = RawVendor::start(move |sent| match &sent.body {
        asked if asked.contains("Well?") => Reply::json(200, r#"{"choices":[]}"#),
        asked if asked.contains("Busy?") => Reply::json(
            200,
            r#"{"error":{"message":"Rate limit exceeded","param":"model","code":429}}"#,
        ),
        asked if asked.contains("Empty?") => page("", "application/json"),
        asked if asked.contains("Text?") => page("upstream said no", "text/plain"),
        _ => page("<!DOCTYPE html><html>Sign in</html>", "text/html; charset=utf-8"),
    })
    .await;
    let limits = format!("{LIMITS}\nconcurrent = 1");
    let both =
        provider("openai", &vendor.url, &limits) + &provider("anthropic", &vendor.url, LIMITS);
    let Some(doors) = Doors::start(&both).await else { return };
    let send = async |path: &str, body: Value| {
        let got = doors.post(path, &body).send().await.unwrap();
        let (status, again) = (got.status().as_u16(), got.headers().get("x-should-retry").cloned());
        assert_eq!(again, None, "an SDK tries again by the status");
        (status, got.json::<Value>().await.unwrap())
    };
    let path = "/v1/chat/completions";
    for text in ["Page?", "Empty?", "Text?"] {
        let (status, said) = send(path, chat(text, json!({}))).await;
        assert_eq!((status, &said["error"]["type"]), (503, &json!("server_error")), "{said}");
        // The call was settled, so its slot is free.
        assert_eq!(send(path, chat("Well?", json!({}))).await.0, 200);
    }
    let (status, said) = send(path, chat("Page?", json!({"stream": true}))).await;
    assert_eq!((status, &said["error"]["type"]), (503, &json!("server_error")), "{said}");
    let (status, said) = send(path, chat("Busy?", json!({}))).await;
    assert_eq!((status, &said["error"]["type"]), (429, &json!("rate_limit_error")), "{said}");
    assert_eq!(said["error"]["param"], "model", "names of the body are kept: {said}");
    let body = json!({"model": "anthropic:m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let (status, said) = send(path, body.clone()).await;
        assert!(status == 503 && said["type"] == "error", "{path}: {status} {said}");
    }
    doors.stop().await;
}

/// The answer is longer than the part that the door checks before passing any of it.
#[tokio::test]
async fn a_very_long_answer_passes_as_it_comes() {
    let vectors = "0.125,".repeat(500_000);
    let answer =
        format!(r#"{{"data":[{vectors}1],"usage":{{"prompt_tokens":9,"total_tokens":9}}}}"#);
    let (sent, whole) = (answer.clone(), answer.len());
    let vendor = RawVendor::start(move |_| Reply::json(200, &sent)).await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let body = json!({"model": "openai:m", "input": "hi"});
    let got = doors.post("/v1/embeddings", &body).send().await.unwrap();
    assert_eq!(got.status(), 200);
    let text = got.text().await.unwrap();
    assert!(text == answer, "{} of {whole} bytes", text.len());
    doors.stop().await;
}

#[tokio::test]
async fn what_is_refused_is_refused_in_the_dialects_form() {
    let vendor = RawVendor::start(|_| {
        let says = r#"{"error":{"message":"bad value near secretword of yours alone","type":"invalid_request_error","param":"temperature","code":"invalid_value"}}"#;
        Reply::json(400, says)
    })
    .await;
    let Some(doors) = doors("openai", &vendor).await else { return };
    let got = async |request: reqwest::RequestBuilder| {
        let got = request.send().await.unwrap();
        (got.status().as_u16(), got.json::<Value>().await.unwrap())
    };
    let at = |path: &str| format!("{}{path}", doors.url());
    let (status, said) = got(doors.http.post(at("/v1/chat/completions")).body("{}")).await;
    assert_eq!((status, &said["error"]["code"]), (401, &json!("invalid_api_key")));
    let (status, said) =
        got(doors.http.post(at("/v1/messages")).header("x-api-key", "no").body("{}")).await;
    assert_eq!(
        (status, &said["type"], &said["error"]["type"]),
        (401, &json!("error"), &json!("authentication_error"))
    );
    for (path, kind) in
        [("/v1/audio/speech", "invalid_request_error"), ("/v1/messages/batches", "not_found_error")]
    {
        let (status, said) = got(doors.post(path, &json!({}))).await;
        assert_eq!((status, &said["error"]["type"]), (404, &json!(kind)), "{path}");
    }
    #[rustfmt::skip]
    let cases = [
        (json!({"model": "openai:other"}),                          404, "model"),
        (json!({"background": true}),                               400, "background"),
        (json!({"background": "true"}),                             400, "background"),
        (json!({"stream": "true"}),                                 400, "stream"),
        (json!({"previous_response_id": "r"}),                      400, "previous_response_id"),
        (json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}), 400, "file_id"),
    ];
    for (more, expected, param) in cases {
        let (status, said) = got(doors.post("/v1/chat/completions", &chat("hi", more))).await;
        assert_eq!((status, &said["error"]["param"]), (expected, &json!(param)), "{said}");
    }
    assert_eq!(vendor.sent().len(), 0, "nothing was asked");
    let text = "the secretword of yours alone is here";
    let (status, said) = got(doors.post("/v1/chat/completions", &chat(text, json!({})))).await;
    let error = &said["error"];
    assert_eq!(
        (status, &error["param"], &error["code"]),
        (400, &json!("temperature"), &json!("invalid_value"))
    );
    assert!(!said.to_string().contains("secretword"), "{said}");
    let listed: Value = doors
        .http
        .get(at("/v1/models"))
        .bearer_auth(KEY)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(listed["data"][0]["id"], "openai:m");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(doors.http.get(at(path)).send().await.unwrap().status(), 200);
    }
    let foreign =
        doors.http.get(at("/healthz")).header("host", "evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let foreign = doors
        .http
        .get(at("/healthz"))
        .header("origin", "https://evil.example")
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.status(), 403);
    doors.stop().await;
}
