//! From a batch's raw input to a checked [`Job`].
//!
//! The input is whatever somebody typed after `--input`. It is read by hand, because a decoding
//! error would fail the workflow task, for ever, and never the workflow; and because each fault
//! deserves a sentence.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use temporalio_common::{data_converters::RawValue, protos::temporal::api::common::v1::Payload};
use temporalio_workflow::WorkflowTermination;
use tidegate_types::{Lane, ModelId, Tenant};

use crate::contract::{Deadline, Job, Long, LongHow, Pack, Records, Source, Target};

/// Most documents in flight in one batch: Temporal's own advice is at most 500 pending activities
/// per workflow.
pub const MAX_IN_FLIGHT: u64 = 500;

const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 1_024;
const MAX_OUTPUT: u64 = 1_000_000;
const CONTINUED: &str = "continued";

/// Fits every model of today, and leaves a minute's quota room for others.
const DEFAULT_CHUNK_TOKENS: u64 = 20_000;
const MIN_CHUNK: u64 = 500;
const MAX_CHUNK: u64 = 1_000_000;

/// Most documents in one call. An answer to more is long, and all of it is lost with one mistake in
/// it.
pub const MAX_PACK: u64 = 50;

/// Ten years, in seconds: what lies further off is a slip.
const MAX_DEADLINE: u64 = 10 * 365 * 86_400;

const FIELDS: [&str; 21] = [
    "source",
    "documents",
    "manifest",
    "output",
    "instructions",
    "model",
    "route",
    "lane",
    "tenant",
    "max_output_tokens",
    "schema",
    "max_in_flight",
    "retry_budget",
    "budget_usd",
    "long",
    "chunk_tokens",
    "records",
    "attach",
    "mode",
    "deadline",
    "pack",
];

/// A checked input.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// What is to be done.
    pub job: Job,
    /// Documents in flight at once, 1 to [`MAX_IN_FLIGHT`].
    pub max_in_flight: u32,
}

/// Checks a batch's input.
///
/// # Errors
/// A sentence that says what is wrong, where, and what to write.
pub fn parse(input: &RawValue) -> Result<Batch, String> {
    check(value(input)?)
}

/// What a run that continued as new passed on, if the input is that.
#[must_use]
pub fn continued<T: DeserializeOwned>(input: &RawValue) -> Option<T> {
    let mut value = value(input).ok()?;
    serde_json::from_value(value.get_mut(CONTINUED)?.take()).ok()
}

/// The input of a run that continues this one.
///
/// # Errors
/// Fails the workflow where the state cannot be written as JSON.
pub fn continue_with<T: Serialize>(state: &T) -> Result<RawValue, WorkflowTermination> {
    encode(&json!({ CONTINUED: state }))
}

/// A value as one JSON payload.
///
/// # Errors
/// Fails the workflow where it cannot be written as JSON.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<RawValue, WorkflowTermination> {
    let data = serde_json::to_vec(value).map_err(|error| {
        WorkflowTermination::failed_application(
            temporalio_common::error::ApplicationFailure::non_retryable(error),
        )
    })?;
    let metadata = [("encoding".to_owned(), b"json/plain".to_vec())].into_iter().collect();
    Ok(RawValue::new(vec![Payload { metadata, data, ..Payload::default() }]))
}

/// What [`encode`] wrote; `None` for anything else.
pub(crate) fn decode<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_value(value(raw).ok()?).ok()
}

fn value(input: &RawValue) -> Result<Value, String> {
    let [payload] = input.payloads.as_slice() else {
        return Err(format!(
            "the input must be one JSON object, not {}; for example --input '{{\"source\":\"file:///data/in/\",\"output\":\"file:///data/out/\",\"instructions\":\"Summarise.\",\"model\":\"anthropic:claude-sonnet-5\"}}'",
            if input.payloads.is_empty() {
                "nothing".to_owned()
            } else {
                format!("{} values", input.payloads.len())
            }
        ));
    };
    let encoding =
        payload.metadata.get("encoding").map_or("", |name| std::str::from_utf8(name).unwrap_or(""));
    if !encoding.starts_with("json/") {
        return Err(format!(
            "the input must be a JSON object, and came as \"{}\"",
            encoding.escape_debug()
        ));
    }
    serde_json::from_slice(&payload.data).map_err(|error| format!("the input is not JSON: {error}"))
}

