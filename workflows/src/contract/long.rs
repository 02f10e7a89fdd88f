//! A document that is read in parts: the task of a step, and the input and outcome of its workflow.

use serde::{Deserialize, Serialize};
use tidegate_types::{Lane, Spend, Tenant};

use super::{
    document::{DocumentTask, FailedDocument, Taken},
    parts::{Parts, Step},
};

/// One step of a document that is read in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartTask {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// The step.
    pub step: Step,
    /// Use of earlier steps.
    pub spent: Spend,
}

/// The input of a document's workflow; in a continued run, with its state so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LongDocument {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// The class of traffic.
    pub lane: Lane,
    /// The tenant whose budget pays.
    pub tenant: Tenant,
    /// [`super::Plan::heartbeat_seconds`].
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// The current level.
    pub level: u32,
    /// The next step of that level, counted from 0.
    pub next: u32,
    /// Use of all steps so far.
    pub taken: Taken,
}

/// The outcome of a document's workflow, which always succeeds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LongOutcome {
    /// Use of its steps, including failed ones.
    #[serde(flatten)]
    pub taken: Taken,
    /// The reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedDocument>,
    /// Whether there is no result because the batch was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

impl LongOutcome {
    /// The outcome with the use of all steps, including those that ended after the failure.
    pub(crate) fn with_taken(self, taken: Taken) -> Self {
        let provider_calls = taken.spend.provider_calls;
        let failed = self.failed.map(|failed| FailedDocument { provider_calls, ..failed });
        Self { taken, failed, ..self }
    }
}
