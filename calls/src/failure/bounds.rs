//! How often and for how long each fault of a call is tried again.

use std::time::Duration;

/// Calls that a document may spend on faults of the provider before it is given up. Refusals for
/// quota do not count.
pub const MAX_FAULTS: u32 = 8;

/// Provider calls beyond the first that a batch may spend for each of its documents, where its
/// author names no number.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema: the model may keep to it the next time.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

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
