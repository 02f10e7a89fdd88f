//! Work that may use up memory or never end, on texts of a batch's author and of a model: filling
//! templates, and validating answers by a schema. It runs in a process that may crash.
//!
//! Most templates and schemas are proved to be harmless, and are processed without a process of
//! their own.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_documents::{
    Reader,
    confined::{self, Bounds, Ended},
};
use tidegate_workflows::contract::{FailureType, Job};

use crate::{
    document::ask::{
        expression,
        prompt_builder::{self, DocumentFacts, PromptText},
    },
    failure::Failure,
    output::result::Checked,
    schema::SchemaValidator,
};

/// The argument after the one that starts the program as a reader of documents.
pub const ARGUMENT: &str = "work";

/// A template holds its values in memory several times; the thread's stack counts too.
const BOUNDS: Bounds = Bounds { memory: 1 << 30, time: Duration::from_secs(10) };

fn bounds() -> String {
    format!("{} MiB or {} s", BOUNDS.memory >> 20, BOUNDS.time.as_secs())
}

/// One piece of work for the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work<'a> {
    /// [`PromptText::build`].
    Words { job: Box<Cow<'a, Job>>, about: Cow<'a, DocumentFacts<'a>> },
    /// [`expression::examine`].
    Examine { job: Box<Cow<'a, Job>> },
    /// [`expression::outcomes`].
    Check { job: Box<Cow<'a, Job>>, about: Cow<'a, DocumentFacts<'a>>, answer: Cow<'a, str> },
    /// [`SchemaValidator::check`].
    Validate { schema: Cow<'a, Value>, answer: Cow<'a, str> },
}

/// Builds the prompt text about one document.
///
/// # Errors
/// `InvalidInput` where a template cannot be filled; `Transient` where the process cannot be started.
pub(crate) async fn build_prompt<'a>(
    reader: &Reader,
    job: &'a Job,
    about: &DocumentFacts<'_>,
) -> Result<PromptText<'a>, Failure> {
    if prompt_builder::is_plain(job) {
        return PromptText::build(job, about).map_err(Failure::invalid_input);
    }
    let work = Work::Words { job: Box::new(Cow::Borrowed(job)), about: Cow::Borrowed(about) };
    let said: Option<Result<PromptText<'static>, String>> = run_in_process(reader, &work).await?;
    let too_much =
        || Err(format!("a template takes more than {} to be filled; make it simpler", bounds()));
    said.unwrap_or_else(too_much).map_err(Failure::invalid_input)
}

/// Checks a job's expressions before anything is asked.
///
/// # Errors
/// `InvalidInput` names the check and its fault; `Transient` where the process cannot be started.
pub(crate) async fn examine_checks(reader: &Reader, job: &Job) -> Result<(), Failure> {
    if expression::are_plain(&job.checks) {
        return expression::examine(job).map_err(Failure::invalid_input);
    }
    let said: Option<Result<(), String>> =
        run_in_process(reader, &Work::Examine { job: Box::new(Cow::Borrowed(job)) }).await?;
    let too_much =
        || Err("checks: an expression takes too much to be read; make it simpler".into());
    said.unwrap_or_else(too_much).map_err(Failure::invalid_input)
}

/// Evaluates a job's expressions for an answer.
///
/// # Errors
/// `Transient` where the process cannot be started.
pub(crate) async fn evaluate_checks(
    reader: &Reader,
    job: &Job,
    about: &DocumentFacts<'_>,
    answer: &str,
) -> Result<Vec<Checked>, Failure> {
    if expression::are_plain(&job.checks) {
        return Ok(expression::outcomes(job, about, answer));
    }
    let work = Work::Check {
        job: Box::new(Cow::Borrowed(job)),
        about: Cow::Borrowed(about),
        answer: answer.into(),
    };
    let said = run_in_process(reader, &work).await?;
    let too_much = || {
        let why = format!("the checks take more than {}; make them simpler", bounds());
        let failed =
            |name: &str| Checked { name: name.to_owned(), passed: false, why: Some(why.clone()) };
        expression::expressions(&job.checks).map(|(name, _)| failed(name)).collect()
    };
    Ok(said.unwrap_or_else(too_much))
}

/// Validates an answer by its schema; returns its fault, or `None`.
///
/// # Errors
/// `InvalidOutput`, final, where judging takes too long or too much memory; `Transient` where the
/// process cannot be started.
pub(crate) async fn validate_answer(
    reader: &Reader,
    validator: &SchemaValidator,
    answer: &str,
) -> Result<Result<(), String>, Failure> {
    if validator.is_harmless {
        return Ok(validator.check(answer));
    }
    let work = Work::Validate { schema: Cow::Borrowed(&validator.schema), answer: answer.into() };
    let said = run_in_process(reader, &work).await?;
    said.ok_or_else(|| {
        let message = format!(
            "the schema takes more than {} to judge the answer; make it simpler, above all where it refers to itself, and its patterns and enums",
            bounds()
        );
        Failure::never(FailureType::InvalidOutput, message)
    })
}

/// Runs the work in the process; `None` where it exceeded its bounds.
async fn run_in_process<T: for<'de> Deserialize<'de>>(
    reader: &Reader,
    work: &Work<'_>,
) -> Result<Option<T>, Failure> {
    let failed = |error: io::Error| {
        Failure::transient(format!("no process for a template or schema: {error}"))
    };
    let work = serde_json::to_vec(work).map_err(|error| failed(error.into()))?;
    match reader.run(ARGUMENT, &[&work], BOUNDS).await.map_err(failed)? {
        Ended::Output(output) => Ok(serde_json::from_slice(&output).ok()),
        Ended::Crashed | Ended::OutOfMemory | Ended::TooSlow => Ok(None),
    }
}

/// Runs in the process: does one piece of work.
///
/// # Errors
/// The parent is gone, or sent something else than this module does.
pub fn serve() -> io::Result<()> {
    confined::enter(BOUNDS)?;
    let mut said = Vec::new();
    io::stdin().lock().read_to_end(&mut said)?;
    let said = match serde_json::from_slice(&said)? {
        Work::Words { job, about } => serde_json::to_vec(&PromptText::build(&job, &about))?,
        Work::Examine { job } => serde_json::to_vec(&expression::examine(&job))?,
        Work::Check { job, about, answer } => {
            serde_json::to_vec(&expression::outcomes(&job, &about, &answer))?
        }
        Work::Validate { schema, answer } => {
            let validator = SchemaValidator::compile(&schema).map_err(io::Error::other)?;
            serde_json::to_vec(&validator.check(&answer))?
        }
    };
    io::stdout().lock().write_all(&said)
}
