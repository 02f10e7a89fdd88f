//! What operators hold until they say otherwise: batches that are paused, models that are paused
//! without an end, and when limits end that were set for some time. All lie in one small hash beside the quota, which every worker reads when
//! a counter has moved that it looks at every [`EVERY`]; nothing of it is asked with a call.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

/// A worker learns within this time what operators have changed, or within five times that where
/// nothing goes on, and begins nothing that is held 5 s later.
pub const EVERY: Duration = Duration::from_secs(2);

/// What stands before the names in the hash.
pub(crate) const BATCH: &str = "batch:";
pub(crate) const MODEL: &str = "model:";
pub(crate) const LIMITS: &str = "limits:";

/// Everything that is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Runs of batches, by names that no other run has.
    pub batches: BTreeMap<String, HeldBatch>,
    /// Models, with the reason that was given.
    pub models: BTreeMap<ModelId, String>,
    /// Models with limits that were set for some time, and until when, in seconds since 1970.
    pub limits: BTreeMap<ModelId, u64>,
}

/// A run of a batch that is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBatch {
    /// The batch's id; another run may have the same.
    pub batch: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// As it is written: when, a space, and the id.
impl fmt::Display for HeldBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.since, self.batch)
    }
}

impl HeldBatch {
    fn read(value: &str) -> Self {
        let (since, batch) = value.split_once(' ').unwrap_or((value, ""));
        Self { batch: batch.to_owned(), since: since.parse().unwrap_or_default() }
    }
}

/// What this process knows to be held.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    pub(crate) held: Mutex<Held>,
    /// When the gates of held models were last closed from here.
    pub(crate) closed: Mutex<Option<Instant>>,
}

impl Held {
    pub(crate) fn read(fields: BTreeMap<String, String>) -> Self {
        let mut held = Self::default();
        for (name, reason) in fields {
            if let Some(run) = name.strip_prefix(BATCH) {
                held.batches.insert(run.to_owned(), HeldBatch::read(&reason));
            } else if let Some(Ok(model)) = name.strip_prefix(MODEL).map(str::parse) {
                held.models.insert(model, reason);
            } else if let Some(Ok(model)) = name.strip_prefix(LIMITS).map(str::parse) {
                held.limits.insert(model, reason.parse().unwrap_or_default());
            }
        }
        held
    }

    /// How long the limits that were set for a model still hold; `None` where they do not end.
    pub fn limit_left(&self, model: &ModelId) -> Option<Duration> {
        let until = UNIX_EPOCH + Duration::from_secs(*self.limits.get(model)?);
        Some(until.duration_since(SystemTime::now()).unwrap_or_default())
    }
}
