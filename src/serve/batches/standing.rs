//! How a batch stands: as its report tells, else as its workflow does.

use axum::http::StatusCode;
use chrono::DateTime;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tidegate_activities::output::finish::Report;
use tidegate_types::FailureType;
use tidegate_workflows::contract::{Progress, Totals};

use super::{
    batch::{Asked, Fault},
    id::{Kind, Put},
    page::Wanted,
    place::{self, Place, away},
};
use crate::{
    serve::{door::Door, problem::Problem},
    temporal::{Ending, Status},
};

/// Batches of a list that are asked how they stand at once.
const AT_ONCE: usize = 8;

/// A batch, and how it stands.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) asked: Asked,
    pub(super) state: State,
    pub(super) counts: Counts,
    /// In seconds since 1970, as all times here.
    pub(super) began_at: Option<u64>,
    pub(super) stopping_at: Option<u64>,
    pub(super) ended_at: Option<u64>,
    /// Whether it has put these out.
    pub(super) has_output: bool,
    pub(super) has_errors: bool,
    pub(super) fault: Option<Fault>,
}

/// In OpenAI's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Validating,
    InProgress,
    Finalizing,
    Completed,
    Failed,
    Expired,
    Cancelling,
    Cancelled,
}

impl State {
    pub(super) fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Expired | Self::Cancelled)
    }
}

/// What its requests have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) succeeded: u64,
    /// Without those that came too late.
    pub(super) errored: u64,
    pub(super) expired: u64,
    pub(super) cancelled: u64,
}

impl From<Totals> for Counts {
    fn from(totals: Totals) -> Self {
        let by_type = totals.failures.by_count();
        let expired = by_type.iter().find(|(kind, _)| *kind == FailureType::Expired.as_str());
        let expired = expired.map_or(0, |(_, count)| *count);
        Self {
            succeeded: totals.succeeded + totals.skipped,
            errored: totals.failed.saturating_sub(expired),
            expired,
            cancelled: totals.cancelled,
        }
    }
}

/// That it was asked to stop.
#[derive(Debug, Serialize, Deserialize)]
struct Stopping {
    at: u64,
}

/// How it ended, as the door keeps it: Temporal forgets.
#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    state: State,
    counts: Counts,
    began_at: Option<u64>,
    ended_at: u64,
    has_output: bool,
    has_errors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

/// The batch of this name.
///
/// # Errors
/// There is none, or who knows of it does not answer.
pub(super) async fn find(door: &Door, place: &Place, id: &str) -> Result<Batch, Problem> {
    let asked = place::read::<Asked>(&place.batch(id)).await?;
    let asked = asked.ok_or_else(|| missing(id))?;
    let stopping = place::read::<Stopping>(&place.stopping(id)).await?;
    let batch = Batch {
        state: State::Validating,
        counts: Counts::default(),
        began_at: None,
        stopping_at: stopping.map(|stopping| stopping.at),
        ended_at: None,
        has_output: false,
        has_errors: false,
        fault: None,
        asked,
    };
    if let Some(ended) = place::read::<Ended>(&place.ended(id)).await? {
        return Ok(batch.with(ended));
    }
    let ended = match &batch.asked.fault {
        Some(fault) => Some(failed(fault.clone(), batch.asked.created_at)),
        None => reported(&batch, place).await?,
    };
    match ended {
        Some(ended) => batch.ends(door, place, ended).await,
        None => batch.asked_of_its_workflow(door, place).await,
    }
}

/// A page of a key's batches, and whether more follow.
///
/// # Errors
/// As [`find`].
pub(super) async fn list(
    door: &Door,
    place: &Place,
    kind: Kind,
    wanted: &Wanted,
) -> Result<(Vec<Batch>, bool), Problem> {
    let (ids, has_more) = wanted.of(Place::ids(&place.batches(), kind).await?);
    let found =
        stream::iter(ids).map(|id| async move { find(door, place, &id).await }).buffered(AT_ONCE);
    Ok((found.try_collect().await?, has_more))
}

pub(super) fn missing(id: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no batch {id}"))
}

/// Its report, if it is written.
async fn reported(batch: &Batch, place: &Place) -> Result<Option<Ended>, Problem> {
    let id = &batch.asked.id;
    let Some(report) = place::read::<Report>(&place.report(id)).await? else { return Ok(None) };
    let size = async |put| {
        let stamp = place.put(id, put).stamp().await.map_err(|error| away(&error))?;
        Ok::<_, Problem>(stamp.is_some_and(|stamp| stamp.size > 0))
    };
    let counts = Counts::from(report.progress.totals);
    let state = if !report.progress.done {
        State::Cancelled
    } else if counts.expired > 0 {
        State::Expired
    } else {
        State::Completed
    };
    Ok(Some(Ended {
        state,
        counts,
        began_at: report.progress.started_at.as_deref().and_then(seconds),
        ended_at: seconds(&report.finished_at).unwrap_or_else(now),
        has_output: size(Put::Output).await?,
        has_errors: size(Put::Errors).await?,
        output_expires_at: None,
        fault: None,
    }))
}

