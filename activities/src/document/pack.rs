//! Several small documents in one call, for limits where requests are scarcer than tokens.
//!
//! Answers are matched by ids that only the model has seen, so that a document cannot claim another's
//! answer. A document is sent again alone if the model left it out or its answer does not satisfy the
//! schema, and also if it is too large for a pack.
//!
//! All results of a call are written in one object first, then each at its own location: a crash in
//! between pays for nothing twice.

mod call_answers;
mod members;

use std::{borrow::Cow, collections::BTreeMap};

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_documents::{Reader, tokens};
use tidegate_providers::Finish;
use tidegate_types::{ModelId, Spend, Usage};
use tidegate_workflows::contract::{FailureType, Job, PackOutcome, PackTask, Reused, Task};

use crate::{
    attempt::Attempt,
    document::{
        ask::{embed, inquiry::question, prompt::Content, sandbox},
        pack::call_answers::CallAnswers,
        read::{
            content::{self, Care, Extracted},
            earlier::{self, ExistingResult, Open, bought_before, offer},
        },
    },
    failure::Failure,
    fingerprint::{Fingerprint, hash},
    metrics,
    output::{
        job::{Document, Shard},
        jsonl::json,
        pending_writes::Bought,
        result::{DocumentResult, Given},
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// A document with more tokens is sent alone.
const SMALL_TOKENS: u64 = 4_000;

/// Maximum tokens of all documents of a call. In longer prompts a model treats each document with
/// less care.
const PACK_TOKENS: u64 = 20_000;

/// Largest cap on output of one call, where documents can be left out: every model of today allows it.
const PACK_OUTPUT_TOKENS: u32 = 32_000;

/// Documents of a call that are looked at, or written, at once.
const AT_ONCE: usize = 8;

/// Tokens around an answer: its id, names of fields, escapes.
const FRAME_TOKENS: u32 = 48;

/// Added after the batch's instructions.
const TOGETHER: &str = "You are given several documents at once, each in an <item> with an id. Follow the instructions for each of \
    them by itself, as if it were the only one. Answer with one JSON object, {\"answers\": [{\"id\": …, \"answer\": …}]}, with an entry \
    for every item: its id, and your whole answer to it.";

/// Number of documents of a job that fit into one call: limited by their answers, or, for
/// embeddings, by their input tokens.
// Never negative, and a cast of a float saturates.
pub fn max_documents(job: &Job, input_tokens: f64) -> u32 {
    let most = match job.task {
        Task::Answer => PACK_OUTPUT_TOKENS / job.likely_output_tokens().max(1),
        Task::Embed => (embed::TOGETHER_TOKENS as f64 / input_tokens.max(1.0)) as u32,
    };
    most.max(1)
}

/// Checks whether a job's schema can be nested in another: for packs, or for evidence.
///
/// # Errors
/// `InvalidInput` for a schema whose meaning would change inside another.
pub fn check(job: &Job) -> Result<(), Failure> {
    let beside = job.pack.map(|_| "pack").or_else(|| job.evidence.then_some("evidence"));
    let Some((schema, beside)) = job.schema.as_ref().zip(beside) else { return Ok(()) };
    match members::unmovable(schema) {
        None => Ok(()),
        Some(what) => Err(Failure::invalid_input(format!(
            "{beside} and a schema with {what} exclude each other: inside another schema it would mean something else; keep what is referred to in $defs, or leave out {beside}"
        ))),
    }
}

/// A document in a pack.
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

/// A result, as stored with the others of its call until each is written to its own location.
#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    #[serde(flatten)]
    result: DocumentResult,
    /// Fingerprint of the document's earlier result, which answers another question or content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead_of: Option<Fingerprint>,
}

/// Answers some documents with one call, once.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any; after a final one, each document is sent
/// alone.
pub async fn process(
    services: &Services,
    attempt: &Attempt,
    task: &PackTask,
) -> Result<PackOutcome, Failure> {
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let bought = shard.folder.child(&format!("pack-{:05}-{:05}.json", task.shard, task.from));
    let unjudged = call_answers::location(&shard, task);
    let pending_writes = &services.pending_writes;
    pending_writes.recover(attempt, &bought).await?;
    if let Some(results) = read(&bought).await? {
        // An earlier attempt has paid for these results. Once written, their documents count as
        // done.
        call_answers::forget(&shard, &unjudged).await;
        write_results(&shard, &bought, results).await?;
    }
    pending_writes.check_spooled(attempt)?;
    let (members, mut outcome) = gather(services, attempt, &shard, task).await?;
    if members.len() < 2 {
        call_answers::forget(&shard, &unjudged).await;
        outcome.left.extend(members.iter().map(|member| member.index));
        outcome.left.sort_unstable();
        if attempt.counts().provider_calls > 0 {
            outcome.asked = members.iter().map(|member| member.index).collect();
        }
        outcome.spent += attempt.spent();
        return Ok(outcome);
    }
    let asked: Vec<u32> = members.iter().map(|member| member.index).collect();
    let got = match shard.job.task {
        Task::Answer => {
            let kept = CallAnswers::find(services, attempt, &shard, &unjudged).await?;
            let answers = match kept {
                Some(answers) => answers,
                None => {
                    let answers =
                        ask_for_answers(services, attempt, &shard, task, &members).await?;
                    answers.store(services, attempt, &shard, &unjudged).await?;
                    answers
                }
            };
            judge_answers(services, &shard, &members, answers).await?
        }
        Task::Embed => ask_for_vectors(services, attempt, &shard, &members).await?,
    };
    let usage = got.usage;
    let cost_usd = services.cost_usd(&got.model, &got.usage);
    let results = build_results(attempt, &shard, got, cost_usd);
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
        outcome.spent += Spend::of_tokens(&usage, cost_usd);
    }
    metrics::count_documents(results.len() as u64, "succeeded");
    let offers: Vec<_> = results.iter().map(|it| offer(services, &it.result)).collect();
    stream::iter(offers).buffered(AT_ONCE).collect::<()>().await;
    for Packed { result, .. } in &results {
        outcome.spent += result.spend().tokens();
        metrics::count_answer(&result.model, result.cost_usd, &shard.job.tenant);
    }
    let json = json(&results)?;
    pending_writes.write(attempt, &Bought::new(&bought, json).replacing()).await?;
    call_answers::forget(&shard, &unjudged).await;
    write_results(&shard, &bought, results).await?;
    outcome.spent += attempt.spent();
    Ok(outcome)
}

