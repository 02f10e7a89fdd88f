//! The checked request of a batch's author.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::{Effort, Lane, ModelId, Tenant};

use crate::contract::Fallback;

/// A checked batch: `ProcessDocuments` passes it to `tidegate.plan`, which stores it for the
/// documents' activities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The source of the documents.
    pub source: Source,
    /// The prefix for the results.
    pub output: String,
    /// The task for each document.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub task: Task,
    /// Dimensions of each vector; the model's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// The instructions for each document. For a batch that embeds: a template of the text to
    /// embed; empty for the document's own text.
    pub instructions: String,
    /// Whether `{{ … }}` in the prompt is replaced by the document's fields.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template: bool,
    /// The system prompt. If set, even if empty, the instructions stand before the document in the
    /// user's message; otherwise the instructions are the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Turns before the one with the instructions and the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The URI of documents with their expected answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<String>,
    /// Copy of those examples, made when the batch was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Example>,
    /// The model or the route.
    #[serde(flatten)]
    pub target: Target,
    /// The class of traffic.
    pub lane: Lane,
    /// The tenant whose budget pays.
    pub tenant: Tenant,
    /// Most output tokens per document; 0 for a batch that embeds.
    pub max_output_tokens: u32,
    /// Whether the author states no bound, so that the plan chooses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_output: bool,
    /// Handling of an answer that is cut or empty.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub on_cut: OnCut,
    /// JSON Schema that each answer must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// Checks that each answer must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Whether each next model of the route is asked about documents whose answers failed the
    /// checks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalate: bool,
    /// Whether each field of the answer comes with a supporting quote of the document.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evidence: bool,
    /// Fields of the vendor's request, as the author states them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The thinking effort of the model, as the author states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Parameters of models that do not use their own defaults: the author's values first, then
    /// those of the workers' configuration when the batch was planned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked_with: BTreeMap<ModelId, AskedWith>,
    /// The reason why each further model of the route may answer, as it was when the batch was
    /// planned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<ModelId, Fallback>,
    /// Provider calls beyond the first of each document, for the whole batch; `None` means three
    /// for each document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<u64>,
    /// Budget of the batch in US dollars; `None` means no budget of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// The way in which documents too long for one call are read. Without it they are sent whole,
    /// and may be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Long>,
    /// Set if each row of a CSV file and each line of a JSONL file is a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Records>,
    /// Set if its documents are requests in a vendor's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// The form in which PDFs go to the provider.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub attach: Attach,
    /// The provider's API to use; `None`: the batch API if the deadline allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The time by which the documents must be done; if that leaves enough time, they go through
    /// their provider's batch API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Set if small documents share calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Pack>,
    /// Whether the output may contain answers to another question: those that differ are asked
    /// again and replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Whether documents that an older reader has read are read again, and asked again if their
    /// text differs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reread: bool,
    /// The number of documents in a random sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    /// A JSONL object of expected answers; the report counts the answers that agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
    /// The name of the configured webhook that is called when the batch has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Whether to keep one object for each result when its shard is sealed.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub per_document: bool,
    /// The format of the sealed parts and of the combined results.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub results: ResultsAs,
    /// Whether `results.jsonl` is written; `None`: decided by the number of documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_jsonl: Option<bool>,
}

fn yes() -> bool {
    true
}

/// Output tokens that answers rarely exceed if the author states no bound: three pages.
pub const LIKELY_OUTPUT_TOKENS: u32 = 1_024;

impl Job {
    /// Output tokens that an answer rarely exceeds: the author's bound, or less if the bound is
    /// only a stop for endless answers. Forecasts, holds and packs use it.
    pub fn likely_output_tokens(&self) -> u32 {
        let embeds = self.lines.as_ref().is_some_and(|it| it.endpoint == Lines::EMBEDDINGS);
        if self.task == Task::Embed || embeds {
            0
        } else if self.default_output {
            let thought = self.thinking_tokens();
            self.max_output_tokens.min(LIKELY_OUTPUT_TOKENS.saturating_add(thought))
        } else {
            self.max_output_tokens
        }
    }

    /// The part of these tokens that is thinking before the answer, if the author or the workers'
    /// configuration states it; otherwise 0.
    pub fn thinking_tokens(&self) -> u32 {
        self.asked_with.values().map(AskedWith::thinking_tokens).max().unwrap_or_default()
    }

    /// The models that judge an answer.
    pub fn judges(&self) -> impl Iterator<Item = &Judge> {
        self.checks.iter().filter_map(|check| check.judge.as_ref())
    }

