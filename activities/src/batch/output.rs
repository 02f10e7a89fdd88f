//! What an output holds already, and whether a batch may go on there.
//!
//! `_tidegate/question.json` says which question its results answer. Outputs of earlier versions
//! have none: there the recorded batches tell.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::Job;

use crate::{
    batch::{
        places::FOLDER,
        question::{StatedQuestion, Unmarked},
    },
    document::result::DocumentResult,
    failure::Failure,
    storage::{Entry, Error, Location},
};

/// `question.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) question: StatedQuestion,
    pub(crate) unmarked: Unmarked,
}

impl Recorded {
    /// Says from now on what the output's results answer.
    pub(crate) async fn write(&self, output: &Location) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        let place = location(output);
        if place.read_if_there().await?.is_none_or(|there| there != json) {
            place.write(json).await.map_err(|error| Failure::of_field("output", error))?;
        }
        Ok(())
    }
}

/// What says which question the results answer: where it lies, there is an output.
pub(super) fn location(output: &Location) -> Location {
    output.child(FOLDER).child("question.json")
}

/// Whether a batch may write to its output. Nothing is changed there.
///
/// # Errors
/// `InvalidInput` where the output holds answers to another question, or to one that cannot be
/// told, and the batch does not say what is to become of them.
pub(crate) async fn check(output: &Location, job: &Job) -> Result<Recorded, Failure> {
    let question = StatedQuestion::of(job);
    let of_output = |error| Failure::of_field("output", error);
    let there = location(output).read_if_there().await.map_err(of_output)?;
    let there = there.and_then(|json| serde_json::from_slice::<Recorded>(&json).ok());
    if let Some(there) = &there
        && there.question == question
    {
        return Ok(there.clone());
    }
    let result = match output.child("results").first().await {
        Ok(result) => result,
        Err(error @ Error::Failed(_)) => return Err(of_output(error)),
        Err(error) => {
            tracing::warn!(%error, "what the output holds cannot be seen; it is taken to be empty");
            None
        }
    };
    let unmarked = match (result, there) {
        (None, _) => Unmarked::Adopted,
        (Some(_), Some(_)) if job.replace => Unmarked::Replaced,
        (Some(_), Some(there)) => {
            return Err(another(output, &question.differences(&there.question)));
        }
        (Some(_), None) if job.adopt => Unmarked::Adopted,
        (Some(result), None) => match told(output, &question, &result).await? {
            Told::Same => Unmarked::Adopted,
            _ if job.replace => Unmarked::Replaced,
            Told::Another(recorded) => {
                let recorded = recorded.as_ref();
                let differences = recorded.map(|recorded| question.differences(recorded));
                return Err(another(output, &differences.unwrap_or_default()));
            }
            Told::Unknown => return Err(unknown(output)),
        },
    };
    Ok(Recorded { question, unmarked })
}

/// What the recorded batches of an output tell of its results' question.
enum Told {
    Same,
    /// Another; which one, as far as it is recorded.
    Another(Option<StatedQuestion>),
    Unknown,
}

/// The latest batch tells. Before results said what they answer, a batch with another question took
/// the old results for its own, so that where batches with several questions are recorded nothing
/// can be told.
async fn told(
    output: &Location,
    question: &StatedQuestion,
    result: &Location,
) -> Result<Told, Failure> {
    let folder = output.child(FOLDER);
    let mut jobs: Vec<(DateTime<Utc>, Location)> = Vec::new();
    let listed = folder.entries(|entry| {
        if let Entry::Object(location, stamp) = entry
            && location.relative_to(&folder).split('/').nth(1) == Some("job.json")
        {
            jobs.push((stamp.modified, location));
        }
    });
    listed.await.map_err(|error| Failure::of_field("output", error))?;
    jobs.sort_by_key(|(at, _)| *at);
    let mut recorded = Vec::new();
    for (_, job) in jobs {
        let job = serde_json::from_slice::<Job>(&job.read().await?);
        recorded.extend(job.ok().as_ref().map(StatedQuestion::of));
    }
    Ok(match recorded.pop() {
        Some(latest) if latest != *question => Told::Another(Some(latest)),
        Some(_) if recorded.iter().all(|earlier| earlier == question) => Told::Same,
        Some(_) => Told::Unknown,
        None => match DocumentResult::read(result).await?.and_then(|result| result.question) {
            Some(asked) if asked == question.fingerprint() => Told::Same,
            Some(_) => Told::Another(None),
            None => Told::Unknown,
        },
    })
}

fn another(output: &Location, differences: &[&str]) -> Failure {
    let differences = match differences {
        [] => "it is not recorded in what it differs".to_owned(),
        [one] => format!("{one} differs"),
        [first @ .., last] => format!("{} and {last} differ", first.join(", ")),
    };
    Failure::invalid_input(format!(
        "output {output} holds answers to another question: {differences}; choose another output, or say \"replace\": true (--replace): then what differs is asked again, and replaced"
    ))
}

fn unknown(output: &Location) -> Failure {
    Failure::invalid_input(format!(
        "output {output} holds results of an earlier version that do not say what they answer, and the batches recorded there do not tell; say \"adopt\": true (--adopt) to take them as answers to this question, or \"replace\": true (--replace) to ask again and replace them, or choose another output"
    ))
}
