//! A batch's input, as typed after `--input` or built by the command line, and the checked [`Job`]
//! that it becomes.
//!
//! Each field is read by a function of `read` whose error says what the field must be;
//! [`serde_path_to_error`] adds the field's name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use temporalio_common::data_converters::RawValue;
use tidegate_types::{Effort, Lane, ModelId, Tenant};

use crate::{
    contract::{
        Check, Deadline, Job, LIKELY_OUTPUT_TOKENS, Lines, Long, LongHow, Message, OnCut, Pack,
        Records, ResultsAs, Source, Target, Task,
    },
    payload,
};

pub mod call;
mod checks;
mod field;
mod names;
mod read;
mod said;
mod table;
mod task;

pub use field::{Field, Flag, Takes};
pub use read::{Attach, MAX_PACK, Mode, Word, word};
use said::Said;
pub use table::FIELDS;

const MAX_OUTPUT: u64 = 1_000_000;

/// More dimensions than any model returns.
const MAX_DIMENSIONS: u64 = 65_536;

/// Fits every current model, and leaves room in a quota per minute for other calls.
const DEFAULT_CHUNK_TOKENS: u32 = 20_000;
const MIN_CHUNK: u64 = 500;
const MAX_CHUNK: u64 = 1_000_000;

/// A batch's input. An absent field has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchInput {
    /// A folder, file, glob or object-store prefix.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Instead of `source`: an explicit list of URIs.
    #[serde(deserialize_with = "read::uris", skip_serializing_if = "Option::is_none")]
    pub documents: Option<Vec<String>>,
    /// Instead of `source`: a JSONL object of `{"id","uri"}` lines.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// A prefix for the results.
    #[serde(deserialize_with = "read::text")]
    pub output: String,
    /// The task for each document: `answer` or `embed`.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// Dimensions of each vector.
    #[serde(
        deserialize_with = "read::whole::<_, _, 1, MAX_DIMENSIONS>",
        skip_serializing_if = "Option::is_none"
    )]
    pub dimensions: Option<u32>,
    /// What to do with each document.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// `{{ … }}` in the instructions is replaced by the document's fields.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub template: Option<bool>,
    /// The system prompt. With it, the instructions stand before the document.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Instead of `instructions`: several turns; the last is about the document.
    #[serde(deserialize_with = "read::messages", skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// A JSONL object of `{"document","answer"}` lines, shown to the model first.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub examples: Option<String>,
    /// The model that answers, or
    #[serde(deserialize_with = "read::model", skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// a configured list of models.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The class of traffic.
    #[serde(deserialize_with = "read::name", skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// The tenant whose budget pays.
    #[serde(deserialize_with = "read::name", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// Most output tokens per document.
    #[serde(
        deserialize_with = "read::whole::<_, _, 1, MAX_OUTPUT>",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_output_tokens: Option<u32>,
    /// What happens to an answer that is cut or empty.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub on_cut: Option<OnCut>,
    /// JSON Schema that each answer must satisfy.
    #[serde(deserialize_with = "read::schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// Checks that each answer must pass.
    #[serde(deserialize_with = "read::checks", skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<Check>>,
    /// Each next model of the route is asked about documents whose answers failed the checks.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub escalate: Option<bool>,
    /// Each field of the answer comes with the quote of the document that supports it.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub evidence: Option<bool>,
    /// Fields of the vendor's request: temperature, seed, service tier and others.
    #[serde(deserialize_with = "read::parameters", skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// How much a reasoning model thinks.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Documents in flight at once; without it, as many as the limits can use.
    #[serde(
        deserialize_with = "read::whole::<_, _, 1, { u32::MAX as u64 }>",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_in_flight: Option<u32>,
    /// Provider calls beyond the first of each document, for the whole batch.
    #[serde(
        deserialize_with = "read::whole::<_, _, 0, { u64::MAX }>",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_budget: Option<u64>,
    /// Budget of the batch, in US dollars.
    #[serde(deserialize_with = "read::dollars", skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// How documents that are too long for one call are read.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub long: Option<LongHow>,
    /// Most tokens of a part of a long document.
    #[serde(
        deserialize_with = "read::whole::<_, _, MIN_CHUNK, MAX_CHUNK>",
        skip_serializing_if = "Option::is_none"
    )]
    pub chunk_tokens: Option<u32>,
    /// Each row of a CSV or Parquet file and each line of a JSONL file is a document.
    #[serde(deserialize_with = "read::records", skip_serializing_if = "Option::is_none")]
    pub records: Option<Records>,
    /// Each line of the source is a request in a vendor's own form.
    #[serde(deserialize_with = "read::lines", skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// How PDFs go to the provider.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub attach: Option<Attach>,
    /// Which of the provider's APIs is used.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// When the batch must be done.
    #[serde(
        deserialize_with = "read::given",
        serialize_with = "read::write_deadline",
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline: Option<Deadline>,
    /// Small documents share calls.
    #[serde(
        deserialize_with = "read::pack",
        serialize_with = "read::write_pack",
        skip_serializing_if = "Option::is_none"
    )]
    pub pack: Option<Pack>,
    /// The output may hold answers to another question: those that differ are asked again and
    /// replaced.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Documents that an older reader has read are read again, and asked again if their text
    /// differs.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub reread: Option<bool>,
    /// The number of documents in a random sample. The whole batch does not buy them again.
    #[serde(
        deserialize_with = "read::whole::<_, _, 1, { u32::MAX as u64 }>",
        skip_serializing_if = "Option::is_none"
    )]
    pub sample: Option<u32>,
    /// A JSONL object of `{"id","expected"}` lines; the report says how many answers agree with it.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
    /// A configured webhook, which is called when the batch has ended.
    #[serde(deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Writes one object for each document beside the sealed parts (the default).
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub per_document: Option<bool>,
    /// The format of combined results: `jsonl` or `parquet`.
    #[serde(deserialize_with = "read::given", skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsAs>,
    /// Writes all results into one object too; by default up to 100,000 documents.
    #[serde(deserialize_with = "read::flag", skip_serializing_if = "Option::is_none")]
    pub results_jsonl: Option<bool>,
}

