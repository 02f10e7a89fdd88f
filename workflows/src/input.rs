//! A batch's input, as typed after `--input` or built by the command line, and the checked [`Job`]
//! that it becomes.
//!
//! Each field is read by a function of `read` whose error says what the field must be;
//! [`serde_path_to_error`] adds the field's name.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use temporalio_common::data_converters::RawValue;
use tidegate_types::ModelId;

use crate::{
    contract::{Attach, Job, LIKELY_OUTPUT_TOKENS, Long, Mode, Source, Target, Task},
    payload,
};

mod batch_input;
pub mod call;
mod checks;
mod field;
mod names;
mod prompt;
mod read;
mod table;

pub use batch_input::BatchInput;
pub use field::{Field, Flag, Takes};
use prompt::Prompt;
pub use read::{MAX_PACK, Word, word};
pub use table::FIELDS;

/// Fits every current model, and leaves room for other calls in a quota per minute.
const DEFAULT_CHUNK_TOKENS: u32 = 20_000;

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
/// A sentence that states the fault, the field and the remedy.
pub fn parse(input: &RawValue) -> Result<Batch, String> {
    check(read(payload::value(input)?)?)
}

/// Reads a batch's input, field by field.
///
/// # Errors
/// A sentence that names the wrong field and the remedy.
pub fn read(value: Value) -> Result<BatchInput, String> {
    let value = named::<BatchInput>(value)?;
    if value.get("documents").is_some_and(|documents| !documents.is_array()) {
        return Err("documents must be a list of URIs, such as [\"file:///data/a.txt\"]".to_owned());
    }
    typed(value)
}

/// An object without its null fields. Other fields must be those of `T`.
fn named<T: DeserializeOwned>(value: Value) -> Result<Value, String> {
    let Some(fields) = value.as_object() else {
        return Err(format!("the input must be a JSON object, not {}", read::kind(&value)));
    };
    let known = names::field_names::<T>();
    if let Some(unknown) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(names::unknown(unknown, known));
    }
    Ok(read::without_nulls(value))
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| format!("{} {}", error.path(), error.inner()))
}

/// Checks conditions on several fields.
fn check(mut input: BatchInput) -> Result<Batch, String> {
    if input.output.is_empty() {
        return Err(
            "output is missing: a prefix for the results, such as file:///data/out/".to_owned()
        );
    }
    checks::check_task(&input)?;
    check_checks(&input)?;
    let task = input.task.unwrap_or_default();
    let instructions = std::mem::take(&mut input.instructions);
    let Prompt { system, before, instructions } = match task {
        _ if input.lines.is_some() => Prompt::default(),
        Task::Answer => prompt::checked(input.system.take(), input.messages.take(), instructions)?,
        Task::Embed => Prompt { instructions, ..Prompt::default() },
    };
    check_pack(&input, task, !before.is_empty())?;
    check_long(&input)?;
    let job = Job {
        source: source(input.source, input.documents, input.manifest)?,
        output: input.output,
        task,
        dimensions: input.dimensions,
        instructions,
        template: input.template == Some(true),
        system,
        messages: before,
        examples: input.examples,
        shown: Vec::new(),
        target: target(input.model, input.route)?,
        lane: input.lane.unwrap_or_default(),
        tenant: input.tenant.unwrap_or_default(),
        max_output_tokens: match task {
            Task::Answer => input.max_output_tokens.unwrap_or(LIKELY_OUTPUT_TOKENS),
            Task::Embed => 0,
        },
        default_output: task == Task::Answer && input.max_output_tokens.is_none(),
        on_cut: input.on_cut.unwrap_or_default(),
        schema: input.schema.map(Value::Object),
        checks: input.checks.unwrap_or_default(),
        escalate: input.escalate == Some(true),
        evidence: input.evidence == Some(true),
        parameters: input.parameters.unwrap_or_default(),
        effort: input.effort,
        asked_with: BTreeMap::new(),
        fallbacks: BTreeMap::new(),
        retry_budget: input.retry_budget,
        budget_usd: input.budget_usd,
        long: input.long.map(|how| Long {
            how,
            chunk_tokens: input.chunk_tokens.unwrap_or(DEFAULT_CHUNK_TOKENS),
        }),
        records: input.records,
        lines: input.lines,
        attach: input.attach.unwrap_or_default(),
        mode: input.mode,
        // The mode "direct" excludes the provider's batch API.
        deadline: input.deadline.filter(|_| input.mode != Some(Mode::Direct)),
        pack: checks::pack(input.pack, task),
        replace: input.replace == Some(true),
        reread: input.reread == Some(true),
        sample: input.sample,
        truth: input.truth,
        webhook: input.webhook,
        per_document: input.per_document != Some(false),
        results: input.results.unwrap_or_default(),
        results_jsonl: input.results_jsonl,
    };
    Ok(Batch { job, max_in_flight: input.max_in_flight })
}

