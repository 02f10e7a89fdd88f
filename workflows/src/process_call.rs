//! `ProcessCall`: one call as a workflow, for servers without standalone activities.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::to_raw_value};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityExecutionError, WorkflowContext, WorkflowContextView, WorkflowResult,
};

use crate::{
    contract::{Activities, SubmittedCall},
    failure::{failed, termination},
    policy,
};

/// One call.
#[workflow]
pub struct ProcessCall {
    call: SubmittedCall,
}

#[workflow_methods]
impl ProcessCall {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, call: SubmittedCall) -> Self {
        Self { call }
    }

    #[run(name = "ProcessCall")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Value> {
        let SubmittedCall { activity, lane, input } = ctx.state(|it| it.call.clone());
        let options = policy::call(ctx.task_queue(), &lane);
        let input =
            to_raw_value(&input).map_err(|error| failed("InvalidInput", &error.to_string()))?;
        match activity.as_str() {
            "tidegate.call" => value(ctx.execute_activity(Activities::call, input, options).await),
            "tidegate.embed" => {
                value(ctx.execute_activity(Activities::embed, input, options).await)
            }
            other => Err(failed("InvalidInput", &format!("there is no call {other}"))),
        }
    }
}

fn value<T: Serialize + DeserializeOwned>(
    ended: Result<T, ActivityExecutionError>,
) -> WorkflowResult<Value> {
    let outcome = ended.map_err(termination)?;
    serde_json::to_value(outcome).map_err(|error| failed("Unknown", &error.to_string()))
}