/// A checked input.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The job.
    pub job: Job,
    /// Documents in flight at once, from 1; without it, as many as the limits can use.
    pub max_in_flight: Option<u32>,
}

/// Reads and checks a batch's input.
///
/// # Errors
/// A sentence that says what is wrong, in which field, and what to write.
pub fn parse(input: &RawValue) -> Result<Batch, String> {
    read(payload::value(input)?)?.check()
}

/// Reads a batch's input, field by field.
///
/// # Errors
/// A sentence that names the wrong field and says what to write.
pub fn read(value: Value) -> Result<BatchInput, String> {
    let value = named::<BatchInput>(value)?;
    if value.get("documents").is_some_and(|documents| !documents.is_array()) {
        return Err("documents must be a list of URIs, such as [\"file:///data/a.txt\"]".to_owned());
    }
    typed(value)
}

/// An object without its null fields, which count as absent. Other fields must be those of `T`.
fn named<T: DeserializeOwned>(mut value: Value) -> Result<Value, String> {
    let Some(fields) = value.as_object_mut() else {
        return Err(format!("the input must be a JSON object, not {}", read::kind(&value)));
    };
    let known = names::of::<T>();
    if let Some(unknown) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(names::unknown(unknown, known));
    }
    fields.retain(|_, value| !value.is_null());
    Ok(value)
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| format!("{} {}", error.path(), error.inner()))
}

