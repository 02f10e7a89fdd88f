//! How often and how long faults of stores, workers and steps of a batch are retried.

use std::time::Duration;

use tidegate_calls::Backoff;

/// Attempts to submit a provider's batch. After these the workflow waits, because it handles
/// pauses, deadlines and cancellation.
pub const MAX_BATCH_SUBMITS: u32 = 3;

/// Attempts to cancel a provider's batch. A batch that continues is still waited for.
pub const MAX_BATCH_CANCELS: u32 = 3;

/// Attempts to collect a provider's batch: about an hour. After that the documents take the direct
/// path.
pub const MAX_BATCH_COLLECTS: u32 = 60;

/// Attempts at an operation that a store forbids or is not set up for. More than one, because
/// rights, keys and a share that is just being mounted take time; few, because waiting alone seldom
/// helps.
pub const MAX_STORE_REFUSALS: u32 = 4;

/// Time for which a store may be busy or away without a break: longer than any outage of the large
/// clouds' stores so far.
pub const STORE_DEADLINE: Duration = Duration::from_hours(24);

/// Like [`STORE_DEADLINE`], while a batch is planned: nothing has been paid for, and its author waits.
pub const PLAN_DEADLINE: Duration = Duration::from_hours(1);

/// The delays between the writes of an attempt that holds an answer.
pub const WRITE_AGAIN: Backoff = Backoff {
    base: Duration::from_secs(1),
    max: Duration::from_secs(30),
    max_quota_wait: Duration::ZERO,
};

/// Delay of a document while its batch's results cannot be written. It makes no call.
pub const UNWRITABLE: Duration = Duration::from_secs(5);

/// Workers in a row that may die while they read a document, before it is no longer read.
pub const MAX_DEAD_READERS: u32 = 2;

/// Workers in a row that may die during one step of a batch. Each attempt continues the step, so
/// workers that are killed for another reason do not fail the batch.
pub const MAX_DEAD_STEPS: u32 = 5;

/// Interval at which a worker tries to write the answers in its spool.
pub const DRAIN_SPOOL: Duration = Duration::from_secs(15);

/// Delay of a document whose answer is in the spool of another worker; a little jitter is added.
pub const SPOOLED: Duration = Duration::from_secs(15);

/// Maximum wait of such a document. A restarted worker is back in minutes; one whose machine is
/// lost never returns.
pub const SPOOL_PATIENCE: Duration = Duration::from_hours(1);

/// Interval at which one call tests whether results can be written again, if no attempt holds an
/// answer.
pub const PROBE_UNWRITTEN: Duration = Duration::from_secs(30);
