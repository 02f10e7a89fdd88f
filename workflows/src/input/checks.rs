//! Validation of a batch's checks, without evaluating their expressions.

use std::collections::BTreeSet;

use crate::{
    contract::{Attach, Check, Mode, Pack, ResultsAs, Task},
    input::{batch_input::BatchInput, names::first_beside, read::MAX_PACK},
};

/// Maximum number of checks: more would take longer than the answer itself.
const MAX_CHECKS: usize = 50;

/// Maximum length of a name, which appears in results, reports and messages.
const MAX_NAME_CHARS: usize = 64;

/// Verifies a batch's checks. `escalates` needs a `route`; `excluded` is a given field that
/// excludes checks; the check of quotes needs `has_evidence`.
///
/// # Errors
/// A sentence that names the check and states its fault.
pub(super) fn check(
    given: Option<&[Check]>,
    (escalates, route): (bool, Option<&str>),
    excluded: Option<&str>,
    has_evidence: bool,
) -> Result<(), String> {
    if escalates && route.is_none() {
        return Err("escalate is of no use without route: name the models in the order in which they are asked".to_owned());
    }
    let checks = given.unwrap_or_default();
    if checks.is_empty() {
        return match (escalates, given) {
            (true, _) => Err("escalate is of no use without checks, which say what goes to the next model of the route".to_owned()),
            (_, Some(_)) => Err("checks is an empty list; leave it out".to_owned()),
            _ => Ok(()),
        };
    }
    if checks.len() > MAX_CHECKS {
        return Err(format!("checks are {}; at most {MAX_CHECKS} are looked at", checks.len()));
    }
    let mut names = BTreeSet::new();
    for (place, check) in checks.iter().enumerate() {
        let Check { name, .. } = check;
        let length = name.chars().count();
        if name.trim().is_empty() || length > MAX_NAME_CHARS || name.contains(char::is_control) {
            return Err(format!(
                "checks[{place}]: name must be a text of 1 to {MAX_NAME_CHARS} characters"
            ));
        }
        if !names.insert(name) {
            return Err(format!(
                "checks[{place}]: \"{name}\" is there twice; give each its own name"
            ));
        }
        check_one(check, has_evidence)
            .map_err(|why| format!("checks[{place}] \"{name}\": {why}"))?;
    }
    match excluded {
        Some(field) => Err(format!(
            "checks and {field} exclude each other: each answer is checked, and asked for again, by itself; leave out {field}"
        )),
        None => Ok(()),
    }
}

fn check_one(check: &Check, has_evidence: bool) -> Result<(), String> {
    match (&check.expression, &check.judge) {
        (Some(_), Some(_)) => Err("give only one of expression, judge".to_owned()),
        (Some(expression), None) if expression.trim().is_empty() => {
            Err("expression is empty".to_owned())
        }
        (None, Some(judge)) if judge.instructions.trim().is_empty() => {
            Err("judge.instructions are empty: say what an answer must be to pass".to_owned())
        }
        (None, None) if check.is_of_quotes() && has_evidence => Ok(()),
        (None, None) if check.is_of_quotes() => {
            Err("quotes are not asked for; set evidence, or give an expression or a judge"
                .to_owned())
        }
        (None, None) => Err("give an expression or a judge".to_owned()),
        _ => Ok(()),
    }
}

/// # Errors
/// A sentence that names the field that does not apply.
pub(super) fn check_task(input: &BatchInput) -> Result<(), String> {
    if input.lines.is_some() {
        return check_lines(input);
    }
    if input.task != Some(Task::Embed) {
        return match input.dimensions {
            Some(_) => {
                Err("dimensions is of no use without task; add \"task\": \"embed\"".to_owned())
            }
            None => Ok(()),
        };
    }
    let of_answers = [
        ("system", input.system.is_some()),
        ("messages", input.messages.is_some()),
        ("examples", input.examples.is_some()),
        ("max_output_tokens", input.max_output_tokens.is_some()),
        ("on_cut", input.on_cut.is_some()),
        ("schema", input.schema.is_some()),
        ("checks", input.checks.is_some()),
        ("evidence", input.evidence == Some(true)),
        ("effort", input.effort.is_some()),
        ("truth", input.truth.is_some()),
    ];
    if let Some((field, _)) = of_answers.iter().find(|(_, given)| *given) {
        return Err(format!(
            "task \"embed\" puts out vectors, and {field} is about answers; leave it out"
        ));
    }
    if !input.instructions.is_empty() && input.template != Some(true) {
        return Err("task \"embed\" follows no instructions; leave them out, or say with \"template\": true what is embedded in place of the document, such as \"passage: {{ document }}\"".to_owned());
    }
    if input.template == Some(true) && input.instructions.is_empty() {
        return Err("template is of no use without instructions, which say what is embedded, such as \"passage: {{ document }}\"".to_owned());
    }
    if input.long.is_some() || input.chunk_tokens.is_some() {
        return Err("task \"embed\" and long exclude each other: a part of a document would have a vector of its own, and its document none; divide long documents before, for example into the lines of a JSONL file (\"records\")".to_owned());
    }
    if input.attach.is_some_and(|attach| attach != Attach::Text) {
        return Err("task \"embed\" is about text; leave attach out".to_owned());
    }
    if input.mode == Some(Mode::Economy) || input.deadline.is_some() {
        let field = if input.deadline.is_some() { "deadline" } else { "mode \"economy\"" };
        return Err(format!(
            "task \"embed\" and {field} exclude each other: embeddings do not go through batch APIs; leave it out"
        ));
    }
    Ok(())
}

/// The fields that apply to requests in a vendor's own form.
const OF_LINES: [&str; 17] = [
    "lines",
    "source",
    "output",
    "model",
    "route",
    "lane",
    "tenant",
    "max_in_flight",
    "retry_budget",
    "budget_usd",
    "mode",
    "deadline",
    "replace",
    "webhook",
    "per_document",
    "results",
    "results_jsonl",
];

/// # Errors
/// A sentence that names the field that does not apply.
fn check_lines(input: &BatchInput) -> Result<(), String> {
    let other = match (input.mode, input.results) {
        (Some(Mode::Economy), _) => Some("mode".to_owned()),
        (_, Some(ResultsAs::Parquet)) => Some("results".to_owned()),
        _ => first_beside(&OF_LINES, input),
    };
    match other {
        Some(field) => Err(format!(
            "lines are requests that are sent as they are, and {field} would say something else; leave it out"
        )),
        None => Ok(()),
    }
}

/// Texts to embed share calls unless the author states a number: sharing does not change a vector.
pub(super) fn pack(given: Option<Pack>, task: Task) -> Option<Pack> {
    let most = u32::try_from(MAX_PACK).unwrap_or(u32::MAX);
    given.or_else(|| (task == Task::Embed).then_some(Pack::Of(most)))
}
