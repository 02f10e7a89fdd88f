use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tidegate_types::Effort;

use super::*;
use crate::{
    body,
    call::Request,
    error::Kind,
    exchange::Reply,
    openai,
    parameters::Parameters,
    secret::Secret,
    settings::Settings,
    testing::{self, REQUEST},
};

fn asked(vendor: Vendor, model: &str, effort: Effort) -> Result<Value, String> {
    let dialect = testing::dialect(vendor);
    dialect.check(model, Some(effort), &Map::new(), None)?;
    let parameters = Parameters { effort: Some(effort), fields: None };
    body::placed(dialect, &Request { model, parameters, ..REQUEST }).map_err(|error| error.message)
}

#[test]
fn effort_is_converted_to_each_vendors_words() {
    use Effort::{High, Low, None};
    #[rustfmt::skip]
    let cases = [
        (Vendor::MISTRAL,    "mistral-small-latest", High, Ok(json!({"reasoning_effort":"high"}))),
        (Vendor::MISTRAL,    "mistral-small-latest", Low,  Err("\"none\" and \"high\" alone")),
        (Vendor::GROQ,       "openai/gpt-oss-120b",  Low,  Ok(json!({"reasoning_effort":"low"}))),
        (Vendor::GROQ,       "openai/gpt-oss-120b",  None, Err("always reasons")),
        (Vendor::GROQ,       "qwen/qwen3-32b",       High, Ok(json!({"reasoning_effort":"default"}))),
        (Vendor::GROQ,       "llama-3.3-70b",        High, Err("leave it out")),
        (Vendor::TOGETHER,   "zai-org/GLM-5",        None, Ok(json!({"reasoning":{"enabled":false}}))),
        (Vendor::FIREWORKS,  "accounts/fireworks/models/glm-5", None, Ok(json!({"reasoning_effort":"none"}))),
        (Vendor::DEEPSEEK,   "deepseek-chat",        High, Ok(json!({"thinking":{"type":"enabled"},"reasoning_effort":"high"}))),
        (Vendor::DEEPSEEK,   "deepseek-chat",        None, Ok(json!({"thinking":{"type":"disabled"}}))),
        (Vendor::XAI,        "grok-4.3",             Low,  Ok(json!({"reasoning_effort":"low"}))),
        (Vendor::OPENROUTER, "anthropic/claude-opus-5", Low, Ok(json!({"reasoning":{"effort":"low"}}))),
        (Vendor::OLLAMA,     "qwen3",                None, Ok(json!({"reasoning_effort":"none"}))),
        (Vendor::VLLM,       "Qwen/Qwen3-8B",        None, Ok(json!({"chat_template_kwargs":{"enable_thinking":false}}))),
        (Vendor::CEREBRAS,   "zai-glm-5",            None, Ok(json!({"disable_reasoning":true}))),
        (Vendor::DEEPINFRA,  "deepseek-ai/DeepSeek-V4", Low, Ok(json!({"reasoning_effort":"low"}))),
        (Vendor::MOONSHOT,   "kimi-k2.6",            None, Ok(json!({"thinking":{"type":"disabled"}}))),
    ];
    for (vendor, model, effort, expected) in cases {
        match (asked(vendor, model, effort), expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said, expected, "{vendor} {model}"),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{vendor} {model}: {why}"),
            (said, _) => panic!("{vendor} {model} {effort}: {said:?}"),
        }
    }
}

#[test]
fn errors_are_known_by_each_vendors_names() {
    let error = |class: &str, code: &str, message: &str| json!({"error":{"message":message,"type":class,"code":code}});
    #[rustfmt::skip]
    let cases = [
        (Vendor::MISTRAL,    429, json!({"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}), Kind::Overloaded),
        (Vendor::MISTRAL,    429, json!({"message":"Requests rate limit exceeded"}), Kind::RateLimited),
        (Vendor::GROQ,       498, error("invalid_request_error", "capacity_exceeded", "flex tier"), Kind::Overloaded),
        (Vendor::GROQ,       429, error("tokens", "rate_limit_exceeded", "Rate limit reached for model x on tokens per day (TPD): Limit 100"), Kind::QuotaExhausted),
        (Vendor::TOGETHER,   429, error("rate_limit", "dynamic_request_limited", "slow"), Kind::RateLimited),
        (Vendor::FIREWORKS,  412, json!({"error":"Account x is suspended, possibly due to reaching the monthly spending limit"}), Kind::QuotaExhausted),
        (Vendor::DEEPSEEK,   402, error("unknown_error", "invalid_request_error", "Insufficient Balance"), Kind::QuotaExhausted),
        (Vendor::XAI,        429, json!({"code":"Some resource has been exhausted","error":"Your team has either used all available credits or reached its monthly spending limit."}), Kind::QuotaExhausted),
        (Vendor::XAI,        429, json!({"code":"Some resource has been exhausted","error":"Too many requests for team"}), Kind::RateLimited),
        (Vendor::OPENROUTER, 403, json!({"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"]}}}), Kind::ContentRefused),
        (Vendor::OPENROUTER, 429, json!({"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day"}}), Kind::QuotaExhausted),
        (Vendor::OPENROUTER, 502, json!({"error":{"code":502,"message":"Provider returned error"}}), Kind::Transient),
        (Vendor::MOONSHOT,   429, error("exceeded_current_quota_error", "", "pay"), Kind::QuotaExhausted),
        (Vendor::MOONSHOT,   429, error("engine_overloaded_error", "", "busy"), Kind::Overloaded),
        (Vendor::VLLM,       400, error("BadRequestError", "400", "This model's maximum context length is 8192 tokens."), Kind::TooLarge),
    ];
    for (vendor, status, body, expected) in cases {
        let client = testing::client(&testing::settings(vendor), openai::client);
        let reply = Reply { status, ..testing::json(status, &body) };
        let error = client.read(&REQUEST, &reply).unwrap_err();
        assert_eq!(error.kind, expected, "{vendor} {status} {body}");
    }
}

