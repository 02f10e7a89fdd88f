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
    testing::client(&testing::settings(Vendor::OPENAI), super::client)
}

fn error(class: &str, code: Option<&str>, message: &str) -> String {
    json!({"error":{"message":message,"type":class,"param":null,"code":code}}).to_string()
}

/// Status, headers, type, code, message; kind, wait in milliseconds.
type Case = (
    u16,
    &'static [(&'static str, &'static str)],
    &'static str,
    Option<&'static str>,
    &'static str,
    Kind,
    Option<u64>,
);

#[test]
fn errors() {
    let bad = "invalid_request_error";
    let limit = Some("rate_limit_exceeded");
    let full: &[(&str, &str)] = &[("x-ratelimit-reset-tokens", "6m0s")];
    #[rustfmt::skip]
    let cases: &[Case] = &[
        (400, &[], bad, Some("context_length_exceeded"), "long",                     Kind::TooLarge, None),
        (400, &[], bad, None, "This model's maximum context length is 8192 tokens.", Kind::TooLarge, None),
        (400, &[], bad, Some("decimal_above_max_value"), "no",                       Kind::InvalidRequest, None),
        (400, &[], bad, Some("content_policy_violation"), "no",                      Kind::ContentRefused, None),
        (400, &[], bad, Some("invalid_prompt"), "no",                                Kind::ContentRefused, None),
        (401, &[], bad, Some("invalid_api_key"), "Incorrect API key",                Kind::Unauthorized, None),
        (401, &[], bad, None, "You must be a member of an organization",             Kind::Unauthorized, None),
        (403, &[], "request_forbidden", None, "Country not supported",               Kind::Unauthorized, None),
        (403, &[], bad, None, "You are not allowed to generate embeddings from this model", Kind::InvalidRequest, None),
        (404, &[], bad, Some("model_not_found"), "no such model",                    Kind::UnknownModel, None),
        (408, &[], "", None, "",                                                     Kind::Transient, None),
        (409, &[], "conflict", Some("conversation_locked"), "locked",                Kind::Transient, None),
        (413, &[], "", None, "",                                                     Kind::TooLarge, None),
        (422, &[], "", None, "",                                                     Kind::InvalidRequest, None),
        (429, &[("retry-after", "2")], "requests", limit, "Rate limit reached",      Kind::RateLimited, Some(2_000)),
        (429, &[("retry-after-ms", "250"), ("retry-after", "1")], "tokens", limit, "x", Kind::RateLimited, Some(250)),
        (429, &[], "tokens", limit, "Rate limit reached: Limit 30000, Used 29000, Requested 2000. Please try again in 41.724s.",
                                                                                     Kind::RateLimited, Some(41_724)),
        (429, full, "tokens", limit, "Rate limit reached",                           Kind::RateLimited, None),
        (429, &[], "tokens", limit, "Request too large for gpt on tokens per min (TPM): Limit 30000, Requested 41234.",
                                                                                     Kind::TooLarge, None),
        (429, &[], "tokens", limit, "Request too large for gpt: Limit: 30,000, Requested: 41,234.", Kind::TooLarge, None),
        (429, &[], "tokens", limit, "Request too large for gpt: Limit 30000, Requested 2000.", Kind::RateLimited, None),
        (429, &[], "tokens", None, "Request too large for gpt.",                     Kind::TooLarge, None),
        (429, &[("retry-after", "60")], "requests", limit, "Rate limit reached on requests per day (RPD): Limit 200, Used 200, Requested 1.",
                                                                                     Kind::QuotaExhausted, Some(60_000)),
        (429, &[("retry-after", "30")], "rate_limit_error", Some("slow_down"), "x",  Kind::RateLimited, Some(30_000)),
        (429, &[], "insufficient_quota", Some("insufficient_quota"), "You exceeded your current quota", Kind::QuotaExhausted, None),
        (429, &[], "insufficient_quota", Some("credit_balance_exhausted"), "x",      Kind::QuotaExhausted, None),
        (429, &[], "insufficient_quota", Some("organization_spend_limit_exceeded"), "x", Kind::QuotaExhausted, None),
        (429, &[], "insufficient_quota", Some("project_spend_limit_exceeded"), "x",  Kind::QuotaExhausted, None),
        (429, &[], "insufficient_quota", Some("organization_usage_limit_exceeded"), "x", Kind::QuotaExhausted, None),
        (429, &[], "tokens", Some("billing_hard_limit_reached"), "x",                Kind::QuotaExhausted, None),
        (429, &[], "insufficient_quota", limit, "code before type",                  Kind::RateLimited, None),
        (429, &[], "", None, "",                                                     Kind::RateLimited, None),
        (402, &[], "", None, "pay",                                                  Kind::QuotaExhausted, None),
        (500, &[], "server_error", Some("server_error"), "x",                        Kind::Transient, None),
        (502, &[], "", None, "",                                                     Kind::Transient, None),
        (503, &[], "service_unavailable_error", Some("server_is_overloaded"), "x",   Kind::Overloaded, None),
        (503, &[], "server_error", None, "The engine is currently overloaded",       Kind::Overloaded, None),
        (503, &[], "server_error", Some("server_error"), "x",                        Kind::Overloaded, None),
        (529, &[], "server_error", None, "x",                                        Kind::Overloaded, None),
        (503, &[("retry-after", "5")], "rate_limit_error", Some("slow_down"), "x",   Kind::Overloaded, Some(5_000)),
        (504, &[], "", None, "",                                                     Kind::Timeout, None),
        (520, &[], "", None, "",                                                     Kind::Transient, None),
    ];
    for (status, headers, class, code, message, kind, wait) in cases {
        let reply = testing::reply(*status, headers, error(class, *code, message));
        let error = client().read(&REQUEST, &reply).unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (*kind, wait.map(Duration::from_millis)),
            "{status} {class} {code:?} {message}"
        );
        assert_eq!(error.status, Some(*status));
    }
}

