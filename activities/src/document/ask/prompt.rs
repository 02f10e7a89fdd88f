//! The question of a call.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde_json::Value;
use tidegate_calls::caller;
use tidegate_documents::tokens;
use tidegate_providers::{
    Document as Body, Parameters, Picture, Request as Call, picture, prompt::ATTACHED,
};
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{AskedWith, Job};

use crate::{document::ask::prompt_builder::PromptText, fingerprint::hash};

/// Factor by which the cap is raised; two raises make 16 times the batch's cap.
const RAISE: u32 = 4;

/// Tokens of a message's role markers and separators.
const TOKENS_PER_MESSAGE: u64 = 8;

/// The content of a document that is sent to the provider.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its text.
    Text(String),
    /// A PDF as it is, and its number of pages.
    Pdf(Bytes, usize),
    /// Pictures, and the text that belongs to them, if any.
    Pictures(String, Vec<Picture>),
}

impl Content {
    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Pdf(bytes, _) => bytes.len() as u64,
            Self::Pictures(text, pictures) => {
                let pictures = pictures.iter().map(|picture| picture.bytes.len());
                (text.len() + pictures.sum::<usize>()) as u64
            }
        }
    }

    /// Its text, as templates see it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Pictures(text, _) if !text.is_empty() => text,
            Self::Pictures(..) | Self::Pdf(..) => ATTACHED,
        }
    }

    /// The part that is sent as text.
    pub(crate) fn own_text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Pictures(text, _) => text,
            Self::Pdf(..) => "",
        }
    }

    /// Estimated tokens of the document alone, for any model.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens_of("")
    }

    /// Estimated tokens for a model, by its name.
    fn tokens_of(&self, model: &str) -> u64 {
        match self {
            Self::Text(text) => tokens::estimate(text),
            Self::Pdf(_, pages) => *pages as u64 * TOKENS_PER_PAGE,
            Self::Pictures(text, pictures) => {
                let each = |it: &Picture| picture::tokens(model, it.width, it.height);
                tokens::estimate(text) + pictures.iter().map(each).sum::<u64>()
            }
        }
    }
}

/// Tokens of a page that is sent as a picture: from 258 (Gemini) to 3,000 and a picture
/// (Anthropic). The limiter learns the ratio.
const TOKENS_PER_PAGE: u64 = 2_000;

/// The question of a call.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    wording: PromptText<'a>,
    content: &'a Content,
    schema: Option<Cow<'a, Value>>,
    max_output_tokens: u32,
    /// The cap that the author states or the plan chose; sent for every model, known or not.
    stated: u32,
    /// Output that is seldom exceeded, if it is far below the cap.
    likely: Option<u32>,
    asked_with: &'a BTreeMap<ModelId, AskedWith>,
    /// Hash of the parts that similar prompts share.
    pub(crate) template: u64,
    cache: bool,
    /// How often `max_output_tokens` was raised.
    raises: u32,
    /// Whether the document's own answer was cut.
    was_cut: bool,
}

impl<'a> Question<'a> {
    /// Builds the batch's question about one document.
    pub(crate) fn for_document(
        job: &'a Job,
        template: u64,
        wording: PromptText<'a>,
        content: &'a Content,
    ) -> Self {
        let cache = wording.is_shared;
        Self {
            wording,
            content,
            schema: job.schema.as_ref().map(Cow::Borrowed),
            max_output_tokens: job.max_output_tokens,
            stated: job.max_output_tokens,
            likely: job.default_output.then(|| job.likely_output_tokens()),
            asked_with: &job.asked_with,
            template,
            cache,
            raises: 0,
            was_cut: false,
        }
    }