#[test]
fn each_has_a_name_a_host_and_a_page() {
    let all: Vec<Vendor> = Vendor::known().collect();
    let names: BTreeSet<&str> = all.iter().map(|vendor| vendor.as_str()).collect();
    assert_eq!(names.len(), all.len());
    for vendor in Vendor::known() {
        assert_eq!(vendor.as_str().parse::<Vendor>().unwrap(), vendor);
    }
    for vendor in Vendor::PRESETS {
        let page = format!("{}/../docs/providers/{vendor}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page}: {error}"));
        for told in [vendor.base_url(""), vendor.key_variable().to_owned()] {
            assert!(page.contains(&told), "{vendor}'s page does not say {told}");
        }
        let settings = Settings::new(vendor, vendor.base_url("").parse().unwrap());
        let url = settings.endpoint("mine", &["chat", "completions"]).unwrap();
        assert!(url.path().ends_with("/chat/completions"), "{url}");
        let with_key = settings.api_key(Secret::new("k").unwrap());
        assert!(openai::client(&crate::settings::Setup::new("mine", &with_key)).is_ok());
    }
}

#[test]
fn the_longest_prefix_of_a_models_name_decides_its_cap() {
    for (vendor, model, expected) in [
        (Vendor::ANTHROPIC, "claude-sonnet-5-5", Some(128_000)),
        (Vendor::ANTHROPIC, "claude-opus-4-1-20250805", Some(32_000)),
        (Vendor::ANTHROPIC, "claude-haiku-4-5-20251001", Some(64_000)),
        (Vendor::ANTHROPIC, "claude-of-the-future", Some(64_000)),
        (Vendor::BEDROCK, "global.anthropic.claude-opus-5-5-v1:0", Some(128_000)),
        (Vendor::BEDROCK, "amazon.nova-pro-v1:0", Some(10_000)),
        (Vendor::GEMINI, "gemini-3.8-flash", Some(65_536)),
        (Vendor::OPENAI, "gpt-4o-mini-2024-07-18", Some(16_384)),
        (Vendor::OPENAI, "openai/gpt-6-luna", Some(128_000)),
        (Vendor::OPENAI, "anthropic/claude-opus-5", Some(128_000)),
        (Vendor::OPENAI, "meta-llama/llama-4-70b", None),
        (Vendor::OPENAI, "piccolo1", None),
    ] {
        assert_eq!(vendor.output_cap(model), expected, "{model}");
    }
}

#[test]
fn contexts_are_known_at_the_vendors_own_host() {
    let at = |vendor: Vendor, url: &str, model| {
        let is_official = vendor.is_official(&url.parse().unwrap());
        vendor.bounds(model, is_official, Duration::from_secs(1)).context_tokens
    };
    let bedrock = "https://bedrock-runtime.eu-west-1.amazonaws.com";
    for (vendor, url, model, tokens) in [
        (Vendor::ANTHROPIC, "https://api.anthropic.com", "claude-sonnet-5-5", Some(1_000_000)),
        (Vendor::ANTHROPIC, "https://api.anthropic.com", "claude-haiku-4-5", Some(200_000)),
        (Vendor::OPENAI, "https://api.openai.com/v1", "gpt-4o-mini", Some(128_000)),
        (Vendor::OPENAI, "https://api.openai.com/v1", "gpt-7", None),
        (Vendor::OPENAI, "http://localhost:11434/v1", "gpt-4o-mini", None),
        (Vendor::BEDROCK, bedrock, "eu.anthropic.claude-opus-4-1-20250805-v1:0", Some(200_000)),
    ] {
        assert_eq!(at(vendor, url, model), tokens, "{model} at {url}");
    }
}
