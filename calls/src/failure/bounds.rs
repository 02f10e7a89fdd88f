//! How often and for how long each fault of a call is retried.

use std::time::Duration;

/// Calls that failed by the provider's fault before the document fails for good. Refusals for quota
/// do not count.
pub const MAX_FAULTS: u32 = 8;

/// Default retry budget of a batch: provider calls beyond the first for each of its documents.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema. The next answer may satisfy it.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

/// Maximum random delay of a document that continues at another model, so that documents that
/// failed together do not ask the next model together.
pub const REROUTED: Duration = Duration::from_secs(2);

/// Refusals with the same message and without any answer, after which a run of a batch stops asking
/// a model. A single refusal may concern one document only.
pub const SAME_REFUSALS: u32 = 3;

/// Time for which the run does not ask the model. Names seldom change, and a new run of the batch
/// asks at once.
pub const UNKNOWN_MODEL: Duration = Duration::from_secs(300);

/// Time from a key's refusal until one call tests it again, even if the key has not changed.
pub const KEY_REFUSED: Duration = Duration::from_secs(30);

/// Delay of a document that met a refused key, until another worker takes it; a random delay of up
/// to the same length is added.
pub const KEY_ELSEWHERE: Duration = Duration::from_millis(1_500);

/// Time without any live worker with an accepted key, after which documents fail for good. A worker
/// that starts reports within 5 s, and keys are replaced at times.
pub const KEYS_GONE: Duration = Duration::from_secs(10);

/// Time for which a budget's refusal is remembered: meanwhile the next documents fail without
/// taking quota. Then one asks again, because calls that cost less than was held return the rest.
pub const BUDGET_REFUSED: Duration = Duration::from_secs(5);

/// Like [`BUDGET_REFUSED`], while calls under way may return money. Documents wait this long or, at
/// random, up to three times as long.
pub const BUDGET_RETURNS: Duration = Duration::from_secs(1);

/// Wait of documents whose budget is lost, plus a random delay of up to the same length, repeated
/// until an operator states the spending.
pub const BUDGET_LOST: Duration = Duration::from_secs(10);

/// Different documents in a row whose calls fail before a model's circuit opens. A single document
/// may itself cause the failures.
pub const CIRCUIT_FAULTS: usize = 5;

/// Time for which a circuit first stays open. It doubles with each failed probe, up to
/// [`MAX_CIRCUIT_OPEN`].
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which a circuit stays open.
pub const MAX_CIRCUIT_OPEN: Duration = Duration::from_secs(60);

/// Delay of an immediate retry; zero would mean Temporal's own delay.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// Bounds of the delay for documents of a paused batch. It is half the time since the pause began,
/// so that documents of a long pause seldom ask.
pub const PAUSED: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(300));
