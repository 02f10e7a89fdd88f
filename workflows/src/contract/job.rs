//! What a batch's author asked for, checked.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::{Effort, Lane, ModelId, Tenant};

use super::{Fallback, lines::Lines};

/// A checked batch, as `ProcessDocuments` passes it to `tidegate.plan` and as it lies in the store
/// for the documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Where the documents come from.
    pub source: Source,
    /// Prefix for the results.
    pub output: String,
    /// What becomes of each document.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub task: Task,
    /// Numbers of each vector; as many as the model likes, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// What to do with each document. Of a batch that embeds, a template of the text that is
    /// embedded; empty where it is the document's own.
    pub instructions: String,
    /// `{{ … }}` in what is said stands for what is known of the document.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template: bool,
    /// The system prompt. Where it is stated, though it be empty, the instructions stand before the
    /// document in the user's message; else they are the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Turns before the one of the instructions and the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The URI of documents with the answers that are wanted of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<String>,
    /// What lay there when the batch was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Example>,
    /// The model or the route.
    #[serde(flatten)]
    pub target: Target,
    /// The class of traffic.
    pub lane: Lane,
    /// Whose budget pays.
    pub tenant: Tenant,
    /// Most output tokens per document; 0 of a batch that embeds.
    pub max_output_tokens: u32,
    /// The author states none: the plan chooses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_output: bool,
    /// What becomes of an answer that is cut or empty.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub on_cut: OnCut,
    /// JSON Schema that each answer must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// What each answer must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Each model of the route is asked about what has not passed the checks at the one before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalate: bool,
    /// Each field of the answer comes with the words of the document that it rests on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evidence: bool,
    /// Fields of the vendor's request, as the author states them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// How much the model thinks, as the author states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How each model is asked that is asked otherwise than by its own defaults: what the author
    /// states before what the workers' configuration did when the batch was planned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked_with: BTreeMap<ModelId, AskedWith>,
    /// Why each model of its route that is not the first may answer, as it was when the batch was
    /// planned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<ModelId, Fallback>,
    /// Provider calls beyond the first of each document, for the whole batch; `None` is three for
    /// each document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<u64>,
    /// US dollars that the batch may spend in all; `None` is no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// What becomes of documents that are too long for one call; without it they go whole, and may
    /// be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Long>,
    /// Each row of a CSV file and each line of a JSONL file is a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Records>,
    /// Its documents are requests in a vendor's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// PDFs go to the provider as they are, not as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attach_pdf: bool,
    /// Pages of PDFs from whose text something is missing go as pictures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attach_pages: bool,
    /// The documents go through their provider's batch API.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub economy: bool,
    /// When they must be done; where that is far enough, they go through their provider's batch
    /// API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Small documents share calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Pack>,
    /// The output may hold answers to another question: what differs is asked again and replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Documents whose results an older reader has read are read anew, and asked anew where their
    /// text differs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reread: bool,
    /// Only so many documents, drawn at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    /// A JSONL object of what answers should be; the report says how many are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
    /// The webhook that is told when the batch has ended, by its name in the workers' configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Each result keeps an object of its own when its shard is sealed.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub per_document: bool,
    /// As what results are written together: sealed parts, and all of them.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub results: ResultsAs,
    /// `results.jsonl` is written; `None` leaves it to the number of documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_jsonl: Option<bool>,
}

fn yes() -> bool {
    true
}

/// Output tokens that answers hardly exceed where the author states no bound: three pages.
pub const LIKELY_OUTPUT_TOKENS: u32 = 1_024;

impl Job {
    /// Output tokens that an answer hardly exceeds: what the author states, or less than what
    /// merely stops one that does not end. Forecasts, holds and packs are made from it.
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

    /// Of these, tokens that are thought before the answer where the author, or the workers'
    /// configuration, says how much; else none are known of.
    pub fn thinking_tokens(&self) -> u32 {
        self.asked_with.values().map(AskedWith::thinking_tokens).max().unwrap_or_default()
    }

    /// How a text of so many tokens is divided; `None` where it goes whole.
    pub fn in_parts(&self, tokens: u64) -> Option<Long> {
        self.long.filter(|long| tokens > u64::from(long.chunk_tokens))
    }
}

/// What an answer must pass: an expression, a model's judgement, or, with neither, what its name
/// says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Names it in results and reports; no other has the same.
    pub name: String,
    /// An expression of the template language that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// A model that says whether the answer passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
}

impl Check {
    /// The check `evidence`: whether each quote of an answer stands in its document.
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
    /// What an answer must be to pass.
    pub instructions: String,
}

/// What becomes of each document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// It is answered.
    #[default]
    Answer,
    /// Its text becomes a vector.
    Embed,
}

/// How one model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedWith {
    /// How much it thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Fields of the vendor's request, checked.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl AskedWith {
    /// Whether it is asked by its own defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn thinking_tokens(&self) -> u32 {
        let budget = self.parameters.get("thinking_budget").and_then(Value::as_u64);
        let budget = budget.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        budget.or_else(|| self.effort.map(Effort::thinking_tokens)).unwrap_or_default()
    }
}

/// What becomes of an answer that is cut at `max_output_tokens`, or empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCut {
    /// The document is asked again with more room.
    #[default]
    Raise,
    /// It is the result, and flagged.
    Keep,
    /// The document fails.
    Fail,
}

/// As what the results of several documents are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultsAs {
    /// One JSON object a line.
    #[default]
    Jsonl,
    /// Tables of columns.
    Parquet,
}

impl ResultsAs {
    /// Its word, which its objects' names end with as well.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// The other.
    pub fn other(self) -> Self {
        match self {
            Self::Jsonl => Self::Parquet,
            Self::Parquet => Self::Jsonl,
        }
    }
}

/// Which fields of a record say what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// The field that names a record; without it they are numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The field that is its text; without it all fields are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Whose it is.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever sets the rules: the first turn alone.
    System,
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
}

/// A document with the answer that is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The document's text.
    pub document: String,
    /// The answer.
    pub answer: String,
    /// What templates know of it beside.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// What answers: exactly one of the two in the input.
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

/// Where a batch's documents come from: exactly one of the three in the input.
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
    /// What becomes of the parts' answers.
    pub how: LongHow,
    /// Estimated tokens of a part at most. A document of no more than that is not long.
    pub chunk_tokens: u32,
}

/// What becomes of the answers to a document's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongHow {
    /// The model makes one answer of them.
    MapReduce,
    /// They stand side by side in the result.
    PerChunk,
}

/// When a batch must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// In seconds since 1970.
    At(u64),
    /// Seconds from the moment at which it is planned.
    Within(u64),
}

/// How many documents go into one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pack {
    /// As many as it takes for the limit of requests to bind no longer; one, where it does not.
    Fitting,
    /// So many at most.
    Of(u32),
}
