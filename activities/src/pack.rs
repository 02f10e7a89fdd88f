//! Several small documents in one call, where requests are scarcer than tokens.
//!
//! The answers are matched by ids that nobody but the model has seen: a document cannot claim another's answer. What the
//! model left out, or answered otherwise than the schema says, is sent again alone; so is what is too large for company.
//!
//! All results of a call are written in one object first, then each in its place: a crash in between pays for nothing twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_documents::tokens;
use tidegate_providers::Completion;
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{Effort, Job, PackOutcome, PackTask};

use crate::{
    attempt::Attempt,
    document,
    failure::Failure,
    job::{self, Shard},
    metrics,
    outcome::{self, DocumentResult},
    question::{self, Content, Question},
    schema,
    services::Services,
    source::{Document, resolve, store_failure},
    storage::Location,
};

/// A larger document is no small one, and goes alone.
const SMALL_TOKENS: u64 = 4_000;

/// All documents of a call have no more than this. A model's care for each of many suffers in long prompts.
const PACK_TOKENS: u64 = 20_000;

/// Most output of one call, as far as documents can be left out: every model of today has that much.
const PACK_OUTPUT_TOKENS: u32 = 32_000;

/// What stands around an answer: its id, names of fields, escapes.
const FRAME_TOKENS: u32 = 48;

/// Said after the batch's instructions.
const TOGETHER: &str = "You are given several documents at once, each in an <item> with an id. Follow the instructions for each of \
    them by itself, as if it were the only one. Answer with one JSON object, {\"answers\": [{\"id\": …, \"answer\": …}]}, with an entry \
    for every item: its id, and your whole answer to it.";

/// How many documents of a job fit into one call at most, by their answers.
#[must_use]
pub fn most(job: &Job) -> u32 {
    (PACK_OUTPUT_TOKENS / job.max_output_tokens.max(1)).max(1)
}

/// Whether a job's documents can be answered together.
///
/// # Errors
/// `InvalidInput` for a schema that would mean something else inside another.
pub fn check(job: &Job) -> Result<(), Failure> {
    let Some(schema) = job.schema.as_ref().filter(|_| job.pack.is_some()) else { return Ok(()) };
    match unmovable(schema) {
        None => Ok(()),
        Some(what) => Err(Failure::invalid_input(format!(
            "pack and a schema with {what} exclude each other: inside another schema it would mean something else; keep what is referred to in $defs, or leave out pack"
        ))),
    }
}

/// What in a schema depends on its place.
fn unmovable(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match (name.as_str(), value) {
            ("$ref", Value::String(to)) if to.starts_with("#/$defs/") || to.starts_with("#/definitions/") => None,
            ("$ref", Value::String(to)) if to.starts_with('#') => Some(format!("\"$ref\": \"{}\"", to.escape_debug())),
            ("$id", Value::String(_)) => Some(format!("\"{name}\"")),
            _ => unmovable(value),
        }),
        Value::Array(values) => values.iter().find_map(unmovable),
        _ => None,
    }
}

/// A document that shares a call.
#[derive(Debug)]
struct Member {
    index: u32,
    document: Document,
    text: String,
    tokens: u64,
}

