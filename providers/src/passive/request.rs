//! Reads the properties of a request to a vendor's API.

use serde_json::Value;
use tidegate_types::fnv1a;

use crate::json::{bounded, count, text};

/// Bytes of text per token, until the limiter has learned the real ratio.
const BYTES_PER_TOKEN: usize = 4;

/// Estimate for a picture or a file: usually right within a factor of two.
const ATTACHMENT_TOKENS: u64 = 1_500;

/// The properties of a call that its request states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFacts {
    /// The vendor's name of the model.
    pub model: String,
    /// Input tokens, estimated from the text.
    pub input_tokens: u64,
    /// The bound of each of its answers, in tokens; `None` if it states none.
    pub max_output_tokens: Option<u64>,
    /// The number of answers that it asks for.
    pub answers: u64,
    /// Hash of the system prompt, for calls whose use is learned together; 0 without one.
    pub template: u64,
    /// Whether the answer is streamed.
    pub streams: bool,
}

impl RequestFacts {
    /// Reads a request by its path and its JSON; `None` if it asks no model: a list of models, a
    /// file, a provider's batch, a count of tokens.
    pub fn read(path: &str, body: &[u8]) -> Option<Self> {
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let (in_path, verb) = match last.split_once(':') {
            // Gemini: `models/{model}:generateContent`.
            Some((model, verb)) => (Some(model.to_owned()), verb),
            None => (converse(path, last), last),
        };
        if verb == "count_tokens" || verb == "countTokens" || verb == "batches" {
            return None;
        }
        let body = bounded(body)?;
        let model = in_path.or_else(|| text(&body, "/model").map(str::to_owned))?;
        let mut weight = Weight::default();
        weight.visit("", &body);
        let output = match verb {
            // Their answers have no output tokens.
            "embeddings" | "moderations" | "embedContent" | "batchEmbedContents" => Some(0),
            _ => bound(&body),
        };
        Some(Self {
            model,
            input_tokens: weight.tokens(),
            max_output_tokens: output,
            answers: answers(&body),
            template: template(&body),
            streams: verb.starts_with("stream")
                || verb == "converse-stream"
                || body.get("stream").and_then(Value::as_bool) == Some(true),
        })
    }
}

/// The model in AWS's path: `model/{model}/converse`.
fn converse(path: &str, verb: &str) -> Option<String> {
    let model = path.trim_end_matches('/').strip_suffix(verb)?.strip_suffix('/')?;
    let (before, model) = model.rsplit_once('/')?;
    let known = ["converse", "converse-stream", "invoke", "invoke-with-response-stream"];
    (before.ends_with("/model") && known.contains(&verb))
        .then(|| model.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/"))
}

fn bound(body: &Value) -> Option<u64> {
    let fields: [&[&str]; 6] = [
        &["max_completion_tokens"],
        &["max_output_tokens"],
        &["max_tokens"],
        &["generationConfig", "maxOutputTokens"],
        &["generation_config", "max_output_tokens"],
        &["inferenceConfig", "maxTokens"],
    ];
    fields.iter().find_map(|path| count(body, path))
}

/// The number of answers to one question: OpenAI's `n`, Gemini's `candidateCount`.
fn answers(body: &Value) -> u64 {
    let fields: [&[&str]; 3] = [
        &["n"],
        &["generationConfig", "candidateCount"],
        &["generation_config", "candidate_count"],
    ];
    fields.iter().find_map(|path| count(body, path)).unwrap_or(1).max(1)
}

/// A hash of the system prompt that every process computes equally.
fn template(body: &Value) -> u64 {
    let first = body
        .pointer("/messages/0")
        .filter(|message| matches!(text(message, "/role"), Some("system" | "developer")));
    let prompt = ["system", "instructions", "systemInstruction", "system_instruction"]
        .iter()
        .find_map(|name| body.get(*name))
        .or(first);
    prompt.map_or(0, |it| fnv1a(it.to_string().bytes()))
}

/// The amount of text in a request.
#[derive(Default)]
struct Weight {
    bytes: usize,
    attachments: u64,
}

impl Weight {
    fn visit(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if is_attachment(name, text) => self.attachments += 1,
            Value::String(text) => self.bytes += text.len(),
            Value::Array(elements) => elements.iter().for_each(|it| self.visit(name, it)),
            Value::Object(fields) => fields.iter().for_each(|(name, it)| {
                self.bytes += name.len();
                self.visit(name, it);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes += BYTES_PER_TOKEN,
        }
    }

    fn tokens(&self) -> u64 {
        let text = u64::try_from(self.bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
        text.saturating_add(self.attachments.saturating_mul(ATTACHMENT_TOKENS))
    }
}

/// Whether a text is base64, or the address of a file that the vendor fetches.
fn is_attachment(name: &str, text: &str) -> bool {
    text.starts_with("data:")
        || matches!(name, "data" | "file_data" | "bytes")
        || matches!(name, "url" | "image_url" | "file_url" | "fileUri" | "file_id")
}
