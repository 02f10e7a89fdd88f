//! The status of a batch, from its report, or else from its workflow.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tidegate_activities::output::finish::Report;
use tidegate_types::{FailureType, seconds_since_1970};
use tidegate_workflows::contract::{Progress, Totals};

use super::{
    batch::{BatchRequest, Fault},
    id::{Kind, OutputFile},
    key_folder::{self, KeyFolder},
    list_query::ListQuery,
};
use crate::{
    serve::{door::Door, problem::Problem},
    temporal::{Ending, Status},
};

/// Batches of a list whose status is fetched at once.
const AT_ONCE: usize = 8;

/// Time limit for the start of a batch's workflow, after the request for the batch is stored.
const START_WITHIN: Duration = Duration::from_secs(120);

/// A batch and its course.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) asked: BatchRequest,
    /// In seconds since 1970, like all times here.
    pub(super) stopping_at: Option<u64>,
    pub(super) course: Course,
}

/// The course of a batch so far. The door stores it at the end, because Temporal deletes ended workflows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Course {
    pub(super) state: State,
    pub(super) counts: Counts,
    pub(super) began_at: Option<u64>,
    pub(super) ended_at: Option<u64>,
    /// Whether the output file is there.
    pub(super) has_output: bool,
    pub(super) has_errors: bool,
    /// The time of the removal of both files, if the client sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<Fault>,
}

impl Course {
    fn failed(fault: Fault, at: u64) -> Self {
        Self { state: State::Failed, ended_at: Some(at), fault: Some(fault), ..Self::default() }
    }
}

/// OpenAI's status of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    #[default]
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

/// The outcomes of its requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) succeeded: u64,
    /// Without expired requests.
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

/// When the batch was asked to stop.
#[derive(Debug, Serialize, Deserialize)]
struct Stopping {
    at: u64,
}

/// Finds the batch of this id and its status.
///
/// # Errors
/// There is no such batch, or the store or Temporal does not answer.
pub(super) async fn find(door: &Door, place: &KeyFolder, id: &str) -> Result<Batch, Problem> {
    let (asked, stopping, ended) = (place.batch(id), place.stopping(id), place.ended(id));
    let (asked, stopping, ended) = tokio::try_join!(
        key_folder::read::<BatchRequest>(&asked),
        key_folder::read::<Stopping>(&stopping),
        key_folder::read::<Course>(&ended),
    )?;
    let asked = asked.ok_or_else(|| no_batch(id))?;
    let stopping_at = stopping.map(|stopping| stopping.at);
    let batch = Batch { asked, stopping_at, course: Course::default() };
    if let Some(course) = ended {
        return Ok(Batch { course, ..batch });
    }
    let ended = match &batch.asked.fault {
        Some(fault) => Some(Course::failed(fault.clone(), batch.asked.created_at)),
        None => read_report(&batch, place).await?,
    };
    match ended {
        Some(ended) => batch.record_end(door, place, ended).await,
        None => batch.with_status_of_workflow(door, place).await,
    }
}

/// A page of a key's batches, and whether more follow.
///
/// # Errors
/// The errors of [`find`].
pub(super) async fn list(
    door: &Door,
    place: &KeyFolder,
    kind: Kind,
    wanted: &ListQuery,
) -> Result<(Vec<Batch>, bool), Problem> {
    let (ids, has_more) = wanted.select(KeyFolder::ids(&place.batches(), kind).await?);
    let found =
        stream::iter(ids).map(|id| async move { find(door, place, &id).await }).buffered(AT_ONCE);
    // One damaged batch does not hide the others.
    let found =
        found.filter(|batch| std::future::ready(!batch.as_ref().is_err_and(key_folder::is_damage)));
    Ok((found.try_collect().await?, has_more))
}

pub(super) fn no_batch(id: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no batch {id}"))
}

