//! How often and for how long each fault is tried again.

use std::time::Duration;

use super::Backoff;

/// Calls that a document may spend on faults of the provider before it is given up. Refusals for
/// quota do not count.
pub const MAX_FAULTS: u32 = 8;

/// Provider calls beyond the first that a batch may spend for each of its documents, where its
/// author names no number.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema: the model may keep to it the next time.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

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

/// A document that goes on to another model comes back within this time, by chance, so that
/// documents that failed together do not ask the next model together.
pub const REROUTED: Duration = Duration::from_secs(2);

/// Refusals in the same words before any answer, until a run of a batch asks a model no more: one may
/// be about what a single document holds.
pub const SAME_REFUSALS: u32 = 3;

/// For so long it does not. Names change seldom, and a new run of the batch asks at once.
pub const UNKNOWN_MODEL: Duration = Duration::from_secs(300);

/// With a key that was refused, one call finds out again after this long, whether or not it has
/// changed.
pub const KEY_REFUSED: Duration = Duration::from_secs(30);

/// A document that met a refused key goes to another worker after this long, and by chance up to
/// as long again.
pub const KEY_ELSEWHERE: Duration = Duration::from_millis(1_500);

/// Documents fail for good when for this long no live worker has had a key that is accepted: a
/// worker that starts says within 5 s that it is there, and keys are being replaced at times.
pub const KEYS_GONE: Duration = Duration::from_secs(10);

/// A budget's refusal is remembered for this long: the documents behind it fail without taking
/// quota. Then one asks again, because calls that cost less than was held give the rest back.
pub const BUDGET_REFUSED: Duration = Duration::from_secs(5);

/// The same where calls under way may give something back; documents wait this long for it, and by
/// chance up to three times as long.
pub const BUDGET_RETURNS: Duration = Duration::from_secs(1);

/// Documents whose budget is lost wait this long, and by chance up to twice as long: an operator
/// has to say what was spent.
pub const BUDGET_LOST: Duration = Duration::from_secs(10);

/// Different documents in a row whose calls fail, until a model's circuit opens. A single one may
/// itself be what the provider fails at.
pub const CIRCUIT_FAULTS: usize = 5;

/// A circuit stays open this long, then twice as long each time that the probe fails, up to the
/// longest.
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which a circuit stays open.
pub const MAX_CIRCUIT_OPEN: Duration = Duration::from_secs(60);

/// What comes back at once; zero would mean Temporal's own delay.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// A document of a paused batch looks again after half the time that the pause has lasted, within
/// these bounds: a short pause is over soon, and of a long one nobody asks often.
pub const PAUSED: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(300));
