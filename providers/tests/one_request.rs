//! Whatever a server does, one call makes one connection and one HTTP request.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::{APIS, Act, Server, answer, call, providers, response};
use tidegate_providers::{Api, Charged, Kind, Vendor};

const CHAT: (Vendor, Api) = (Vendor::OPENAI, Api::ChatCompletions);

#[tokio::test]
async fn each_fault_is_one_request() {
    for api in APIS {
        let cut = answer(api).replace("Yes\"", "");
        let retry = "retry-after: 1\r\nretry-after-ms: 1\r\nx-should-retry: true\r\n";
        let redirect = "location: /elsewhere\r\n";
        #[rustfmt::skip]
        let cases = [
            (Act::Send(response("429 Too Many Requests", retry, "{}")),   Kind::RateLimited,    Charged::No,      Some(429)),
            (Act::Send(response("503 Service Unavailable", retry, "{}")), Kind::Overloaded,     Charged::No,      Some(503)),
            (Act::Send(response("500 Internal Server Error", retry, "")), Kind::Transient,      Charged::Unknown, Some(500)),
            (Act::Send(response("408 Request Timeout", retry, "")),       Kind::Transient,      Charged::Unknown, Some(408)),
            (Act::Send(response("307 Temporary Redirect", redirect, "")), Kind::InvalidRequest, Charged::No,      Some(307)),
            (Act::SendAndDrop(String::new()),                             Kind::Timeout,        Charged::Unknown, None),
            (Act::SendAndDrop("HTTP/1.1 200 OK\r\ncontent-".to_owned()),  Kind::Timeout,        Charged::Unknown, None),
            (Act::SendAndDrop(cut),                                       Kind::Timeout,        Charged::Unknown, Some(200)),
            (Act::SendAndDrop("no HTTP at all\r\n\r\n".to_owned()),       Kind::Timeout,        Charged::Unknown, None),
            (Act::Hang,                                                   Kind::Timeout,        Charged::Unknown, None),
        ];
        for (act, kind, charged, status) in cases {
            let server = Server::start(act.clone()).await;
            let error = server.call(api).await.unwrap_err();
            assert_eq!(
                (error.kind, error.charged, error.status),
                (kind, charged, status),
                "{api:?} {act:?}: {error}"
            );
            assert_eq!(server.counts(), (1, 1), "{api:?} {act:?}");
        }
    }
}

/// The server answers, offers to keep the connection, and drops it: with a pool, the second call
/// would find a dead connection and be sent twice.
#[tokio::test]
async fn a_dead_connection_is_never_used_again() {
    for api in APIS {
        for act in [Act::SendAndDrop(answer(api)), Act::Send(answer(api))] {
            let server = Server::start(act).await;
            let providers = providers(api, &server.base_url(api.0));
            for calls in 1..=5 {
                let completion = call(&providers).await.unwrap();
                assert_eq!(completion.answer, "Yes");
                assert_eq!(server.counts(), (calls, calls), "{api:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_never_reached_the_provider_is_not_charged() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = call(&providers(APIS[0], &url)).await.unwrap_err();
    assert_eq!(
        (error.kind, error.charged, error.status),
        (Kind::Unreachable, Charged::No, None),
        "{error}"
    );
    assert!(
        error.message.contains("no connection to 127.0.0.1") && error.message.contains("refused"),
        "{error}"
    );
}

#[tokio::test]
async fn the_time_out_holds_for_the_whole_call() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned();
    let server = Server::start(Act::Send(begun)).await;
    let start = Instant::now();
    let error = server.call(CHAT).await.unwrap_err();
    assert_eq!(
        (error.kind, error.charged, error.status),
        (Kind::Timeout, Charged::Unknown, Some(200))
    );
    assert!(
        error.message.contains("time ran out") && start.elapsed() < Duration::from_secs(5),
        "{error}"
    );
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let length = 33 << 20;
    let body = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", " ".repeat(length));
    let server = Server::start(Act::SendAndDrop(body)).await;
    let settings = common::settings(CHAT, &server.base_url(Vendor::OPENAI))
        .request_timeout(Duration::from_secs(30));
    let providers = tidegate_providers::Providers::new([("mine".to_owned(), settings)]).unwrap();
    let error = call(&providers).await.unwrap_err();
    assert!(
        error.kind == Kind::InvalidOutput && error.message.contains("longer than any answer"),
        "{error}"
    );
}

#[tokio::test]
async fn the_requests_that_are_sent() {
    let bearer = "authorization: Bearer ";
    let anthropic = [
        "POST /v1/messages HTTP/1.1",
        "x-api-key: ",
        "anthropic-version: 2023-06-01",
        "\"max_tokens\":100",
    ];
    let chat = [
        "POST /v1/chat/completions HTTP/1.1",
        bearer,
        "user-agent: tidegate/",
        "\"max_tokens\":100",
    ];
    let responses =
        ["POST /v1/responses HTTP/1.1", bearer, "\"store\":false", "\"max_output_tokens\":100"];
    let gemini = [
        "POST /v1beta/models/m:generateContent HTTP/1.1",
        "x-goog-api-key: ",
        "user-agent: tidegate/",
        "\"maxOutputTokens\":100",
    ];
    let bedrock = ["POST /model/m/converse HTTP/1.1", bearer, "user-agent: ", "\"maxTokens\":100"];
    for (api, expected) in APIS.into_iter().zip([anthropic, chat, responses, gemini, bedrock]) {
        let server = Server::start(Act::Send(answer(api))).await;
        server.call(api).await.unwrap();
        let request = server.requests.lock().unwrap()[0].clone();
        for part in expected.into_iter().chain([
            common::KEY,
            "content-type: application/json",
            "<document>\\nText\\n</document>",
        ]) {
            assert!(request.contains(part), "{part} is not in {request}");
        }
        for part in ["temperature", "top_p", "top_k", "stream"] {
            assert!(!request.contains(part), "{part} is in {request}");
        }
    }
}
