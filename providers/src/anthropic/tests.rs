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
    testing::client(&testing::settings(Vendor::ANTHROPIC), super::client)
}

fn error(class: &str, message: &str, code: Option<&str>) -> String {
    let mut error = json!({"type":class,"message":message});
    if let Some(code) = code {
        error["details"] = json!({"error_code":code});
    }
    json!({"type":"error","error":error,"request_id":"req_1"}).to_string()
}

/// Status, headers, type, message, code; kind, wait in seconds.
type Case = (
    u16,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
    Option<&'static str>,
    Kind,
    Option<u64>,
);

#[test]
fn errors() {
    let bad = "invalid_request_error";
    let after_7: &[(&str, &str)] = &[("retry-after", "7"), ("x-should-retry", "true")];
    #[rustfmt::skip]
    let cases: &[Case] = &[
        (400, &[], bad, "max_tokens: required",                                         None, Kind::InvalidRequest, None),
        (400, &[], bad, "You have reached your specified API usage limits. You will regain access on 2020-01-01 at 00:00 UTC.",
                                                                                        None, Kind::QuotaExhausted, None),
        (400, &[], bad, "You have reached your specified workspace API usage limits.",  None, Kind::QuotaExhausted, None),
        (400, &[], bad, "prompt is too long: 210000 tokens > 200000 maximum",           None, Kind::TooLarge, None),
        (400, &[], bad, "input length and `max_tokens` exceed context limit: 1 + 2 > 2", None, Kind::TooLarge, None),
        (400, &[], bad, "Your credit balance is too low to access the API.",            None, Kind::QuotaExhausted, None),
        (400, &[], bad, "Body came too slowly", Some("request_body_timeout"),                 Kind::Transient, None),
        (400, &[], bad, "On hold", Some("organization_on_hold"),                              Kind::Unauthorized, None),
        (401, &[], "authentication_error", "invalid x-api-key",                         None, Kind::Unauthorized, None),
        (403, &[], "permission_error", "no", Some("user_profile_missing"),                    Kind::Unauthorized, None),
        (404, &[], "not_found_error", "model: claude-0",                                None, Kind::UnknownModel, None),
        (402, &[], "billing_error", "pay", Some("linked_organization_past_due"),              Kind::QuotaExhausted, None),
        (408, &[], "", "",                                                              None, Kind::Transient, None),
        (409, &[], "conflict_error", "again", Some("concurrent_membership_change"),           Kind::Transient, None),
        (413, &[], "request_too_large", "big",                                          None, Kind::TooLarge, None),
        (413, &[], bad, "big", Some("request_body_too_large_after_decoding"),                 Kind::TooLarge, None),
        (429, after_7, "rate_limit_error", "Slow down",                                 None, Kind::RateLimited, Some(7)),
        (429, &[], "rate_limit_error", "Slow down",                                     None, Kind::RateLimited, None),
        (429, after_7, "rate_limit_error", "Ramp", Some("ramp_limit_exceeded"),               Kind::RateLimited, Some(7)),
        (429, &[], "rate_limit_error", "Cap", Some("enforced_spend_limit_reached"),           Kind::QuotaExhausted, None),
        (429, &[], "rate_limit_error", "Cap", Some("contract_spend_limit_reached"),           Kind::QuotaExhausted, None),
        (429, &[("x-should-retry", "false")], "rate_limit_error", "Cap",                None, Kind::QuotaExhausted, None),
        (429, &[("x-should-retry", "false")], "rate_limit_error", "Ramp", Some("ramp_limit_exceeded"), Kind::RateLimited, None),
        (529, &[("x-should-retry", "false")], "overloaded_error", "Not now",            None, Kind::Overloaded, None),
        (500, &[], "api_error", "Internal",                                             None, Kind::Transient, None),
        (500, &[], "overloaded_error", "through a gateway",                             None, Kind::Overloaded, None),
        (502, &[], bad, "through a gateway",                                            None, Kind::InvalidRequest, None),
        (503, &[], "api_error", "Key service", Some("cmek_key_unreachable"),                  Kind::Transient, None),
        (503, &[], "api_error", "Away",                                                 None, Kind::Overloaded, None),
        (504, &[], "timeout_error", "Too slow",                                         None, Kind::Timeout, None),
        (529, &[], "overloaded_error", "Overloaded",                                    None, Kind::Overloaded, None),
        (529, &[("retry-after", "3")], "overloaded_error", "x", Some("compaction_unavailable"), Kind::Overloaded, Some(3)),
        (418, &[], "", "",                                                              None, Kind::InvalidRequest, None),
        (418, &[("x-should-retry", "true")], "", "",                                    None, Kind::Transient, None),
        (599, &[], "", "",                                                              None, Kind::Transient, None),
    ];
    for (status, headers, class, message, code, kind, seconds) in cases {
        let reply = testing::reply(*status, headers, error(class, message, *code));
        let error = client().read(&REQUEST, &reply).unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (*kind, seconds.map(Duration::from_secs)),
            "{status} {class} {message} {code:?}"
        );
        assert_eq!(error.status, Some(*status));
    }
}

