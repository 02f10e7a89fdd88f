//! Asks one question once, records its cost, and validates the answer.

use std::borrow::Cow;

use tidegate_calls::{
    caller::{Question as _, Terms},
    failure::MAX_INVALID_OUTPUTS,
    route::Route,
};
use tidegate_documents::Reader;
use tidegate_types::Spend;
use tidegate_workflows::contract::{Attach, CutAnswers, Job, OnCut, Taken};

use crate::{
    attempt::{Attempt, DocumentState},
    document::ask::{
        evidence::{self, QuoteSource},
        prompt::{Content, Question},
        prompt_builder::DocumentFacts,
        sandbox,
        unjudged::Unjudged,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::{Document, Shard, SharedJob},
        result::{DocumentResult, Given},
        version::Version,
    },
    schema::SchemaValidator,
    services::Services,
    storage::Location,
    truncation_stats::Asks,
};

/// The parameters of a question, and the conditions that its answer must satisfy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    /// The author's job.
    pub(crate) job: &'a Job,
    /// The models that are asked.
    pub(crate) route: &'a Route,
    /// The schema of the answer.
    pub(crate) validator: Option<&'a SchemaValidator>,
    /// The lane in which it is asked, and its payers.
    pub(crate) terms: Terms<'a>,
    /// Fingerprint of the question.
    pub(crate) asks: Fingerprint,
}

impl<'a> Inquiry<'a> {
    /// The inquiry of a shard's documents.
    pub(crate) fn for_shard(shard: &'a Shard) -> Self {
        let SharedJob { job, route, validator, asks, .. } = &**shard;
        Self { job, route, validator: validator.as_ref(), terms: shard.terms(), asks: *asks }
    }
}

/// The subject of an answer.
#[derive(Debug)]
pub(crate) struct AnswerSubject<'a> {
    pub(crate) document: Document,
    /// The version of the document that was sent.
    pub(crate) version: Version,
    /// Where an answer that is not accepted is stored.
    pub(crate) refused: &'a Location,
    /// The fault of the answer before, as sent to the model.
    pub(crate) correction: Option<&'a str>,
    /// Advice on a document that is too large for a call.
    pub(crate) size_advice: Cow<'a, str>,
    /// The text in which quotes of evidence are searched.
    pub(crate) sought: QuoteSource<'a>,
}

impl<'a> AnswerSubject<'a> {
    /// A document of a shard, whose answer before had no fault.
    pub(crate) fn of_shard(
        shard: &'a Shard,
        (document, version): (Document, Version),
        refused: &'a Location,
        sought: QuoteSource<'a>,
    ) -> Self {
        let size_advice = size_advice(&shard.job);
        Self { document, version, refused, correction: None, size_advice, sought }
    }
}

