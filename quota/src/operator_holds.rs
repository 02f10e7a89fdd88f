//! Batches and models that operators have paused without an end, and the end times of limits that
//! were set for some time. All are in one small hash beside the quota. A worker checks a counter
//! every [`EVERY`] and reads the hash when the counter has moved; calls never read it.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

/// A worker learns of an operator's change within this time, or within five times that while it is
/// idle. It starts no held call 5 s after that.
pub const EVERY: Duration = Duration::from_secs(2);

/// Prefixes of the names in the hash.
pub(crate) const BATCH: &str = "batch:";
pub(crate) const MODEL: &str = "model:";
pub(crate) const LIMITS: &str = "limits:";

/// All holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorHolds {
    /// Held runs of batches, by unique names of the runs.
    pub batches: BTreeMap<String, HeldBatch>,
    /// Held models, each with the operator's reason.
    pub models: BTreeMap<ModelId, String>,
    /// Models with limits set for some time, and their end in seconds since 1970.
    pub limits: BTreeMap<ModelId, u64>,
}

/// A held run of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBatch {
    /// The batch's id, which other runs may share.
    pub batch: String,
    /// The time when it was held, in seconds since 1970.
    pub since: u64,
}

/// The value in the hash: the time, a space, and the id.
impl fmt::Display for HeldBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.since, self.batch)
    }
}

impl HeldBatch {
    fn parse(value: &str) -> Self {
        let (since, batch) = value.split_once(' ').unwrap_or((value, ""));
        Self { batch: batch.to_owned(), since: since.parse().unwrap_or_default() }
    }
}

/// The holds that this process knows.
#[derive(Debug, Default)]
pub(crate) struct KnownHolds {
    pub(crate) held: Mutex<OperatorHolds>,
    /// Time when this process last closed the gates of held models.
    pub(crate) closed: Mutex<Option<Instant>>,
}

impl OperatorHolds {
    pub(crate) fn from_fields(fields: BTreeMap<String, String>) -> Self {
        let mut held = Self::default();
        for (name, reason) in fields {
            if let Some(run) = name.strip_prefix(BATCH) {
                held.batches.insert(run.to_owned(), HeldBatch::parse(&reason));
            } else if let Some(Ok(model)) = name.strip_prefix(MODEL).map(str::parse) {
                held.models.insert(model, reason);
            } else if let Some(Ok(model)) = name.strip_prefix(LIMITS).map(str::parse) {
                held.limits.insert(model, reason.parse().unwrap_or_default());
            }
        }
        held
    }

    /// Time until the limits set for a model end; `None` if they do not end.
    pub fn limit_left(&self, model: &ModelId) -> Option<Duration> {
        let until = UNIX_EPOCH + Duration::from_secs(*self.limits.get(model)?);
        Some(until.duration_since(SystemTime::now()).unwrap_or_default())
    }
}