/// The outcome of a call for its documents.
#[derive(Debug)]
struct PackAnswers<'a> {
    model: ModelId,
    usage: Usage,
    usage_unknown: bool,
    /// The documents with an answer.
    given: Vec<(&'a Member, Given)>,
}

/// Asks one question about all of the documents.
async fn ask_for_answers(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    task: &PackTask,
    members: &[Member],
) -> Result<CallAnswers, Failure> {
    let salt =
        hash([task.job.as_bytes(), &task.shard.to_le_bytes(), &task.from.to_le_bytes()]) & 0xffff;
    let content =
        Content::Text(members::text(members.iter().map(|member| member.text.as_str()), salt));
    // The documents share the cap, so that a long answer may use what short ones leave. A document
    // whose answer is cut is sent again alone.
    let each = shard.job.likely_output_tokens().saturating_add(FRAME_TOKENS);
    let output = each
        .saturating_mul(u32::try_from(members.len()).unwrap_or(u32::MAX))
        .saturating_add(FRAME_TOKENS);
    let first = members.first().ok_or_else(|| Failure::transient("a call has no document"))?;
    // The first document's instructions serve for all of them.
    let reader = services.reader_for(&shard.job.lane);
    let question = question(&reader, shard, &first.document, &content)
        .await?
        .with_note(TOGETHER)
        .with_schema_and_room(members::form(shard.job.schema.as_ref()), output);
    let (model, completion) =
        services.caller().ask(&attempt.call, shard.terms(), &shard.route, &question).await?;
    let mut answers =
        members::match_answers(&completion.answer, salt, members.len(), shard.validator.is_some());
    // An entry that is whole in a cut list is accepted.
    let stopped = match completion.stop_reason.finish() {
        Finish::Complete | Finish::Cut => None,
        Finish::Unknown => Some(completion.stop_reason.as_str().to_owned()),
    };
    let given = members.iter().enumerate().filter_map(|(place, member)| {
        Some((member.index, member.version.clone(), answers.remove(&place)?))
    });
    Ok(CallAnswers {
        model: model.clone(),
        usage_unknown: completion.usage.is_none(),
        usage: completion.usage.unwrap_or_else(|| question.estimate(model, &completion.answer)),
        stopped,
        answers: given.collect(),
        used: attempt.recorded_use(),
    })
}