fn failed(fault: Fault, ended_at: u64) -> Ended {
    Ended {
        state: State::Failed,
        counts: Counts::default(),
        began_at: None,
        ended_at,
        has_output: false,
        has_errors: false,
        output_expires_at: None,
        fault: Some(fault),
    }
}

impl Batch {
    fn with(self, ended: Ended) -> Self {
        let Ended { state, counts, began_at, ended_at, has_output, has_errors, fault, .. } = ended;
        Self {
            state,
            counts,
            began_at,
            ended_at: Some(ended_at),
            has_output,
            has_errors,
            fault,
            ..self
        }
    }

    /// It has ended, which is written down.
    async fn ends(self, door: &Door, place: &Place, ended: Ended) -> Result<Self, Problem> {
        // With its batch what it has put out goes in any case.
        let batch_goes_at = self.asked.created_at + door.keep_files.as_secs();
        let wanted = self.asked.output_seconds.map(|seconds| ended.ended_at + seconds);
        let output_expires_at = wanted.map(|wanted| wanted.min(batch_goes_at));
        let ended = Ended { output_expires_at, ..ended };
        place::write(&place.ended(&self.asked.id), &ended).await?;
        Ok(self.with(ended))
    }

    async fn asked_of_its_workflow(self, door: &Door, place: &Place) -> Result<Self, Problem> {
        let (temporal, id) = (door.temporal().await?, self.asked.id.clone());
        let Ok(seen) = temporal.describe(&id).await else {
            // Not started, or forgotten; or nobody answers.
            temporal.count().await.map_err(|error| Problem::no_temporal(&error))?;
            let fault = Fault::new("lost", "the batch did not begin; create it again", None);
            return self.ends(door, place, failed(fault, now())).await;
        };
        // One that was ended by hand, or has failed, answers this question for ever.
        if matches!(seen.status, Status::Running | Status::Continued) {
            // Without a worker nobody can tell how far it is.
            let progress = temporal.progress(&id).await.unwrap_or_default();
            return Ok(self.at(&progress));
        }
        // Its report may have been written since.
        if let Some(ended) = reported(&self, place).await? {
            return self.ends(door, place, ended).await;
        }
        let why = match temporal.ending(&id).await {
            Ok(Ending::Broken(why)) => why,
            _ => "it ended without a report".to_owned(),
        };
        self.ends(door, place, failed(Fault::new("batch_failed", why, None), now())).await
    }

    /// While it goes on.
    fn at(self, progress: &Progress) -> Self {
        let counts = Counts::from(progress.totals);
        let state = match progress.documents {
            _ if self.stopping_at.is_some() => State::Cancelling,
            0 => State::Validating,
            // The plan may still grow.
            documents if progress.totals.ended() >= documents.max(self.asked.total) => {
                State::Finalizing
            }
            _ => State::InProgress,
        };
        let began_at = progress.started_at.as_deref().and_then(seconds);
        Self { state, counts, began_at: began_at.filter(|_| progress.documents > 0), ..self }
    }

    /// Asks it to stop: what is done stays done.
    ///
    /// # Errors
    /// It has ended, or Temporal does not answer.
    pub(super) async fn stop(self, door: &Door, place: &Place) -> Result<Self, Problem> {
        if self.stopping_at.is_some() && !self.state.has_ended() {
            return Ok(self);
        }
        if self.state.has_ended() {
            let message = format!("the batch {} has ended and cannot be cancelled", self.asked.id);
            return Err(Problem::new(StatusCode::CONFLICT, message));
        }
        let (temporal, at) = (door.temporal().await?, now());
        if let Err(error) = temporal.cancel(&self.asked.id).await {
            let again = find(door, place, &self.asked.id).await?;
            if again.state.has_ended() {
                return Ok(again);
            }
            return Err(Problem::no_temporal(&error));
        }
        place::write(&place.stopping(&self.asked.id), &Stopping { at }).await?;
        Ok(Self { state: State::Cancelling, stopping_at: Some(at), ..self })
    }
}

/// Seconds since 1970 of a time as RFC 3339.
fn seconds(text: &str) -> Option<u64> {
    u64::try_from(DateTime::parse_from_rfc3339(text).ok()?.timestamp()).ok()
}

fn now() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp()).unwrap_or_default()
}
