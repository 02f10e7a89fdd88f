//! The pending activities of a batch, as the server describes them.

use std::time::{Duration, SystemTime};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;
use temporalio_client::{
    Client, UntypedWorkflowHandle, WorkflowFetchHistoryOptions, errors::WorkflowInteractionError,
};
use temporalio_common::protos::{
    proto_ts_to_system_time,
    temporal::api::{
        enums::v1::{PendingActivityState, TimeoutType},
        failure::v1::{Failure, failure::FailureInfo},
        history::v1::{WorkflowExecutionStartedEventAttributes, history_event::Attributes},
        workflow::v1::PendingActivityInfo,
    },
};
use tidegate_activities::attempt::AttemptState;
use tidegate_workflows::contract::FailureDetails;

use super::{connection::Temporal, run_end::no_such_batch};

/// Children that are described at once.
const AT_ONCE: usize = 8;

/// A pending activity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pending {
    /// The activity's type, such as `tidegate.process_document`.
    pub activity: String,
    /// Whether a worker runs it.
    pub started: bool,
    /// Whether the worker that runs it holds an answer that cannot be written.
    pub unwritten: bool,
    /// The worker that runs it, if one does.
    pub held: Option<HeldBy>,
    /// The time of the next attempt, if that is in the future.
    pub next: Option<SystemTime>,
    /// The last attempt's failure, if there was one.
    pub failure: Option<LastFailure>,
}

/// The worker that runs an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// The worker's name in the registry of workers.
    pub worker: String,
    /// The time of its last message to the server: the start of the activity or a heartbeat.
    pub heard: SystemTime,
    /// The time after that until another worker gets the activity.
    pub patience: Duration,
}

impl HeldBy {
    fn from_activity(seen: &PendingActivityInfo) -> Option<Self> {
        let worker = seen.last_worker_identity.clone();
        let beat = seen.last_heartbeat_time.as_ref().and_then(proto_ts_to_system_time);
        let heard = beat.max(seen.last_started_time.as_ref().and_then(proto_ts_to_system_time))?;
        let timeout = seen.activity_options.as_ref()?.heartbeat_timeout?;
        let patience = Duration::try_from(timeout).ok().filter(|patience| !patience.is_zero())?;
        (!worker.is_empty()).then_some(Self { worker, heard, patience })
    }
}

/// The failure of an attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastFailure {
    /// One of [`FailureType`](tidegate_workflows::contract::FailureType), or Temporal's own, such
    /// as `Timeout`.
    pub kind: String,
    /// The failure's message; for a failure of Temporal's own, a message of ours.
    pub message: String,
    /// The details that tidegate's failures carry; empty for others.
    pub details: FailureDetails,
}

impl Temporal {
    /// Every pending activity of a batch, of its shards and of their long documents.
    ///
    /// # Errors
    /// There is no such batch, or the server does not answer.
    pub async fn pending(&self, id: &str) -> anyhow::Result<Vec<Pending>> {
        let batch = self.description(id).await?.ok_or_else(|| no_such_batch(id))?.into_raw();
        let (mut pending, mut children) = (batch.pending_activities, batch.pending_children);
        // First shards, then their long documents. A child that has ended in the meantime is left
        // out.
        while !children.is_empty() {
            let described = std::mem::take(&mut children)
                .into_iter()
                .map(|child| async move { self.description(&child.workflow_id).await });
            let mut described = stream::iter(described).buffered(AT_ONCE);
            while let Some(child) = described.try_next().await? {
                let Some(child) = child.map(|child| child.into_raw()) else { continue };
                pending.extend(child.pending_activities);
                children.extend(child.pending_children);
            }
        }
        let mut seen = Vec::with_capacity(pending.len());
        for activity in pending {
            seen.push(Pending::from(self.decode(activity).await?));
        }
        Ok(seen)
    }

    /// The input of a batch's newest run, as JSON; null if it is not JSON.
    ///
    /// # Errors
    /// There is no such batch, or the server does not answer.
    pub async fn input(&self, id: &str) -> anyhow::Result<Value> {
        Ok(input_of(self.first_event(self.handle(id), id).await?))
    }

