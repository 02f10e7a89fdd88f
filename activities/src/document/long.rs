//! Long documents: split once, answered part by part, merged into one result.
//!
//! Under `<output>/_tidegate/parts/<document id>-<hash>/` are the `text`, the borders of its parts
//! (`parts.json`), the version of the document (`version.json`), and the answer of every finished
//! step (`<level>-<number>.json`). The hash covers the text and everything that the prompts share.
//! So another batch with equal instructions finds the answers that were paid for, and a batch with
//! other instructions does not. The folder is removed once there is a result.

use std::{ops::Range, pin::pin};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_documents::{Split, split};
use tidegate_providers::Finish;
use tidegate_types::Spend;
use tidegate_workflows::contract::{
    DocumentOutcome, FAN_IN, FailureType, Long, PartTask, Parts, Step,
};

use crate::{
    attempt::Attempt,
    document::{
        ask::{
            evidence::QuoteSource,
            inquiry::{AnswerSubject, answer_content},
            prompt::Content,
        },
        read::earlier::{forget, offer},
    },
    failure::Failure,
    fingerprint::{Fingerprint, hash},
    metrics,
    output::{
        job::{Document, Shard},
        jsonl::json,
        layout::{self, READ_AHEAD},
        result::{self, DocumentResult},
        version::Version,
    },
    services::Services,
    spans,
    storage::Location,
};

/// Most parts of one document: each is a call, and its name and answer are stored until the end.
const MAX_PARTS: usize = 2_000;

/// Tokens that a part shares with the one before: a sentence or two.
const OVERLAP: u32 = 50;

const VERSION: &str = "version.json";

/// Added to the batch's instructions when the model merges several answers.
const REDUCE: &str = "The document was too long for one reading. You are given the answers to its parts, in order. \
    Combine them into one answer to the whole document, in the form that was asked for, without mentioning the parts.";

/// Splits a document, and stores its parts.
///
/// # Errors
/// `TooLarge` for more than `MAX_PARTS` parts; `Transient` when the store fails.
pub async fn begin(
    shard: &Shard,
    document: &Document,
    text: &str,
    begun: PartsInfo,
    long: Long,
) -> Result<DocumentOutcome, Failure> {
    let how = Split {
        max_tokens: long.chunk_tokens as usize,
        overlap_tokens: (long.chunk_tokens / OVERLAP) as usize,
        markdown: document.uri.ends_with(".md"),
    };
    let borders: Vec<Range<usize>> =
        split(text, how).into_iter().map(|chunk| chunk.range).collect();
    if borders.len() > MAX_PARTS {
        let message = format!(
            "the document has {} parts of {} tokens; at most {MAX_PARTS} are read; raise chunk_tokens",
            borders.len(),
            long.chunk_tokens
        );
        return Err(Failure::never(FailureType::TooLarge, message));
    }
    let hash = hash([
        &shard.template.to_le_bytes()[..],
        &long.chunk_tokens.to_le_bytes(),
        text.as_bytes(),
    ]);
    let parts = Parts {
        count: u32::try_from(borders.len()).unwrap_or(u32::MAX),
        text: hash,
        how: long.how,
    };
    let folder = folder(shard, document, &parts);
    folder.child("text").write(text.to_owned()).await?;
    folder.child("parts.json").write(json(&borders)?).await?;
    folder.child(VERSION).write(json(&begun)?).await?;
    Ok(DocumentOutcome { parts: Some(parts), ..DocumentOutcome::default() })
}

