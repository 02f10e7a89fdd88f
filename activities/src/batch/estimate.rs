//! The forecast of a batch, from a sample of its documents, the prices and the limits.
//!
//! | figure | lower end | upper end |
//! |---|---|---|
//! | input tokens | the sample's mean less two standard errors, and 25 % less for the estimate | the mean plus two standard errors, and 30 % more for the estimate |
//! | output tokens | a tenth of the likely maximum (`max_output_tokens`, else 1,024) each | the likely maximum each |
//! | US dollars | lower input and output at the cheapest model of the route | upper input and output at the dearest |
//! | all of these, for checked answers | each document asked once and judged | each model asked twice, and judged each time; or the share that a sample showed |
//! | time | lower use, all of the limits | upper use, the lane's guaranteed share alone |

use futures::{StreamExt, stream};
use tidegate_calls::route::Route;
use tidegate_documents::tokens;
use tidegate_providers::schema::Form;
use tidegate_quota::{Dimension, ModelQuota, PerDimension, call_stats, output_cap_cost};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{
    Because, FailureType, Fallback, Job, LIKELY_OUTPUT_TOKENS, Pack, Task,
};

use crate::{
    attempt::Attempt,
    batch::expected_calls::ExpectedCalls,
    document::{
        ask::{
            embed, evidence,
            prompt::{self, Content},
            prompt_builder::DocumentFacts,
            sandbox,
        },
        pack,
        read::content::{self, Care},
        request,
    },
    failure::{Failure, is_store_refusal},
    number::{float, whole},
    output::{
        forecast::{Forecast, Range},
        job::Document,
    },
    services::Services,
};

/// Number of documents that are read for the forecast, spread over the whole list; all documents of
/// a shorter list.
const SAMPLE: usize = 40;
const AT_ONCE: usize = 8;

/// Maximum number of documents from which the sample is taken.
const MAX_HELD: usize = 4 * SAMPLE;

/// Range of a tokenizer's count relative to the estimate: English prose has a sixth fewer tokens, text
/// with many digits even fewer; some newer tokenizers have a third more.
const ESTIMATE: (f64, f64) = (0.75, 1.3);

/// Maximum number of documents in one call if the author states none: one mistake in the answer
/// loses all of them.
const MAX_FITTING: u32 = 20;

/// Least gain in speed that is worth a note.
const WORTH_SAYING: f64 = 1.3;

/// Share of the cap that an answer rarely falls below.
const MIN_OUTPUT: f64 = 0.1;

/// A sample of the documents of a batch.
#[derive(Debug)]
pub struct Sample {
    /// Of the candidates, one in so many.
    documents: Vec<Document>,
    one_in: u64,
    /// Documents that pages have given, each some of its own.
    candidates: u64,
    /// The number of documents that the sample stands for.
    of: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self { documents: Vec::new(), one_in: 1, candidates: 0, of: 0 }
    }
}

impl Sample {
    /// Adds documents from a page, spread over it; fewer the more pages there are, because a record
    /// is held with its text.
    pub fn add(&mut self, page: &[Document]) {
        self.of += page.len() as u64;
        let step = page.len().div_ceil(SAMPLE).max(1);
        for document in page.iter().step_by(step) {
            if self.candidates.is_multiple_of(self.one_in) {
                self.documents.push(document.clone());
            }
            self.candidates += 1;
            if self.documents.len() > MAX_HELD {
                let mut is_kept = false;
                self.documents.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.one_in *= 2;
            }
        }
    }

    /// Sets the number of documents that the sample stands for, if some of the added ones were the
    /// same document.
    pub fn is_of(&mut self, documents: u64) {
        self.of = documents;
    }

    /// Whether the sample stands for no documents.
    pub fn is_empty(&self) -> bool {
        self.of == 0
    }

    /// The sampled documents, spread over all pages.
    fn into_documents(self) -> Vec<Document> {
        let step = self.documents.len().div_ceil(SAMPLE).max(1);
        self.documents.into_iter().step_by(step).collect()
    }
}