    /// The input of a batch's first run, as JSON; null if it is not JSON.
    ///
    /// # Errors
    /// See [`Self::input`].
    pub async fn first_input(&self, id: &str) -> anyhow::Result<Value> {
        let newest = self.first_event(self.handle(id), id).await?;
        let first = newest.map(|event| event.first_execution_run_id).unwrap_or_default();
        let mut run = self.handle(id).info().clone();
        run.run_id = Some(first).filter(|run| !run.is_empty());
        let first = self.first_event(run.bind_untyped(self.client().clone()), id).await?;
        Ok(input_of(first))
    }

    /// The attributes of a run's first event.
    async fn first_event(
        &self,
        run: UntypedWorkflowHandle<Client>,
        id: &str,
    ) -> anyhow::Result<Option<WorkflowExecutionStartedEventAttributes>> {
        let mut history = run.fetch_history(WorkflowFetchHistoryOptions::builder().build());
        let first = match history.next().boxed().await {
            Some(Ok(event)) => event,
            Some(Err(WorkflowInteractionError::NotFound(_))) | None => {
                return Err(no_such_batch(id));
            }
            Some(Err(error)) => return Err(self.server_error(&error.to_string())),
        };
        Ok(match first.attributes {
            Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
                Some(self.decode(started).await?)
            }
            _ => None,
        })
    }
}

/// A run's input, as JSON; null if it is not JSON.
fn input_of(started: Option<WorkflowExecutionStartedEventAttributes>) -> Value {
    let input = started.and_then(|started| started.input);
    let payload = input.and_then(|input| input.payloads.into_iter().next());
    payload.and_then(|payload| serde_json::from_slice(&payload.data).ok()).unwrap_or_default()
}

impl From<PendingActivityInfo> for Pending {
    fn from(seen: PendingActivityInfo) -> Self {
        let started = matches!(
            seen.state(),
            PendingActivityState::Started
                | PendingActivityState::CancelRequested
                | PendingActivityState::PauseRequested
        );
        let heartbeat =
            seen.heartbeat_details.as_ref().and_then(|details| details.payloads.first());
        let state = heartbeat.and_then(|state| serde_json::from_slice(&state.data).ok());
        let next = seen.next_attempt_schedule_time.as_ref().and_then(proto_ts_to_system_time);
        Self {
            held: HeldBy::from_activity(&seen).filter(|_| started),
            activity: seen.activity_type.map(|kind| kind.name).unwrap_or_default(),
            started,
            unwritten: started && state.is_some_and(|state: AttemptState| state.document.unwritten),
            next: next.filter(|next| !started && *next > SystemTime::now()),
            failure: seen.last_failure.map(LastFailure::from),
        }
    }
}