/// Takes one step, once.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub async fn process(
    services: &Services,
    attempt: &Attempt,
    task: &PartTask,
) -> Result<DocumentOutcome, Failure> {
    let (shard, document) = services.shards.find(&services.storage, &task.document).await?;
    spans::record_document(&document.id);
    let (folder, result) = (
        folder(&shard, &document, &task.parts),
        DocumentResult::location(&shard.output, &document.id),
    );
    let ends = match task.step {
        Step::Join => true,
        Step::Reduce { of, .. } => of <= FAN_IN,
        Step::Part(_) => false,
    };
    let object = if ends { result } else { folder.child(&object(task.step)) };
    let pending_writes = &services.pending_writes;
    pending_writes.recover(attempt, &object).await?;
    let needs_begun = ends || shard.job.evidence;
    let begun = if needs_begun { PartsInfo::read(&folder).await? } else { PartsInfo::default() };
    let there = DocumentResult::read_named(&object).await?;
    let name = there.as_ref().map(|(_, name)| *name);
    if let Some((done, name)) = there
        && is_answer(&done, name, &shard, &begun, ends)
    {
        return Ok(outcome_of_done(&done, attempt, task, ends));
    }
    pending_writes.check_spooled(attempt)?;
    let refused = folder.child(&format!("kept-{}", self::object(task.step)));
    let (mut done, mut outcome) = match task.step {
        Step::Join => (join(&folder, &document, &task.parts).await?, DocumentOutcome::default()),
        step => {
            let prompt = question(&folder, step, &task.parts, shard.job.evidence).await?;
            let StepPrompt { text, note, cut, of } = prompt;
            let content = Content::Text(text);
            let parts: Vec<(usize, usize, &str)> = of.iter().map(TextPart::as_source).collect();
            let sought = QuoteSource::Parts(&parts, &begun.pages);
            // Steps are in a folder of one version; only the result must state its version.
            let of = (document, Version::default());
            let about = AnswerSubject::of_shard(&shard, of, &refused, sought);
            let (route, asked) = (&shard.route, (&content, note));
            let done = answer_content(services, attempt, &shard, route, asked, about);
            let mut done = Box::pin(done).await?;
            if cut {
                // One of the answers to merge is cut.
                done.finish = Finish::Cut;
            }
            let outcome = done.outcome(attempt);
            (done, outcome)
        }
    };
    outcome.cuts.cut = u64::from(ends && done.is_cut());
    if ends {
        done = done.with_question(shard.asks, begun.version);
        let has_price = done.cost_usd.is_some();
        done = done.with_spend(task.spent + outcome.spend, has_price);
    }
    if ends {
        offer(services, &done).await;
    }
    let instead_of = if ends { begun.instead_of } else { name };
    let done = done.of_activity(attempt);
    let bought = done.bought(&object, instead_of)?;
    // A step's answer is needed only until its document is done.
    let bought = if ends { bought } else { bought.needing(&folder.child(VERSION)) };
    pending_writes.write(attempt, &bought).await?;
    forget(attempt, &refused).await;
    if ends {
        metrics::count_answer(&done.model, done.cost_usd, &shard.job.tenant);
        clean(&folder).await;
    } else {
        clean_late(&folder).await;
    }
    Ok(outcome)
}

/// Whether the stored object of a step answers it. Folders are named by the text and the prompt,
/// not by the model. At the result's location may be the result that the document had at the
/// beginning.
fn is_answer(
    done: &DocumentResult,
    name: Fingerprint,
    shard: &Shard,
    begun: &PartsInfo,
    ends: bool,
) -> bool {
    match ends {
        true => begun.instead_of != Some(name),
        false => done.question.is_none_or(|question| question == shard.asks),
    }
}

/// The outcome of a step that is already done: its cost if this activity paid for it, otherwise
/// nothing.
fn outcome_of_done(
    done: &DocumentResult,
    attempt: &Attempt,
    task: &PartTask,
    ends: bool,
) -> DocumentOutcome {
    let mut spend = Spend::from(attempt.counts());
    let mut cuts = attempt.state().document.cuts;
    if done.is_written_by(attempt) {
        cuts.cut = u64::from(ends && done.is_cut());
        // A result contains the cost of all steps; those before this one are counted already.
        let before = if ends { task.spent } else { Spend::default() };
        let own = done.spend().beyond(before);
        spend += own.tokens();
        // The server may have lost the attempt that made these calls.
        spend.provider_calls = spend.provider_calls.max(own.provider_calls);
    }
    DocumentOutcome { spend, cuts, ..DocumentOutcome::default() }
}

fn folder(shard: &Shard, document: &Document, parts: &Parts) -> Location {
    shard
        .output
        .child(layout::FOLDER)
        .child("parts")
        .child(&format!("{}-{:016x}", document.id, parts.text))
}

/// Name of the object with a step's answer.
fn object(step: Step) -> String {
    match step {
        Step::Part(part) => format!("0-{part}.json"),
        Step::Reduce { level, group, .. } => format!("{level}-{group}.json"),
        Step::Join => "join.json".to_owned(),
    }
}

/// The prompt of a step.
#[derive(Debug, Default)]
struct StepPrompt {
    text: String,
    /// A note after the instructions.
    note: Option<&'static str>,
    /// Whether some of the answers in the text are cut.
    cut: bool,
    /// The parts of the document in which evidence is searched.
    of: Vec<TextPart>,
}

/// A part of a document, by its number from 0, its start in the document's text, and its text.
#[derive(Debug)]
struct TextPart(usize, u64, String);

impl TextPart {
    fn as_source(&self) -> (usize, usize, &str) {
        let Self(number, at, text) = self;
        (number + 1, usize::try_from(*at).unwrap_or(usize::MAX), text)
    }
}

async fn read_borders(folder: &Location) -> Result<Vec<Range<u64>>, Failure> {
    let borders = folder.child("parts.json").read().await?;
    serde_json::from_slice(&borders).map_err(|_| missing_step(folder))
}

/// All parts of a document.
async fn read_parts(folder: &Location) -> Result<Vec<TextPart>, Failure> {
    let (borders, text) = (read_borders(folder).await?, folder.child("text").read().await?);
    let text = std::str::from_utf8(&text).map_err(|_| missing_step(folder))?;
    let part = |(number, range): (usize, Range<u64>)| {
        let [from, to] = [range.start, range.end].map(|at| usize::try_from(at).ok());
        let own = text.get(from?..to?)?;
        Some(TextPart(number, range.start, own.to_owned()))
    };
    borders.into_iter().enumerate().map(|it| part(it).ok_or_else(|| missing_step(folder))).collect()
}

