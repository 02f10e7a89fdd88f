//! Labels a batch with tenant, model and lane in Temporal's lists. It uses search attributes if the
//! server knows all three, otherwise a memo: an unregistered attribute would fail the workflow's
//! task for ever, and a workflow cannot ask the server.

use std::fmt::Display;

use temporalio_common::search_attributes::SearchAttributeKey;
use temporalio_workflow::{MemoValue, WorkflowContext};

use crate::contract::{Job, Labels, Target};

/// The search attributes, all keywords. Users register them by these names.
pub const NAMES: [&str; 3] = ["TidegateTenant", "TidegateModel", "TidegateLane"];

/// Labels the batch in the form that its plan has chosen. A run that continues the batch keeps the
/// labels.
pub(crate) fn set<W>(ctx: &WorkflowContext<W>, job: &Job, how: Option<Labels>) {
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
            // A text is always a valid keyword.
            let update = |(name, value)| {
                SearchAttributeKey::<String>::keyword(name).try_value_set(value).ok()
            };
            ctx.upsert_search_attributes(labels.into_iter().filter_map(update));
        }
        // A text is always valid JSON; and without its memo the batch continues.
        Labels::Memo => drop(ctx.upsert_memo(
            labels.into_iter().map(|(name, value)| (name, Some(MemoValue::new(value)))),
        )),
    }
}
