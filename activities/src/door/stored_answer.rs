//! Answers of the Temporal door are stored under `[calls] answers` before their attempt returns, so
//! that each is bought once.
//!
//! The location is a hash of namespace, workflow and run (a standalone activity has a run of its own),
//! activity, the time at which it was first scheduled, and the question. So every attempt finds the
//! answer of an earlier one, while another run, or a workflow that was reset, buys its own.

use std::time::SystemTime;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use temporalio_sdk::activities::ActivityInfo;
use tidegate_workflows::contract::{CallOutcome, EmbedOutcome};

use super::caller::workflow;
use crate::{
    attempt::Attempt, call_store::Calls, failure::Failure, fingerprint::Fingerprint,
    output::pending_writes::Bought, services::Services, storage::Location,
};

/// An outcome that may be returned without its large parts.
pub(super) trait Large {
    /// Replaces its large parts by the URI of the stored outcome.
    fn replaced_by_uri(self, uri: String) -> Self;
}

impl Large for CallOutcome {
    fn replaced_by_uri(self, uri: String) -> Self {
        Self { answer: None, value: None, reply: None, answer_uri: Some(uri), ..self }
    }
}

impl Large for EmbedOutcome {
    fn replaced_by_uri(self, uri: String) -> Self {
        Self { vectors: None, answer_uri: Some(uri), ..self }
    }
}

/// The location of one activity's answer.
#[derive(Debug)]
pub(super) struct StoredAnswer {
    /// Fingerprint of the question, independent of the caller.
    pub(super) asks: Fingerprint,
    location: Location,
    /// Where an answer that is not accepted is stored.
    pub(super) part: Location,
    inline: u64,
}

impl StoredAnswer {
    /// The location for the running activity's input.
    pub(super) fn new(calls: &Calls, info: &ActivityInfo, input: &Value) -> Self {
        let scheduled =
            info.scheduled_time.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        // To the nanosecond: it tells apart the runs of a standalone activity, which the SDK does not.
        let scheduled = scheduled.unwrap_or_default().as_nanos().to_string();
        let run = workflow(info).and(info.workflow_run_id.as_deref());
        let asks = Fingerprint::of_json(input);
        let whose = json!([info.namespace, workflow(info), run, info.activity_id, scheduled, asks]);
        let name = Fingerprint::of_json(&whose).to_string();
        let folder = calls.answers.child(&name[..2]);
        let [location, part] =
            ["json", "part.json"].map(|kind| folder.child(&format!("{name}.{kind}")));
        Self { asks, location, part, inline: calls.inline }
    }

    /// Finds the answer that an earlier attempt has bought.
    ///
    /// # Errors
    /// `Transient` while the store fails, or the answer is in the spool of a worker that is away.
    pub(super) async fn find<T: Large + DeserializeOwned>(
        &self,
        services: &Services,
        attempt: &Attempt,
    ) -> Result<Option<T>, Failure> {
        services.pending_writes.recover(attempt, &self.location).await?;
        let found = self.read().await?;
        if found.is_none() {
            services.pending_writes.check_spooled(attempt)?;
        }
        Ok(found)
    }

    /// Stores the answer that this attempt has bought. Returns the answer that was stored first.
    ///
    /// # Errors
    /// The errors of [`Self::find`].
    pub(super) async fn save<T: Large + Serialize + DeserializeOwned>(
        &self,
        services: &Services,
        attempt: &Attempt,
        outcome: T,
    ) -> Result<T, Failure> {
        let json = serde_json::to_vec(&outcome)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        let length = json.len();
        if services.pending_writes.write(attempt, &Bought::new(&self.location, json)).await? {
            return Ok(self.without_large_parts(outcome, length));
        }
        let first = self.read().await?;
        Ok(first.unwrap_or_else(|| self.without_large_parts(outcome, length)))
    }

    async fn read<T: Large + DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let Some(bytes) = self.location.read_if_there().await? else { return Ok(None) };
        let outcome = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::invalid_input(format!(
                "{} is no answer of this activity ({error}); remove it",
                self.location
            ))
        })?;
        Ok(Some(self.without_large_parts(outcome, bytes.len())))
    }

    fn without_large_parts<T: Large>(&self, outcome: T, length: usize) -> T {
        match length as u64 > self.inline {
            true => outcome.replaced_by_uri(self.location.uri()),
            false => outcome,
        }
    }
}