/// Judges the answers by the schema. A document whose answer is refused is asked alone.
///
/// # Errors
/// `Transient` where the process cannot be started.
async fn judge_answers<'a>(
    services: &Services,
    shard: &Shard,
    members: &'a [Member],
    answers: CallAnswers,
) -> Result<PackAnswers<'a>, Failure> {
    let reader = services.reader_for(&shard.job.lane);
    let mut given = Vec::new();
    for member in members {
        let Some(answer) = answers.of(member.index, &member.version) else { continue };
        if let Some(validator) = &shard.validator {
            match sandbox::validate_answer(&reader, validator, answer).await {
                Ok(Ok(())) => {}
                Err(failure) if failure.is_retried() => return Err(failure),
                Ok(Err(_)) | Err(_) => continue,
            }
        }
        given.push((member, Given::Answer(answer.to_owned(), answers.stop_reason())));
    }
    let CallAnswers { model, usage, usage_unknown, .. } = answers;
    Ok(PackAnswers { model, usage, usage_unknown, given })
}

/// Embeds all of the documents.
async fn ask_for_vectors<'a>(
    services: &Services,
    attempt: &Attempt,
    shard: &'a Shard,
    members: &'a [Member],
) -> Result<PackAnswers<'a>, Failure> {
    let texts: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
    let tokens = members.iter().map(|member| member.tokens).sum();
    let (model, embedded) = embed::ask(services, attempt, shard, &texts, tokens).await?;
    let given = members.iter().zip(embedded.vectors.into_iter().map(Given::Vector));
    let usage_unknown = embedded.usage.is_none();
    let estimate = Usage { uncached_input: tokens, ..Usage::default() };
    let usage = embedded.usage.unwrap_or(estimate);
    let model = model.clone();
    Ok(PackAnswers { model, usage, usage_unknown, given: given.collect() })
}

/// The text of a document that can share a call, or `None`.
async fn shareable_text(
    reader: &Reader,
    job: &Job,
    document: &Document,
    content: Content,
) -> Option<String> {
    if job.task == Task::Embed {
        let text = embed::text(reader, job, document, &content).await;
        return text.ok().map(Cow::into_owned);
    }
    let Content::Text(text) = content else { return None };
    job.in_parts(tokens::estimate(&text)).is_none().then_some(text)
}

/// What is known of a document before the call.
#[derive(Debug)]
enum Looked {
    /// It has its result.
    Done(Box<DocumentResult>),
    /// It has got the answer that another batch has bought. `updated`: it had one to an earlier
    /// content.
    Bought { reused: Reused, updated: bool },
    /// It can share the call, as far as there is room.
    Shareable(Box<Member>),
    /// It is sent alone.
    Alone,
}

/// Looks at one document. Alone, it reports its fault, or waits for the store without the others.
async fn look(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    index: u32,
    document: Document,
) -> Result<Looked, Failure> {
    let document = &shard.with_record(document).await?;
    let care = Care::Several(attempt);
    let before = earlier::find_existing(services, shard, document, care).await;
    let Open { raw, updated, instead_of } = match before {
        Ok(ExistingResult::Done(result)) => return Ok(Looked::Done(result)),
        Ok(ExistingResult::Open(open)) => open,
        Err(failure) if failure.kind == FailureType::UnreadableDocument => {
            return Ok(Looked::Alone);
        }
        Err(failure) => return Err(failure),
    };
    let Ok(raw) = content::fetch_unless_read(services, document, raw, &shard.job.lane).await else {
        return Ok(Looked::Alone);
    };
    if let Some(result) = bought_before(services, shard, document, &raw.version).await {
        let location = DocumentResult::location(&shard.output, &document.id);
        let result = result.of_activity(attempt);
        result.bought(&location, instead_of)?.write().await?;
        return Ok(Looked::Bought { reused: result.reused(), updated });
    }
    let extracted = content::extract(services, raw, &shard.job, &shard.route, care).await;
    let Ok(Extracted { content, version, .. }) = extracted else { return Ok(Looked::Alone) };
    let reader = services.reader_for(&shard.job.lane);
    let Some(text) = shareable_text(&reader, &shard.job, document, content).await else {
        return Ok(Looked::Alone);
    };
    let (document, tokens) = (document.clone(), tokens::estimate(&text));
    let member = Member { index, document, text, tokens, version, updated, instead_of };
    Ok(Looked::Shareable(Box::new(member)))
}