/// Reads a sample of the documents, and estimates the use of all of them.
///
/// # Errors
/// `Transient` when the store fails.
pub async fn forecast(
    services: &Services,
    job: &Job,
    route: &Route,
    sample: Sample,
    attempt: Option<&Attempt>,
) -> Result<Forecast, Failure> {
    let care = Care::of_several(attempt);
    let documents = sample.of;
    let sample = sample.into_documents();
    let sampled = sample.len() as u64;
    let mut tokens = Vec::new();
    let mut read = std::pin::pin!(
        stream::iter(sample)
            .map(|document| async move {
                let about = Document { text: None, ..document.clone() };
                let read = content::read(services, document, job, route, care).await;
                read.map(|(content, _)| (about, content))
            })
            .buffer_unordered(AT_ONCE)
    );
    while let Some(read) = read.next().await {
        match read {
            Ok((document, content)) => {
                if let Some(input) = input_tokens(services, job, &document, &content).await? {
                    tokens.push(float(input));
                }
            }
            // A document that cannot be read now fails by itself, when its turn comes.
            Err(failure) if failure.is_retried() && !is_store_refusal(&failure) => {
                return Err(failure);
            }
            Err(_) => {}
        }
    }
    let each = mean(&tokens, documents <= SAMPLE as u64);
    let count = float(documents);
    let readable = if sampled == 0 { 0.0 } else { float(tokens.len() as u64) / float(sampled) };
    let input = Range { from: each.from * ESTIMATE.0, to: each.to * ESTIMATE.1 };
    let output = Range {
        from: f64::from(job.likely_output_tokens()) * MIN_OUTPUT,
        to: f64::from(job.likely_output_tokens()),
    };
    let checked = ExpectedCalls::load(services, job, route).await?;
    let calls = count * readable;
    let pack = pack(services, job, route, input, output);
    Ok(Forecast {
        documents,
        asked: None,
        sampled,
        unreadable: sampled - tokens.len() as u64,
        input_tokens: checked.input(input).times(calls),
        output_tokens: checked.output(output).times(calls),
        cost_usd: checked.cost(services, input, output).map(|each| each.times(calls)),
        seconds: time(services, job, route, input, output, pack).map(|each| each.times(calls)),
        pack,
        calls: (!job.checks.is_empty()).then(|| checked.calls()),
        provider_batch: false,
        temporal_actions: None,
        notes: notes(services, job, route)
            .into_iter()
            .chain(first(services, route).and_then(|model| cap_cost_note(job, model, input)))
            .collect(),
        full_price: None,
        of_the_first: false,
    })
}

/// Estimates the input tokens of a document; returns `None` if nothing of it can be sent.
async fn input_tokens(
    services: &Services,
    job: &Job,
    document: &Document,
    content: &Content,
) -> Result<Option<u64>, Failure> {
    if let Some(lines) = &job.lines {
        return Ok(request::input_tokens(lines, content.text()));
    }
    let reader = &services.reader_for(&job.lane);
    if job.task == Task::Embed {
        return match embed::text(reader, job, document, content).await {
            Ok(text) => Ok(Some(tokens::estimate(&text))),
            Err(failure) if failure.kind == FailureType::UnreadableDocument => Ok(None),
            Err(failure) => Err(failure),
        };
    }
    let wording =
        sandbox::build_prompt(reader, job, &DocumentFacts::new(document, content.text())).await?;
    Ok(Some(prompt::input_tokens(
        &wording,
        content,
        "",
        evidence::schema_with_evidence(job).as_ref(),
    )))
}

/// Writes notes on models that cannot be forced to follow the schema, and on models that were never
/// tested for it.
fn notes(services: &Services, job: &Job, route: &Route) -> Vec<String> {
    let unchecked = job.fallbacks.iter().filter(|(_, it)| it.because == Because::Unchecked);
    let mut notes: Vec<String> = unchecked
        .map(|(model, Fallback { from, .. })| {
            format!(
                "documents may go on from {from} to {model}, unchecked: the models were never compared"
            )
        })
        .collect();
    let Some(schema) = &evidence::schema_with_evidence(job) else { return notes };
    let note = |model: &ModelId| {
        let form = services.providers.dialect(model)?.schema(model.model(), schema);
        let Form::Told { why } = form else { return None };
        Some(format!(
            "{model} is told the schema in words, because {why}; each answer is checked against it all the same"
        ))
    };
    notes.extend(route.models.iter().filter_map(note));
    notes
}

