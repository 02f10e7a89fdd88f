//! The meaning of replies, from the vendor's service model (see `mod.rs`). The SDK is between the
//! network and the client, so each case is a whole exchange with a server that counts its requests.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tidegate_types::{Effort, Usage};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Mutex,
};

use super::client::Client;
use crate::{
    call::{Completion, Document, Request},
    error::{Charged, Error, Kind},
    finish,
    parameters::Parameters,
    provider::Provider,
    settings::Settings,
    testing::{self, REQUEST},
    vendor::Vendor,
};

/// Answers each request with these bytes; returns the requests.
async fn serve(response: String) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
            loop {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let length = text
                    .to_lowercase()
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
                if let (Some(head), Some(length)) = (text.find("\r\n\r\n"), length)
                    && bytes.len() >= head + 4 + length
                {
                    requests.lock().await.push(text);
                    break;
                }
                match stream.read(&mut buffer).await {
                    Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    let settings =
        Settings { base_url: url.parse().unwrap(), ..testing::settings(Vendor::BEDROCK) }
            .request_timeout(Duration::from_secs(5));
    (testing::client(&settings, Client::new), seen)
}

fn response(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

async fn call(status: u16, headers: &str, body: &Value) -> Result<Completion, Error> {
    let (client, seen) = serve(response(status, headers, &body.to_string())).await;
    let result = client.complete(&REQUEST).await;
    assert_eq!(seen.lock().await.len(), 1, "one call is one request");
    result
}

#[tokio::test]
async fn errors() {
    #[rustfmt::skip]
    let cases = [
        (429, "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/", "Too many tokens, please wait before trying again.", Kind::RateLimited),
        (429, "ThrottlingException", "Too many requests, please wait before trying again.", Kind::RateLimited),
        (429, "ThrottlingException", "Too many tokens per day, please wait before trying again.", Kind::QuotaExhausted),
        (429, "ModelNotReadyException", "warming up",                              Kind::Transient),
        (503, "ServiceUnavailableException", "Too many connections",               Kind::Overloaded),
        (500, "InternalServerException", "x",                                      Kind::Transient),
        (408, "ModelTimeoutException", "x",                                        Kind::Timeout),
        (424, "ModelErrorException", "x",                                          Kind::Transient),
        (400, "ServiceQuotaExceededException", "x",                                Kind::QuotaExhausted),
        (400, "ValidationException", "Input is too long for requested model.",     Kind::TooLarge),
        (400, "ValidationException", "x",                                          Kind::InvalidRequest),
        (403, "AccessDeniedException", "x",                                        Kind::Unauthorized),
        (403, "UnrecognizedClientException", "x",                                  Kind::Unauthorized),
        (403, "ExpiredTokenException", "x",                                        Kind::Unauthorized),
        (404, "ResourceNotFoundException", "x",                                    Kind::UnknownModel),
    ];
    for (status, class, message, kind) in cases {
        let error =
            call(status, &format!("x-amzn-ErrorType: {class}\r\n"), &json!({"message":message}))
                .await
                .unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{class} {message}: {error}");
        assert_eq!(
            error.message,
            format!("bedrock: status {status} {}: {message}", class.split(':').next().unwrap())
        );
        // This error as gateways pass it on.
        let error =
            call(status, "", &json!({"__type":format!("com.amazon.coral#{}", class.split(':').next().unwrap()),"message":message}))
                .await;
        assert_eq!(error.unwrap_err().kind, kind, "{class} {message}");
    }
    for (original, kind) in
        [(429, Kind::RateLimited), (400, Kind::InvalidRequest), (500, Kind::Transient)]
    {
        let body = json!({"message":"x","originalStatusCode":original});
        assert_eq!(
            call(424, "x-amzn-ErrorType: ModelErrorException\r\n", &body).await.unwrap_err().kind,
            kind
        );
    }
}

fn success(stop: &str) -> Value {
    json!({"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hidden"}}},{"text":"Yes!"}]}},
        "stopReason":stop,"metrics":{"latencyMs":1},
        "usage":{"inputTokens":10,"outputTokens":5,"totalTokens":22,"cacheReadInputTokens":4,"cacheWriteInputTokens":3}})
}

const USAGE: Usage = Usage { uncached_input: 10, cache_read: 4, cache_write: 3, output: 5 };

