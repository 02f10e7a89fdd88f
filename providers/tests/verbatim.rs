//! A body in the vendor's own form is sent once and unchanged, and its reply is passed on as it
//! comes.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod common;

use common::{APIS, Act, Server, providers, response};
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_providers::{
    Api, Error, Fields, Kind, Operation, PassiveReader, Vendor, Verbatim, VerbatimReply,
};

const CHAT: (Vendor, Api) = (Vendor::OPENAI, Api::ChatCompletions);
const MESSAGES: (Vendor, Api) = (Vendor::ANTHROPIC, Api::ChatCompletions);
const TAKEN: [((Vendor, Api), Operation); 5] = [
    (CHAT, Operation::ChatCompletions),
    (CHAT, Operation::Responses),
    (CHAT, Operation::Embeddings),
    (MESSAGES, Operation::Messages),
    (MESSAGES, Operation::CountTokens),
];
const BODY: &str = r#"{"unknown": 1.50,"model":"the client's","messages":[{"role":"user","content":"secretword"}]}"#;

async fn send(
    server: &Server,
    api: (Vendor, Api),
    operation: Operation,
    headers: &HeaderMap,
) -> Result<VerbatimReply, Error> {
    let (providers, body) =
        (providers(api, &server.base_url(api.0)), Fields::read(BODY.as_bytes()).unwrap());
    let provider = providers.get(&"mine:m".parse().unwrap()).unwrap();
    provider.send(&Verbatim { operation, model: "m-1", body: &body, headers }).await
}

#[tokio::test]
async fn the_body_is_as_it_was_but_for_the_models_name() {
    for (api, operation) in TAKEN {
        let answer = r#"{"usage":{"prompt_tokens":3,"completion_tokens":1}, "x":1}"#;
        let server =
            Server::start(Act::Send(response("200 OK", "request-id: r\r\n", answer))).await;
        let beta = HeaderMap::from_iter([
            (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("b-1")),
            (HeaderName::from_static("x-api-key"), HeaderValue::from_static("the-client's")),
        ]);
        let reply = send(&server, api, operation, &beta).await.unwrap();
        assert_eq!(
            (reply.status(), &reply.headers()["request-id"]),
            (200, &HeaderValue::from_static("r"))
        );
        let whole = reply.whole().await.unwrap();
        assert_eq!((whole.body["x"].as_u64(), whole.facts.usage.unwrap().output), (Some(1), 1));
        assert_eq!(server.counts(), (1, 1), "{operation}");
        let request = server.requests.lock().unwrap()[0].clone();
        for part in [
            &format!("POST {operation} HTTP/1.1"),
            "anthropic-beta: b-1",
            "content-type: application/json",
            common::KEY,
            r#"{"unknown":1.50,"model":"m-1","messages":[{"role":"user","content":"secretword"}]}"#,
        ] {
            assert!(request.contains(part), "{part} is not in {request}");
        }
    }
    // The path holds the name of Azure's deployment.
    let azure = (Vendor::AZURE, Api::ChatCompletions);
    for (operation, path) in
        [(Operation::ChatCompletions, "chat/completions"), (Operation::Embeddings, "embeddings")]
    {
        let server = Server::start(Act::Send(response("200 OK", "", "{}"))).await;
        send(&server, azure, operation, &HeaderMap::new()).await.unwrap();
        let request = server.requests.lock().unwrap()[0].clone();
        let line = format!("POST /openai/deployments/m-1/{path}?api-version=2024-10-21 HTTP/1.1");
        assert!(request.contains(&line) && request.contains("\"unknown\":1.50"), "{request}");
    }
    let server = Server::start(Act::Send(response("200 OK", "", "{}"))).await;
    send(&server, MESSAGES, Operation::Messages, &HeaderMap::new()).await.unwrap();
    let request = server.requests.lock().unwrap()[0].clone();
    assert!(request.contains("anthropic-version: 2023-06-01"), "{request}");
}

#[tokio::test]
async fn whatever_happens_it_is_one_request() {
    let retry = "retry-after: 7\r\nx-should-retry: true\r\n";
    let says = r#"{"error":{"code":"rate_limit_exceeded","message":"try again, secretword"}}"#;
    for (api, operation) in TAKEN {
        #[rustfmt::skip]
        let cases = [
            (Act::Send(response("429 Too Many Requests", retry, says)), Kind::RateLimited),
            (Act::Send(response("503 Service Unavailable", retry, "")), Kind::Overloaded),
            (Act::Send(response("404 Not Found", "", "{}")),            Kind::UnknownModel),
            (Act::Send(response("307 Temporary Redirect", "location: /else\r\n", "")), Kind::InvalidRequest),
            (Act::Send(response("200 OK", "", "no JSON")),              Kind::Transient),
            (Act::SendAndDrop(response("200 OK", "", "{\"a\":1}").replace('}', "")), Kind::Timeout),
            (Act::SendAndDrop(String::new()),                           Kind::Timeout),
            (Act::Hang,                                                 Kind::Timeout),
        ];
        for (act, kind) in cases {
            let server = Server::start(act.clone()).await;
            let error = match send(&server, api, operation, &HeaderMap::new()).await {
                Ok(reply) => reply.whole().await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error.kind, kind, "{operation} {act:?}: {error}");
            assert_eq!(error.timed_out, matches!(act, Act::Hang), "{operation} {act:?}: {error}");
            assert!(!error.message.contains("secretword"), "{error}");
            assert_eq!(server.counts(), (1, 1), "{operation} {act:?}");
        }
    }
}

#[tokio::test]
async fn an_unsupported_operation_is_refused_and_nothing_is_sent() {
    for api in APIS {
        let server = Server::start(Act::Hang).await;
        let providers = providers(api, &server.base_url(api.0));
        let provider = providers.get(&"mine:m".parse().unwrap()).unwrap();
        for operation in Operation::ALL.into_iter().filter(|it| !provider.takes(*it)) {
            let error = send(&server, api, operation, &HeaderMap::new()).await.unwrap_err();
            assert_eq!(error.kind, Kind::InvalidRequest, "{error}");
            assert!(error.message.contains(operation.path()), "{error}");
        }
        assert_eq!(server.counts(), (0, 0), "{api:?}");
    }
}

/// Events pass as bytes, and a listener learns their usage.
#[tokio::test]
async fn a_streams_usage_is_read_by_a_listener() {
    let events = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let server = Server::start(Act::SendAndDrop(format!("{head}{events}"))).await;
    let reply = send(&server, CHAT, Operation::ChatCompletions, &HeaderMap::new()).await.unwrap();
    let (reader, headers) = (PassiveReader::from(&reply), reply.headers().clone());
    let mut stream = tidegate_providers::passive::Stream::new(reader, 200, headers);
    let mut response = reqwest::Response::from(http::Response::new(reply.into_body()));
    while let Some(piece) = response.chunk().await.unwrap() {
        stream.hear(&piece);
    }
    assert!(stream.is_over());
    assert_eq!(stream.finish().unwrap().usage.unwrap().output, 1);
}