/// A note on the cost of `max_output_tokens` where the provider charges it against the limit, used
/// or not.
fn cap_cost_note(job: &Job, model: &ModelQuota, input: Range) -> Option<String> {
    if !model.charge.counts_bound() {
        return None;
    }
    let (bound, each) = (u64::from(job.max_output_tokens), f64::midpoint(input.from, input.to));
    let at = |bound: u64| {
        let written = bound.min(LIKELY_OUTPUT_TOKENS.into()) / 2;
        output_cap_cost::calls_per_second(model, whole(each), written, bound)
    };
    let smaller = u64::from(LIKELY_OUTPUT_TOKENS.min(job.max_output_tokens / 2));
    let (rate, with_smaller) = (at(bound)?, at(smaller)?);
    (with_smaller > WORTH_SAYING * rate).then(|| {
        format!(
            "{} counts max_output_tokens ({bound}), used or not, unless its headers show otherwise: {} at most; where answers fit into {smaller} tokens, max_output_tokens = {smaller} allows {}",
            model.id,
            output_cap_cost::format_rate(rate),
            output_cap_cost::format_rate(with_smaller)
        )
    })
}

/// Mean tokens of a document, plus and minus two standard errors if only some documents were read.
fn mean(tokens: &[f64], all: bool) -> Range {
    let count = float(tokens.len() as u64);
    if tokens.is_empty() {
        return Range { from: 0.0, to: 0.0 };
    }
    let mean = tokens.iter().sum::<f64>() / count;
    let variance = tokens.iter().map(|tokens| (tokens - mean).powi(2)).sum::<f64>() / count;
    let error = if all { 0.0 } else { 2.0 * (variance / count).sqrt() };
    Range { from: (mean - error).max(mean / 2.0), to: mean + error }
}

/// Seconds for all documents at the limits of the route's first model. Further models can only
/// shorten it.
fn time(
    services: &Services,
    job: &Job,
    route: &Route,
    input: Range,
    output: Range,
    pack: u32,
) -> Option<Range> {
    let model = first(services, route)?;
    let share = model.lanes.share(&job.lane).map_or(1.0, |share| share.guaranteed);
    let each = |input, output| {
        let mut used = used(model, input, output, f64::from(pack));
        if model.charge.counts_bound() {
            used.combined = used.combined.max(f64::from(job.max_output_tokens));
        }
        Some(1.0 / call_stats::admission_rate(&model.limits, &used)?)
    };
    let (fast, slow) = (each(input.from, output.from)?, each(input.to, output.to)?);
    Some(Range { from: fast, to: slow / if share > 0.0 { share } else { 1.0 } })
}

/// Documents in one call. If the author states none: as many as are needed for tokens, not
/// requests, to be the tightest limit.
fn pack(services: &Services, job: &Job, route: &Route, input: Range, output: Range) -> u32 {
    let wanted = match job.pack {
        None => return 1,
        Some(Pack::Of(documents)) => documents,
        Some(Pack::Fitting) => {
            first(services, route).and_then(|model| fitting(model, input, output)).unwrap_or(1)
        }
    };
    wanted
        .min(pack::max_documents(job, input.to))
        .min(first(services, route).map_or(u32::MAX, |model| room(model, input, output)))
}

/// Documents that may share a call without reserving more than a quarter of a minute's tokens.
fn room(model: &ModelQuota, input: Range, output: Range) -> u32 {
    let (used, limits) = (used(model, input.to, output.to, 1.0), model.limits.effective());
    let tokens = limits.iter().filter(|(it, _)| *it != Dimension::Requests);
    let stated = tokens.filter(|(it, limit)| **limit > 0 && used[*it] > 0.0);
    let most = stated.map(|(it, limit)| float(*limit) / 4.0 / used[it]);
    // The cast saturates.
    most.min_by(f64::total_cmp).map_or(u32::MAX, |most| (most as u32).max(1))
}

/// Documents in one call, computed for half of the limits, which are usually available.
fn fitting(model: &ModelQuota, input: Range, output: Range) -> Option<u32> {
    let mut used = used(
        model,
        f64::midpoint(input.from, input.to),
        f64::midpoint(output.from, output.to),
        1.0,
    );
    let all = call_stats::admission_rate(&model.limits, &used)?;
    used.requests = 0.0;
    let tokens = call_stats::admission_rate(&model.limits, &used).unwrap_or(f64::INFINITY);
    // Rounded, so that a request limit that is only slightly the tightest one packs nothing. The cast
    // saturates.
    Some(((tokens / all).round() as u32).clamp(1, MAX_FITTING))
}

