//! A batch's input as its author writes it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::{Effort, Lane, ModelId, Tenant};

use crate::{
    contract::{
        Attach, Check, Deadline, Lines, LongHow, Message, Mode, OnCut, Pack, Records, ResultsAs,
        Task,
    },
    input::read,
};

pub(super) const MAX_OUTPUT: u64 = 1_000_000;

/// Above the dimensions of any model.
pub(super) const MAX_DIMENSIONS: u64 = 65_536;

const MIN_CHUNK: u64 = 500;
const MAX_CHUNK: u64 = 1_000_000;

/// A batch's input. An absent field has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchInput {
    /// A folder, file, glob or object-store prefix.
    #[serde(deserialize_with = "read::text")]
    pub source: Option<String>,
    /// Instead of `source`: an explicit list of URIs.
    #[serde(deserialize_with = "read::uris")]
    pub documents: Option<Vec<String>>,
    /// Instead of `source`: a JSONL object of `{"id","uri"}` lines.
    #[serde(deserialize_with = "read::text")]
    pub manifest: Option<String>,
    /// A prefix for the results.
    #[serde(deserialize_with = "read::text")]
    pub output: String,
    /// The task for each document: `answer` or `embed`.
    #[serde(deserialize_with = "read::given")]
    pub task: Option<Task>,
    /// Dimensions of each vector.
    #[serde(deserialize_with = "read::whole::<_, _, 1, MAX_DIMENSIONS>")]
    pub dimensions: Option<u32>,
    /// The instructions for each document.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// `{{ … }}` in the instructions is replaced by the document's fields.
    #[serde(deserialize_with = "read::flag")]
    pub template: Option<bool>,
    /// The system prompt. With it, the instructions stand before the document.
    #[serde(deserialize_with = "read::text")]
    pub system: Option<String>,
    /// Instead of `instructions`: several turns; the last is about the document.
    #[serde(deserialize_with = "read::messages")]
    pub messages: Option<Vec<Message>>,
    /// A JSONL object of `{"document","answer"}` lines, shown to the model first.
    #[serde(deserialize_with = "read::text")]
    pub examples: Option<String>,
    /// The model that answers, or
    #[serde(deserialize_with = "read::model")]
    pub model: Option<ModelId>,
    /// a configured list of models.
    #[serde(deserialize_with = "read::text")]
    pub route: Option<String>,
    /// The class of traffic.
    #[serde(deserialize_with = "read::name")]
    pub lane: Option<Lane>,
    /// The tenant whose budget pays.
    #[serde(deserialize_with = "read::name")]
    pub tenant: Option<Tenant>,
    /// Most output tokens per document.
    #[serde(deserialize_with = "read::whole::<_, _, 1, MAX_OUTPUT>")]
    pub max_output_tokens: Option<u32>,
    /// Handling of an answer that is cut or empty.
    #[serde(deserialize_with = "read::given")]
    pub on_cut: Option<OnCut>,
    /// JSON Schema that each answer must satisfy.
    #[serde(deserialize_with = "read::schema")]
    pub schema: Option<Map<String, Value>>,
    /// Checks that each answer must pass.
    #[serde(deserialize_with = "read::checks")]
    pub checks: Option<Vec<Check>>,
    /// Each next model of the route is asked about documents whose answers failed the checks.
    #[serde(deserialize_with = "read::flag")]
    pub escalate: Option<bool>,
    /// Each field of the answer comes with the quote of the document that supports it.
    #[serde(deserialize_with = "read::flag")]
    pub evidence: Option<bool>,
    /// Fields of the vendor's request: temperature, seed, service tier and others.
    #[serde(deserialize_with = "read::parameters")]
    pub parameters: Option<Map<String, Value>>,
    /// The thinking effort of a reasoning model.
    #[serde(deserialize_with = "read::given")]
    pub effort: Option<Effort>,
    /// Documents in flight at once; without it, as many as the limits can use.
    #[serde(deserialize_with = "read::whole::<_, _, 1, { u32::MAX as u64 }>")]
    pub max_in_flight: Option<u32>,
    /// Provider calls beyond the first of each document, for the whole batch.
    #[serde(deserialize_with = "read::whole::<_, _, 0, { u64::MAX }>")]
    pub retry_budget: Option<u64>,
    /// Budget of the batch, in US dollars.
    #[serde(deserialize_with = "read::dollars")]
    pub budget_usd: Option<f64>,
    /// The way in which documents too long for one call are read.
    #[serde(deserialize_with = "read::given")]
    pub long: Option<LongHow>,
    /// Most tokens of a part of a long document.
    #[serde(deserialize_with = "read::whole::<_, _, MIN_CHUNK, MAX_CHUNK>")]
    pub chunk_tokens: Option<u32>,
    /// Each row of a CSV or Parquet file and each line of a JSONL file is a document.
    #[serde(deserialize_with = "read::records")]
    pub records: Option<Records>,
    /// Each line of the source is a request in a vendor's own form.
    #[serde(deserialize_with = "read::lines")]
    pub lines: Option<Lines>,
    /// The form in which PDFs go to the provider.
    #[serde(deserialize_with = "read::given")]
    pub attach: Option<Attach>,
    /// The provider's API to use.
    #[serde(deserialize_with = "read::given")]
    pub mode: Option<Mode>,
    /// The time by which the batch must be done.
    #[serde(deserialize_with = "read::given", serialize_with = "read::write_deadline")]
    pub deadline: Option<Deadline>,
    /// Small documents share calls.
    #[serde(deserialize_with = "read::pack", serialize_with = "read::write_pack")]
    pub pack: Option<Pack>,
    /// The output may hold answers to another question: those that differ are asked again and
    /// replaced.
    #[serde(deserialize_with = "read::flag")]
    pub replace: Option<bool>,
    /// Documents that an older reader has read are read again, and asked again if their text
    /// differs.
    #[serde(deserialize_with = "read::flag")]
    pub reread: Option<bool>,
    /// The number of documents in a random sample. The whole batch does not buy them again.
    #[serde(deserialize_with = "read::whole::<_, _, 1, { u32::MAX as u64 }>")]
    pub sample: Option<u32>,
    /// A JSONL object of `{"id","expected"}` lines; the report says how many answers agree with it.
    #[serde(deserialize_with = "read::text")]
    pub truth: Option<String>,
    /// A configured webhook, which is called when the batch has ended.
    #[serde(deserialize_with = "read::text")]
    pub webhook: Option<String>,
    /// Writes one object for each document beside the sealed parts (the default).
    #[serde(deserialize_with = "read::flag")]
    pub per_document: Option<bool>,
    /// The format of combined results: `jsonl` or `parquet`.
    #[serde(deserialize_with = "read::given")]
    pub results: Option<ResultsAs>,
    /// Writes all results into one object too; by default up to 100,000 documents.
    #[serde(deserialize_with = "read::flag")]
    pub results_jsonl: Option<bool>,
}

impl BatchInput {
    /// The input as JSON, without absent fields.
    ///
    /// # Errors
    /// The deadline is no time.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self).map(read::without_nulls)
    }
}
