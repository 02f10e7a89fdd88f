//! Several small documents in one call, where requests are scarcer than tokens.
//!
//! The answers are matched by ids that only the model has seen: a document cannot claim another's
//! answer. What the model left out, or answered otherwise than the schema says, is sent
//! again alone; so is what is too large for company.
//!
//! All results of a call are written in one object first, then each in its place: a crash in
//! between pays for nothing twice.

mod members;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_documents::tokens;
use tidegate_providers::{Completion, Finish, StopReason};
use tidegate_types::{ModelId, Spend, Usage};
use tidegate_workflows::contract::{FailureType, Job, PackOutcome, PackTask};

use crate::{
    batch::job::{Document, Shard, resolve},
    call::{attempt::Attempt, prompt::Content, unwritten::Bought},
    document::{
        content::{self, Care, Read},
        done::{self, Before, Open},
        process::{bought_before, offer},
        result::DocumentResult,
        schema,
        version::Version,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    hash::hash,
    metrics,
    services::Services,
    storage::Location,
};

/// A larger document is no small one, and goes alone.
const SMALL_TOKENS: u64 = 4_000;

/// All documents of a call have no more than this. A model's care for each of many suffers in long
/// prompts.
const PACK_TOKENS: u64 = 20_000;

/// Most output of one call, as far as documents can be left out: every model of today has that
/// much.
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
    (PACK_OUTPUT_TOKENS / job.likely_output_tokens().max(1)).max(1)
}

/// Whether a job's documents can be answered together.
///
/// # Errors
/// `InvalidInput` for a schema that would mean something else inside another.
pub fn check(job: &Job) -> Result<(), Failure> {
    let Some(schema) = job.schema.as_ref().filter(|_| job.pack.is_some()) else { return Ok(()) };
    match members::unmovable(schema) {
        None => Ok(()),
        Some(what) => Err(Failure::invalid_input(format!(
            "pack and a schema with {what} exclude each other: inside another schema it would mean something else; keep what is referred to in $defs, or leave out pack"
        ))),
    }
}

/// A document that shares a call.
#[derive(Debug)]
struct Member {
    index: u32,
    document: Document,
    text: String,
    tokens: u64,
    version: Version,
    updated: bool,
    instead_of: Option<Fingerprint>,
}

/// A result, as it is kept with the others of its call until it is in its place.
#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    #[serde(flatten)]
    result: DocumentResult,
    /// The result that the document had, which answers something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead_of: Option<Fingerprint>,
}