/// Answers some documents with one call, once.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again; after one that says never, each is sent alone.
pub async fn process(services: &Services, attempt: &Attempt, task: &PackTask) -> Result<PackOutcome, Failure> {
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let folder = resolve(&services.storage, "job", &task.job)?;
    let kept = folder.child(&format!("pack-{:05}-{:05}.json", task.shard, task.from));
    if let Some(results) = read(&kept).await? {
        // An earlier attempt has paid for these; those that follow are as they were then.
        spread(&shard, &kept, results).await?;
    }
    let (members, mut outcome) = gather(services, attempt, &shard, task).await?;
    if members.len() < 2 {
        outcome.left.extend(members.iter().map(|member| member.index));
        outcome.left.sort_unstable();
        outcome.spent.effort = attempt.effort();
        return Ok(outcome);
    }
    let salt = job::hash([task.job.as_bytes(), &task.shard.to_le_bytes(), &task.from.to_le_bytes()]) & 0xffff;
    let content = Content::Text(text(&members, salt));
    let each = shard.job.max_output_tokens.saturating_add(FRAME_TOKENS);
    let output = each.saturating_mul(u32::try_from(members.len()).unwrap_or(u32::MAX)).saturating_add(FRAME_TOKENS);
    let question = Question::of(&shard, &content).beside(TOGETHER).answered_as(form(shard.job.schema.as_ref()), output);
    let (model, completion) = question::ask(services, attempt, &shard, &question).await?;

    let mut answers = matched(&completion.answer, salt, members.len(), shard.validator.is_some());
    if let Some(validator) = &shard.validator {
        answers.retain(|_, answer| schema::valid(validator, answer).is_ok());
    }
    let answered = members.iter().enumerate().filter_map(|(place, member)| Some((member, answers.remove(&place)?))).collect();
    let results = results(services, attempt, model, &completion, answered);
    outcome.left.extend(members.iter().map(|member| member.index).filter(|index| !results.contains_key(index)));
    outcome.left.sort_unstable();
    let results: Vec<DocumentResult> = results.into_values().collect();
    outcome.succeeded += u32::try_from(results.len()).unwrap_or(u32::MAX);
    if results.is_empty() {
        outcome.spent.add(&outcome::spent(completion.usage.as_ref(), cost(services, model, &completion)));
    }
    // The attempt itself is counted as one.
    metrics::documents(results.len().saturating_sub(1), "succeeded");
    for result in &results {
        outcome.spent.add(&result.outcome(Effort::default()));
        metrics::answered(result, &shard.job.tenant);
    }
    let json = serde_json::to_vec(&results).map_err(|error| Failure::invalid_input(error.to_string()))?;
    kept.write(json).await.map_err(store_failure)?;
    spread(&shard, &kept, results).await?;
    outcome.spent.effort = attempt.effort();
    Ok(outcome)
}

/// The documents that go into the call, and what is known of the others.
async fn gather(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    task: &PackTask,
) -> Result<(Vec<Member>, PackOutcome), Failure> {
    let (mut members, mut outcome, mut sum) = (Vec::new(), PackOutcome::default(), 0);
    let indices = (task.from..task.to).zip(shard.documents.iter().skip(task.from as usize));
    for (index, document) in indices {
        if let Some(result) = DocumentResult::read(&DocumentResult::location(&shard.output, &document.id)).await? {
            if result.completed_millis() >= attempt.scheduled_millis {
                outcome.succeeded += 1;
                outcome.spent.add(&result.outcome(Effort::default()));
            } else {
                outcome.skipped += 1;
            }
            continue;
        }
        match document::content_owned(services, document.clone(), shard.job.attach_pdf).await {
            Ok(Content::Text(text)) => {
                let tokens = tokens::estimate(&text);
                let long = shard.job.long.is_some_and(|long| tokens > u64::from(long.chunk_tokens));
                if !long && tokens <= SMALL_TOKENS && sum + tokens <= PACK_TOKENS {
                    sum += tokens;
                    members.push(Member { index, document: document.clone(), text, tokens });
                } else {
                    outcome.left.push(index);
                }
            }
            Err(failure) if failure.retry_after.is_some() => return Err(failure),
            // Alone, it says what is wrong with it.
            Ok(Content::Pdf(..)) | Err(_) => outcome.left.push(index),
        }
    }
    Ok((members, outcome))
}

/// All documents, each marked off. A document cannot end its own item.
fn text(members: &[Member], salt: u64) -> String {
    let item = |(place, member): (usize, &Member)| {
        format!("<item id=\"{}\">\n{}\n</item>", name(salt, place), member.text.replace("</item", "&lt;/item"))
    };
    members.iter().enumerate().map(item).collect::<Vec<_>>().join("\n\n")
}

fn name(salt: u64, place: usize) -> String {
    format!("{salt:04x}-{}", place + 1)
}