/// Checks that answers with checks can be asked for again alone: not if they come from a call for
/// several documents, from a part of one, or from a provider's batch.
fn check_checks(input: &BatchInput) -> Result<(), String> {
    let unchecked = [
        ("pack", input.pack.is_some()),
        ("long", input.long.is_some()),
        ("mode \"economy\"", input.mode == Some(Mode::Economy)),
        ("deadline", input.deadline.is_some() && input.mode != Some(Mode::Direct)),
    ];
    let excluded = unchecked.iter().find(|(_, given)| *given).map(|(field, _)| *field);
    let escalates = (input.escalate == Some(true), input.route.as_deref());
    checks::check(input.checks.as_deref(), escalates, excluded, input.evidence == Some(true))
}

/// Checks that the documents of a batch with packs can share calls.
fn check_pack(input: &BatchInput, task: Task, has_turns: bool) -> Result<(), String> {
    if input.pack.is_none() {
        return Ok(());
    }
    let of_its_own = [
        ("template", input.template == Some(true)),
        ("messages", has_turns),
        ("examples", input.examples.is_some()),
    ];
    let of_its_own = of_its_own.iter().find(|(_, given)| *given && task == Task::Answer);
    if let Some((field, _)) = of_its_own {
        return Err(format!(
            "pack and {field} exclude each other: documents that share a call are asked in the same words, which are about several; leave out pack"
        ));
    }
    if input.evidence == Some(true) {
        return Err("evidence and pack exclude each other: quotes of several documents in one answer would be mixed up; leave out pack".to_owned());
    }
    if input.mode == Some(Mode::Economy) {
        return Err("mode \"economy\" and pack exclude each other: a provider's batches have no limit of requests; leave out pack".to_owned());
    }
    Ok(())
}

/// Checks that the documents of a batch with parts can be read in parts.
fn check_long(input: &BatchInput) -> Result<(), String> {
    if input.chunk_tokens.is_some() && input.long.is_none() {
        return Err(
            "chunk_tokens is of no use without long; add \"long\": \"map_reduce\"".to_owned()
        );
    }
    match input.attach {
        Some(attach) if attach != Attach::Text && input.long.is_some() => Err(format!(
            "attach \"{}\" and long exclude each other: only text can be divided; leave one out",
            attach.as_str()
        )),
        _ => Ok(()),
    }
}

fn source(
    prefix: Option<String>,
    documents: Option<Vec<String>>,
    manifest: Option<String>,
) -> Result<Source, String> {
    match (prefix, documents, manifest) {
        (Some(prefix), None, None) => Ok(Source::Prefix(prefix)),
        (None, Some(uris), None) => Ok(Source::Documents(uris)),
        (None, None, Some(uri)) => Ok(Source::Manifest(uri)),
        (None, None, None) => {
            Err("say where the documents are: source (a folder, file, glob or prefix), documents (a list) or manifest".to_owned())
        }
        (prefix, documents, manifest) => {
            let given = [
                prefix.map(|_| "source"),
                documents.map(|_| "documents"),
                manifest.map(|_| "manifest"),
            ];
            let given: Vec<&str> = given.into_iter().flatten().collect();
            Err(format!("give only one of {}", given.join(", ")))
        }
    }
}

fn target(model: Option<ModelId>, route: Option<String>) -> Result<Target, String> {
    match (model, route) {
        (Some(model), None) => Ok(Target::Model(model)),
        (None, Some(route)) => Ok(Target::Route(route)),
        (Some(_), Some(_)) => Err("give only one of model, route".to_owned()),
        (None, None) => {
            Err("model is missing; write provider:model, such as anthropic:claude-sonnet-5, or name a route".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