#[test]
fn bodies_that_are_not_the_vendors() {
    let inner = error("rate_limit_error", "Cap", Some("enforced_spend_limit_reached"));
    #[rustfmt::skip]
    let cases = [
        (413, "<html>413 Request Entity Too Large</html>".to_owned(), Kind::TooLarge),
        (502, "<html>Bad gateway</html>".to_owned(),                  Kind::Transient),
        (524, "error code: 524".to_owned(),                           Kind::Timeout),
        (429, String::new(),                                          Kind::RateLimited),
        (307, String::new(),                                          Kind::InvalidRequest),
        (500, json!({"error":{"message":format!("upstream: {inner}"),"code":"500"}}).to_string(), Kind::QuotaExhausted),
        (429, json!({"error":{"type":"insufficient_quota","code":"insufficient_quota"}}).to_string(), Kind::QuotaExhausted),
    ];
    for (status, body, kind) in cases {
        let error =
            client().read(&REQUEST, &testing::reply(status, &[], body.clone())).unwrap_err();
        assert_eq!(error.kind, kind, "{status} {body}");
    }
}

#[test]
fn a_429_without_code_wait_or_hope_is_exhausted() {
    let nameless = testing::reply(429, &[("x-should-retry", "false")], "");
    assert_eq!(client().read(&REQUEST, &nameless).unwrap_err().kind, Kind::QuotaExhausted);
    let hopeful = testing::reply(429, &[("x-should-retry", "false"), ("retry-after", "9")], "");
    assert_eq!(client().read(&REQUEST, &hopeful).unwrap_err().kind, Kind::RateLimited);
}

#[test]
fn charges_of_failed_calls() {
    for (status, charged) in [
        (429, Charged::No),
        (529, Charged::No),
        (400, Charged::No),
        (409, Charged::No),
        (500, Charged::Unknown),
        (504, Charged::Unknown),
    ] {
        assert_eq!(
            client().read(&REQUEST, &testing::reply(status, &[], "")).unwrap_err().charged,
            charged,
            "{status}"
        );
    }
}

fn success(stop_reason: &str, text: &str) -> Value {
    json!({"id":"msg_1","type":"message","role":"assistant","model":"claude-answered","stop_reason":stop_reason,"stop_sequence":null,
        "content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":text},{"type":"text","text":"!"}],
        "usage":{"input_tokens":10,"output_tokens":5}})
}

const USAGE: Usage = Usage { uncached_input: 10, cache_read: 0, cache_write: 0, output: 5 };

#[test]
fn answers() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
    ];
    for (word, stop_reason) in cases {
        let completion =
            client().read(&REQUEST, &testing::json(200, &success(word, "Yes"))).unwrap();
        assert_eq!((completion.answer.as_str(), completion.stop_reason.as_str()), ("Yes!", word));
        assert_eq!((completion.stop_reason, completion.usage), (stop_reason, Some(USAGE)));
    }
    let bare = client().read(&REQUEST, &testing::json(200, &json!({"content":[]}))).unwrap();
    assert_eq!(
        (bare.answer.as_str(), bare.usage, bare.stop_reason.as_str()),
        ("", None, "unknown")
    );
}

#[test]
fn every_way_in_which_an_answer_ends() {
    finish::check_table(crate::endings::ANTHROPIC, |word| {
        client().read(&REQUEST, &testing::json(200, &success(word, "Yes")))
    });
}

#[test]
fn successes_that_are_none() {
    let mut early = success("refusal", "");
    early["content"] = json!([]);
    early["stop_details"] = json!({"type":"refusal","category":"bio","explanation":"secret words"});
    let overloaded =
        json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
    let cases = [
        (success("refusal", "No"), Kind::ContentRefused, Charged::Usage(USAGE)),
        (early, Kind::ContentRefused, Charged::No),
        (success("model_context_window_exceeded", "Ye"), Kind::TooLarge, Charged::Usage(USAGE)),
        (overloaded, Kind::Overloaded, Charged::No),
        (json!({"choices":[]}), Kind::Transient, Charged::Unknown),
        (json!([1]), Kind::Transient, Charged::Unknown),
        (json!({"content":"text"}), Kind::Transient, Charged::Unknown),
    ];
    for (body, kind, charged) in cases {
        let error = client().read(&REQUEST, &testing::json(200, &body)).unwrap_err();
        assert_eq!((error.kind, error.charged), (kind, charged), "{body}");
        assert!(!error.message.contains("secret words"), "{error}");
    }
    for (cut, kind) in [
        (Cut::Broken("reset".to_owned()), Kind::Timeout),
        (Cut::TooLong, Kind::InvalidOutput),
        (Cut::NoRoom, Kind::InvalidOutput),
    ] {
        let reply = Reply { cut: Some(cut), ..testing::json(200, &success("end_turn", "Yes")) };
        let error = client().read(&REQUEST, &reply).unwrap_err();
        assert_eq!((error.kind, error.charged), (kind, Charged::Unknown));
    }
    let reply = testing::reply(200, &[], "[".repeat(600_000));
    let error = client().read(&REQUEST, &reply).unwrap_err();
    assert_eq!((error.kind, error.charged), (Kind::InvalidOutput, Charged::Unknown), "{error}");
}

#[test]
fn a_message_names_call_status_and_reason() {
    let reply = testing::reply(
        429,
        &[("request-id", "req_9")],
        error("rate_limit_error", "Slow\ndown", None),
    );
    assert_eq!(
        client().read(&REQUEST, &reply).unwrap_err().to_string(),
        "anthropic (call req_9): status 429 rate_limit_error: Slow down"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(status in 100_u16..1000, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = client().read(&REQUEST, &testing::reply(status, &[], body));
    }

    #[test]
    fn no_broken_answer_makes_it_panic(cut in 0_usize..400, at in 0_usize..400, byte: u8) {
        let mut body = success("end_turn", "é").to_string().into_bytes();
        let length = body.len();
        body[at % length] = byte;
        body.truncate(length - cut % length);
        let _ = client().read(&REQUEST, &testing::reply(200, &[], body));
    }
}
