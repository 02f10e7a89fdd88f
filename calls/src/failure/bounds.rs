//! How often and for how long each fault of a call is retried.

use std::time::Duration;

/// Calls that failed by the provider's fault, until the document fails for good. Refusals for quota
/// do not count.
pub const MAX_FAULTS: u32 = 8;

/// Default retry budget of a batch: provider calls beyond the first for each of its documents.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema. The next answer may satisfy it.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

/// A document that goes on to another model comes back within this time, by chance: documents that
/// failed together should not ask the next model together.
pub const REROUTED: Duration = Duration::from_secs(2);

/// Refusals with the same message before any answer, until a run of a batch stops asking a model. A
/// single refusal may concern one document only.
pub const SAME_REFUSALS: u32 = 3;

/// How long the run does not ask the model. Names seldom change, and a new run of the batch asks at
/// once.
pub const UNKNOWN_MODEL: Duration = Duration::from_secs(300);

/// Time from a key's refusal until one call tests it again, whether or not the key has changed.
pub const KEY_REFUSED: Duration = Duration::from_secs(30);

/// A document that met a refused key goes to another worker after this long, and by chance up to as
/// long again.
pub const KEY_ELSEWHERE: Duration = Duration::from_millis(1_500);

/// Time without any live worker with an accepted key, until documents fail for good. A worker that
/// starts reports within 5 s, and keys are replaced at times.
pub const KEYS_GONE: Duration = Duration::from_secs(10);

/// How long a budget's refusal is remembered: meanwhile the next documents fail without taking
/// quota. Then one asks again, because calls that cost less than was held return the rest.
pub const BUDGET_REFUSED: Duration = Duration::from_secs(5);

/// The like while calls under way may return money; documents wait this long, and by chance up to
/// three times as long.
pub const BUDGET_RETURNS: Duration = Duration::from_secs(1);

/// Documents whose budget is lost wait this long, and by chance up to twice as long, until an
/// operator states what was spent.
pub const BUDGET_LOST: Duration = Duration::from_secs(10);

/// Different documents in a row whose calls fail, until a model's circuit opens. A single document
/// may itself cause the failures.
pub const CIRCUIT_FAULTS: usize = 5;

/// How long a circuit stays open at first. The time doubles with each failed probe, up to
/// [`MAX_CIRCUIT_OPEN`].
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which a circuit stays open.
pub const MAX_CIRCUIT_OPEN: Duration = Duration::from_secs(60);

/// Delay of an immediate retry; zero would mean Temporal's own delay.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// Bounds of the delay for documents of a paused batch. It is half the time since the pause began,
/// so that documents of a long pause seldom ask.
pub const PAUSED: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(300));
