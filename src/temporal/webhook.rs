//! Delivery of a batch's webhook.

use std::time::SystemTime;

use temporalio_client::WorkflowExecutionStatus as Status;
use tidegate_workflows::contract::Notify;

use super::{batch::Batch, connection::Temporal, pending::Pending, run_end::NoResult};

/// The state of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub enum WebhookState {
    /// The message was delivered.
    Delivered,
    /// The message is not delivered yet: the last failure, and the time of the next attempt.
    Pending(Option<String>, Option<SystemTime>),
    /// The message could not be delivered, for this reason.
    GivenUp(String),
}

impl Temporal {
    /// The webhook's state for this run of a batch, if it has a webhook.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn webhook(&self, batch: &Batch) -> anyhow::Result<Option<WebhookState>> {
        let id = Notify::workflow_id(&batch.id, &batch.run);
        let Some(seen) = self.description(&id).await? else { return Ok(None) };
        Ok(Some(match seen.status() {
            Status::Running | Status::Paused => {
                let pending = self.pending(&id).await?.into_iter().next();
                let Pending { failure, next, .. } = pending.unwrap_or_default();
                WebhookState::Pending(failure.map(|failure| failure.message), next)
            }
            Status::Completed => WebhookState::Delivered,
            _ => match self.result_of(self.handle(&id), &id).await? {
                Ok(_) => WebhookState::Delivered,
                Err(NoResult { why, .. }) => WebhookState::GivenUp(why),
            },
        }))
    }
}
