use std::time::Duration;

use serde_json::{Value, json};
use tidegate_types::Usage;

use super::*;
use crate::{
    error::{Charged, Kind},
    testing::headers,
};

fn asked(path: &str, body: &Value) -> Option<RequestFacts> {
    RequestFacts::read(path, body.to_string().as_bytes())
}

#[test]
fn each_vendors_request_tells_model_and_bound() {
    let text = "x".repeat(4_000);
    let messages = json!([{"role": "user", "content": text}]);
    #[rustfmt::skip]
    let cases = [
        ("/v1/chat/completions", json!({"model": "m", "messages": messages, "max_completion_tokens": 10}), Some(10)),
        ("/v1/responses", json!({"model": "m", "input": text, "max_output_tokens": 7}), Some(7)),
        ("/v1/messages", json!({"model": "m", "messages": messages, "max_tokens": 9}), Some(9)),
        ("/v1beta/models/m:generateContent", json!({"contents": [{"parts": [{"text": text}]}], "generationConfig": {"maxOutputTokens": 5}}), Some(5)),
        ("/model/m/converse", json!({"messages": messages, "inferenceConfig": {"maxTokens": 4}}), Some(4)),
        ("/v1/chat/completions", json!({"model": "m", "messages": messages}), None),
        ("/v1/embeddings", json!({"model": "m", "input": text}), Some(0)),
    ];
    for (path, body, bound) in cases {
        let asked = asked(path, &body).unwrap();
        assert_eq!((asked.model.as_str(), asked.max_output_tokens), ("m", bound), "{path}");
        assert!((1_000..1_050).contains(&asked.input_tokens), "{path}: {}", asked.input_tokens);
    }
    let body = json!({"model": "m", "messages": []});
    for path in
        ["/v1/messages/count_tokens", "/v1beta/models/m:countTokens", "/v1/messages/batches"]
    {
        assert_eq!(asked(path, &body), None, "{path} asks no model");
    }
    assert_eq!(RequestFacts::read("/v1/files", b"--boundary"), None);
}

#[test]
fn the_number_of_answers_is_read_with_and_without_a_bound() {
    let cases = [
        (json!({"n": 3, "max_tokens": 10}), 3),
        (json!({"n": 100}), 100),
        (json!({"n": 0}), 1),
        (json!({"n": null}), 1),
        (json!({"generationConfig": {"candidateCount": 4}}), 4),
        (json!({}), 1),
    ];
    for (mut body, answers) in cases {
        body["model"] = "m".into();
        assert_eq!(asked("/v1/chat/completions", &body).unwrap().answers, answers, "{body}");
    }
}

