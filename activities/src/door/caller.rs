//! The caller of an activity, as Temporal names it.

use temporalio_sdk::activities::ActivityInfo;
use tidegate_types::Lane;

use crate::{failure::Failure, services::Services};

/// Precedes a lane's name in the name of its task queue: `tidegate_workflows::policy::lane_queue`.
const LANE: &str = "-lane-";

/// The workflow that an activity belongs to; `None` for a standalone activity.
pub(super) fn workflow(info: &ActivityInfo) -> Option<&str> {
    info.workflow_id.as_deref().filter(|workflow| !workflow.is_empty())
}

/// The lane of a task queue.
pub(super) fn lane(services: &Services, task_queue: &str) -> Result<Lane, Failure> {
    let lanes = services.guard.quota.models().take(1).flat_map(|model| model.lanes.iter());
    let of_queue = |lane: &&Lane| {
        task_queue.strip_suffix(lane.as_str()).is_some_and(|before| before.ends_with(LANE))
    };
    let mut lanes = lanes.map(|(lane, _)| lane);
    lanes.find(of_queue).cloned().ok_or_else(|| {
        Failure::invalid_input(format!(
            "the task queue \"{task_queue}\" belongs to no lane; use the task queue of a lane, such as {task_queue}{LANE}interactive"
        ))
    })
}
