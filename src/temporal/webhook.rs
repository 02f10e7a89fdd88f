//! The webhook of a batch that has ended: whether its receiver knows.

use std::time::SystemTime;

use futures::{FutureExt, future::BoxFuture};
use temporalio_client::{WorkflowGetResultOptions, errors::WorkflowGetResultError};
use tidegate_workflows::contract::Notify;

use super::{
    batch::{Batch, Status, causes},
    connection::Temporal,
    pending::Pending,
};

/// How a webhook stands.
#[derive(Debug, Clone, PartialEq)]
pub enum WebhookState {
    /// Its receiver knows.
    Delivered,
    /// Its receiver does not know yet: why, and when it is told again.
    Pending(Option<String>, Option<SystemTime>),
    /// Its receiver was not reached; the sentence says why.
    GivenUp(String),
}

impl Temporal {
    /// How the webhook of this run of a batch stands, if it has one.
    ///
    /// # Errors
    /// The server is away.
    pub fn webhook<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> BoxFuture<'a, anyhow::Result<Option<WebhookState>>> {
        self.webhook_here(batch).boxed()
    }

    async fn webhook_here(&self, batch: &Batch) -> anyhow::Result<Option<WebhookState>> {
        let id = Notify::workflow_id(&batch.id, &batch.run);
        let Some(seen) = self.description(&id).await? else { return Ok(None) };
        Ok(Some(match Status::from(seen.status()) {
            Status::Running => {
                let pending = self.pending(&id).await?.into_iter().next();
                let Pending { failure, next, .. } = pending.unwrap_or_default();
                WebhookState::Pending(failure.map(|failure| failure.message), next)
            }
            Status::Completed => WebhookState::Delivered,
            Status::Failed => {
                let result = WorkflowGetResultOptions::builder().build();
                match self.handle(&id).get_result(result).await {
                    Err(WorkflowGetResultError::Failed(error)) => {
                        WebhookState::GivenUp(causes(&error))
                    }
                    _ => WebhookState::GivenUp("it failed".to_owned()),
                }
            }
            other => WebhookState::GivenUp(format!("it was {}", other.as_str())),
        }))
    }
}
