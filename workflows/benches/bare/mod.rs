//! The simplest workflow, for comparison: as many loops as documents may be in flight, each of
//! which runs a no-op activity with tidegate's own options.

#![allow(unreachable_pub, reason = "two benches have this module, and the macros want it public")]

use std::time::Instant;

use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_workflow::{WorkflowContext, WorkflowContextView, WorkflowResult, workflows};
use tidegate_types::{Lane, Tenant};
use tidegate_workflows::policy;

/// Documents in flight; also the slots of a worker.
pub const IN_FLIGHT: u32 = 200;

pub struct Noop;

#[activities]
impl Noop {
    #[activity(name = "bare.noop")]
    pub async fn noop(_ctx: ActivityContext, document: u32) -> Result<u32, ActivityError> {
        Ok(document)
    }
}

#[workflow]
pub struct Bare {
    documents: u32,
    next: u32,
}

#[workflow_methods]
impl Bare {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, documents: u32) -> Self {
        Self { documents, next: 0 }
    }

    #[run(name = "Bare")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<u32> {
        let lanes: Vec<_> = (0..IN_FLIGHT).map(|_| Self::lane(ctx.clone())).collect();
        for ended in workflows::join_all(lanes).await {
            ended?;
        }
        Ok(ctx.state(|bare| bare.next))
    }
}

impl Bare {
    async fn lane(ctx: WorkflowContext<Self>) -> WorkflowResult<()> {
        while let Some(document) = ctx.state_mut(Self::take) {
            ctx.execute_activity(
                Noop::noop,
                document,
                policy::document(ctx.task_queue(), &Lane::default(), &Tenant::default(), 0),
            )
            .await?;
        }
        Ok(())
    }

    fn take(&mut self) -> Option<u32> {
        (self.next < self.documents).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// Documents per second, from the start of the workflow to its result.
pub async fn run(client: &Client, queue: &str, id: &str, documents: u32) -> f64 {
    let started = Instant::now();
    let options = WorkflowStartOptions::new(queue, id).build();
    let handle = client.start_workflow(Bare::run, documents, options).await.unwrap();
    let done = handle.get_result(WorkflowGetResultOptions::default()).await.unwrap();
    let took = started.elapsed();
    assert_eq!(done, documents);
    f64::from(documents) / took.as_secs_f64()
}
