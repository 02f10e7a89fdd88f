//! The inputs of a call of the Temporal door.

use tidegate_types::Lane;

use super::{stored_answer::StoredAnswer, wait_policy::WaitPolicy};
use crate::{attempt::Attempt, services::Services};

/// The inputs of a call of the Temporal door.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) services: &'a Services,
    pub(super) attempt: &'a Attempt,
    /// The lane of the activity's task queue.
    pub(super) lane: &'a Lane,
    pub(super) patience: &'a WaitPolicy<'a>,
    /// Where the answer is stored.
    pub(super) kept: &'a StoredAnswer,
}