/// Asks once, or takes the answer that an earlier attempt could not judge; returns the answer with
/// its cost.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    inquiry: Inquiry<'_>,
    mut question: Question<'_>,
    about: AnswerSubject<'_>,
) -> Result<DocumentResult, Failure> {
    let Inquiry { job, route, validator, .. } = inquiry;
    let (template, refused) = (question.template, about.refused);
    let cuts_of = |model| Asks { model, template, room: job.max_output_tokens };
    let needs_process = validator.is_some_and(|validator| !validator.is_harmless);
    let kept = match needs_process {
        true => Unjudged::find(services, attempt, refused).await?,
        false => None,
    };
    let likely = route.models.get(attempt.call.state().model as usize);
    if kept.is_none()
        && job.on_cut == OnCut::Raise
        && likely.is_some_and(|model| services.truncation_stats.are_many(cuts_of(model)))
    {
        attempt.begin_with_room();
    }
    let before = attempt.state().document;
    question = question.with_room(before.raises, has_been_cut(&before));
    if let Some(correction) = about.correction {
        question = question.with_correction(correction);
    }
    if let Some(fault) = &before.last_fault {
        question = question.with_correction(&format!(
            "Your last answer was refused, because it does not satisfy the JSON Schema: {fault}. Answer again, with JSON that satisfies it."
        ));
    }
    let (result, own, wrong) = match kept {
        Some(Unjudged { result, own, .. }) => (result, own, None),
        None => {
            let (result, own, wrong) = ask(services, attempt, inquiry, &question, about).await?;
            if before.raises == 0 {
                services.truncation_stats.count_answer(cuts_of(&result.model), result.is_cut());
            }
            let is_judged = wrong.is_none() && (!result.is_cut() || job.on_cut == OnCut::Keep);
            match needs_process && is_judged {
                true => {
                    let kept = Unjudged::new(attempt, result, own);
                    kept.store(services, attempt, refused).await?;
                    (kept.result, own, None)
                }
                false => (result, own, wrong),
            }
        }
    };
    let cap = services.providers.get(&result.model);
    let cap = cap.and_then(|it| it.bounds(result.model.model()).output_tokens);
    let learned = services.guard.learned_caps.get(&result.model).unwrap_or(u32::MAX);
    let room = question.room(cap).min(learned);
    let has_more = question.raised_room(cap).min(learned) > room;
    let accepted = match accept(services, job, validator, &result, wrong).await {
        // The answer was not judged: it is kept, and judged by the next attempt.
        Err(failure) if failure.is_retried() => return Err(failure),
        accepted => accepted.and_then(|it| it.require(attempt, job, &result, (room, has_more))),
    };
    if let Err(failure) = accepted {
        let raised = u64::from(attempt.state().document.raises > before.raises);
        let raised_cost_usd = if raised > 0 { own.cost_usd } else { 0.0 };
        let cuts = CutAnswers { raised, raised_cost_usd, ..CutAnswers::default() };
        attempt.discard(Taken { spend: own, cuts });
        attempt.call.record_failure(failure.kind);
        if result.write_refused(refused).await {
            attempt.set_kept_answer(refused.to_string());
        }
        return Err(failure);
    }
    Ok(result)
}

/// Whether an answer of the document was cut, so that it is asked with a higher cap.
fn has_been_cut(document: &DocumentState) -> bool {
    document.raises > u32::from(document.began_raised)
}

/// Asks once; returns the answer with its cost so far, its own cost, and the fault in its form.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
async fn ask(
    services: &Services,
    attempt: &Attempt,
    inquiry: Inquiry<'_>,
    question: &Question<'_>,
    AnswerSubject { document, version, size_advice, sought, .. }: AnswerSubject<'_>,
) -> Result<(DocumentResult, Spend, Option<String>), Failure> {
    let Inquiry { job, route, terms, asks, .. } = inquiry;
    let before = attempt.state().document;
    let asked = services.caller().ask(&attempt.call, terms, route, question).await;
    let (model, completion) = asked.map_err(|failure| {
        let failure = failure.with_size_advice(&size_advice);
        if has_been_cut(&before) {
            failure.without_room()
        } else if before.began_raised && failure.lacks_room() {
            attempt.begin_without_room();
            failure.at_once()
        } else {
            failure
        }
    })?;
    let usage = completion.usage.unwrap_or_else(|| question.estimate(model, &completion.answer));
    let cost_usd = services.cost_usd(model, &usage);
    let own = Spend::of_tokens(&usage, cost_usd);
    let (answer, evidence) =
        evidence::take_evidence(job, completion.answer, &document, &sought).await;
    let (evidence, wrong) = evidence.map_or_else(|wrong| (None, Some(wrong)), |it| (it, None));
    let given = Given::Answer(answer, completion.stop_reason);
    let result = DocumentResult::answered((job, asks), (document, version), model, given)
        .with_evidence(evidence)
        .with_time(attempt.call.state().answered_in)
        .with_usage_unknown(completion.usage.is_none())
        .with_spend(attempt.spent() + own, cost_usd.is_some());
    Ok((result, own, wrong))
}

/// Whether an answer can be used as a result.
#[derive(Debug)]
pub(crate) enum Acceptance {
    /// The answer can be used.
    Accepted,
    /// The answer is cut, and the batch does not keep cut answers.
    Cut,
    /// The answer's form or fields do not satisfy the schema: the fault, as sent to the model.
    Invalid(String),
}