impl From<Failure> for LastFailure {
    fn from(failure: Failure) -> Self {
        match failure.failure_info {
            Some(FailureInfo::ApplicationFailureInfo(info)) => {
                let details = info.details.and_then(|details| details.payloads.into_iter().next());
                let details =
                    details.and_then(|details| serde_json::from_slice(&details.data).ok());
                let (kind, message) = (info.r#type, failure.message);
                Self { kind, message, details: details.unwrap_or_default() }
            }
            Some(FailureInfo::TimeoutFailureInfo(info)) => {
                let message = match info.timeout_type() {
                    TimeoutType::Heartbeat => {
                        "the worker that had it was not heard of in time: it died, or lost Temporal"
                    }
                    TimeoutType::StartToClose => "a worker had it for longer than it may take",
                    _ => "",
                };
                let kind = "Timeout".to_owned();
                Self { kind, message: message.to_owned(), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use temporalio_common::protos::temporal::api::{
        activity::v1::ActivityOptions,
        common::v1::{Payload, Payloads},
        failure::v1::{ApplicationFailureInfo, TimeoutFailureInfo},
    };
    use tidegate_activities::attempt::DocumentState;
    use tidegate_workflows::contract::WaitsFor;

    use super::*;

    #[test]
    fn a_running_activity_names_its_worker_and_its_heartbeat_timeout() {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let options = ActivityOptions {
            heartbeat_timeout: Duration::from_secs(40).try_into().ok(),
            ..ActivityOptions::default()
        };
        let seen = PendingActivityInfo {
            state: PendingActivityState::Started.into(),
            last_worker_identity: "tidegate-a-1".to_owned(),
            last_started_time: at(100).map(Into::into),
            last_heartbeat_time: at(115).map(Into::into),
            activity_options: Some(options),
            ..PendingActivityInfo::default()
        };
        let held = Pending::from(seen.clone()).held.unwrap();
        assert_eq!((held.worker.as_str(), Some(held.heard)), ("tidegate-a-1", at(115)));
        assert_eq!(held.patience, Duration::from_secs(40));
        let silent = PendingActivityInfo { last_heartbeat_time: None, ..seen.clone() };
        assert_eq!(Pending::from(silent).held.map(|held| held.heard), at(100));
        let by_an_older_server = PendingActivityInfo { activity_options: None, ..seen.clone() };
        assert_eq!(Pending::from(by_an_older_server).held, None);
        let waits = PendingActivityState::Scheduled.into();
        assert_eq!(Pending::from(PendingActivityInfo { state: waits, ..seen.clone() }).held, None);

        assert!(!Pending::from(seen.clone()).unwritten);
        let beat = |state: &str| {
            let payload = Payload { data: state.into(), ..Payload::default() };
            let heartbeat_details = Some(Payloads { payloads: vec![payload] });
            Pending::from(PendingActivityInfo { heartbeat_details, ..seen.clone() }).unwritten
        };
        let state = serde_json::to_string(&AttemptState {
            document: DocumentState { unwritten: true, ..DocumentState::default() },
            ..AttemptState::default()
        });
        assert!(beat(&state.unwrap()), "it holds an answer");
        assert!(!beat("{}") && !beat("of another program"));
    }

    #[test]
    fn temporals_own_timeouts_have_words() {
        let words = |kind: TimeoutType| {
            let info = TimeoutFailureInfo { timeout_type: kind.into(), ..Default::default() };
            let info = Some(FailureInfo::TimeoutFailureInfo(info));
            let failure = LastFailure::from(Failure { failure_info: info, ..Failure::default() });
            assert_eq!(failure.kind, "Timeout");
            failure.message
        };
        assert!(words(TimeoutType::Heartbeat).contains("was not heard of in time"));
        assert!(words(TimeoutType::StartToClose).contains("longer than it may take"));
    }

    #[test]
    fn what_a_document_waits_for_is_in_its_failures_details() {
        let waits_for = |details: Option<&str>| {
            let payloads = details.map(|details| Payloads {
                payloads: vec![Payload { data: details.into(), ..Payload::default() }],
            });
            let info = ApplicationFailureInfo {
                r#type: "QuotaWait".to_owned(),
                details: payloads,
                ..ApplicationFailureInfo::default()
            };
            let failure = Failure {
                message: "a sentence for people".to_owned(),
                failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
                ..Failure::default()
            };
            let seen = PendingActivityInfo { last_failure: Some(failure), ..Default::default() };
            let failure = Pending::from(seen).failure.unwrap();
            assert_eq!(
                (failure.kind.as_str(), failure.message.as_str()),
                ("QuotaWait", "a sentence for people")
            );
            failure.details.waits_for
        };
        let new = r#"{"provider_calls":1,"rate_limited":0,"deferrals":4,"waits_for":"tokens"}"#;
        assert_eq!(waits_for(Some(new)), Some(WaitsFor::Tokens));
        let of_an_earlier_version = r#"{"provider_calls":1,"rate_limited":0,"deferrals":4}"#;
        assert_eq!(waits_for(Some(of_an_earlier_version)), None);
        assert_eq!(waits_for(Some("of another program")), None);
        assert_eq!(waits_for(None), None);
    }
}
