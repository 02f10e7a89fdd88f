//! A batch in a snapshot: its progress or its end, its cause of delay, and its failures.

use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tidegate_workflows::contract::Progress;

use crate::{
    cli::{
        advice,
        diagnosis::{self, Cause, Diagnosis},
        eta::{self, Estimate},
        failed::{self, Failed},
        fleet::Fleet,
        format, paths, summary,
    },
    temporal::{Batch, Ending, NoProgress, status_name},
};

/// The known progress of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) enum Known {
    Progress(Box<Progress>),
    /// The reason why the progress is unknown, or the end without a result.
    Nothing(String),
}

/// A batch in a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct BatchView {
    pub(in crate::cli) batch: Batch,
    pub(in crate::cli) known: Known,
    /// The cause that holds a running batch back.
    pub(in crate::cli) cause: Option<Cause>,
    /// Failures by type, most frequent first.
    pub(in crate::cli) failed: Vec<Failed>,
    /// The estimate of its remaining time.
    pub(in crate::cli) outlook: Option<Estimate>,
    /// The time left, with the other batches at the same time; otherwise only the pace so far is known.
    pub(in crate::cli) left: Option<Duration>,
}

/// Queries a running batch; reads the result of an ended batch.
pub(in crate::cli) async fn known(fleet: Fleet<'_>, batch: &Batch) -> Known {
    if batch.is_running() {
        return match fleet.temporal.progress(&batch.id).await {
            Ok(progress) => Known::Progress(Box::new(progress)),
            Err(unknown) => Known::Nothing(reason(fleet, batch, &unknown).await),
        };
    }
    match fleet.temporal.ending_of(batch).await {
        Ok(Ending::Completed(progress) | Ending::Cancelled(progress)) => Known::Progress(progress),
        Ok(Ending::Broken(why)) => Known::Nothing(why),
        Err(error) => Known::Nothing(format!("{error:#}")),
    }
}

/// The reason why a running batch's progress is unknown.
async fn reason(fleet: Fleet<'_>, batch: &Batch, unknown: &NoProgress) -> String {
    match unknown {
        NoProgress::NoWorker => advice::no_worker(fleet, &batch.task_queue).await,
        NoProgress::Unknown => "it is gone".to_owned(),
        NoProgress::Failed(error) => format!("{error:#}"),
    }
}

/// Inspects a batch, without its effect on other batches: [`forecast`] adds that.
pub(in crate::cli) async fn inspect(fleet: Fleet<'_>, batch: Batch) -> BatchView {
    inspect_and_diagnose(fleet, batch).await.0
}

/// Inspects a batch, and estimates its end with the other batches at the same time.
pub(in crate::cli) async fn inspect_alone(fleet: Fleet<'_>, batch: Batch) -> BatchView {
    let (mut seen, look) = inspect_and_diagnose(fleet, batch).await;
    if let Some(look) = &look {
        seen.left = eta::time_left(fleet, seen.id(), look).await;
    }
    seen
}

async fn inspect_and_diagnose(fleet: Fleet<'_>, batch: Batch) -> (BatchView, Option<Diagnosis>) {
    let look = match batch.is_running() {
        true => diagnosis::diagnose(fleet, &batch).await.ok(),
        false => None,
    };
    let mut known = match look.as_ref().map(|look| &look.progress) {
        Some(Ok(progress)) => Known::Progress(Box::new(progress.clone())),
        Some(Err(unknown)) => Known::Nothing(reason(fleet, &batch, unknown).await),
        None => known(fleet, &batch).await,
    };
    if let (Known::Progress(progress), Some(look)) = (&mut known, &look) {
        progress.totals.spend += look.waits.spent;
    }
    let outlook = look.as_ref().and_then(Estimate::from_diagnosis);
    let cause = look.as_ref().map(|look| look.cause.clone());
    let failed = match &known {
        Known::Progress(progress) => failed::by_type(fleet.config, progress).await,
        Known::Nothing(_) => Vec::new(),
    };
    (BatchView { batch, known, cause, failed, outlook, left: None }, look)
}

