//! The meaning of replies, from the vendor's documents (see `mod.rs`); bodies are as short as
//! possible.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_types::Usage;

use super::*;
use crate::{
    call::StopReason,
    error::{Charged, Kind},
    exchange::{Cut, Reply},
    finish,
    testing::{self, REQUEST},
    vendor::Vendor,
};

fn client() -> Client {
    testing::client(&testing::settings(Vendor::GEMINI), super::client)
}

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error":{"code":code,"message":message,"status":status,"details":details}})
}

fn quota(id: &str, value: &str) -> Value {
    json!([
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":id,"quotaValue":value}]},
        {"@type":"type.googleapis.com/google.rpc.Help","links":[]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"},
    ])
}

#[test]
fn errors() {
    let minute = quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "250000");
    let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "200");
    let none = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "0");
    let reason = json!([{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]);
    let key =
        json!([{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]);
    let exhausted = "RESOURCE_EXHAUSTED";
    #[rustfmt::skip]
    let cases = [
        (400, error(400, "INVALID_ARGUMENT", "Unknown name", json!([])),                Kind::InvalidRequest, None),
        (400, error(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", json!([])),
                                                                                        Kind::TooLarge, None),
        (400, error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", key), Kind::Unauthorized, None),
        (400, error(400, "FAILED_PRECONDITION", "User location is not supported", json!([])), Kind::Unauthorized, None),
        (401, error(401, "UNAUTHENTICATED", "no", json!([])),                           Kind::Unauthorized, None),
        (402, error(402, exhausted, "Prepaid credit is used up", json!([])),            Kind::QuotaExhausted, None),
        (403, error(403, "PERMISSION_DENIED", "no", json!([])),                         Kind::Unauthorized, None),
        (404, error(404, "NOT_FOUND", "no such model", json!([])),                      Kind::UnknownModel, None),
        (429, error(429, exhausted, "x", minute.clone()),                               Kind::RateLimited, Some(26_000)),
        (429, json!([error(429, exhausted, "x", minute.clone())]),                      Kind::RateLimited, Some(26_000)),
        (429, error(429, exhausted, "x", reason),                                       Kind::RateLimited, None),
        (429, error(429, exhausted, "Please retry in 45.578569677s.", json!([])),       Kind::RateLimited, Some(45_578)),
        (429, error(429, exhausted, "Resource has been exhausted (e.g. check quota).", json!([])), Kind::RateLimited, None),
        (429, json!({"error":{"code":429,"message":"x","errors":[{"message":"x","domain":"d","reason":"rateLimitExceeded"}]}}),
                                                                                        Kind::RateLimited, None),
        (499, error(499, "CANCELLED", "x", json!([])),                                  Kind::Transient, None),
        (500, error(500, "INTERNAL", "x", json!([])),                                   Kind::Transient, None),
        (503, error(503, "UNAVAILABLE", "The model is overloaded.", json!([])),         Kind::Overloaded, None),
        (504, error(504, "DEADLINE_EXCEEDED", "x", json!([])),                          Kind::Timeout, None),
    ];
    for (status, body, kind, wait) in cases {
        let error = client().read(&REQUEST, &testing::json(status, &body)).unwrap_err();
        let whole = error.retry_after.map(|wait| Duration::from_millis(wait.as_millis() as u64));
        assert_eq!((error.kind, whole), (kind, wait.map(Duration::from_millis)), "{body}");
    }
    // A used-up day says "retry in 26 s" but returns at midnight Pacific time; a limit of 0 never
    // returns, and money when it is paid.
    let mut both = minute.clone();
    let violations = both[0]["violations"].as_array_mut().unwrap();
    violations.push(day[0]["violations"][0].clone());
    for (message, details, wait) in [
        ("x", both, Some(3_600)),
        ("x", day, Some(3_600)),
        ("x", none, None),
        ("Your prepayment credits are depleted. Please retry in 26s.", json!([]), None),
        ("Your project has exceeded its monthly spending cap.", json!([]), None),
    ] {
        let reply = testing::reply(
            429,
            &[("date", "Fri, 20 Nov 2026 07:00:00 GMT")],
            error(429, exhausted, message, details).to_string(),
        );
        let error = client().read(&REQUEST, &reply).unwrap_err();
        let wait = wait.map(Duration::from_secs);
        assert_eq!((error.kind, error.retry_after), (Kind::QuotaExhausted, wait), "{message}");
    }
}

#[test]
fn a_proxys_error_keeps_its_meaning() {
    let inner = error(
        429,
        "RESOURCE_EXHAUSTED",
        "x",
        quota("GenerateRequestsPerDayPerProjectPerModel", "200"),
    );
    let body = json!({"error":{"message":format!("litellm.RateLimitError: geminiException - {inner}"),"type":"throttling_error","code":"429"}});
    assert_eq!(
        client().read(&REQUEST, &testing::json(429, &body)).unwrap_err().kind,
        Kind::QuotaExhausted
    );
}

fn success(finish_reason: &str, parts: Value) -> Value {
    json!({"candidates":[{"content":{"role":"model","parts":parts},"finishReason":finish_reason,"index":0}],
        "usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":15},"modelVersion":"gemini-answered"})
}

const USAGE: Usage = Usage { uncached_input: 10, cache_read: 0, cache_write: 0, output: 5 };

#[test]
fn answers() {
    let cases = [
        (
            "STOP",
            json!([{"text":"Y"},{"text":"hidden","thought":true},{"text":"es!"}]),
            "Yes!",
            StopReason::EndTurn,
        ),
        ("MAX_TOKENS", json!([]), "", StopReason::MaxTokens),
    ];
    for (word, parts, answer, stop_reason) in cases {
        let completion =
            client().read(&REQUEST, &testing::json(200, &success(word, parts))).unwrap();
        assert_eq!((completion.answer.as_str(), &completion.stop_reason), (answer, &stop_reason));
        assert_eq!(completion.usage, Some(USAGE));
    }
    let bare = client()
        .read(&REQUEST, &testing::json(200, &json!({"candidates":[{"finishReason":"MAX_TOKENS"}]})))
        .unwrap();
    assert_eq!((bare.answer.as_str(), bare.usage), ("", None));
}

#[test]
fn every_way_in_which_an_answer_ends() {
    finish::check_table(crate::endings::GEMINI, |word| {
        let body = success(word, json!([{"text":"Yes"}]));
        client().read(&REQUEST, &testing::json(200, &body))
    });
}

#[test]
fn successes_that_are_none() {
    let text = json!([{"text":"Ye"}]);
    let blocked = json!({"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":10}});
    let input = Usage { uncached_input: 10, ..Usage::default() };
    #[rustfmt::skip]
    let cases = [
        (success("SAFETY", text.clone()),              Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("RECITATION", text.clone()),          Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("SPII", text.clone()),                Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("IMAGE_SAFETY", text.clone()),        Kind::ContentRefused, Charged::Usage(USAGE)),
        (blocked,                                      Kind::ContentRefused, Charged::Usage(input)),
        (success("MALFORMED_RESPONSE", text),          Kind::Transient,      Charged::Usage(USAGE)),
        (error(429, "RESOURCE_EXHAUSTED", "x", json!([])), Kind::RateLimited, Charged::No),
        (json!({"candidates":[]}),                     Kind::Transient,      Charged::Unknown),
        (json!("text"),                                Kind::Transient,      Charged::Unknown),
    ];
    for (body, kind, charged) in cases {
        let error = client().read(&REQUEST, &testing::json(200, &body)).unwrap_err();
        assert_eq!((error.kind, error.charged), (kind, charged), "{body}");
    }
    let cut = Reply {
        cut: Some(Cut::Broken("reset".to_owned())),
        ..testing::json(200, &success("STOP", json!([])))
    };
    assert_eq!(client().read(&REQUEST, &cut).unwrap_err().kind, Kind::Timeout);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(status in 100_u16..1000, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = client().read(&REQUEST, &testing::reply(status, &[], body));
    }

    #[test]
    fn no_broken_answer_makes_it_panic(cut in 0_usize..400, at in 0_usize..400, byte: u8) {
        let mut body = success("STOP", json!([{"text":"é"}])).to_string().into_bytes();
        let length = body.len();
        body[at % length] = byte;
        body.truncate(length - cut % length);
        let _ = client().read(&REQUEST, &testing::reply(200, &[], body));
    }
}