/// The end that the batch's report states, if the report is written.
async fn read_report(batch: &Batch, place: &KeyFolder) -> Result<Option<Course>, Problem> {
    let id = &batch.asked.id;
    let Some(report) = key_folder::read::<Report>(&place.report(id)).await? else {
        return Ok(None);
    };
    let size = async |put| {
        let stamp = place.output_file(id, put).stamp().await?;
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
    Ok(Some(Course {
        state,
        counts,
        began_at: report.progress.started_at.as_deref().and_then(seconds),
        ended_at: Some(seconds(&report.finished_at).unwrap_or_else(now)),
        has_output: size(OutputFile::Output).await?,
        has_errors: size(OutputFile::Errors).await?,
        ..Course::default()
    }))
}

impl Batch {
    /// Stores the end of the batch.
    async fn record_end(
        self,
        door: &Door,
        place: &KeyFolder,
        ended: Course,
    ) -> Result<Self, Problem> {
        // The output is removed with its batch in any case.
        let batch_goes_at = self.asked.created_at + door.config.serve.keep_files.as_secs();
        let wanted = self.asked.output_seconds.zip(ended.ended_at).map(|(keep, at)| at + keep);
        let output_expires_at = wanted.map(|wanted| wanted.min(batch_goes_at));
        let course = Course { output_expires_at, ..ended };
        key_folder::write(&place.ended(&self.asked.id), &course).await?;
        Ok(Self { course, ..self })
    }

    async fn with_status_of_workflow(
        self,
        door: &Door,
        place: &KeyFolder,
    ) -> Result<Self, Problem> {
        let (temporal, id) = (door.temporal().await?, self.asked.id.clone());
        let seen = temporal.find(&id).await.map_err(|error| Problem::no_temporal(&error))?;
        let Some(seen) = seen else {
            let stored = place.batch(&id).stamp().await?;
            // The door removes the request for a batch that it could not start.
            let stored = stored.ok_or_else(|| no_batch(&id))?;
            if may_begin(stored.modified, Utc::now()) {
                return Ok(self);
            }
            // Its door stopped before the start, or Temporal has deleted the workflow.
            let fault = Fault::new("lost", "the batch did not begin; create it again", None);
            return self.record_end(door, place, Course::failed(fault, now())).await;
        };
        // A workflow that was terminated or has failed still answers the progress query.
        if seen.is_running() || seen.status == Status::ContinuedAsNew {
            // Without a worker, the progress is unknown.
            let progress = temporal.progress(&id).await.unwrap_or_default();
            return Ok(self.with_progress(&progress));
        }
        // Its report may have been written in the meantime.
        if let Some(ended) = read_report(&self, place).await? {
            return self.record_end(door, place, ended).await;
        }
        let why = match temporal.ending(&id).await {
            Ok(Ending::Broken(why)) => why,
            _ => "it ended without a report".to_owned(),
        };
        let fault = Fault::new("batch_failed", why, None);
        self.record_end(door, place, Course::failed(fault, now())).await
    }

    /// The status while the batch runs.
    fn with_progress(self, progress: &Progress) -> Self {
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
        let began_at = began_at.filter(|_| progress.documents > 0);
        Self { course: Course { state, counts, began_at, ..self.course }, ..self }
    }

    /// Asks the batch to stop: finished requests keep their results.
    ///
    /// # Errors
    /// The batch has ended, or Temporal does not answer.
    pub(super) async fn stop(self, door: &Door, place: &KeyFolder) -> Result<Self, Problem> {
        if self.stopping_at.is_some() && !self.course.state.has_ended() {
            return Ok(self);
        }
        if self.course.state.has_ended() {
            let message = format!("the batch {} has ended and cannot be cancelled", self.asked.id);
            return Err(Problem::new(StatusCode::CONFLICT, message));
        }
        let (temporal, at) = (door.temporal().await?, now());
        if let Err(error) = temporal.cancel(&self.asked.id).await {
            let again = find(door, place, &self.asked.id).await?;
            if again.course.state.has_ended() {
                return Ok(again);
            }
            return Err(Problem::no_temporal(&error));
        }
        key_folder::write(&place.stopping(&self.asked.id), &Stopping { at }).await?;
        let course = Course { state: State::Cancelling, ..self.course };
        Ok(Self { course, stopping_at: Some(at), ..self })
    }
}

/// Refuses to delete a file that a running batch still reads.
pub(super) async fn check_unused(
    door: &Door,
    place: &KeyFolder,
    file: &str,
) -> Result<(), Problem> {
    let ids = KeyFolder::ids(&place.batches(), Kind::Batch).await?;
    let reads = |id: String| async move {
        let asked = key_folder::read::<BatchRequest>(&place.batch(&id)).await?;
        let is_read = asked.is_some_and(|asked| asked.file.as_deref() == Some(file))
            && !find(door, place, &id).await?.course.state.has_ended();
        Ok::<_, Problem>(is_read.then_some(id))
    };
    let readers = stream::iter(ids).map(reads).buffer_unordered(AT_ONCE);
    match readers.try_filter_map(|id| std::future::ready(Ok(id))).try_next().await? {
        Some(id) => {
            let message = format!("the batch {id} reads this file; cancel it first");
            Err(Problem::new(StatusCode::CONFLICT, message))
        }
        None => Ok(()),
    }
}

/// Whether the workflow of a batch may still be started, if its request was stored at this time.
fn may_begin(stored_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    // A time in the future is a difference of the clocks.
    (now - stored_at).to_std().unwrap_or_default() < START_WITHIN
}

/// The seconds since 1970 of an RFC 3339 time.
fn seconds(text: &str) -> Option<u64> {
    u64::try_from(DateTime::parse_from_rfc3339(text).ok()?.timestamp()).ok()
}

fn now() -> u64 {
    seconds_since_1970(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_without_a_workflow_may_begin_soon_after_its_request_is_stored() {
        let (stored_at, second) = (Utc::now(), Duration::from_secs(1));
        for (passed, may) in [
            (Duration::ZERO, true),
            (START_WITHIN - second, true),
            (START_WITHIN, false),
            (Duration::from_secs(86_400), false),
        ] {
            assert_eq!(may_begin(stored_at, stored_at + passed), may, "{passed:?}");
        }
        assert!(may_begin(stored_at, stored_at - second), "the store's clock is ahead");
    }
}
