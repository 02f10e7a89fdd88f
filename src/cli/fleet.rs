//! The services that know the state of batches.

use tidegate_quota::Quota;

use crate::{config::Config, temporal::Temporal};

/// The services, and this machine's configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet<'a> {
    pub(super) config: &'a Config,
    pub(super) limiter: &'a Quota,
    pub(super) temporal: &'a Temporal,
}