/// Answers some documents with one call, once.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again; after one that says never, each is sent
/// alone.
pub async fn process(
    services: &Services,
    attempt: &Attempt,
    task: &PackTask,
) -> Result<PackOutcome, Failure> {
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let folder = resolve(&services.storage, "job", &task.job)?;
    let kept = folder.child(&format!("pack-{:05}-{:05}.json", task.shard, task.from));
    let unwritten = &services.guard.unwritten;
    unwritten.recover(attempt, &kept).await?;
    if let Some(results) = read(&kept).await? {
        // An earlier attempt has paid for these; those that follow are as they were then.
        spread(&shard, &kept, results).await?;
    }
    unwritten.check_spooled(attempt)?;
    let (members, mut outcome) = gather(services, attempt, &shard, task).await?;
    if members.len() < 2 {
        outcome.left.extend(members.iter().map(|member| member.index));
        outcome.left.sort_unstable();
        if attempt.counts().provider_calls > 0 {
            outcome.asked = members.iter().map(|member| member.index).collect();
        }
        outcome.spent += Spend::from(attempt.counts()) + attempt.state().discarded.spend;
        return Ok(outcome);
    }
    let salt =
        hash([task.job.as_bytes(), &task.shard.to_le_bytes(), &task.from.to_le_bytes()]) & 0xffff;
    let content =
        Content::Text(members::text(members.iter().map(|member| member.text.as_str()), salt));
    // They share it: what one leaves, another may use. What is cut off is sent again alone.
    let each = shard.job.likely_output_tokens().saturating_add(FRAME_TOKENS);
    let output = each
        .saturating_mul(u32::try_from(members.len()).unwrap_or(u32::MAX))
        .saturating_add(FRAME_TOKENS);
    let Some(first) = members.first() else { return Ok(outcome) };
    // All are asked in the same words.
    let question = shard
        .question(&first.document, &content)?
        .with_note(TOGETHER)
        .answered_as(members::form(shard.job.schema.as_ref()), output);
    let (model, completion) = services
        .caller()
        .ask(attempt, &shard.job, shard.retries.as_ref(), &shard.route, &question)
        .await?;

    let asked: Vec<u32> = members.iter().map(|member| member.index).collect();
    let mut answers =
        members::matched(&completion.answer, salt, members.len(), shard.validator.is_some());
    if let Some(validator) = &shard.validator {
        answers.retain(|_, answer| schema::valid(validator, answer).is_ok());
    }
    let answered = members
        .iter()
        .enumerate()
        .filter_map(|(place, member)| Some((member, answers.remove(&place)?)))
        .collect();
    let results = results(services, attempt, shard.asks, model, &completion, answered);
    outcome.left.extend(
        members.iter().map(|member| member.index).filter(|index| !results.contains_key(index)),
    );
    outcome.left.sort_unstable();
    outcome.asked = asked.into_iter().filter(|index| outcome.left.contains(index)).collect();
    let updated = members.iter().filter(|it| it.updated && results.contains_key(&it.index));
    outcome.updated += u32::try_from(updated.count()).unwrap_or(u32::MAX);
    let results: Vec<Packed> = results.into_values().collect();
    outcome.succeeded += u32::try_from(results.len()).unwrap_or(u32::MAX);
    if results.is_empty() {
        let usage = completion.usage.unwrap_or_default();
        outcome.spent += Spend::of_tokens(&usage, cost(services, model, &completion));
    }
    metrics::documents(results.len(), "succeeded");
    for Packed { result, .. } in &results {
        offer(services, result).await;
        outcome.spent += result.spend().tokens();
        metrics::answered(&result.model, result.cost_usd, &shard.job.tenant);
    }
    let json =
        serde_json::to_vec(&results).map_err(|error| Failure::invalid_input(error.to_string()))?;
    unwritten.keep(attempt, &Bought::new(&kept, json).replacing()).await?;
    spread(&shard, &kept, results).await?;
    outcome.spent += Spend::from(attempt.counts()) + attempt.state().discarded.spend;
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
        let Open { raw, updated, instead_of } = match done::before(services, shard, document).await
        {
            Ok(Before::Done(result)) if result.is_of(attempt) => {
                outcome.succeeded += 1;
                outcome.spent += result.spend().tokens();
                outcome.reused += result.reused();
                continue;
            }
            Ok(Before::Done(_)) => {
                outcome.skipped += 1;
                continue;
            }
            Ok(Before::Open(open)) => open,
            Err(failure) if failure.kind == FailureType::UnreadableDocument => {
                outcome.left.push(index);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let Ok(raw) = content::fetched(services, document, raw).await else {
            outcome.left.push(index);
            continue;
        };
        if let Some(result) = bought_before(services, shard, document, &raw.version).await {
            let location = DocumentResult::location(&shard.output, &document.id);
            result.bought(&location, instead_of)?.write().await?;
            outcome.succeeded += 1;
            outcome.updated += u32::from(updated);
            outcome.reused += result.reused();
            continue;
        }
        let care = Care::of_several(Some(attempt));
        match content::extract(services, raw, &shard.job, &shard.route, care).await {
            Ok(Read { content: Content::Text(text), version, .. }) => {
                let tokens = tokens::estimate(&text);
                let whole = shard.job.in_parts(tokens).is_none();
                if whole && tokens <= SMALL_TOKENS && sum + tokens <= PACK_TOKENS {
                    sum += tokens;
                    let document = document.clone();
                    members.push(Member {
                        index,
                        document,
                        text,
                        tokens,
                        version,
                        updated,
                        instead_of,
                    });
                } else {
                    outcome.left.push(index);
                }
            }
            // Alone, it says what is wrong with it, or waits for the store without the others.
            Ok(_) | Err(_) => outcome.left.push(index),
        }
    }
    Ok((members, outcome))
}

/// The results of those that have an answer, by their indices. They share what the call took in
/// proportion to their length, so that all of them together say what it was.
fn results(
    services: &Services,
    attempt: &Attempt,
    asks: Fingerprint,
    model: &ModelId,
    completion: &Completion,
    answered: Vec<(&Member, String)>,
) -> BTreeMap<u32, Packed> {
    let usage = completion.usage.unwrap_or_default();
    let cost_usd = cost(services, model, completion);
    let all: u64 = answered.iter().map(|(member, _)| member.tokens.max(1)).sum();
    let (mut before, mut calls) = (0, attempt.counts().provider_calls.into());
    // An answer that is whole in a cut list is whole.
    let stop_reason = match completion.stop_reason.finish() {
        Finish::Complete | Finish::Cut => &StopReason::EndTurn,
        Finish::Unknown => &completion.stop_reason,
    };
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
        let result = DocumentResult::new(member.document.clone(), model, answer, stop_reason)
            .answering(asks, member.version.clone())
            .taking(std::mem::take(&mut calls), Some(own), cost);
        results.insert(member.index, Packed { result, instead_of: member.instead_of });
        before = after;
    }
    results
}

/// The first `part` of `all` equal parts of so many tokens.
fn share(tokens: u64, part: u64, all: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(part) / u128::from(all.max(1)))
        .unwrap_or(u64::MAX)
}

fn cost(services: &Services, model: &ModelId, completion: &Completion) -> Option<f64> {
    services.prices.cost_usd(model, completion.usage.as_ref()?, chrono::Utc::now().date_naive())
}

/// What an earlier attempt kept.
async fn read(kept: &Location) -> Result<Option<Vec<Packed>>, Failure> {
    let bytes = kept.read_if_there().await?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Puts each result in its place, and removes the object that held them together.
async fn spread(shard: &Shard, kept: &Location, results: Vec<Packed>) -> Result<(), Failure> {
    for Packed { result, instead_of } in results {
        let location = DocumentResult::location(&shard.output, &result.id);
        result.bought(&location, instead_of)?.write().await?;
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
}
