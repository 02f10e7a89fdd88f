//! `ProcessWebhook`: calls a webhook when a batch has ended. It is a workflow of its own, so that
//! the batch ends and its output is free for the next batch even while the receiver is away.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowContextView, WorkflowResult};

use crate::{
    contract::{Activities, Notify},
    failure::{self, failed},
    policy,
};

/// One message to one webhook.
#[workflow]
pub struct ProcessWebhook {
    notify: Notify,
}

#[workflow_methods]
impl ProcessWebhook {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, notify: Notify) -> Self {
        Self { notify }
    }

    #[run(name = "ProcessWebhook")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let notify = ctx.state(|it| it.notify.clone());
        let webhook = notify.webhook.clone();
        let notified = ctx.execute_activity(Activities::notify, notify, policy::webhook()).await;
        notified.map_err(|error| {
            let why = failure::message(error.reason(), &error);
            failed("Undelivered", &format!("the webhook \"{webhook}\" was given up: {why}"))
        })
    }
}