#[tokio::test]
async fn answers_and_successes_that_are_none() {
    let mut came = HashMap::new();
    for word in crate::endings::BEDROCK.iter().map(|row| row.0).chain(["tide_out"]) {
        let answer = call(200, "", &success(word)).await;
        match &answer {
            Ok(answer) => {
                assert_eq!((answer.answer.as_str(), answer.usage), ("Yes!", Some(USAGE)), "{word}");
            }
            Err(error) => assert_eq!(error.charged, Charged::Usage(USAGE), "{word}"),
        }
        came.insert(word, answer);
    }
    finish::check_table(crate::endings::BEDROCK, |word| came[word].clone());
    let error = call(200, "", &json!("text")).await.unwrap_err();
    assert_eq!((error.kind, error.charged), (Kind::Transient, Charged::Unknown), "{error}");
}

#[tokio::test]
async fn the_whole_request() {
    let (client, seen) = serve(response(200, "", &success("end_turn").to_string())).await;
    let schema = json!({"type":"object","properties":{},"additionalProperties":false});
    let model = "anthropic.claude-sonnet-5-v1:0";
    client
        .complete(&Request { model, schema: Some(&schema), cache_instructions: true, ..REQUEST })
        .await
        .unwrap();
    client
        .complete(&Request { document: Document::Pdf(b"%PDF-"), instructions: "", ..REQUEST })
        .await
        .unwrap();
    let seen = seen.lock().await;
    let body = |request: &str| {
        serde_json::from_str::<Value>(request.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    assert!(
        seen[0].starts_with("POST /model/anthropic.claude-sonnet-5-v1%3A0/converse HTTP/1.1"),
        "{}",
        seen[0]
    );
    assert!(seen[0].contains("authorization: Bearer K3Y-K3Y-K3Y"), "{}", seen[0]);
    let user = json!([{"role":"user","content":[{"text":"<document>\nText\n</document>"}]}]);
    let format = json!({"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"additionalProperties\":false,\"properties\":{},\"required\":[],\"type\":\"object\"}","name":"answer"}}}});
    let system = json!([{"text":"Sum up."},{"cachePoint":{"type":"default"}}]);
    assert_eq!(
        body(&seen[0]),
        json!({"messages":user,"system":system,"inferenceConfig":{"maxTokens":100},"outputConfig":format})
    );
    let file = json!({"document":{"format":"pdf","name":"document","source":{"bytes":"JVBERi0="}}});
    assert_eq!(
        body(&seen[1])["messages"][0]["content"],
        json!([file, {"text":"The document is attached."}])
    );
    assert!(body(&seen[1]).get("system").is_none());
}

#[tokio::test]
async fn parameters_have_their_places() {
    let (client, seen) = serve(response(200, "", &success("end_turn").to_string())).await;
    let ask = async |model: &'static str, given: Value, effort| {
        let dialect = testing::dialect(Vendor::BEDROCK);
        let given = given.as_object().unwrap().clone();
        let fields = dialect.check(model, effort, &given, None).unwrap();
        let parameters = Parameters { effort, fields: Some(&fields) };
        client.complete(&Request { model, parameters, ..REQUEST }).await.unwrap();
    };
    let nova = json!({"temperature":0.5,"stop":"END","service_tier":"flex","latency":"optimized",
        "allow_unknown":true,"inferenceMode":{"a":[1,-2,0.5,null,true]}});
    ask("amazon.nova-2-lite-v1:0", nova, Some(Effort::Low)).await;
    ask("anthropic.claude-sonnet-5-5-v1:0", json!({}), Some(Effort::High)).await;
    let seen = seen.lock().await;
    let body = |request: &str| {
        serde_json::from_str::<Value>(request.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let nova = body(&seen[0]);
    assert_eq!(
        nova["inferenceConfig"],
        json!({"maxTokens":100,"temperature":0.5,"stopSequences":["END"]})
    );
    assert_eq!(
        (&nova["serviceTier"], &nova["performanceConfig"]),
        (&json!({"type":"flex"}), &json!({"latency":"optimized"}))
    );
    assert_eq!(
        nova["additionalModelRequestFields"],
        json!({"inferenceMode":{"a":[1,-2,0.5,null,true]},
            "reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}})
    );
    let claude = body(&seen[1]);
    assert_eq!(claude["outputConfig"], json!({"effort":"high"}));
    assert_eq!(claude["additionalModelRequestFields"], json!({"thinking":{"type":"adaptive"}}));
}

#[test]
fn the_region_is_in_the_hosts_name_or_in_the_settings() {
    let region = |url: &str, region: Option<&str>| {
        let settings = Settings {
            region: region.map(str::to_owned),
            ..Settings::new(Vendor::BEDROCK, url.parse().unwrap())
        };
        testing::client(&settings, Client::new).region.to_string()
    };
    assert_eq!(region("http://bedrock-runtime.eu-central-1.amazonaws.com", None), "eu-central-1");
    assert_eq!(region("http://vpce-1.example", Some("ap-south-1")), "ap-south-1");
    assert_eq!(region("http://localhost:1", None), "us-east-1");
}
