//! The meaning of replies, from the vendor's documents (see `mod.rs`); bodies are as short as
//! possible. Errors are those of Chat Completions and tested there.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_types::Usage;

use crate::{
    call::StopReason,
    client::Client,
    error::{Charged, Kind},
    finish,
    settings::Settings,
    testing::{self, REQUEST},
    vendor::{Api, Vendor},
};

fn client() -> Client {
    let settings = Settings { api: Api::Responses, ..testing::settings(Vendor::OPENAI) };
    testing::client(&settings, crate::openai::client)
}

fn success(status: &str, reason: Option<&str>, content: Value) -> Value {
    let details = reason.map_or(Value::Null, |reason| json!({"reason":reason}));
    json!({"id":"resp_1","object":"response","status":status,"error":null,"incomplete_details":details,"model":"gpt-answered",
        "output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hidden"}]},
                  {"type":"message","role":"assistant","content":content}],
        "usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}})
}

const USAGE: Usage = Usage { uncached_input: 6, cache_read: 4, cache_write: 0, output: 5 };

#[test]
fn answers() {
    let content = json!([{"type":"output_text","text":"Y","annotations":[]},{"type":"output_text","text":"es!"}]);
    let cases = [
        (success("completed", None, content.clone()), "Yes!", StopReason::EndTurn),
        (success("incomplete", Some("max_output_tokens"), content), "Yes!", StopReason::MaxTokens),
        (success("incomplete", Some("max_output_tokens"), json!([])), "", StopReason::MaxTokens),
    ];
    let mut looks_first = cases[0].0.clone();
    let before = json!({"type":"message","phase":"commentary","content":[{"type":"output_text","text":"I look."}]});
    looks_first["output"].as_array_mut().unwrap().insert(1, before);
    let cases = cases.into_iter().chain([(looks_first, "Yes!", StopReason::EndTurn)]);
    for (body, answer, stop_reason) in cases {
        let completion = client().read(&REQUEST, &testing::json(200, &body)).unwrap();
        assert_eq!((completion.answer.as_str(), completion.stop_reason), (answer, stop_reason));
        assert_eq!(completion.usage, Some(USAGE));
    }
}

#[test]
fn every_way_in_which_an_answer_ends() {
    let text = json!([{"type":"output_text","text":"Yes"}]);
    finish::check_table(crate::endings::OPENAI_RESPONSES, |word| {
        let as_status = success(word, None, text.clone());
        let as_reason = success("incomplete", Some(word), text.clone());
        let reasons = ["max_output_tokens", "content_filter"];
        let body = if reasons.contains(&word) { as_reason } else { as_status };
        client().read(&REQUEST, &testing::json(200, &body))
    });
    let mut tool = success("completed", None, text);
    tool["output"] = json!([{"type":"function_call","name":"x","arguments":"{}"}]);
    let error = client().read(&REQUEST, &testing::json(200, &tool)).unwrap_err();
    assert_eq!((error.kind, error.charged), (Kind::Transient, Charged::Usage(USAGE)));
}

#[test]
fn successes_that_are_none() {
    let refusal = json!([{"type":"refusal","refusal":"secret words"}]);
    let failed =
        |code: &str| json!({"status":"failed","error":{"code":code,"message":"x"},"output":[]});
    #[rustfmt::skip]
    let cases = [
        (success("completed", None, refusal),                                 Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("incomplete", Some("content_filter"), json!([])),            Kind::ContentRefused, Charged::Usage(USAGE)),
        (success("cancelled", None, json!([])),                               Kind::Transient,      Charged::Usage(USAGE)),
        (failed("server_error"),                                              Kind::Transient,      Charged::Unknown),
        (failed("rate_limit_exceeded"),                                       Kind::RateLimited,    Charged::No),
        (failed("invalid_prompt"),                                            Kind::ContentRefused, Charged::No),
        (failed("bio_policy"),                                                Kind::ContentRefused, Charged::No),
        (failed("image_content_policy_violation"),                            Kind::ContentRefused, Charged::No),
        (failed("image_parse_error"),                                         Kind::InvalidRequest, Charged::No),
        (json!({"choices":[]}),                                               Kind::Transient,      Charged::Unknown),
    ];
    for (body, kind, charged) in cases {
        let error = client().read(&REQUEST, &testing::json(200, &body)).unwrap_err();
        assert_eq!((error.kind, error.charged), (kind, charged), "{body}");
        assert!(!error.message.contains("secret words"), "{error}");
    }
    let error = client().read(
        &REQUEST,
        &testing::json(
            429,
            &json!({"error":{"type":"tokens","code":"rate_limit_exceeded","message":"x"}}),
        ),
    );
    assert_eq!(error.unwrap_err().kind, Kind::RateLimited);
}

proptest! {
    #[test]
    fn no_broken_answer_makes_it_panic(cut in 0_usize..400, at in 0_usize..400, byte: u8) {
        let mut body = success("completed", None, json!([{"type":"output_text","text":"é"}])).to_string().into_bytes();
        let length = body.len();
        body[at % length] = byte;
        body.truncate(length - cut % length);
        let _ = client().read(&REQUEST, &testing::reply(200, &[], body));
    }
}