    /// The division of a text of this many tokens into parts; `None` if it is sent whole.
    pub fn in_parts(&self, tokens: u64) -> Option<Long> {
        self.long.filter(|long| tokens > u64::from(long.chunk_tokens))
    }
}

/// A check of an answer: an expression or a model's judgement. Without both, the name selects the
/// check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its unique name in results and reports.
    pub name: String,
    /// An expression of the template language that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// A model that judges the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
}

impl Check {
    /// Whether it is the check `evidence`: each quote of an answer must be in its document.
    pub fn is_of_quotes(&self) -> bool {
        self.name == "evidence" && self.expression.is_none() && self.judge.is_none()
    }
}

/// A model that judges answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// `provider:model`.
    pub model: ModelId,
    /// The condition that an answer must satisfy to pass.
    pub instructions: String,
}

/// The task for each document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The model answers it.
    #[default]
    Answer,
    /// Its text becomes a vector.
    Embed,
}

/// The parameters of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedWith {
    /// Its thinking effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Checked fields of the vendor's request.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl AskedWith {
    /// Whether the model is asked by its own defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn thinking_tokens(&self) -> u32 {
        let budget = self.parameters.get("thinking_budget").and_then(Value::as_u64);
        let budget = budget.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        budget.or_else(|| self.effort.map(Effort::thinking_tokens)).unwrap_or_default()
    }
}

/// Handling of an answer that is cut at `max_output_tokens`, or empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCut {
    /// The document is asked again with more room.
    #[default]
    Raise,
    /// It becomes the result, marked as cut.
    Keep,
    /// The document fails.
    Fail,
}

/// The format of results of several documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultsAs {
    /// One JSON object per line.
    #[default]
    Jsonl,
    /// Columnar tables.
    Parquet,
}

impl ResultsAs {
    /// The format's name, which is also the suffix of its objects.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// The other format.
    pub fn other(self) -> Self {
        match self {
            Self::Jsonl => Self::Parquet,
            Self::Parquet => Self::Jsonl,
        }
    }
}

/// The fields of a record that have a meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// The field with a record's name; without it, records are numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The field with its text; without it, all fields are the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub content: String,
}

/// The speaker of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system prompt; only as the first turn.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A document with its expected answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The document's text.
    pub document: String,
    /// The answer.
    pub answer: String,
    /// Further fields for templates.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// The model or the route that answers: exactly one of both in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This model.
    Model(ModelId),
    /// A configured list of models, by its name.
    Route(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(model) => write!(f, "{model}"),
            Self::Route(route) => write!(f, "route {route}"),
        }
    }
}

/// The source of a batch's documents: exactly one of the three in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A folder, file, glob or object-store prefix.
    Prefix(String),
    /// An explicit list of URIs.
    Documents(Vec<String>),
    /// The URI of a JSONL object with `{"id","uri"}` lines.
    Manifest(String),
}

/// How long documents are read in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Long {
    /// Handling of the parts' answers.
    pub how: LongHow,
    /// Maximum estimated tokens of a part. A document with no more is not long.
    pub chunk_tokens: u32,
}

/// Handling of the answers to a document's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongHow {
    /// The model combines them into one answer.
    MapReduce,
    /// The result lists them.
    PerChunk,
}

/// The form in which PDFs go to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attach {
    /// As their text.
    #[default]
    Text,
    /// Unchanged, for models that read the pages.
    Native,
    /// As text; pages with incomplete text as pictures.
    Auto,
}

impl Attach {
    /// Its word in the input.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Native => "native",
            Self::Auto => "auto",
        }
    }
}

/// The provider's API to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One call for each document, or for several.
    Direct,
    /// The batch API.
    Economy,
}

/// The time by which a batch must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// Seconds since 1970.
    At(u64),
    /// Seconds after the batch is planned.
    Within(u64),
}

/// The number of documents in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pack {
    /// As many as are needed until the request limit is no longer the tightest; one if another
    /// limit is tighter anyway.
    Fitting,
    /// At most this many.
    Of(u32),
}

/// A batch whose documents are requests: each line of its source has `custom_id`, `method`, `url`
/// and `body`, and the body is sent unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The operation: its path at the vendor's own host, such as `/v1/chat/completions`.
    pub endpoint: String,
    /// Models and routes that the requests name, as far as they were read beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Models and routes that the requests may name; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_ask: Vec<String>,
    /// The time after which no more lines are asked, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Lines {
    /// The endpoint for vectors, whose answers have no output tokens.
    pub const EMBEDDINGS: &str = "/v1/embeddings";

    /// Whether the form is Anthropic's, which returns all results in one file.
    pub fn is_anthropics(&self) -> bool {
        self.endpoint.starts_with("/v1/messages")
    }
}