/// Estimates when these batches will be done, all at the same time.
pub(in crate::cli) fn forecast(batches: &mut [BatchView]) {
    let outlook = |seen: &BatchView| seen.outlook.clone().filter(|_| !seen.is_paused());
    let all: Vec<Option<Estimate>> = batches.iter().map(outlook).collect();
    for (place, seen) in batches.iter_mut().enumerate() {
        let others = all.iter().enumerate().filter(|(other, _)| *other != place);
        let others = others.filter_map(|(_, other)| other.as_ref());
        seen.left = all.get(place).and_then(Option::as_ref).map(|own| own.time_left(others));
    }
}

impl BatchView {
    /// A batch without a diagnosis.
    pub(in crate::cli) fn listed(batch: Batch, known: Known) -> Self {
        Self { batch, known, cause: None, failed: Vec::new(), outlook: None, left: None }
    }

    pub(in crate::cli) fn id(&self) -> &str {
        &self.batch.id
    }

    pub(in crate::cli) fn progress(&self) -> Option<&Progress> {
        match &self.known {
            Known::Progress(progress) => Some(progress),
            Known::Nothing(_) => None,
        }
    }

    pub(in crate::cli) fn is_paused(&self) -> bool {
        self.batch.is_running() && self.progress().is_some_and(|progress| progress.paused)
    }

    /// The status as shown: `paused` for a paused batch.
    pub(in crate::cli) fn status(&self) -> &'static str {
        if self.is_paused() { "paused" } else { status_name(self.batch.status) }
    }

    /// Its start; `batch.started` is that of its last run.
    pub(in crate::cli) fn started(&self) -> Option<SystemTime> {
        let stated = self.progress().and_then(|it| format::parse_time(it.started_at.as_deref()));
        stated.or(self.batch.started)
    }

    pub(in crate::cli) fn took(&self) -> Option<Duration> {
        let until = self.batch.closed.unwrap_or_else(SystemTime::now);
        until.duration_since(self.started()?).ok()
    }

    /// The time until it is done; `None` if unknown, because it is paused or stands still.
    pub(in crate::cli) fn eta(&self) -> Option<Duration> {
        let progress = self.progress().filter(|progress| !progress.paused)?;
        if !self.batch.is_running() || self.cause.as_ref().is_some_and(|cause| cause.stands) {
            return None;
        }
        self.left
            .or_else(|| format::parse_time(progress.eta.as_deref()).and_then(format::time_until))
    }

    /// Documents processed to their end a minute, since the start.
    pub(in crate::cli) fn per_minute(&self) -> f64 {
        let minutes = self.took().unwrap_or_default().as_secs_f64() / 60.0;
        let worked = self.progress().map_or(0, |progress| progress.totals.worked());
        if minutes > 0.0 { format::ratio(worked, 1) / minutes } else { 0.0 }
    }

    /// The cause that holds it back, or the reason why nothing is known of it.
    pub(in crate::cli) fn why(&self) -> Option<&str> {
        match (&self.cause, &self.known) {
            (Some(cause), _) => Some(&cause.sentence),
            (None, Known::Nothing(why)) => Some(why),
            (None, Known::Progress(_)) => None,
        }
    }

    /// The contract's fields, and the findings.
    pub(in crate::cli) fn value(&self) -> anyhow::Result<Value> {
        let mut value = match &self.known {
            Known::Progress(progress) => summary::with_id(&self.batch.id, progress)?,
            Known::Nothing(why) => json!({ "workflow_id": self.batch.id, "message": why }),
        };
        value["status"] = status_name(self.batch.status).into();
        value["closed_at"] = self.batch.closed.map(format::rfc3339).into();
        if value["started_at"].is_null() {
            value["started_at"] = self.batch.started.map(format::rfc3339).into();
        }
        if let Known::Progress(progress) = &self.known {
            value["results"] = paths::display_url(&progress.output).into();
            value["documents_per_minute"] = self.per_minute().into();
        }
        if let Some(cause) = &self.cause {
            value["why"] = cause.sentence.as_str().into();
        }
        if self.batch.is_running() {
            // The contract's field, with the estimate from the quota, while the batch runs.
            value["eta"] = self.eta().map(|left| format::rfc3339(SystemTime::now() + left)).into();
        }
        if !self.failed.is_empty() {
            value["failures_by_type"] = failed::value(&self.failed, None);
        }
        Ok(value)
    }
}

impl Serialize for BatchView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value().map_err(serde::ser::Error::custom)?.serialize(to)
    }
}
