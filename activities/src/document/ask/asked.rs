//! Asks one question once, records its cost, and checks that the answer is what was asked for.

use std::borrow::Cow;

use tidegate_calls::{caller::Terms, failure::MAX_INVALID_OUTPUTS, route::Route};
use tidegate_types::Spend;
use tidegate_workflows::contract::{CutAnswers, Job, OnCut, Taken};

use crate::{
    attempt::Attempt,
    document::ask::{
        evidence::{self, Sought},
        prompt::Question,
        sandbox,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    schema::Judge,
    services::Services,
    storage::Location,
    truncation_stats::Asks,
};

/// How a question is asked, and what its answer must satisfy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    /// The author's job.
    pub(crate) job: &'a Job,
    /// The models that are asked.
    pub(crate) route: &'a Route,
    /// The schema of the answer.
    pub(crate) judge: Option<&'a Judge>,
    /// The lane in which it is asked, and who pays.
    pub(crate) terms: Terms<'a>,
    /// Fingerprint of the question.
    pub(crate) asks: Fingerprint,
}

impl<'a> Inquiry<'a> {
    /// The inquiry of a shard's documents.
    pub(crate) fn of(shard: &'a Shard) -> Self {
        let Shard { job, route, judge, asks, .. } = shard;
        Self { job, route, judge: judge.as_ref(), terms: shard.terms(), asks: *asks }
    }
}

/// What the answer is about.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) document: Document,
    /// The version of the document that was sent.
    pub(crate) version: Version,
    /// Where an answer that is not accepted is stored.
    pub(crate) kept: &'a Location,
    /// What was wrong with the answer before, as the model is told.
    pub(crate) amiss: Option<&'a str>,
    /// What can be done about a document that is too large for a call.
    pub(crate) way_out: Cow<'a, str>,
    /// The text in which quotes of evidence are searched.
    pub(crate) sought: Sought<'a>,
}

/// The answer, with its cost.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    inquiry: Inquiry<'_>,
    mut question: Question<'_>,
    About { document, version, kept, amiss, way_out, sought }: About<'_>,
) -> Result<DocumentResult, Failure> {
    let Inquiry { job, route, terms, asks, .. } = inquiry;
    let truncations = &services.truncation_stats;
    let template = question.template;
    let likely = route.models.get(attempt.call.state().model as usize);
    let cuts_of = |model| Asks { model, template, room: job.max_output_tokens };
    if job.on_cut == OnCut::Raise
        && likely.is_some_and(|model| truncations.are_many(cuts_of(model)))
    {
        attempt.begin_with_room();
    }
    let before = attempt.state().document;
    let cut_before = before.raises > u32::from(before.began_raised);
    question = question.with_room(before.raises, cut_before);
    if let Some(amiss) = amiss {
        question = question.corrected(amiss);
    }
    if let Some(wrong) = &before.wrong {
        question = question.corrected(&format!(
            "Your last answer was refused, because it does not satisfy the JSON Schema: {wrong}. Answer again, with JSON that satisfies it."
        ));
    }
    let asked = services.caller().ask(&attempt.call, terms, route, &question).await;
    let (model, completion) = asked.map_err(|failure| {
        let failure = failure.with_way_out(&way_out);
        if cut_before {
            failure.without_room()
        } else if before.began_raised && failure.lacks_room() {
            attempt.begin_without_room();
            failure.at_once()
        } else {
            failure
        }
    })?;
    let usage = completion.usage.unwrap_or_else(|| question.estimate(model, &completion.answer));
    let cost_usd = services.prices.cost_usd(model, &usage, chrono::Utc::now().date_naive());
    let own = Spend::of_tokens(&usage, cost_usd);
    let (answer, evidence) = evidence::taken(job, completion.answer, &document, &sought);
    let (evidence, wrong) = evidence.map_or_else(|wrong| (None, Some(wrong)), |it| (it, None));
    let result = DocumentResult::new(document, model, answer, &completion.stop_reason)
        .answering(asks, version)
        .allowed_by(job)
        .resting_on(evidence)
        .with_usage_unknown(completion.usage.is_none())
        .with_spend(attempt.spent() + own, cost_usd.is_some());
    let cap = services.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
    let learned = services.guard.learned_caps.of(model);
    let room = question.room(cap).min(learned.unwrap_or(u32::MAX));
    if before.raises == 0 {
        truncations.answered(cuts_of(model), result.is_cut());
    }
    let has_more = question.raised_room(cap).min(learned.unwrap_or(u32::MAX)) > room;
    if let Err(failure) = judge(services, attempt, inquiry, (&result, wrong), room, has_more).await
    {
        let raised = u64::from(attempt.state().document.raises > before.raises);
        let raised_cost_usd = if raised > 0 { own.cost_usd } else { 0.0 };
        let cuts = CutAnswers { raised, raised_cost_usd, ..CutAnswers::default() };
        attempt.discard(Taken { spend: own, cuts });
        attempt.call.failed_as(failure.kind);
        if result.keep(kept).await {
            attempt.keep(kept.to_string());
        }
        return Err(failure);
    }
    Ok(result)
}

/// Whether an answer is accepted as a result: it must be whole unless cut answers are wanted, and
/// satisfy form and schema. The model is told once what was wrong, and may satisfy the schema then.
async fn judge(
    services: &Services,
    attempt: &Attempt,
    inquiry: Inquiry<'_>,
    (result, wrong): (&DocumentResult, Option<String>),
    room: u32,
    has_more: bool,
) -> Result<(), Failure> {
    let short = result.shortfall(room);
    let may_come_back = !attempt.is_last;
    match inquiry.job.on_cut {
        OnCut::Raise if result.is_cut() && !has_more => {
            return Err(Failure::truncated_at_cap(short, &result.model));
        }
        OnCut::Raise if result.is_cut() && may_come_back && attempt.raise() => {
            return Err(Failure::cut(short));
        }
        OnCut::Raise | OnCut::Fail if result.is_cut() => return Err(Failure::truncated(short)),
        _ => {}
    }
    let valid = match (wrong, inquiry.judge) {
        (Some(wrong), _) => Err(wrong),
        (None, Some(judge)) => {
            let reader = services.reader_for(&inquiry.job.lane);
            sandbox::judged(&reader, judge, &result.answer).await?
        }
        (None, None) => Ok(()),
    };
    match valid {
        Err(wrong) if result.is_cut() => Err(Failure::truncated_json(short, &wrong)),
        Err(wrong) => {
            let count = attempt.invalid_output(&wrong);
            let count = if may_come_back { count } else { MAX_INVALID_OUTPUTS };
            Err(Failure::invalid_output(&wrong, count))
        }
        Ok(()) => Ok(()),
    }
}
