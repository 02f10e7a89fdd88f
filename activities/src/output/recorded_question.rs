//! The question that an output's results answer, and whether a batch may write there.
//!
//! It is stored in `_tidegate/question.json`.

use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::Job;

use crate::{
    failure::{Failure, field_fault},
    output::{
        jsonl::pretty,
        layout::{self, FOLDER},
        question::StatedQuestion,
        result::DocumentResult,
    },
    storage::{Error, Location},
};

/// `question.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedQuestion {
    pub(crate) question: StatedQuestion,
}

impl RecordedQuestion {
    /// Records the question that the output's results answer.
    pub(crate) async fn write(&self, output: &Location) -> Result<(), Failure> {
        let json = pretty(self)?;
        let place = location(output);
        if place.read_if_there().await?.is_none_or(|there| there != json) {
            place.write(json).await.map_err(|error| field_fault("output", error))?;
        }
        Ok(())
    }
}

/// Whether the results of an output answer this job's question.
pub(crate) async fn has_answers(output: &Location, job: &Job) -> Result<bool, Failure> {
    let there = location(output).read_if_there().await?;
    let there = there.and_then(|json| serde_json::from_slice::<RecordedQuestion>(&json).ok());
    Ok(there.is_some_and(|there| there.question == StatedQuestion::from_job(job)))
}

/// The location of the recorded question: where it exists, there is an output.
pub(crate) fn location(output: &Location) -> Location {
    output.child(FOLDER).child("question.json")
}

/// Whether a batch may write to its output. Changes nothing there.
///
/// # Errors
/// `InvalidInput` where the output has answers to another or an unknown question, or files of other
/// origin with names of ours, and the batch does not state how to treat them.
pub(crate) async fn check(output: &Location, job: &Job) -> Result<RecordedQuestion, Failure> {
    let question = StatedQuestion::from_job(job);
    let of_output = |error| field_fault("output", error);
    let recorded = location(output).read_if_there().await.map_err(of_output)?;
    let is_output = recorded.is_some();
    let there = recorded.and_then(|json| serde_json::from_slice::<RecordedQuestion>(&json).ok());
    if let Some(there) = &there
        && there.question == question
    {
        return Ok(there.clone());
    }
    let result = match output.child("results").first().await {
        Ok(result) => result,
        Err(error @ Error::Failed(_)) => return Err(of_output(error)),
        Err(error) => {
            tracing::warn!(%error, "the output cannot be read; it is taken to be empty");
            None
        }
    };
    match (result, there) {
        (Some(_), Some(there)) if !job.replace => {
            Err(another(output, &question.differences(&there.question)))
        }
        // The output's record of the question is missing; each result still states its question.
        (Some(result), None) if !job.replace => {
            let asked = match result.name().ends_with(".json") {
                true => DocumentResult::read(&result).await?.and_then(|result| result.question),
                false => None,
            };
            match asked == Some(question.fingerprint()) {
                true => Ok(RecordedQuestion { question }),
                false => Err(another(output, &[])),
            }
        }
        (None, None) if !job.replace && !is_output => {
            check_foreign(output, layout::AT_TOP).await?;
            Ok(RecordedQuestion { question })
        }
        _ => Ok(RecordedQuestion { question }),
    }
}

/// Whether the names are free in a folder that is no output.
///
/// # Errors
/// `InvalidInput` names a file of other origin.
pub(crate) async fn check_foreign(
    output: &Location,
    names: impl IntoIterator<Item = &str>,
) -> Result<(), Failure> {
    for name in names {
        let there = output.child(name).size().await;
        if there.map_err(|error| field_fault("output", error))?.is_some() {
            return Err(Failure::invalid_input(format!(
                "output {output} holds {name} and no record of a batch that wrote it; choose another output, move the file away, or set \"replace\": true (--replace) to replace it"
            )));
        }
    }
    Ok(())
}

fn another(output: &Location, differences: &[&str]) -> Failure {
    let differences = match differences {
        [] => "it is not recorded in what it differs".to_owned(),
        [one] => format!("{one} differs"),
        [first @ .., last] => format!("{} and {last} differ", first.join(", ")),
    };
    Failure::invalid_input(format!(
        "output {output} holds answers to another question: {differences}; choose another output, or set \"replace\": true (--replace) to ask again and replace what differs"
    ))
}
