//! What a call asks.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;
use tidegate_documents::tokens;
use tidegate_providers::{Document as Body, Request as Call};
use tidegate_types::ModelId;
use tidegate_workflows::contract::Job;

use crate::hash::hash;

/// Role markers and separators of one message.
const TOKENS_PER_MESSAGE: u64 = 8;

/// What of a document goes to the provider.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its text.
    Text(String),
    /// A PDF as it is, and its pages.
    Pdf(Bytes, usize),
}

impl Content {
    /// Estimated tokens of the document alone.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) => tokens::estimate(text),
            Self::Pdf(_, pages) => *pages as u64 * TOKENS_PER_PAGE,
        }
    }
}

/// A page as models that see it count it: between 258 (Gemini) and 3,000 and a picture (Anthropic).
/// Ratios are learned.
const TOKENS_PER_PAGE: u64 = 2_000;

/// What a call asks.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(super) instructions: Cow<'a, str>,
    content: &'a Content,
    schema: Option<Cow<'a, Value>>,
    pub(super) max_output_tokens: u32,
    /// Hash of what prompts like this one share.
    pub(super) template: u64,
    pub(super) cache: bool,
    /// How often `max_output_tokens` was raised.
    raises: u32,
}

impl<'a> Question<'a> {
    /// What a batch asks about one document.
    pub(crate) fn of(job: &'a Job, template: u64, content: &'a Content) -> Self {
        Self {
            instructions: Cow::Borrowed(&job.instructions),
            content,
            schema: job.schema.as_ref().map(Cow::Borrowed),
            max_output_tokens: job.max_output_tokens,
            template,
            cache: true,
            raises: 0,
        }
    }

    /// The same, with something said after the batch's instructions.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.instructions = format!("{}\n\n{note}", self.instructions).into();
        // Other instructions have other answers.
        self.template ^= hash([note.as_bytes()]);
        self
    }

    /// The same, asked once or seldom: a prefix that is read once costs more to write than it
    /// saves.
    pub(crate) fn uncached(self) -> Self {
        Self { cache: false, ..self }
    }

    /// The same with more room for the answer, after so many raises.
    pub(crate) fn with_room(self, raises: u32, max_output_tokens: u32) -> Self {
        Self { raises, max_output_tokens, ..self }
    }

    /// The same, after an answer that did not satisfy the schema. Documents so asked are few, and
    /// are not told apart from the others of their template.
    pub(crate) fn corrected(mut self, wrong: &str) -> Self {
        self.instructions = format!(
            "{}\n\nYour last answer was refused, because it does not satisfy the JSON Schema: {wrong}. Answer again, with JSON that satisfies it.",
            self.instructions
        )
        .into();
        self.uncached()
    }

    /// Names the calls whose use is learned together. Those with more room are the ones with long
    /// answers: what the others use says too little about them.
    pub(super) fn alike(&self) -> u64 {
        let raises = self.raises.to_le_bytes();
        if self.raises == 0 {
            self.template
        } else {
            self.template ^ hash([&b"raised"[..], &raises])
        }
    }

    /// The same, with another form of answer.
    pub(crate) fn answered_as(self, schema: Value, max_output_tokens: u32) -> Self {
        Self { schema: Some(Cow::Owned(schema)), max_output_tokens, ..self }
    }

    /// Estimated input tokens.
    pub(crate) fn input_tokens(&self) -> u64 {
        input_tokens(&self.instructions, self.content.tokens(), self.schema.as_deref())
    }

    /// As a provider takes it.
    pub(crate) fn call(&'a self, model: &'a ModelId) -> Call<'a> {
        Call {
            model: model.model(),
            instructions: &self.instructions,
            document: match self.content {
                Content::Text(text) => Body::Text(text),
                Content::Pdf(bytes, _) => Body::Pdf(bytes),
            },
            max_output_tokens: self.max_output_tokens,
            schema: self.schema.as_deref(),
            cache_instructions: self.cache,
        }
    }
}

/// Estimated input tokens of one call, before any provider has counted.
pub(crate) fn input_tokens(
    instructions: &str,
    document_tokens: u64,
    schema: Option<&Value>,
) -> u64 {
    let schema = schema.map_or(0, |schema| tokens::estimate(&schema.to_string()));
    tokens::estimate(instructions) + document_tokens + schema + 2 * TOKENS_PER_MESSAGE
}
