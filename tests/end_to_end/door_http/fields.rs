//! The fields in `docs/http-door.md`, from the door's treatment of each field.
//!
//! `TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- door_http::fields` writes it.

use std::{fmt::Write as _, path::Path};

use super::{
    vendor::{RawVendor, Reply},
    *,
};

const MARK: &str =
    "<!-- Written by tests/end_to_end/door_http/fields.rs from what the door does. -->\n";
const CLAUDE: &str = "anthropic:claude-3-5-haiku-latest";
const END: &str = "\n## Who may";

/// The minimal request.
fn least(path: &str) -> Value {
    let user = json!([{"role": "user", "content": "hi"}]);
    match path {
        "/v1/chat/completions" => json!({"messages": user}),
        "/v1/messages" => json!({"messages": user, "max_tokens": 9}),
        _ => json!({"input": "hi"}),
    }
}

/// The fields of each operation, by the vendors' references, with a meaningful value.
fn operations() -> Vec<(&'static str, &'static str, Value)> {
    let picture = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}]);
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    vec![
        (
            "/v1/chat/completions",
            "openai",
            json!({
                "messages": [{"role": "system", "content": "Brief."}, {"role": "user", "content": "hi"}],
                "max_tokens": 9, "max_completion_tokens": 9, "temperature": 0.5, "stop": "END",
                "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
                "messages (pictures, audio, files, tool calls)": picture,
                "stream": true, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "top_p": 0.5, "n": 2,
                "seed": 1, "logprobs": true, "top_logprobs": 2, "logit_bias": {"1": 1}, "frequency_penalty": 0.5,
                "presence_penalty": 0.5, "reasoning_effort": "low", "verbosity": "low", "service_tier": "flex",
                "metadata": {"a": "b"}, "store": true, "user": "u", "prompt_cache_key": "k", "safety_identifier": "s",
                "modalities": ["text"], "audio": {}, "prediction": {}, "web_search_options": {}, "unknown to us": 1,
            }),
        ),
        (
            "/v1/messages",
            "anthropic",
            json!({
                "messages": [{"role": "user", "content": "hi"}], "system": "Brief.", "max_tokens": 9, "temperature": 0.5,
                "stop_sequences": ["END"], "output_config": {"format": format},
                "messages (pictures, documents, tool results)": [{"role": "user", "content": [{"type": "image", "source": {}}]}],
                "stream": true, "tools": [], "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 1024},
                "top_p": 0.5, "top_k": 5, "metadata": {"user_id": "u"}, "service_tier": "auto", "container": "c",
                "mcp_servers": [], "context_management": {}, "unknown to us": 1,
            }),
        ),
        (
            "/v1/responses",
            "openai",
            json!({
                "input": "hi", "instructions": "Brief.", "max_output_tokens": 9, "temperature": 0.5, "text": {},
                "reasoning": {"effort": "low"}, "stream": true, "tools": [], "store": false, "include": [], "unknown to us": 1,
                "background": true, "previous_response_id": "r", "conversation": "c",
            }),
        ),
        (
            "/v1/embeddings",
            "openai",
            json!({
                "input": ["hi"], "dimensions": 8, "encoding_format": "float", "user": "u", "unknown to us": 1,
            }),
        ),
    ]
}

fn or_nothing(fields: &[String]) -> String {
    if fields.is_empty() { "nothing".to_owned() } else { fields.join(", ") }
}

async fn table() -> Option<String> {
    let answer = r#"{"choices":[{"message":{"content":"Yes"},"finish_reason":"stop"}],"content":[{"type":"text","text":"Yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let vendor = RawVendor::start(move |_| Reply::json(200, answer)).await;
    let limits = "rpm = 600000\ntpm = 100_000_000";
    // A model that accepts a temperature: the vendor's newer models refuse it.
    let claude = provider("anthropic", &vendor.url, limits).replace("anthropic:m", CLAUDE);
    let settings = provider("openai", &vendor.url, limits) + &claude;
    let doors = Doors::start(&settings).await?;
    let mut table =
        String::from("\n| path | refused | translated for another dialect |\n|---|---|---|\n");
    for (path, own, fields) in operations() {
        let (mut own_refused, mut translated) = (Vec::new(), Vec::new());
        let other = if own == "openai" { "anthropic" } else { "openai" };
        for (name, value) in fields.as_object().unwrap() {
            let field = name.split(' ').next().unwrap();
            let fate = async |kind: &str| {
                let mut body = least(path);
                body["model"] = if kind == "openai" { "openai:m" } else { CLAUDE }.into();
                body[field] = value.clone();
                let before = vendor.sent().len();
                let got = doors.post(path, &body).send().await.unwrap();
                let status = got.status().as_u16();
                let said = got.text().await.unwrap();
                let sent = vendor.sent();
                let passed = sent.get(before).is_some_and(|sent| {
                    let sent: Value = serde_json::from_str(&sent.body).unwrap();
                    status == 200 && &sent[field] == value
                });
                match (kind == own, status) {
                    (true, 200) if passed => "passes",
                    (false, 200) => "translated",
                    (_, 400) => {
                        assert!(
                            said.contains(field)
                                || path.contains("responses")
                                || path.contains("embeddings"),
                            "{path} {name}: {said}"
                        );
                        assert_eq!(sent.len(), before, "nothing is asked");
                        "refused"
                    }
                    _ => panic!("{path} {name} at {kind}: {status} {said}"),
                }
            };
            if fate(own).await == "refused" {
                own_refused.push(format!("`{name}`"));
            }
            if fate(other).await == "translated" {
                translated.push(format!("`{name}`"));
            }
        }
        let (own_refused, translated) = (or_nothing(&own_refused), or_nothing(&translated));
        let _ = writeln!(table, "| `{path}` | {own_refused} | {translated} |");
    }
    doors.stop().await;
    Some(table)
}

#[tokio::test]
async fn the_page_says_what_becomes_of_each_field() {
    let Some(table) = table().await else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/http-door.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(MARK).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some_and(|it| it == "1") {
        std::fs::write(&page, format!("{before}{MARK}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, table, "write it anew: TIDEGATE_WRITE_DOCS=1");
}