async fn question(
    folder: &Location,
    step: Step,
    parts: &Parts,
    evidence: bool,
) -> Result<StepPrompt, Failure> {
    match step {
        Step::Reduce { level, group, of } => {
            let (from, to) = (group * FAN_IN, ((group + 1) * FAN_IN).min(of));
            let (mut text, mut cut) = (String::new(), false);
            let names = (from..to).map(|number| format!("{}-{number}.json", level - 1));
            let mut steps = pin!(read_steps(folder, names.collect()));
            for number in from..to {
                let part = steps.try_next().await?.ok_or_else(|| missing_step(folder))?;
                cut |= part.is_cut();
                text.push_str(&format!(
                    "## Answer {} of {of}\n\n{}\n\n",
                    number + 1,
                    part.answer.trim()
                ));
                for quote in part.evidence.iter().flatten().filter(|it| it.found == Some(true)) {
                    text.push_str(&format!("Evidence of {}: {}\n\n", quote.field, quote.quote));
                }
            }
            let of = if evidence { read_parts(folder).await? } else { Vec::new() };
            Ok(StepPrompt { text, note: Some(REDUCE), cut, of })
        }
        Step::Part(part) => {
            let range = read_borders(folder).await?.get(part as usize).cloned();
            let range = range.ok_or_else(|| missing_step(folder))?;
            let start = range.start;
            let bytes = folder.child("text").read_range(range).await?;
            let text = std::str::from_utf8(&bytes).map_err(|_| missing_step(folder))?;
            let own = evidence.then(|| TextPart(part as usize, start, text.to_owned()));
            let text =
                format!("[Part {} of {} of a longer document]\n\n{text}", part + 1, parts.count);
            Ok(StepPrompt { text, of: own.into_iter().collect(), ..StepPrompt::default() })
        }
        Step::Join => Ok(StepPrompt::default()),
    }
}

/// Facts of a document that were recorded when it was split.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartsInfo {
    /// The version of the document that the parts come from.
    #[serde(flatten)]
    pub version: Version,
    /// Fingerprint of the document's earlier result, which answers another question or content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Fingerprint>,
    /// Where each page begins in its text, in bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<usize>,
}

impl PartsInfo {
    async fn read(folder: &Location) -> Result<Self, Failure> {
        let bytes = folder.child(VERSION).read_if_there().await?;
        let begun = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        Ok(begun.map_err(|_| missing_step(folder))?.unwrap_or_default())
    }
}

/// Reads the answers of these steps, several at once and in this order.
fn read_steps(
    folder: &Location,
    names: Vec<String>,
) -> impl Stream<Item = Result<DocumentResult, Failure>> + use<> {
    let folder = folder.clone();
    let read = move |name: String| {
        let folder = folder.clone();
        async move {
            let step = DocumentResult::read(&folder.child(&name)).await?;
            step.ok_or_else(|| missing_step(&folder))
        }
    };
    stream::iter(names).map(read).buffered(READ_AHEAD)
}

fn missing_step(folder: &Location) -> Failure {
    Failure::invalid_input(format!(
        "{folder} is damaged or was removed while the batch ran; start the batch again"
    ))
}

/// The parts' answers, side by side.
async fn join(
    folder: &Location,
    document: &Document,
    parts: &Parts,
) -> Result<DocumentResult, Failure> {
    let (mut answers, mut evidence) = (Vec::new(), None);
    let (mut last, mut cut): (Option<DocumentResult>, bool) = (None, false);
    let names = (0..parts.count).map(|part| object(Step::Part(part)));
    let mut steps = pin!(read_steps(folder, names.collect()));
    while let Some(part) = steps.try_next().await? {
        answers.push(part.answer.clone());
        if let Some(own) = &part.evidence {
            evidence.get_or_insert_with(Vec::new).extend(own.iter().cloned());
        }
        // The stop reason of a cut part stands for all of them.
        if !cut {
            cut = part.is_cut();
            last = Some(part);
        }
    }
    let last = last.ok_or_else(|| missing_step(folder))?;
    let (answer, parts) = (answers.join("\n\n"), Some(answers));
    Ok(DocumentResult {
        id: document.id.clone(),
        answer,
        evidence,
        parts,
        seconds: None,
        completed_at: result::now(),
        ..last
    })
}

/// Removes the steps and their folder once there is a result. The version is removed first, because
/// its existence marks the steps as needed.
async fn clean(folder: &Location) {
    let removed = async {
        folder.child(VERSION).delete().await?;
        folder.clear().await
    };
    if let Err(error) = removed.await {
        tracing::debug!(%error, "the steps of a long document stay behind");
    }
}

/// Removes a step's answer that was written after the result, because it is never read.
async fn clean_late(folder: &Location) {
    if matches!(folder.child(VERSION).stamp().await, Ok(None)) {
        clean(folder).await;
    }
}