impl BatchInput {
    /// Checks that need several fields.
    fn check(self) -> Result<Batch, String> {
        if self.output.is_empty() {
            return Err(
                "output is missing: a prefix for the results, such as file:///data/out/".to_owned()
            );
        }
        task::check(&self)?;
        // An answer that fails could not be asked for again alone if it came from a call for
        // several documents, from a part of one, or from a provider's batch.
        let unchecked = [
            ("pack", self.pack.is_some()),
            ("long", self.long.is_some()),
            ("mode \"economy\"", self.mode == Some(Mode::Economy)),
            ("deadline", self.deadline.is_some() && self.mode != Some(Mode::Direct)),
        ];
        let excluded = unchecked.iter().find(|(_, given)| *given).map(|(field, _)| *field);
        let escalates = (self.escalate == Some(true), self.route.as_deref());
        let has_evidence = self.evidence == Some(true);
        checks::check(self.checks.as_deref(), escalates, excluded, has_evidence)?;
        let task = self.task.unwrap_or_default();
        let Said { system, before, instructions } = match task {
            _ if self.lines.is_some() => Said::default(),
            Task::Answer => said::checked(self.system, self.messages, self.instructions)?,
            Task::Embed => Said { instructions: self.instructions, ..Said::default() },
        };
        let template = self.template == Some(true);
        let of_its_own = [
            ("template", template),
            ("messages", !before.is_empty()),
            ("examples", self.examples.is_some()),
        ];
        let of_its_own = of_its_own.iter().find(|(_, given)| *given && task == Task::Answer);
        if let (Some((field, _)), Some(_)) = (of_its_own, self.pack) {
            return Err(format!(
                "pack and {field} exclude each other: documents that share a call are asked in the same words, which are about several; leave out pack"
            ));
        }
        if self.evidence == Some(true) && self.pack.is_some() {
            return Err("evidence and pack exclude each other: quotes of several documents in one answer would be mixed up; leave out pack".to_owned());
        }
        let source = match (self.source, self.documents, self.manifest) {
            (Some(prefix), None, None) => Source::Prefix(prefix),
            (None, Some(uris), None) => Source::Documents(uris),
            (None, None, Some(uri)) => Source::Manifest(uri),
            (None, None, None) => {
                return Err("say where the documents are: source (a folder, file, glob or prefix), documents (a list) or manifest".to_owned());
            }
            (source, documents, manifest) => {
                let given = [
                    source.map(|_| "source"),
                    documents.map(|_| "documents"),
                    manifest.map(|_| "manifest"),
                ];
                let given: Vec<&str> = given.into_iter().flatten().collect();
                return Err(format!("give only one of {}", given.join(", ")));
            }
        };
        let target = match (self.model, self.route) {
            (Some(model), None) => Target::Model(model),
            (None, Some(route)) => Target::Route(route),
            (Some(_), Some(_)) => return Err("give only one of model, route".to_owned()),
            (None, None) => {
                return Err("model is missing; write provider:model, such as anthropic:claude-sonnet-5, or name a route".to_owned());
            }
        };
        if self.chunk_tokens.is_some() && self.long.is_none() {
            return Err(
                "chunk_tokens is of no use without long; add \"long\": \"map_reduce\"".to_owned()
            );
        }
        let chunk_tokens = self.chunk_tokens.unwrap_or(DEFAULT_CHUNK_TOKENS);
        let attach_pdf = self.attach == Some(Attach::Native);
        let attach_pages = self.attach == Some(Attach::Auto);
        if (attach_pdf || attach_pages) && self.long.is_some() {
            let how = if attach_pdf { "native" } else { "auto" };
            return Err(format!(
                "attach \"{how}\" and long exclude each other: only text can be divided; leave one out"
            ));
        }
        let economy = self.mode == Some(Mode::Economy);
        if economy && self.pack.is_some() {
            return Err("mode \"economy\" and pack exclude each other: a provider's batches have no limit of requests; leave out pack".to_owned());
        }
        let job = Job {
            source,
            output: self.output,
            task,
            dimensions: self.dimensions,
            instructions,
            template,
            system,
            messages: before,
            examples: self.examples,
            shown: Vec::new(),
            target,
            lane: self.lane.unwrap_or_default(),
            tenant: self.tenant.unwrap_or_default(),
            max_output_tokens: match task {
                Task::Answer => self.max_output_tokens.unwrap_or(LIKELY_OUTPUT_TOKENS),
                Task::Embed => 0,
            },
            default_output: task == Task::Answer && self.max_output_tokens.is_none(),
            on_cut: self.on_cut.unwrap_or_default(),
            schema: self.schema.map(Value::Object),
            checks: self.checks.unwrap_or_default(),
            escalate: self.escalate == Some(true),
            evidence: self.evidence == Some(true),
            parameters: self.parameters.unwrap_or_default(),
            effort: self.effort,
            asked_with: BTreeMap::new(),
            fallbacks: BTreeMap::new(),
            retry_budget: self.retry_budget,
            budget_usd: self.budget_usd,
            long: self.long.map(|how| Long { how, chunk_tokens }),
            records: self.records,
            lines: self.lines,
            attach_pdf,
            attach_pages,
            economy,
            // The mode "direct" excludes the provider's batch API.
            deadline: self.deadline.filter(|_| self.mode != Some(Mode::Direct)),
            pack: task::pack(self.pack, task),
            replace: self.replace == Some(true),
            reread: self.reread == Some(true),
            sample: self.sample,
            truth: self.truth,
            webhook: self.webhook,
            per_document: self.per_document != Some(false),
            results: self.results.unwrap_or_default(),
            results_jsonl: self.results_jsonl,
        };
        Ok(Batch { job, max_in_flight: self.max_in_flight })
    }
}

#[cfg(test)]
mod tests;
