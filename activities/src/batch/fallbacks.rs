//! Reasons why a route may fall back: no document goes to another model without a reason.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};
use tidegate_calls::{failure::MAX_MESSAGE_CHARS, route::Route};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{Because, Fallback, Job, Source, Target};

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
    let said = |instructions: &str| {
        let command = command(job, first, unknown, &output, instructions);
        format!(
            "{name} falls back from {first} to {listed}, which were not compared for this question; {section}name them in equivalent, or write unchecked = true, or {how}: {command}"
        )
    };
    let with_instructions = said(&quoted(&job.instructions));
    // A longer message would be cut.
    let fits = with_instructions.chars().count() <= MAX_MESSAGE_CHARS;
    let fits = fits && !job.instructions.contains('\n');
    Failure::invalid_input(if fits { with_instructions } else { said("@FILE") })
}

/// The options of the command for the fields of a job that its question is about.
const OPTIONS: [(&str, &str); 14] = [
    ("system", "/system"),
    ("template", "/template"),
    ("examples", "/examples"),
    ("schema", "/schema"),
    ("checks", "/checks"),
    ("evidence", "/evidence"),
    ("effort", "/effort"),
    ("parameters", "/parameters"),
    ("attach", "/attach"),
    ("long", "/long/how"),
    ("chunk-tokens", "/long/chunk_tokens"),
    ("records", "/records"),
    ("record-id", "/records/id"),
    ("record-text", "/records/text"),
];

/// The command that compares these models for the job's question. `FILE` stands for a file of the
/// author's.
fn command(
    job: &Job,
    first: &ModelId,
    others: &[ModelId],
    output: &str,
    instructions: &str,
) -> String {
    let models = [first].into_iter().chain(others).map(|it| it.as_str().to_owned());
    let source = match &job.source {
        Source::Prefix(uri) => quoted(uri).into_owned(),
        Source::Documents(_) | Source::Manifest(_) => "SOURCE".to_owned(),
    };
    let asked = match job.messages.is_empty() {
        true => format!("--instructions {instructions}"),
        false => "--messages FILE".to_owned(),
    };
    let fields = json!(job);
    // The turns contain the system prompt.
    let given = OPTIONS.iter().filter(|(name, _)| *name != "system" || job.messages.is_empty());
    let options = given.filter_map(|(name, field)| {
        let value = match (*name, fields.pointer(field)?) {
            ("records", _) | (_, Value::Bool(_)) => return Some(format!("--{name}")),
            (_, Value::String(text)) => quoted(text).into_owned(),
            ("parameters", value) | (_, value @ Value::Number(_)) => {
                quoted(&value.to_string()).into_owned()
            }
            _ => "FILE".to_owned(),
        };
        Some(format!("--{name} {value}"))
    });
    let words = ["tidegate compare".to_owned()].into_iter().chain(models);
    let words = words.chain([source, format!("--output {}", quoted(output)), asked]).chain(options);
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:=%+,@".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    fn command_of(more: Value) -> String {
        let mut job = json!({"source": {"prefix": "s3://b/in/"}, "output": "s3://b/out/",
            "instructions": "Read it.", "route": "up", "lane": "batch", "tenant": "default",
            "max_output_tokens": 9});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let [first, other] = ["a:cheap", "a:dear"].map(|name| name.parse().unwrap());
        let job = serde_json::from_value(job).unwrap();
        let command = command(&job, &first, &[other], "s3://b/compared/", "'Read it.'");
        let shared = "tidegate compare a:cheap a:dear s3://b/in/ --output s3://b/compared/ ";
        command.strip_prefix(shared).unwrap_or_else(|| panic!("{command}")).to_owned()
    }

    /// Else the comparison would be about another question.
    #[test]
    fn the_command_states_each_part_of_the_question() {
        assert_eq!(command_of(json!({})), "--instructions 'Read it.'");
        let all = json!({"system": "Be short.", "template": true, "examples": "s3://b/few.jsonl",
            "schema": {"type": "object"}, "checks": [{"name": "it", "expression": "answer.a"}],
            "evidence": true, "effort": "low", "parameters": {"seed": 7}, "attach": "native",
            "long": {"how": "map_reduce", "chunk_tokens": 500}, "records": {"id": "nr"}});
        assert_eq!(
            command_of(all),
            "--instructions 'Read it.' --system 'Be short.' --template --examples s3://b/few.jsonl --schema FILE \
             --checks FILE --evidence --effort low --parameters '{\"seed\":7}' --attach native --long map_reduce \
             --chunk-tokens 500 --records --record-id nr"
        );
        let turns = json!([{"role": "user", "content": "Here:"}]);
        let told = command_of(json!({"messages": turns, "system": "Be short."}));
        assert_eq!(told, "--messages FILE");
    }
}
