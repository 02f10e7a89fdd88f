//! The inputs of a call of the Temporal door.

use tidegate_types::Lane;

use super::{kept::Kept, patience::Patience};
use crate::{attempt::Attempt, services::Services};

/// The inputs of a call of the Temporal door.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) services: &'a Services,
    pub(super) attempt: &'a Attempt,
    /// The lane of the activity's task queue.
    pub(super) lane: &'a Lane,
    pub(super) patience: &'a Patience<'a>,
    /// Where the answer is stored.
    pub(super) kept: &'a Kept,
}
