//! By what a batch is found in Temporal's lists: its tenant, its model and its lane. Search attributes
//! where the server knows all three, else a memo: one that is not registered would fail the workflow's
//! task for ever, and a workflow cannot ask.

use std::fmt::Display;

use temporalio_common::search_attributes::SearchAttributeKey;
use temporalio_workflow::{MemoValue, WorkflowContext};

use crate::contract::{Job, Labels, Target};

/// The search attributes, all keywords. Users register them by these names.
pub const NAMES: [&str; 3] = ["TidegateTenant", "TidegateModel", "TidegateLane"];

/// Says what the batch is, in the way that its plan found possible. Once for a batch: a run that
/// continues it has the same.
pub(crate) fn tell<W>(ctx: &WorkflowContext<W>, job: &Job, how: Option<Labels>) {
    let Some(how) = how else { return };
    let [tenant, model, lane] = NAMES;
    let asked: &dyn Display = match &job.target {
        Target::Model(model) => model,
        Target::Route(route) => route,
    };
    let labels = [
        (tenant, job.tenant.to_string()),
        (model, asked.to_string()),
        (lane, job.lane.to_string()),
    ];
    match how {
        Labels::SearchAttributes => {
            // A text can always be a keyword.
            let update = |(name, value)| {
                SearchAttributeKey::<String>::keyword(name).try_value_set(value).ok()
            };
            ctx.upsert_search_attributes(labels.into_iter().filter_map(update));
        }
        // Nor can one fail to be JSON; and a batch without its memo goes on.
        Labels::Memo => drop(ctx.upsert_memo(
            labels.into_iter().map(|(name, value)| (name, Some(MemoValue::new(value)))),
        )),
    }
}