/// The schema of all answers; what the batch's own schema defines stands at the top, where its references look for it.
fn form(schema: Option<&Value>) -> Value {
    let mut one = schema.cloned().unwrap_or_else(|| json!({"type": "string"}));
    let mut form = json!({
        "type": "object",
        "properties": {"answers": {"type": "array", "items": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "answer": null},
            "required": ["id", "answer"],
            "additionalProperties": false,
        }}},
        "required": ["answers"],
        "additionalProperties": false,
    });
    for definitions in ["$defs", "definitions"] {
        if let Some(moved) = one.as_object_mut().and_then(|one| one.remove(definitions)) {
            form[definitions] = moved;
        }
    }
    form["properties"]["answers"]["items"]["properties"]["answer"] = one;
    form
}

/// The answers by the places of their documents. An id that was answered twice has no answer: nobody knows which is meant.
/// Of an answer that was cut, all entries that are whole count. Where there is a schema, an answer is JSON, a text among them.
fn matched(answer: &str, salt: u64, members: usize, json: bool) -> BTreeMap<usize, String> {
    let mut answers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for mut entry in entries(answer) {
        let id = entry.get("id").and_then(Value::as_str);
        let place = (0..members).find(|place| id == Some(&name(salt, *place)));
        let answer = match entry.remove("answer") {
            Some(Value::String(text)) if !json => Some(text).filter(|text| !text.trim().is_empty()),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        if let Some((place, answer)) = place.zip(answer) {
            answers.entry(place).or_default().push(answer);
        }
    }
    let only = |(place, mut all): (usize, Vec<String>)| if all.len() == 1 { all.pop().map(|one| (place, one)) } else { None };
    answers.into_iter().filter_map(only).collect()
}

/// The whole entries of the list, up to where it ends or is cut. Models without a native form of JSON put a fence around it,
/// or a sentence before it.
fn entries(answer: &str) -> Vec<Map<String, Value>> {
    let list = answer.split_once("\"answers\"").and_then(|(_, rest)| rest.split_once('['));
    let (mut rest, mut entries) = (list.map_or("", |(_, list)| list), Vec::new());
    loop {
        let mut next = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        let Some(Ok(entry)) = next.next() else { return entries };
        rest = rest.get(next.byte_offset()..).unwrap_or_default().trim_start_matches([',', ' ', '\n', '\r', '\t']);
        entries.push(entry);
    }
}

/// The results of those that have an answer, by their indices. They share what the call took in proportion to their length,
/// so that all of them together say what it was.
fn results(
    services: &Services,
    attempt: &Attempt,
    model: &ModelId,
    completion: &Completion,
    answered: Vec<(&Member, String)>,
) -> BTreeMap<u32, DocumentResult> {
    let usage = completion.usage.unwrap_or_default();
    let cost_usd = cost(services, model, completion);
    let all: u64 = answered.iter().map(|(member, _)| member.tokens.max(1)).sum();
    let (mut before, mut calls) = (0, attempt.effort().provider_calls);
    let mut results = BTreeMap::new();
    for (member, answer) in answered {
        let after = before + member.tokens.max(1);
        let part = |tokens: u64| share(tokens, after, all) - share(tokens, before, all);
        let own = Usage {
            uncached_input: part(usage.uncached_input),
            cache_read: part(usage.cache_read),
            cache_write: part(usage.cache_write),
            output: part(usage.output),
        };
        #[expect(clippy::cast_precision_loss, reason = "tokens lie far below 2^53")]
        let cost = cost_usd.map(|usd| usd * (after - before) as f64 / all as f64);
        let one = Completion { answer, usage: Some(own), ..completion.clone() };
        results.insert(member.index, DocumentResult::new(member.document.clone(), model, one, cost, std::mem::take(&mut calls)));
        before = after;
    }
    results
}

/// The first `part` of `all` equal parts of so many tokens.
fn share(tokens: u64, part: u64, all: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(part) / u128::from(all.max(1))).unwrap_or(u64::MAX)
}