fn check(value: Value) -> Result<Batch, String> {
    let Value::Object(mut fields) = value else {
        return Err(format!("the input must be a JSON object, not {}", kind(&value)));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(unknown_field(unknown));
    }
    // A field that is null counts as absent.
    fields.retain(|_, value| !value.is_null());
    let source = source(&mut fields)?;
    let output =
        required(&mut fields, "output", "a prefix for the results, such as file:///data/out/")?;
    let instructions = required(&mut fields, "instructions", "what to do with each document")?;
    let target = target(&mut fields)?;
    let lane = name::<Lane>(&mut fields, "lane")?;
    let tenant = name::<Tenant>(&mut fields, "tenant")?;
    let max_output_tokens = integer(&mut fields, "max_output_tokens", 1, MAX_OUTPUT)?
        .unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS);
    let max_in_flight = integer(&mut fields, "max_in_flight", 1, u64::from(u32::MAX))?
        .unwrap_or(MAX_IN_FLIGHT)
        .min(MAX_IN_FLIGHT);
    let retry_budget = integer(&mut fields, "retry_budget", 0, u64::MAX)?;
    let budget_usd = dollars(&mut fields, "budget_usd")?;
    let long = long(&mut fields)?;
    let records = records(&mut fields)?;
    let attach_pdf = match fields.remove("attach") {
        None => false,
        Some(Value::String(how)) if how == "native" => true,
        Some(Value::String(how)) if how == "text" => false,
        Some(other) => {
            return Err(format!("attach must be \"native\" or \"text\", not {}", short(&other)));
        }
    };
    if attach_pdf && long.is_some() {
        return Err("attach \"native\" and long exclude each other: only text can be divided; leave one out".to_owned());
    }
    let (mode, deadline, pack) = (mode(&mut fields)?, deadline(&mut fields)?, pack(&mut fields)?);
    let economy = mode == Some(Mode::Economy);
    // Who says "direct" has chosen.
    let deadline = deadline.filter(|_| mode != Some(Mode::Direct));
    if economy && pack.is_some() {
        let why = "mode \"economy\" and pack exclude each other: a provider's batches have no limit of requests; leave out pack";
        return Err(why.to_owned());
    }
    let schema = match fields.remove("schema") {
        None => None,
        Some(schema @ Value::Object(_)) => Some(schema),
        Some(other) => {
            return Err(format!("schema must be a JSON Schema object, not {}", kind(&other)));
        }
    };
    let job = Job {
        source,
        output,
        instructions,
        target,
        lane,
        tenant,
        max_output_tokens: u32::try_from(max_output_tokens).unwrap_or(u32::MAX),
        schema,
        retry_budget,
        budget_usd,
        long,
        records,
        attach_pdf,
        economy,
        deadline,
        pack,
    };
    Ok(Batch { job, max_in_flight: u32::try_from(max_in_flight).unwrap_or(u32::MAX) })
}

fn source(fields: &mut Map<String, Value>) -> Result<Source, String> {
    let given: Vec<&str> = ["source", "documents", "manifest"]
        .into_iter()
        .filter(|name| fields.contains_key(*name))
        .collect();
    match given.as_slice() {
        [] => {
            Err("say where the documents are: source (a folder, file, glob or prefix), documents (a list) or manifest".to_owned())
        }
        ["source"] => Ok(Source::Prefix(required(fields, "source", "")?)),
        ["manifest"] => Ok(Source::Manifest(required(fields, "manifest", "")?)),
        ["documents"] => documents(fields.remove("documents")),
        several => Err(format!("give only one of {}", several.join(", "))),
    }
}

fn documents(value: Option<Value>) -> Result<Source, String> {
    let Some(Value::Array(list)) = value else {
        return Err("documents must be a list of URIs, such as [\"file:///data/a.txt\"]".to_owned());
    };
    if list.is_empty() {
        return Err("documents is an empty list; name at least one URI".to_owned());
    }
    let uri = |(index, value): (usize, Value)| match value {
        Value::String(uri) if !uri.trim().is_empty() => Ok(uri),
        other => Err(format!("documents[{index}] must be a URI, not {}", kind(&other))),
    };
    list.into_iter().enumerate().map(uri).collect::<Result<_, _>>().map(Source::Documents)
}

fn target(fields: &mut Map<String, Value>) -> Result<Target, String> {
    match (fields.remove("model"), fields.remove("route")) {
        (Some(_), Some(_)) => Err("give only one of model, route".to_owned()),
        (None, Some(Value::String(route))) if !route.trim().is_empty() => Ok(Target::Route(route)),
        (None, Some(_)) => Err("route must be the name of a configured route".to_owned()),
        (Some(Value::String(model)), None) => {
            let model: Result<ModelId, tidegate_types::InvalidName> = model.parse();
            model.map(Target::Model).map_err(|error| error.to_string())
        }
        (Some(other), None) => Err(format!("model must be a text such as anthropic:claude-sonnet-5, not {}", kind(&other))),
        (None, None) => {
            Err("model is missing; write provider:model, such as anthropic:claude-sonnet-5, or name a route".to_owned())
        }
    }
}

