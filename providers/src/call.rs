//! One call and its completion.

use std::{fmt, future::Future, pin::Pin};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_types::Usage;

use crate::{
    observed::Observed,
    parameters::Parameters,
    picture::Picture,
    turn::{Said, Turn},
};

/// A boxed future, so that providers can be `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One call to make.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The model's name as the provider knows it, without the `provider:` part.
    pub model: &'a str,
    /// The instructions for the document; sent as the system prompt.
    pub instructions: &'a str,
    /// Turns before the document's own: the first is the user's, the last the model's.
    pub turns: &'a [Turn],
    /// Text around the document in its own turn.
    pub said: Said<'a>,
    /// The document; sent as the user's message.
    pub document: Document<'a>,
    /// Maximum output tokens, reasoning included.
    pub max_output_tokens: u32,
    /// JSON Schema that the provider is asked to follow. The caller must check the answer.
    pub schema: Option<&'a Value>,
    /// Whether many calls begin with the same instructions: then asks for caching, if the provider
    /// needs to be asked. A prefix shorter than 1,024 to 4,096 tokens (by model) is not cached,
    /// which is no error.
    pub cache_instructions: bool,
    /// Further fields of the vendor's request.
    pub parameters: Parameters<'a>,
}

/// The document of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Document<'a> {
    /// Text.
    Text(&'a str),
    /// A PDF without conversion, for models that read its pages themselves.
    Pdf(&'a [u8]),
    /// Pictures, and the text that belongs to them, if any.
    Pictures(&'a str, &'a [Picture]),
}

impl<'a> Document<'a> {
    /// Its text, as far as there is one.
    pub(crate) fn text(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Pictures(text, _) => text,
            Self::Pdf(_) => "",
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Pdf(bytes) => bytes.len(),
            Self::Pictures(text, pictures) => {
                text.len() + pictures.iter().map(|picture| picture.bytes.len()).sum::<usize>()
            }
        }
    }
}

/// The size instead of the text.
impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Text(_) => "Text",
            Self::Pdf(_) => "Pdf",
            Self::Pictures(..) => "Pictures",
        };
        write!(f, "{kind}({} bytes)", self.len())
    }
}

/// Shows sizes instead of texts: prompts and documents must not be logged.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("model", &self.model)
            .field("instructions_bytes", &self.instructions.len())
            .field("turns", &self.turns)
            .field("said", &self.said)
            .field("document", &self.document)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("has_schema", &self.schema.is_some())
            .field("effort", &self.parameters.effort)
            .finish()
    }
}

/// The outcome of a call.
#[derive(Clone, PartialEq)]
pub struct Completion {
    /// The answer's text, whole unless [`Self::stop_reason`] differs; may be empty.
    pub answer: String,
    /// The reason why the model stopped.
    pub stop_reason: StopReason,
    /// Tokens used; `None` if the provider did not report them, which differs from zero.
    pub usage: Option<Usage>,
    /// Limits and remaining quota, as the response's headers state them.
    pub observed: Observed,
}

/// The answer's size instead of its text.
impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("answer_bytes", &self.answer.len())
            .field("stop_reason", &self.stop_reason)
            .field("usage", &self.usage)
            .field("observed", &self.observed)
            .finish()
    }
}

/// Whether an answer is whole. A call without an answer is an [`Error`](crate::Error).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished.
    Complete,
    /// It ran out of output tokens.
    Cut,
    /// The provider gave no reason, or an unknown one.
    Unknown,
}

/// The reason why the model stopped. A refusal is no stop reason but an [`Error`](crate::Error) of
/// kind [`ContentRefused`](crate::Kind::ContentRefused); tool calls and failures are errors too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// The answer was cut at `max_output_tokens`. The call succeeded; only a larger bound gives
    /// more.
    MaxTokens,
    /// A stop sequence was reached.
    StopSequence,
    /// An unknown reason in the provider's word, at most 64 characters.
    Other(String),
}

impl StopReason {
    /// The name, the same for all providers; unknown reasons stay in the provider's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Other(word) => word,
        }
    }

    /// Whether the answer is whole, as the provider reports it. It may still be empty.
    pub fn finish(&self) -> Finish {
        match self {
            Self::EndTurn | Self::StopSequence => Finish::Complete,
            Self::MaxTokens => Finish::Cut,
            Self::Other(_) => Finish::Unknown,
        }
    }

    /// Keeps a provider's own word; an invalid one becomes `unknown`.
    pub(crate) fn other(word: Option<&str>) -> Self {
        let word: String = word
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-')
            .take(64)
            .collect();
        Self::Other(if word.is_empty() { "unknown".to_owned() } else { word })
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