    /// Adds a note after the batch's instructions.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.wording.add(note);
        // Different instructions get different answers.
        self.template ^= hash([note.as_bytes()]);
        self
    }

    /// Sets the schema of the answer.
    pub(crate) fn with_schema(self, schema: Option<Value>) -> Self {
        Self { schema: schema.map(Cow::Owned), ..self }
    }

    /// Turns prompt caching off for a question that is asked seldom: writing a prefix to the cache
    /// costs more than one read saves.
    pub(crate) fn without_cache(self) -> Self {
        Self { cache: false, ..self }
    }

    /// Sets how often the cap was raised, and whether the reason was the document's own cut answer
    /// or those of other documents.
    pub(crate) fn with_room(self, raises: u32, was_cut: bool) -> Self {
        let max_output_tokens = self.stated.saturating_mul(RAISE.saturating_pow(raises));
        // An answer that was cut once is likely to be long.
        let likely = self.likely.filter(|_| !was_cut);
        Self { raises, was_cut, max_output_tokens, likely, ..self }
    }

    /// The cap after one more raise, for a model with this cap.
    pub(crate) fn raised_room(&self, cap: Option<u32>) -> u32 {
        let raised = self.max_output_tokens.saturating_mul(RAISE);
        cap.map_or(raised, |cap| raised.min(cap.max(self.stated)))
    }

    /// Adds the fault of the answer before. Such documents are few, and share their template with
    /// the others.
    pub(crate) fn with_correction(mut self, correction: &str) -> Self {
        self.wording.add(correction);
        self.without_cache()
    }

    /// The question to a model that judges an answer, with a schema of its own.
    pub(crate) fn for_judge(
        wording: PromptText<'a>,
        content: &'a Content,
        schema: Value,
        (likely, max_output_tokens): (u32, u32),
    ) -> Self {
        static NONE: BTreeMap<ModelId, AskedWith> = BTreeMap::new();
        Self {
            template: hash([wording.system.as_bytes()]),
            wording,
            content,
            schema: Some(Cow::Owned(schema)),
            max_output_tokens,
            stated: 0,
            likely: Some(likely),
            asked_with: &NONE,
            cache: true,
            raises: 0,
            was_cut: false,
        }
    }

    /// Sets another schema of the answer, with this cap where the model allows it.
    pub(crate) fn with_schema_and_room(self, schema: Value, max_output_tokens: u32) -> Self {
        let (stated, likely) = (0, None);
        Self { schema: Some(Cow::Owned(schema)), max_output_tokens, stated, likely, ..self }
    }

    /// Estimated input tokens for any model.
    pub(crate) fn input_tokens_of_any_model(&self) -> u64 {
        input_tokens(&self.wording, self.content, "", self.schema.as_deref())
    }

    /// The estimated use of a call whose provider did not report it: of the request, and of the
    /// answer.
    pub(crate) fn estimate(&self, model: &ModelId, answer: &str) -> Usage {
        let (uncached_input, output) =
            (caller::Question::input_tokens(self, model), tokens::estimate(answer));
        Usage { uncached_input, output, ..Usage::default() }
    }
}

impl caller::Question for Question<'_> {
    /// Returns a separate template for documents whose answer was cut: their answers are long, and
    /// statistics of the others underestimate them.
    fn template(&self) -> u64 {
        let raises = self.raises.to_le_bytes();
        if self.was_cut { self.template ^ hash([&b"raised"[..], &raises]) } else { self.template }
    }

    fn input_tokens(&self, model: &ModelId) -> u64 {
        input_tokens(&self.wording, self.content, model.model(), self.schema.as_deref())
    }

    fn room(&self, cap: Option<u32>) -> u32 {
        cap.map_or(self.max_output_tokens, |cap| self.max_output_tokens.min(cap.max(self.stated)))
    }

    fn likely_output(&self, learned: Option<u64>) -> Option<u64> {
        self.likely.map(|likely| u64::from(likely).max(learned.unwrap_or_default()))
    }

    fn cached_instructions(&self) -> Option<(u64, &str)> {
        self.cache.then(|| (self.template, self.wording.system()))
    }

    fn call<'c>(&'c self, model: &'c ModelId, room: u32) -> Call<'c> {
        Call {
            model: model.model(),
            instructions: self.wording.system(),
            turns: &self.wording.turns,
            said: self.wording.document_turn(),
            document: match self.content {
                Content::Text(text) => Body::Text(text),
                Content::Pdf(bytes, _) => Body::Pdf(bytes),
                Content::Pictures(text, pictures) => Body::Pictures(text, pictures),
            },
            max_output_tokens: room,
            schema: self.schema.as_deref(),
            cache_instructions: self.cache,
            parameters: self.asked_with.get(model).map_or_else(Parameters::default, |with| {
                Parameters { effort: with.effort, fields: Some(&with.parameters) }
            }),
        }
    }
}

/// Estimated input tokens of one call, before any provider has counted.
pub(crate) fn input_tokens(
    wording: &PromptText<'_>,
    content: &Content,
    model: &str,
    schema: Option<&Value>,
) -> u64 {
    let schema = schema.map_or(0, |schema| tokens::estimate(&schema.to_string()));
    let (words, with_document) = wording.tokens();
    // Pictures and PDFs are counted in any case.
    let counted = if with_document { tokens::estimate(content.own_text()) } else { 0 };
    let document_tokens = content.tokens_of(model).saturating_sub(counted);
    let messages = 2 + wording.turns.len() as u64;
    words + document_tokens + schema + messages * TOKENS_PER_MESSAGE
}