#[test]
fn errors_of_other_vendors_behind_a_gateway() {
    let anthropic =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let python = "litellm.RateLimitError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Slow\"}}'";
    #[rustfmt::skip]
    let cases = [
        (500, json!({"error":{"message":anthropic,"type":"None","code":"500"}}),          Kind::Overloaded),
        (429, json!({"error":{"message":python,"type":"throttling_error","code":"429"}}), Kind::RateLimited),
        (400, json!({"error":{"message":"x","metadata":{"raw":error("t", Some("context_length_exceeded"), "x")}}}), Kind::TooLarge),
        (429, json!([{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]), Kind::RateLimited),
        (404, json!({"error":"model \"x\" not found, try pulling it first"}),             Kind::UnknownModel),
        (400, json!({"error":{"message":"x/y is not a valid model ID","code":400}}),        Kind::UnknownModel),
        (400, json!({"error":{"message":"Model Not Exist","type":"invalid_request_error"}}), Kind::UnknownModel),
        (404, json!({"error":{"message":"Model with id 'x' not found.","code":404}}),       Kind::UnknownModel),
        (404, json!({"detail":"Not Found"}),                                              Kind::UnknownModel),
        (410, json!({"title":"Gone","detail":"The model 'x' has reached its end of life"}), Kind::UnknownModel),
        (501, json!({"error":{"code":501,"message":"no chat","type":"not_supported_error"}}), Kind::Unsupported),
        (404, json!({"error":{"message":"Vector store with id 'vs_1' not found.","type":"invalid_request_error"}}), Kind::InvalidRequest),
        (404, json!({"error":{"message":"No such File object: file-1","type":"invalid_request_error"}}), Kind::InvalidRequest),
        (404, json!({"error":{"message":"No endpoints found that support image input","code":404}}), Kind::InvalidRequest),
        (422, json!({"detail":[{"loc":["body"],"msg":"Field required","type":"missing"}]}), Kind::InvalidRequest),
    ];
    for (status, body, kind) in cases {
        assert_eq!(
            client().read(&REQUEST, &testing::json(status, &body)).unwrap_err().kind,
            kind,
            "{body}"
        );
    }
}

fn success(finish_reason: &str, message: Value) -> Value {
    json!({"id":"c","object":"chat.completion","model":"gpt-answered","choices":[{"index":0,"finish_reason":finish_reason,"message":message}],
        "usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}})
}

const USAGE: Usage = Usage { uncached_input: 10, cache_read: 0, cache_write: 0, output: 5 };

#[test]
fn answers() {
    let text = json!({"role":"assistant","content":"Yes!","refusal":null});
    let parts = json!({"role":"assistant","content":[{"type":"text","text":"Yes"},{"type":"text","text":"!"}]});
    let reasoned = json!({"content":[{"type":"reasoning","text":"hm"},{"type":"output_text","text":"Yes"},{"text":"!"}]});
    let cases = [
        ("stop", text.clone(), "Yes!", StopReason::EndTurn),
        ("stop", parts, "Yes!", StopReason::EndTurn),
        ("stop", reasoned, "Yes!", StopReason::EndTurn),
        ("length", text, "Yes!", StopReason::MaxTokens),
        ("length", json!({"content":null}), "", StopReason::MaxTokens),
    ];
    for (word, message, answer, stop_reason) in cases {
        let completion =
            client().read(&REQUEST, &testing::json(200, &success(word, message))).unwrap();
        assert_eq!((completion.answer.as_str(), &completion.stop_reason), (answer, &stop_reason));
        assert_eq!(completion.usage, Some(USAGE));
    }
    let bare = client()
        .read(&REQUEST, &testing::json(200, &json!({"choices":[{"message":{"content":"Yes"}}]})))
        .unwrap();
    assert_eq!(
        (bare.answer.as_str(), bare.usage, bare.stop_reason.as_str()),
        ("Yes", None, "unknown")
    );
}

#[test]
fn every_way_in_which_an_answer_ends() {
    finish::check_table(crate::endings::OPENAI, |word| {
        let body = success(word, json!({"content":"Yes"}));
        client().read(&REQUEST, &testing::json(200, &body))
    });
}

#[test]
fn other_vendors_words_for_the_end() {
    let read = |word| {
        let body = success(word, json!({"content":"Yes"}));
        client().read(&REQUEST, &testing::json(200, &body))
    };
    for word in ["max_output_tokens", "time_limit", "token_limit", "MAX_LENGTH"] {
        assert_eq!(read(word).unwrap().stop_reason, StopReason::MaxTokens, "{word}");
    }
    assert_eq!(read("COMPLETE").unwrap().stop_reason, StopReason::EndTurn);
    for (word, kind) in [
        ("blacklist", Kind::ContentRefused),
        ("content-filter", Kind::ContentRefused),
        ("guardrail_intervened", Kind::ContentRefused),
        ("ERROR_TOXIC", Kind::ContentRefused),
        ("ERROR_LIMIT", Kind::TooLarge),
        ("cancelled", Kind::Transient),
        ("incomplete", Kind::Transient),
    ] {
        assert_eq!(read(word).unwrap_err().kind, kind, "{word}");
    }
}

#[test]
fn successes_that_are_none() {
    let refusal = json!({"content":null,"refusal":"secret words"});
    let refused_part = json!({"content":[{"type":"refusal","refusal":"secret words"}]});
    let cases = [
        (success("stop", refusal), Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("stop", refused_part), Kind::ContentRefused, Charged::Usage(USAGE)),
        (
            success("content_filter", json!({"content":"Ye"})),
            Kind::ContentRefused,
            Charged::Usage(USAGE),
        ),
        (json!({"error":{"code":429,"message":"upstream limit"}}), Kind::RateLimited, Charged::No),
        (json!({"error":{"message":"upstream broke"}}), Kind::Transient, Charged::Unknown),
        (
            json!({"object":"error","code":404,"message":"The model `m` does not exist."}),
            Kind::UnknownModel,
            Charged::No,
        ),
        (
            json!({"object":"error","code":401,"message":"Invalid API key"}),
            Kind::Unauthorized,
            Charged::No,
        ),
        (
            json!({"object":"error","code":400,"message":"the maximum context length is 8"}),
            Kind::TooLarge,
            Charged::No,
        ),
        (
            json!({"code":"rpm_rate_limit_exceeded","msg":"Rate limit reached for RPM"}),
            Kind::RateLimited,
            Charged::No,
        ),
        (
            json!({"code":"rate_limit_daily","message":"Error code: 429 - {'error': {'message': 'Daily limit reached'}}"}),
            Kind::QuotaExhausted,
            Charged::No,
        ),
        (
            json!({"success":false,"message":"Insufficient balance, please recharge"}),
            Kind::QuotaExhausted,
            Charged::No,
        ),
        (
            json!({"success":false,"errors":[{"code":3036,"message":"you have used up your daily free allocation"}]}),
            Kind::QuotaExhausted,
            Charged::No,
        ),
        (
            json!({"choices":[{"finish_reason":null,"error":{"code":502,"message":"Upstream lost"},"message":{"content":"Ye"}}]}),
            Kind::Transient,
            Charged::Unknown,
        ),
        (
            json!({"choices":[{"finish_reason":"error","error":{"code":403,"message":"Input was flagged by moderation"},"message":{"content":""}}]}),
            Kind::ContentRefused,
            Charged::No,
        ),
        (json!({"choices":[]}), Kind::Transient, Charged::Unknown),
        (json!({"choices":[{"message":null}]}), Kind::Transient, Charged::Unknown),
        (json!("text"), Kind::Transient, Charged::Unknown),
    ];
    for (body, kind, charged) in cases {
        let error = client().read(&REQUEST, &testing::json(200, &body)).unwrap_err();
        assert_eq!((error.kind, error.charged), (kind, charged), "{body}");
        assert!(!error.message.contains("secret words"), "{error}");
    }
    let cut = Reply {
        cut: Some(Cut::Broken("reset".to_owned())),
        ..testing::json(200, &success("stop", json!({"content":"Yes"})))
    };
    let error = client().read(&REQUEST, &cut).unwrap_err();
    assert_eq!((error.kind, error.charged), (Kind::Timeout, Charged::Unknown));
}

#[test]
fn where_the_bound_on_output_stands() {
    let cap = |url: &str, chosen| {
        output_cap(&Settings {
            output_cap: chosen,
            ..Settings::new(Vendor::OPENAI, url.parse().unwrap())
        })
    };
    assert_eq!(cap("https://api.openai.com/v1", None), OutputCap::MaxCompletionTokens);
    assert_eq!(cap("https://me.openai.azure.com/openai/v1", None), OutputCap::MaxCompletionTokens);
    assert_eq!(cap("http://localhost:11434/v1", None), OutputCap::MaxTokens);
    assert_eq!(
        cap("http://localhost:11434/v1", Some(OutputCap::MaxCompletionTokens)),
        OutputCap::MaxCompletionTokens
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(status in 100_u16..1000, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = client().read(&REQUEST, &testing::reply(status, &[], body));
    }

    #[test]
    fn no_broken_answer_makes_it_panic(cut in 0_usize..400, at in 0_usize..400, byte: u8) {
        let mut body = success("stop", json!({"content":"é"})).to_string().into_bytes();
        let length = body.len();
        body[at % length] = byte;
        body.truncate(length - cut % length);
        let _ = client().read(&REQUEST, &testing::reply(200, &[], body));
    }

    #[test]
    fn no_wording_of_a_limit_makes_it_panic(text in "Request too large.{0,20}(Limit|Requested)?.{0,20}(Limit|Requested)?.{0,20}") {
        let _ = client().read(&REQUEST, &testing::reply(429, &[], error("tokens", Some("rate_limit_exceeded"), &text)));
    }
}
