//! Calls of one model, lane, tenant and template share a script call.

pub(crate) mod batches;
pub(crate) mod caller;
pub(crate) mod waiters;
