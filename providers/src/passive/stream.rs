//! Reads the usage of an answer that comes as server-sent events.

use http::HeaderMap;
use serde_json::{Map, Value, json};
use tidegate_types::Usage;

use super::{reader::PassiveReader, usage::ReplyFacts};
use crate::{
    envelope::Envelope,
    error::Error,
    exchange::Reply,
    json::{bounded, text},
};

/// A longer line is skipped: no event with token counts comes near it.
const MAX_LINE: usize = 4 << 20;

/// Bytes of text per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Reads an answer on its way to the caller.
#[derive(Debug)]
pub struct Stream {
    reader: PassiveReader,
    status: u16,
    headers: HeaderMap,
    line: Vec<u8>,
    is_passed_over: bool,
    /// The latest value of each count.
    usage: Map<String, Value>,
    of_gemini: Value,
    error: Option<Value>,
    /// Bytes of the answer so far, for a stream that reports no usage.
    written: u64,
    is_over: bool,
}

impl Stream {
    /// Creates it for a reply with this status and these headers.
    pub fn new(reader: impl Into<PassiveReader>, status: u16, headers: HeaderMap) -> Self {
        Self {
            reader: reader.into(),
            status,
            headers,
            line: Vec::new(),
            is_passed_over: false,
            usage: Map::new(),
            of_gemini: Value::Null,
            error: None,
            written: 0,
            is_over: false,
        }
    }

    /// Takes the next bytes, split at any position.
    pub fn hear(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_passed_over {
                self.line.extend_from_slice(piece);
                self.is_passed_over = self.line.len() > MAX_LINE;
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_passed_over) {
            return;
        }
        // A byte order mark may precede the first line.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let Some(event) = line.strip_prefix(b"data:") else { return };
        if event.trim_ascii() == b"[DONE]" {
            self.is_over = true;
        } else if let Some(event) = bounded(event) {
            self.event(event);
        }
    }

    /// Whether the last event has come. SDKs stop reading there, before the body ends.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn event(&mut self, event: Value) {
        let last = [
            "message_stop",
            "response.completed",
            "response.failed",
            "response.incomplete",
            "error",
        ];
        self.is_over |= text(&event, "/type").is_some_and(|kind| last.contains(&kind));
        // OpenAI's Responses hold the error of a failed one.
        let mut places = [Some(&event), event.get("response")].into_iter().flatten();
        if let Some(error) = places.find(|value| Envelope::in_success(value).is_some()) {
            self.error = Some(error.clone());
            return;
        }
        self.written = self.written.saturating_add(written(&event));
        // OpenAI's last chunk and Anthropic's deltas; Anthropic's first event; OpenAI's Responses.
        for place in ["/usage", "/message/usage", "/response/usage"] {
            if let Some(counts) = event.pointer(place).and_then(Value::as_object) {
                let known = counts.iter().filter(|(_, count)| !count.is_null());
                self.usage.extend(known.map(|(name, count)| (name.clone(), count.clone())));
            }
        }
        if let Some(counts) = event.get("usageMetadata") {
            self.of_gemini = counts.clone();
        }
    }

    /// Usage so far of a stream that may have been broken off, or that reports none: estimated from
    /// the answer's bytes and the request's estimated tokens. The vendor's counts take precedence.
    ///
    /// # Errors
    /// The errors of [`Vendor::read_reply`](crate::Vendor::read_reply).
    pub fn finish_estimated(self, input_tokens: u64) -> Result<ReplyFacts, Error> {
        let output = self.written.div_ceil(BYTES_PER_TOKEN);
        let mut facts = self.finish()?;
        let said = facts.usage.filter(|usage| usage.input() > 0);
        let usage =
            said.unwrap_or_else(|| Usage { uncached_input: input_tokens, ..Usage::default() });
        facts.usage = Some(Usage { output: usage.output.max(output), ..usage });
        Ok(facts)
    }

    /// Ends the stream: returns its usage, or the error with which it ended. A stream that was
    /// broken off has not ended, and its usage is unknown.
    ///
    /// # Errors
    /// The errors of [`Vendor::read_reply`].
    pub fn finish(mut self) -> Result<ReplyFacts, Error> {
        self.end_line();
        if let Some(error) = self.error {
            let reply = Reply::from_json(self.status, &error);
            return self.reader.read_reply(self.status, &self.headers, &reply.body);
        }
        let mut body = json!({});
        if !self.usage.is_empty() {
            body["usage"] = self.usage.into();
        }
        if !self.of_gemini.is_null() {
            body["usageMetadata"] = self.of_gemini;
        }
        self.reader.read_reply(self.status, &self.headers, body.to_string().as_bytes())
    }
}

/// Bytes of the answer in an event: OpenAI's chunks (text, reasoning, tools' arguments), its
/// Responses' deltas, and Anthropic's.
fn written(event: &Value) -> u64 {
    fn texts(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(texts).sum(),
            Value::Object(fields) => {
                let words = fields.iter().filter(|(name, _)| !IDS.contains(&name.as_str()));
                words.map(|(_, it)| texts(it)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    let choices = event.get("choices").and_then(Value::as_array).into_iter().flatten();
    let deltas = choices.filter_map(|choice| choice.get("delta")).chain(event.get("delta"));
    deltas.map(texts).sum::<usize>() as u64
}

/// Fields of a delta that the model did not write.
const IDS: [&str; 5] = ["role", "type", "id", "stop_reason", "stop_sequence"];
