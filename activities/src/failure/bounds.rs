//! How often and for how long faults of stores, workers and steps of a batch are tried again.

use std::time::Duration;

use tidegate_calls::Backoff;

/// Attempts to hand in a provider's batch. After these the workflow waits, which knows of pauses,
/// of deadlines and of cancellation.
pub const MAX_BATCH_SUBMITS: u32 = 3;

/// Attempts to cancel a provider's batch. One that goes on is waited for all the same.
pub const MAX_BATCH_CANCELS: u32 = 3;

/// Attempts to collect a provider's batch: an hour of a provider that does not give out what it
/// has. Then the documents take the direct path.
pub const MAX_BATCH_COLLECTS: u32 = 60;

/// Tries of what a store forbids or is not set up for. More than one, because rights, keys and a
/// share that is just being mounted take their time; few, because time alone mends none of them.
pub const MAX_STORE_REFUSALS: u32 = 4;

/// How long a store that is busy or away is waited for without a break: longer than any outage of
/// the large clouds' stores so far.
pub const STORE_DEADLINE: Duration = Duration::from_hours(24);

/// The same while a batch is planned: nothing has been paid for, and its author waits.
pub const PLAN_DEADLINE: Duration = Duration::from_hours(1);

/// How an attempt that holds an answer tries to write it.
pub const WRITE_AGAIN: Backoff = Backoff {
    base: Duration::from_secs(1),
    max: Duration::from_secs(30),
    max_quota_wait: Duration::ZERO,
};

/// While results cannot be written, documents come back after this long, and ask nothing.
pub const UNWRITABLE: Duration = Duration::from_secs(5);

/// Workers that die one after the other while they read a document, until it is not read any more.
pub const MAX_DEAD_READERS: u32 = 2;

/// Workers in a row that die while they have the same step of a batch. A step goes on where the one
/// before it stopped, so that workers which are killed for another reason come through.
pub const MAX_DEAD_STEPS: u32 = 5;

/// How often a worker tries to write what lies in its spool.
pub const DRAIN_SPOOL: Duration = Duration::from_secs(15);

/// A document whose answer lies in a spool that is not here comes back after this long, and a little
/// later.
pub const SPOOLED: Duration = Duration::from_secs(15);

/// So long it does. A worker that is restarted is back in minutes; one whose machine is gone never.
pub const SPOOL_PATIENCE: Duration = Duration::from_hours(1);

/// Where no attempt holds an answer that cannot be written, one call finds out after this long.
pub const PROBE_UNWRITTEN: Duration = Duration::from_secs(30);