/// Judges an answer: it must be whole unless cut answers are kept, and satisfy form and schema.
/// `form_fault` is the fault in its form, if any.
///
/// # Errors
/// The errors of [`sandbox::validate_answer`].
pub(crate) async fn accept(
    services: &Services,
    job: &Job,
    validator: Option<&SchemaValidator>,
    result: &DocumentResult,
    form_fault: Option<String>,
) -> Result<Acceptance, Failure> {
    if result.is_cut() && job.on_cut != OnCut::Keep {
        return Ok(Acceptance::Cut);
    }
    let valid = match (form_fault, validator) {
        (Some(fault), _) => Err(fault),
        (None, Some(validator)) => {
            let reader = services.reader_for(&job.lane);
            sandbox::validate_answer(&reader, validator, &result.answer).await?
        }
        (None, None) => Ok(()),
    };
    Ok(valid.map_or_else(Acceptance::Invalid, |()| Acceptance::Accepted))
}

impl Acceptance {
    /// Turns an answer that is refused into a failure. The model is told the fault once, and may
    /// satisfy the schema then.
    fn require(
        self,
        attempt: &Attempt,
        job: &Job,
        result: &DocumentResult,
        (room, has_more): (u32, bool),
    ) -> Result<(), Failure> {
        let short = result.shortfall(room);
        let may_come_back = !attempt.is_last;
        match (self, job.on_cut) {
            (Self::Accepted, _) => Ok(()),
            (Self::Cut, OnCut::Raise) if !has_more => {
                Err(Failure::truncated_at_cap(short, &result.model))
            }
            (Self::Cut, OnCut::Raise) if may_come_back && attempt.raise_output_cap() => {
                Err(Failure::cut(short))
            }
            (Self::Cut, _) => Err(Failure::truncated(short)),
            (Self::Invalid(wrong), _) if result.is_cut() => {
                Err(Failure::truncated_json(short, &wrong))
            }
            (Self::Invalid(wrong), _) => {
                let count = attempt.invalid_output(&wrong);
                let count = if may_come_back { count } else { MAX_INVALID_OUTPUTS };
                Err(Failure::invalid_output(&wrong, count))
            }
        }
    }
}

/// The question about one document of a shard.
///
/// # Errors
/// `InvalidInput` where a template cannot be filled.
pub(crate) async fn question<'a>(
    reader: &Reader,
    shard: &'a Shard,
    document: &Document,
    content: &'a Content,
) -> Result<Question<'a>, Failure> {
    let about = DocumentFacts::new(document, content.text());
    let wording = sandbox::build_prompt(reader, &shard.job, &about).await;
    let wording = wording.map_err(|failure| failure.asked_of(&document.uri))?;
    let question = Question::for_document(&shard.job, shard.template, wording, content);
    let question = match shard.job.evidence {
        true => question
            .with_note(evidence::NOTE)
            .with_schema(evidence::schema_with_evidence(&shard.job)),
        false => question,
    };
    let asked_once = shard.documents.len() == 1 && shard.job.long.is_none();
    Ok(if asked_once { question.without_cache() } else { question })
}

/// Asks about a content; returns the answer with its cost. An answer that is not accepted is stored
/// at `refused`.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn answer_content(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    route: &Route,
    (content, note): (&Content, Option<&str>),
    about: AnswerSubject<'_>,
) -> Result<DocumentResult, Failure> {
    let reader = services.reader_for(&shard.job.lane);
    let mut question = question(&reader, shard, &about.document, content).await?;
    if let Some(note) = note {
        question = question.with_note(note).without_cache();
    }
    let inquiry = Inquiry { route, ..Inquiry::for_shard(shard) };
    answer(services, attempt, inquiry, question, about).await
}

/// Advice for the batch's author on a document that is too large for a call.
pub(crate) fn size_advice(job: &Job) -> Cow<'static, str> {
    match job.long {
        None if job.attach != Attach::Text => {
            "let its text be read in parts: \"attach\": \"text\" and \"long\": \"map_reduce\""
                .into()
        }
        None => "let it be read in parts: \"long\": \"map_reduce\"".into(),
        Some(long) => {
            format!("make the parts smaller: chunk_tokens, which is {}", long.chunk_tokens).into()
        }
    }
}
