//! Asks about a content once, and whether the answer is one.

use std::borrow::Cow;

use tidegate_documents::Reader;
use tidegate_types::Spend;
use tidegate_workflows::contract::{CutAnswers, Job, OnCut, Taken};

use crate::{
    attempt::Attempt,
    cuts::Asks,
    document::ask::{
        prompt::{Content, Question},
        sandbox,
        wording::About,
    },
    failure::Failure,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// What is asked about one document of a shard.
///
/// # Errors
/// `InvalidInput` where a template cannot be filled.
pub(crate) async fn question<'a>(
    reader: &Reader,
    shard: &'a Shard,
    document: &Document,
    content: &'a Content,
) -> Result<Question<'a>, Failure> {
    let about = About::of(document, content.text());
    let wording = sandbox::wording(reader, &shard.job, &about).await;
    let wording = wording.map_err(|failure| failure.asked_of(&document.uri))?;
    let question = Question::of(&shard.job, shard.template, wording, content);
    let asked_once = shard.documents.len() == 1 && shard.job.long.is_none();
    Ok(if asked_once { question.uncached() } else { question })
}

/// What a call is about.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// What is sent of the document.
    pub(crate) content: &'a Content,
    /// Which version of it that is.
    pub(crate) version: Version,
    /// Said beside the batch's instructions.
    pub(crate) beside: Option<&'a str>,
}

/// The answer to a content, with what it took; one that is no result lies at `kept` from then on.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: Document,
    Asked { content, version, beside }: Asked<'_>,
    kept: &Location,
) -> Result<DocumentResult, Failure> {
    let (job, cuts) = (&shard.job, &services.cuts);
    let reader = services.reader_for(&job.lane);
    let mut question = question(&reader, shard, &document, content).await?;
    if let Some(beside) = beside {
        question = question.with_note(beside).uncached();
    }
    let template = question.template;
    let likely = shard.route.models.get(attempt.call.state().model as usize);
    let cuts_of = |model| Asks { model, template, room: job.max_output_tokens };
    if job.on_cut == OnCut::Raise && likely.is_some_and(|model| cuts.are_many(cuts_of(model))) {
        attempt.begin_with_room();
    }
    let before = attempt.state().document;
    let cut_before = before.raises > u32::from(before.began_raised);
    question = question.with_room(before.raises, cut_before);
    if let Some(wrong) = &before.wrong {
        question = question.corrected(wrong);
    }
    let asked = services.caller().ask(&attempt.call, shard.terms(), &shard.route, &question).await;
    let (model, completion) = asked.map_err(|failure| {
        let failure = failure.with_way_out(&way_out(job));
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
    let result = DocumentResult::new(document, model, completion.answer, &completion.stop_reason)
        .answering(shard.asks, version)
        .with_usage_unknown(completion.usage.is_none())
        .with_spend(attempt.spent() + own, cost_usd.is_some());
    let cap = services.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
    let learned = services.guard.learned_caps.of(model);
    let room = question.room(cap).min(learned.unwrap_or(u32::MAX));
    if before.raises == 0 {
        cuts.answered(cuts_of(model), result.is_cut());
    }
    let has_more = question.raised_room(cap).min(learned.unwrap_or(u32::MAX)) > room;
    if let Err(failure) = judge(services, attempt, shard, &result, room, has_more).await {
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

/// What a batch's author can do about what is too large for a call.
pub(crate) fn way_out(job: &Job) -> Cow<'static, str> {
    match job.long {
        None if job.attach_pdf || job.attach_pages => {
            "let its text be read in parts: \"attach\": \"text\" and \"long\": \"map_reduce\""
                .into()
        }
        None => "let it be read in parts: \"long\": \"map_reduce\"".into(),
        Some(long) => {
            format!("make the parts smaller: chunk_tokens, which is {}", long.chunk_tokens).into()
        }
    }
}

/// Whether an answer is a result: whole, or wanted all the same, and what the schema says. The
/// model is told what was wrong once; it may keep to the schema then.
async fn judge(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    result: &DocumentResult,
    room: u32,
    has_more: bool,
) -> Result<(), Failure> {
    let short = result.shortfall(room);
    match shard.job.on_cut {
        OnCut::Raise if result.is_cut() && !has_more => {
            return Err(Failure::truncated_at_cap(short, &result.model));
        }
        OnCut::Raise if result.is_cut() && attempt.raise() => return Err(Failure::cut(short)),
        OnCut::Raise | OnCut::Fail if result.is_cut() => return Err(Failure::truncated(short)),
        _ => {}
    }
    let Some(judge) = &shard.judge else { return Ok(()) };
    match sandbox::judged(&services.reader_for(&shard.job.lane), judge, &result.answer).await? {
        Err(wrong) if result.is_cut() => Err(Failure::truncated_json(short, &wrong)),
        Err(wrong) => Err(Failure::invalid_output(&wrong, attempt.invalid_output(&wrong))),
        Ok(()) => Ok(()),
    }
}