#[test]
fn pictures_weigh_what_pictures_weigh_and_streams_are_seen() {
    let picture = json!({"role": "user", "content": [{"type": "image_url",
        "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(400_000))}}]});
    let body = json!({"model": "m", "stream": true, "messages": [picture]});
    let asked = asked("/v1/chat/completions", &body).unwrap();
    assert!(asked.streams && asked.input_tokens < 1_600, "{asked:?}");
}

#[test]
fn calls_with_the_same_system_prompt_are_alike() {
    let template = |system: &str, user: &str| {
        let messages =
            json!([{"role": "system", "content": system}, {"role": "user", "content": user}]);
        asked("/c", &json!({"model": "m", "messages": messages})).unwrap().template
    };
    assert_eq!(template("a", "x"), template("a", "y"));
    assert_ne!(template("a", "x"), template("b", "x"));
    assert_eq!(asked("/c", &json!({"model": "m", "messages": []})).unwrap().template, 0);
}

#[test]
fn a_reply_tells_use_and_limits_in_each_vendors_form() {
    let expected = Usage { uncached_input: 6, cache_read: 4, cache_write: 0, output: 3 };
    #[rustfmt::skip]
    let cases = [
        (Vendor::OPENAI, json!({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}})),
        (Vendor::OPENAI, json!({"usage": {"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4}}})),
        (Vendor::ANTHROPIC, json!({"usage": {"input_tokens": 6, "output_tokens": 3, "cache_read_input_tokens": 4}})),
        (Vendor::GEMINI, json!({"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3, "cachedContentTokenCount": 4}})),
        (Vendor::BEDROCK, json!({"usage": {"inputTokens": 6, "outputTokens": 3, "cacheReadInputTokens": 4}})),
    ];
    for (vendor, body) in cases {
        let facts = vendor.read_reply(200, &HeaderMap::new(), body.to_string().as_bytes()).unwrap();
        assert_eq!(facts.usage, Some(expected), "{vendor}: {body}");
    }
    let vectors = json!({"data": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}});
    let facts = Vendor::OPENAI.read_reply(200, &HeaderMap::new(), vectors.to_string().as_bytes());
    assert_eq!(facts.unwrap().usage, Some(Usage { uncached_input: 7, ..Usage::default() }));
    let some = br#"{"usage": {"prompt_tokens": 7, "total_tokens": 9}}"#;
    assert_eq!(Vendor::OPENAI.read_reply(200, &HeaderMap::new(), some).unwrap().usage, None);
    let told = headers(&[
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "400"),
        ("x-ratelimit-reset-tokens", "36s"),
    ]);
    let facts = Vendor::OPENAI.read_reply(200, &told, b"{}").unwrap();
    assert_eq!(facts.observed.tokens.and_then(|tokens| tokens.remaining), Some(400));
    assert_eq!(facts.usage, None, "unknown is not nothing");
}

#[test]
fn a_refusal_is_classified_as_our_own_clients_do() {
    let body =
        json!({"error": {"code": "rate_limit_exceeded", "message": "Please try again in 7s."}});
    let error = Vendor::OPENAI.read_reply(429, &HeaderMap::new(), body.to_string().as_bytes());
    let error = error.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (Kind::RateLimited, Some(Duration::from_secs(7))));
    let body = json!({"error": {"code": "insufficient_quota", "message": "You exceeded …"}});
    let error = Vendor::OPENAI.read_reply(429, &HeaderMap::new(), body.to_string().as_bytes());
    assert_eq!(error.unwrap_err().kind, Kind::QuotaExhausted);
    let error = Vendor::ANTHROPIC.read_reply(529, &HeaderMap::new(), b"").unwrap_err();
    assert_eq!((error.kind, error.charged), (Kind::Overloaded, Charged::No));
}

/// A vendor's models at a cloud are read as at its own host.
#[test]
fn clouds_are_read_as_their_vendors() {
    let told = headers(&[
        ("anthropic-ratelimit-tokens-limit", "1000"),
        ("anthropic-ratelimit-tokens-remaining", "400"),
    ]);
    let facts = Vendor::VERTEX_ANTHROPIC.read_reply(200, &told, b"{}").unwrap();
    assert_eq!(facts.observed.tokens.and_then(|tokens| tokens.remaining), Some(400));
    let body = br#"{"error": {"status": "RESOURCE_EXHAUSTED", "message": "requests per day"}}"#;
    for vendor in [Vendor::GEMINI, Vendor::VERTEX] {
        let error = vendor.read_reply(429, &HeaderMap::new(), body).unwrap_err();
        assert_eq!(error.kind, Kind::QuotaExhausted, "{vendor}");
        assert!(error.retry_after.is_some(), "{vendor}: until the day ends");
    }
}

/// Each event is cut at every byte.
#[test]
fn a_stream_tells_its_use_wherever_it_is_cut() {
    let events = |events: &[Value]| {
        events.iter().map(|event| format!("event: e\ndata: {event}\n\n")).collect::<String>()
    };
    let expected = Usage { uncached_input: 10, cache_read: 0, cache_write: 0, output: 3 };
    let cases = [
        (
            Vendor::ANTHROPIC,
            events(&[
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
                json!({"type": "content_block_delta", "delta": {"text": "usage"}}),
                json!({"type": "message_delta", "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ]),
        ),
        (
            Vendor::OPENAI,
            events(&[
                json!({"choices": [{"delta": {"content": "a"}}], "usage": null}),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}),
            ]) + "data: [DONE]\n\n",
        ),
        (
            Vendor::OPENAI,
            events(&[json!({"type": "response.completed", "response": {"usage":
                {"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 0}}}})]),
        ),
        (
            Vendor::GEMINI,
            events(&[
                json!({"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1}}),
                json!({"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3}}),
            ]),
        ),
    ];
    for (vendor, text) in cases {
        for step in [1, 7, text.len()] {
            let mut stream = Stream::new(vendor, 200, HeaderMap::new());
            text.as_bytes().chunks(step).for_each(|piece| stream.hear(piece));
            // Gemini's stream ends only with its body.
            let tells_its_end = vendor != Vendor::GEMINI;
            assert!(stream.is_over() || !tells_its_end, "{vendor}");
            assert_eq!(stream.finish().unwrap().usage, Some(expected), "{vendor}, step {step}");
        }
    }
    let mut silent = Stream::new(Vendor::OPENAI, 200, HeaderMap::new());
    silent.hear(b"data: {\"choices\": []}\n");
    assert_eq!(silent.finish().unwrap().usage, None);
    let mut marked = Stream::new(Vendor::OPENAI, 200, HeaderMap::new());
    let usage = r#"{"usage": {"prompt_tokens": 7, "completion_tokens": 1}}"#;
    marked.hear(format!("\u{feff}data: {usage}\n\n").as_bytes());
    assert_eq!(marked.finish().unwrap().usage.map(|usage| usage.input()), Some(7));
}

/// A stream that reports no usage, or was broken off before it did.
#[test]
fn a_stream_that_does_not_say_what_it_used_is_counted() {
    let count = |vendor: Vendor, events: &[Value]| {
        let mut stream = Stream::new(vendor, 200, HeaderMap::new());
        events.iter().for_each(|event| stream.hear(format!("data: {event}\n\n").as_bytes()));
        stream.finish_estimated(70).unwrap().usage.unwrap()
    };
    let delta = json!({"choices": [{"delta": {"role": "assistant", "content": "12345678"}}]});
    let used = count(Vendor::OPENAI, &[delta.clone(), delta.clone()]);
    assert_eq!((used.uncached_input, used.output), (70, 4));
    let said = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 9}});
    assert_eq!(count(Vendor::OPENAI, &[delta, said]).output, 9, "what the vendor says goes first");
    let begun = json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}});
    let text =
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "12345678"}});
    let used = count(Vendor::ANTHROPIC, &[begun, text]);
    assert_eq!((used.uncached_input, used.output), (10, 2));
}

#[test]
fn an_error_inside_a_stream_is_one() {
    let mut stream = Stream::new(Vendor::ANTHROPIC, 200, HeaderMap::new());
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    stream.hear(format!("event: error\ndata: {error}\n\n").as_bytes());
    assert_eq!(stream.finish().unwrap_err().kind, Kind::Overloaded);
    let mut stream = Stream::new(Vendor::OPENAI, 200, HeaderMap::new());
    let begun = json!({"type": "response.created", "response": {"error": null, "output": []}});
    let failed = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "rate_limit_exceeded", "message": "Please try again in 9s."}}});
    stream.hear(format!("data: {begun}\n\ndata: {failed}\n\n").as_bytes());
    assert!(stream.is_over());
    let error = stream.finish().unwrap_err();
    assert_eq!((error.kind, error.retry_after), (Kind::RateLimited, Some(Duration::from_secs(9))));
}
