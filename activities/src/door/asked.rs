//! What an activity is asked with.

use tidegate_types::Lane;

use super::{kept::Kept, patience::Patience};
use crate::{attempt::Attempt, services::Services};

/// What an activity is asked with.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) services: &'a Services,
    pub(super) attempt: &'a Attempt,
    /// Of its task queue.
    pub(super) lane: &'a Lane,
    pub(super) patience: &'a Patience<'a>,
    /// Where its answer is kept.
    pub(super) kept: &'a Kept,
}