fn long(fields: &mut Map<String, Value>) -> Result<Option<Long>, String> {
    let chunk_tokens = integer(fields, "chunk_tokens", MIN_CHUNK, MAX_CHUNK)?;
    let how = match fields.remove("long") {
        None if chunk_tokens.is_some() => {
            return Err(
                "chunk_tokens is of no use without long; add \"long\": \"map_reduce\"".to_owned()
            );
        }
        None => return Ok(None),
        Some(Value::String(how)) if how == "map_reduce" => LongHow::MapReduce,
        Some(Value::String(how)) if how == "per_chunk" => LongHow::PerChunk,
        Some(other) => {
            return Err(format!(
                "long must be \"map_reduce\" or \"per_chunk\", not {}",
                short(&other)
            ));
        }
    };
    let chunk_tokens =
        u32::try_from(chunk_tokens.unwrap_or(DEFAULT_CHUNK_TOKENS)).unwrap_or(u32::MAX);
    Ok(Some(Long { how, chunk_tokens }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Direct,
    Economy,
}

fn mode(fields: &mut Map<String, Value>) -> Result<Option<Mode>, String> {
    match fields.remove("mode") {
        None => Ok(None),
        Some(Value::String(mode)) if mode == "economy" => Ok(Some(Mode::Economy)),
        Some(Value::String(mode)) if mode == "direct" => Ok(Some(Mode::Direct)),
        Some(other) => Err(format!(
            "mode must be \"direct\" or, for half the price within a day, \"economy\", not {}",
            short(&other)
        )),
    }
}

fn deadline(fields: &mut Map<String, Value>) -> Result<Option<Deadline>, String> {
    let Some(value) = fields.remove("deadline") else { return Ok(None) };
    let meaning =
        "deadline must be a time such as \"2026-12-01T08:00:00Z\" or a span such as \"12h\"";
    let Value::String(text) = &value else {
        return Err(format!("{meaning}, not {}", kind(&value)));
    };
    let at = humantime::parse_rfc3339_weak(text)
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    match (at, humantime::parse_duration(text)) {
        (Some(at), _) => Ok(Some(Deadline::At(at.as_secs()))),
        (None, Ok(span)) if (1..=MAX_DEADLINE).contains(&span.as_secs()) => {
            Ok(Some(Deadline::Within(span.as_secs())))
        }
        _ => Err(format!("{meaning}, not {}", short(&value))),
    }
}

fn pack(fields: &mut Map<String, Value>) -> Result<Option<Pack>, String> {
    match fields.remove("pack") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(Pack::Fitting)),
        Some(value) => match value.as_u64().filter(|number| (2..=MAX_PACK).contains(number)) {
            Some(number) => Ok(Some(Pack::Of(u32::try_from(number).unwrap_or(u32::MAX)))),
            None => Err(format!(
                "pack must be true, or the number of documents in one call, from 2 to {MAX_PACK}, not {}",
                short(&value)
            )),
        },
    }
}

fn records(fields: &mut Map<String, Value>) -> Result<Option<Records>, String> {
    let meaning =
        "records must be true, or say which fields to take: {\"id\":\"…\",\"text\":\"…\"}";
    match fields.remove("records") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(Records::default())),
        Some(value @ Value::Object(_)) => {
            serde_json::from_value(value).map(Some).map_err(|error| format!("{meaning}; {error}"))
        }
        Some(other) => Err(format!("{meaning}, not {}", short(&other))),
    }
}

fn required(fields: &mut Map<String, Value>, field: &str, meaning: &str) -> Result<String, String> {
    match fields.remove(field) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(Value::String(_)) => Err(format!("{field} is empty")),
        Some(other) => Err(format!("{field} must be a text, not {}", kind(&other))),
        None => Err(format!("{field} is missing: {meaning}")),
    }
}

fn name<T>(fields: &mut Map<String, Value>, field: &str) -> Result<T, String>
where
    T: Default + TryFrom<String, Error = tidegate_types::InvalidName>,
{
    match fields.remove(field) {
        None => Ok(T::default()),
        Some(Value::String(text)) => T::try_from(text).map_err(|error| error.to_string()),
        Some(other) => Err(format!("{field} must be a text, not {}", kind(&other))),
    }
}

fn integer(
    fields: &mut Map<String, Value>,
    field: &str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, String> {
    let bounds = if most > u64::from(u32::MAX) {
        format!("at least {least}")
    } else {
        format!("from {least} to {most}")
    };
    match fields.remove(field) {
        None => Ok(None),
        Some(value) => match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{field} must be a whole number {bounds}, not {}", short(&value))),
        },
    }
}

fn dollars(fields: &mut Map<String, Value>, field: &str) -> Result<Option<f64>, String> {
    match fields.remove(field) {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|usd| *usd > 0.0) {
            Some(usd) => Ok(Some(usd)),
            None => Err(format!(
                "{field} must be a number of US dollars above 0, not {}",
                short(&value)
            )),
        },
    }
}

fn unknown_field(field: &str) -> String {
    // Cut before it is compared: the distance takes time and memory in proportion to the length.
    let field: String = field.chars().take(60).collect();
    let near = FIELDS.iter().map(|known| (strsim::damerau_levenshtein(known, &field), known)).min();
    let hint = match near {
        // Half a short name changed is another name.
        Some((distance, known)) if distance <= 3 && 2 * distance <= known.len() => {
            format!("; did you mean \"{known}\"?")
        }
        _ => ".".to_owned(),
    };
    format!("unknown field \"{}\"{hint} The fields are {}", field.escape_debug(), FIELDS.join(", "))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 40 { text } else { kind(value).to_owned() }
}

#[cfg(test)]
mod tests;