fn first<'a>(services: &'a Services, route: &Route) -> Option<&'a ModelQuota> {
    services.guard.quota.models().find(|model| Some(&model.id) == route.models.first())
}

/// Use of each limit by one document.
fn used(model: &ModelQuota, input: f64, output: f64, pack: f64) -> PerDimension<f64> {
    let mut used = model.amounts(whole(input), whole(output)).map(float);
    used.requests /= pack;
    used
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Lanes, Limits};
    use tidegate_types::DocumentId;

    use super::*;

    #[test]
    fn a_small_sample_has_a_wide_range_and_a_whole_one_none() {
        assert_eq!(mean(&[100.0, 300.0], true), Range { from: 200.0, to: 200.0 });
        let range = mean(&[100.0, 300.0], false);
        assert!(range.from >= 100.0 && range.to > 300.0, "{range:?}");
        assert_eq!(mean(&[], true), Range { from: 0.0, to: 0.0 });
    }

    #[test]
    fn a_sample_of_any_number_of_pages_is_held_in_little_memory_and_is_spread_over_them() {
        let mut sample = Sample::default();
        for page in 0..1_000 {
            let document = |row: usize| {
                let id = DocumentId::from_relative_path(&format!("{page:04}-{row:02}"));
                Document::file(id, String::new())
            };
            sample.add(&(0..80).map(document).collect::<Vec<_>>());
            assert!(sample.documents.len() <= MAX_HELD, "{page}");
        }
        assert_eq!(sample.of, 80_000);
        let documents = sample.into_documents();
        let tenths: std::collections::BTreeSet<_> =
            documents.iter().map(|it| it.id.as_str()[..2].to_owned()).collect();
        assert!((SAMPLE / 2..=SAMPLE).contains(&documents.len()), "{}", documents.len());
        assert_eq!(tenths.len(), 10, "{tenths:?}");
    }

    #[test]
    fn what_a_bound_on_output_costs_is_noted_where_it_counts() {
        let model = |charge| {
            let limits = Limits::default().with(Dimension::Combined, 2_000_000);
            let lanes = Arc::new(Lanes::single());
            ModelQuota::new("openai:m".parse().unwrap(), limits, charge, lanes).unwrap()
        };
        let job = |bound: u32| -> Job {
            serde_json::from_value(serde_json::json!({
                "source": {"prefix": "file:///a/"}, "output": "file:///b/", "instructions": "c",
                "model": "openai:m", "lane": "batch", "tenant": "default",
                "max_output_tokens": bound,
            }))
            .unwrap()
        };
        let input = Range { from: 1_000.0, to: 1_400.0 };
        let note = cap_cost_note(&job(10_000), &model(Charge::CAUTIOUS), input).unwrap();
        for part in ["(10000)", "3.2 calls a second", "max_output_tokens = 1024"] {
            assert!(note.contains(part), "{note}");
        }
        assert_eq!(
            cap_cost_note(&job(100), &model(Charge::CAUTIOUS), input),
            None,
            "it would give little"
        );
        assert_eq!(
            cap_cost_note(&job(10_000), &model(Charge::default()), input),
            None,
            "it costs nothing"
        );
    }

    #[test]
    fn calls_are_shared_where_requests_bind_and_tokens_leave_room() {
        let model = |combined| {
            let limits =
                Limits::default().with(Dimension::Requests, 60).with(Dimension::Combined, combined);
            ModelQuota::new(
                "a:b".parse().unwrap(),
                limits,
                Charge::default(),
                Arc::new(Lanes::single()),
            )
            .unwrap()
        };
        let each = Range { from: 100.0, to: 100.0 };
        // 200 tokens a document: 60,000 a minute are 300 documents, five for each of 60 requests.
        assert_eq!(fitting(&model(60_000), each, each), Some(5));
        assert_eq!(fitting(&model(6_000), each, each), Some(1), "tokens bind");
        assert_eq!(fitting(&model(100_000_000), each, each), Some(MAX_FITTING));
        assert_eq!(
            (room(&model(6_000), each, each), room(&model(300), each, each)),
            (7, 1),
            "a quarter of a minute"
        );
    }
}