fn cost(services: &Services, model: &ModelId, completion: &Completion) -> Option<f64> {
    services.prices.cost_usd(model, completion.usage.as_ref()?, chrono::Utc::now().date_naive())
}

/// What an earlier attempt kept.
async fn read(kept: &Location) -> Result<Option<Vec<DocumentResult>>, Failure> {
    let bytes = kept.read_if_there().await.map_err(store_failure)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Puts each result in its place. Then nobody needs them together.
async fn spread(shard: &Shard, kept: &Location, results: Vec<DocumentResult>) -> Result<(), Failure> {
    for result in results {
        result.create(&DocumentResult::location(&shard.output, &result.id)).await?;
    }
    if let Err(error) = kept.delete().await {
        tracing::debug!(%error, "a pack's results stay behind");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn answers_are_matched_by_ids_that_are_known() {
        let answer = "Here you are:\n```json\n{\"answers\":[\
            {\"id\":\"00ff-1\",\"answer\":\"one\"},{\"id\":\"2\",\"answer\":\"guessed\"},{\"id\":\"00ff-3\",\"answer\":{\"n\":3}},\
            {\"id\":\"00ff-4\",\"answer\":\" \"},{\"id\":\"00ff-5\",\"answer\":\"a\"},{\"id\":\"00ff-5\",\"answer\":\"b\"}]}\n```";
        let found = matched(answer, 0xff, 5, false);
        assert_eq!(found, BTreeMap::from([(0, "one".to_owned()), (2, "{\"n\":3}".to_owned())]));
        for broken in ["", "{", "{\"answers\":[{\"id\":\"00ff-1\",\"answer\":\"on", "[]", "{\"answers\":7}"] {
            assert!(matched(broken, 0xff, 5, false).is_empty(), "{broken}");
        }
        let cut = "{\"answers\": [ {\"id\":\"00ff-1\",\"answer\":\"one\"},\n {\"id\":\"00ff-2\",\"answer\":\"tw";
        assert_eq!(matched(cut, 0xff, 5, false), BTreeMap::from([(0, "one".to_owned())]), "whole entries count");
        assert_eq!(matched(cut, 0xff, 5, true), BTreeMap::from([(0, "\"one\"".to_owned())]), "a schema wants JSON");
    }

    #[test]
    fn a_schema_that_depends_on_its_place_is_refused() {
        for (schema, what) in [
            (json!({"$ref": "#"}), Some("\"$ref\": \"#\"")),
            (json!({"anyOf": [{"$ref": "#/properties/a"}]}), Some("\"$ref\": \"#/properties/a\"")),
            (json!({"$id": "https://example.com/a"}), Some("\"$id\"")),
            (json!({"properties": {"id": {"type": "string"}, "of": {"$ref": "#/$defs/a"}}}), None),
        ] {
            assert_eq!(unmovable(&schema).as_deref(), what, "{schema}");
        }
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let (weights, all) = ([3_u64, 1, 7, 2], 13);
        let mut before = 0;
        let parts = weights.map(|weight| {
            let after = before + weight;
            let part = share(1_000, after, all) - share(1_000, before, all);
            before = after;
            part
        });
        assert_eq!(parts.iter().sum::<u64>(), 1_000);
        assert!(parts[2] > parts[0] && parts[0] > parts[3]);
    }

    #[test]
    fn definitions_move_to_the_top() {
        let schema = json!({"type":"object","properties":{"who":{"$ref":"#/$defs/person"}},"$defs":{"person":{"type":"string"}}});
        let form = form(Some(&schema));
        assert_eq!(form["$defs"]["person"]["type"], "string");
        let validator = schema::compile(&form).unwrap();
        schema::valid(&validator, r#"{"answers":[{"id":"1","answer":{"who":"me"}}]}"#).unwrap();
        assert!(schema::valid(&validator, r#"{"answers":[{"id":"1","answer":{"who":7}}]}"#).is_err());
    }
}