/// Gathers the documents of the call, and the outcomes of the others.
async fn gather(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    task: &PackTask,
) -> Result<(Vec<Member>, PackOutcome), Failure> {
    let (mut members, mut outcome, mut sum) = (Vec::new(), PackOutcome::default(), 0);
    let (small, most) = match shard.job.task {
        Task::Answer => (SMALL_TOKENS, PACK_TOKENS),
        Task::Embed => (embed::max_shared_tokens(services, shard), embed::TOGETHER_TOKENS),
    };
    let indices =
        (task.from..task.to).zip(shard.documents.iter().skip(task.from as usize).cloned());
    let looks: Vec<_> = indices
        .map(|(index, document)| async move {
            (index, look(services, attempt, shard, index, document).await)
        })
        .collect();
    let mut looked = std::pin::pin!(stream::iter(looks).buffered(AT_ONCE));
    while let Some((index, looked)) = looked.next().await {
        match looked? {
            Looked::Done(result) if result.is_written_by(attempt) => {
                outcome.succeeded += 1;
                outcome.spent += result.spend().tokens();
                outcome.reused += result.reused();
            }
            Looked::Done(_) => outcome.skipped += 1,
            Looked::Bought { reused, updated } => {
                outcome.succeeded += 1;
                outcome.updated += u32::from(updated);
                outcome.reused += reused;
            }
            Looked::Shareable(member) if member.tokens <= small && sum + member.tokens <= most => {
                sum += member.tokens;
                members.push(*member);
            }
            Looked::Shareable(_) | Looked::Alone => outcome.left.push(index),
        }
    }
    Ok((members, outcome))
}

/// The results of the documents with an answer, by their indices. They share the call's use in
/// proportion to their length, so that their sum is the use of the call.
fn build_results(
    attempt: &Attempt,
    shard: &Shard,
    PackAnswers { model, usage, usage_unknown, given }: PackAnswers<'_>,
    cost_usd: Option<f64>,
) -> BTreeMap<u32, Packed> {
    let all: u64 = given.iter().map(|(member, _)| member.tokens.max(1)).sum();
    let (mut before, mut calls) = (0, attempt.counts().provider_calls.into());
    let mut results = BTreeMap::new();
    for (member, given) in given {
        let after = before + member.tokens.max(1);
        let part = |tokens: u64| share(tokens, after, all) - share(tokens, before, all);
        let own = Usage {
            uncached_input: part(usage.uncached_input),
            cache_read: part(usage.cache_read),
            cache_write: part(usage.cache_write),
            output: part(usage.output),
        };
        let cost = cost_usd.map(|usd| usd * (after - before) as f64 / all as f64);
        let about = (member.document.clone(), member.version.clone());
        let result = DocumentResult::answered((&shard.job, shard.asks), about, &model, given)
            .of_activity(attempt)
            .with_usage_unknown(usage_unknown)
            .with_cost(std::mem::take(&mut calls), Some(own), cost);
        results.insert(member.index, Packed { result, instead_of: member.instead_of });
        before = after;
    }
    results
}

/// Returns the sum of the first `part` of `all` equal shares of `tokens`.
fn share(tokens: u64, part: u64, all: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(part) / u128::from(all.max(1)))
        .unwrap_or(u64::MAX)
}

/// The results that an earlier attempt stored.
async fn read(bought: &Location) -> Result<Option<Vec<Packed>>, Failure> {
    let bytes = bought.read_if_there().await?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Writes each result to its own location, and removes the object that held them together.
async fn write_results(
    shard: &Shard,
    bought: &Location,
    results: Vec<Packed>,
) -> Result<(), Failure> {
    let writes: Vec<_> = results
        .into_iter()
        .map(|Packed { result, instead_of }| async move {
            let location = DocumentResult::location(&shard.output, &result.id);
            result.bought(&location, instead_of)?.write().await
        })
        .collect();
    stream::iter(writes).buffered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await?;
    bought.remove_or_log("a pack's results stay behind").await;
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
