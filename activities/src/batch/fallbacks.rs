//! Reasons why a route may fall back: no document goes to another model without a reason.

use std::{borrow::Cow, collections::BTreeMap};

use tidegate_calls::{failure::MAX_MESSAGE_CHARS, route::Route};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{Attach, Because, Fallback, Job, LongHow, Source, Target};

use crate::{
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        comparisons::{Comparisons, ModelQuestion, folder},
        job::resolve,
        question::StatedQuestion,
    },
    services::Services,
};

/// Adds to the job a reason for each further model of its route, except members of the first
/// model's pool.
///
/// # Errors
/// `InvalidInput` for a model without a reason, with the command that compares it.
pub(crate) async fn with_reasons(
    services: &Services,
    job: &Job,
    route: &Route,
) -> Result<Job, Failure> {
    let (mut fallbacks, mut unknown) = (BTreeMap::new(), Vec::new());
    let Some(first) = route.models.first() else { return Ok(job.clone()) };
    let first = &name(services, first);
    let question = StatedQuestion::from_job(job).of_any_model().fingerprint();
    let known = match route.compared.as_deref().filter(|_| route.others().next().is_some()) {
        Some(prefix) => {
            let prefix = resolve(&services.storage, "the route's compared", prefix)?;
            Comparisons::read_all(&prefix, question).await?
        }
        None => Comparisons::default(),
    };
    for model in &route.models {
        let to = name(services, model);
        if to == *first {
            continue;
        }
        let compared = || {
            known.agreement_of(&asked_model(services, job, first), &asked_model(services, job, &to))
        };
        let because = if route.equivalent.contains(model) {
            Because::Equivalent
        } else if let Some(rate) = compared() {
            let (agreed, compared, interval) = (rate.agreed, rate.compared, rate.interval());
            Because::Compared { agreed, compared, interval }
        } else if route.unchecked {
            Because::Unchecked
        } else if job.escalate {
            // This model is asked only about documents that fail their checks.
            continue;
        } else {
            if !unknown.contains(&to) {
                unknown.push(to);
            }
            continue;
        };
        fallbacks.insert(model.clone(), Fallback { from: first.clone(), because });
    }
    match unknown.is_empty() {
        true => Ok(Job { fallbacks, ..job.clone() }),
        false => Err(refusal(job, route, first, &unknown, question)),
    }
}

/// Returns the name by which batches ask a model: the pool's name for a member of a pool.
fn name(services: &Services, model: &ModelId) -> ModelId {
    let mut pools = services.routes.iter().filter(|(_, route)| route.by_room);
    let pool = pools.find(|(_, pool)| pool.models.contains(model));
    pool.and_then(|(name, _)| name.parse().ok()).unwrap_or_else(|| model.clone())
}

/// The fingerprint of a batch that asks only this model.
fn asked_model(services: &Services, job: &Job, model: &ModelId) -> ModelQuestion {
    let own = |member: &ModelId| name(services, member) == *model;
    let asked_with = job.asked_with.iter().filter(|(member, _)| own(member));
    let asked_with = asked_with.map(|(member, with)| (member.clone(), with.clone())).collect();
    let alone = Job { target: Target::Model(model.clone()), asked_with, ..job.clone() };
    ModelQuestion { model: model.clone(), question: StatedQuestion::from_job(&alone).fingerprint() }
}

fn refusal(
    job: &Job,
    route: &Route,
    first: &ModelId,
    unknown: &[ModelId],
    question: Fingerprint,
) -> Failure {
    let listed: Vec<&str> = unknown.iter().map(|model| model.as_str()).collect();
    let (name, listed) = (job.target.to_string(), listed.join(" and "));
    let below = |prefix: &str, name: &str| format!("{}/{name}/", prefix.trim_end_matches('/'));
    let (output, how) = match &route.compared {
        Some(prefix) => (below(prefix, &folder(question)), "compare them first"),
        None => (
            below(&job.output, "compared"),
            "compare them, and write compared = the prefix behind --output",
        ),
    };
    let section = match &job.target {
        Target::Route(route) => format!("in [routes.{route}] "),
        Target::Model(_) => String::new(),
    };
    let said = |instructions| {
        let command = command(job, first, unknown, &output, instructions);
        format!(
            "{name} falls back from {first} to {listed}, which were not compared for this question; {section}name them in equivalent, or write unchecked = true, or {how}: {command}"
        )
    };
    let with_instructions = said(quoted(&job.instructions));
    // A longer message would be cut.
    let fits = with_instructions.chars().count() <= MAX_MESSAGE_CHARS;
    let fits = fits && !job.instructions.contains('\n');
    Failure::invalid_input(if fits { with_instructions } else { said("@FILE".into()) })
}

/// The command that compares these models for the job's question. `FILE` stands for a file of the
/// author's.
fn command<'a>(
    job: &'a Job,
    first: &ModelId,
    others: &[ModelId],
    output: &str,
    instructions: Cow<'a, str>,
) -> String {
    let mut words: Vec<Cow<'_, str>> = vec!["tidegate".into(), "compare".into()];
    words.extend([first].into_iter().chain(others).map(|it| it.as_str().into()));
    words.push(match &job.source {
        Source::Prefix(uri) => quoted(uri),
        Source::Documents(_) | Source::Manifest(_) => "SOURCE".into(),
    });
    let one_turn = job.messages.is_empty();
    let file = |given: bool| given.then_some(Cow::Borrowed("FILE"));
    let flag = |given: bool| given.then_some(Cow::Borrowed(""));
    let field = |of: Option<&'a String>| of.map(|it| quoted(it));
    let (long, records) = (job.long.as_ref(), job.records.as_ref());
    let parameters = (!job.parameters.is_empty())
        .then(|| quoted(&serde_json::Value::from(job.parameters.clone()).to_string()).into_owned());
    let attach = (job.attach != Attach::Text).then(|| job.attach.as_str());
    let options = [
        ("output", Some(quoted(output))),
        ("instructions", one_turn.then_some(instructions)),
        ("messages", file(!one_turn)),
        ("system", field(job.system.as_ref().filter(|_| one_turn))),
        ("template", flag(job.template)),
        ("examples", field(job.examples.as_ref())),
        ("schema", file(job.schema.is_some())),
        ("evidence", flag(job.evidence)),
        ("effort", job.effort.map(|effort| effort.as_str().into())),
        ("parameters", parameters.map(Cow::Owned)),
        ("attach", attach.map(Cow::Borrowed)),
        (
            "long",
            long.map(|long| match long.how {
                LongHow::MapReduce => "map_reduce".into(),
                LongHow::PerChunk => "per_chunk".into(),
            }),
        ),
        ("chunk-tokens", long.map(|long| long.chunk_tokens.to_string().into())),
        ("records", flag(records.is_some())),
        ("record-id", field(records.and_then(|it| it.id.as_ref()))),
        ("record-text", field(records.and_then(|it| it.text.as_ref()))),
    ];
    for (option, value) in options {
        let Some(value) = value else { continue };
        words.push(format!("--{option}").into());
        words.extend(Some(value).filter(|value| !value.is_empty()));
    }
    words.join(" ")
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:=%+,@".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}
