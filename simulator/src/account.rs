//! The simulator's accounts: exact numbers, in bounded memory.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{amounts::Amounts, fault::FaultKind, series::Series};

/// Everything since the start, or since the last `POST /account/reset`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Account {
    /// How long the simulator has run. All times in the account count from the same start.
    pub uptime_seconds: f64,
    /// Calls that were no calls: without a key or with a refused one, unreadable, or for one model name too many. Nothing
    /// else counts them.
    pub rejected: u64,
    /// Different prompts that were answered whole.
    pub prompts: u64,
    /// Prompts that were answered whole more than once: documents paid for twice.
    pub answered_twice: u64,
    /// Answers whose prompts were no longer remembered because there were too many.
    pub forgotten: u64,
    /// Batches that were taken in. Of their requests nothing else is counted but the prompts that
    /// they answered: they have nothing to do with the limits of a minute.
    pub batches: u64,
    /// The requests in them.
    pub batch_requests: u64,
    /// Each model that was called.
    pub models: BTreeMap<String, ModelAccount>,
}

impl Account {
    /// The account of one model; all zeros for one that was never called.
    pub fn model(&self, name: &str) -> ModelAccount {
        self.models.get(name).cloned().unwrap_or_default()
    }

    /// Calls of all models that a limit refused, by the dimension that refused them.
    pub fn refused(&self) -> Amounts {
        let mut sum = Amounts::default();
        self.models.values().for_each(|model| sum.add(&model.refused));
        sum
    }
}

/// One model's account: `requests = ok + refused + faults + abandoned + in_flight`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelAccount {
    /// Calls that could be read.
    pub requests: u64,
    /// Calls answered whole.
    pub ok: u64,
    /// Calls that a limit refused with 429, by the dimension that refused them. No fault is among
    /// them.
    pub refused: Amounts,
    /// Calls that met a fault.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Calls whose caller left before the answer. Those let in by then are charged.
    pub abandoned: u64,
    /// Calls at work now.
    pub in_flight: u64,
    /// The most calls there were at work at once.
    pub max_in_flight: u64,
    /// Admitted calls, and the tokens that they really had, whatever was held for them.
    pub admitted: Amounts,
    /// Input tokens of admitted calls that were read from a prompt cache. Where reads are free they
    /// are not among `admitted`.
    pub cache_read: u64,
    /// Input tokens of admitted calls that were written to a prompt cache because the caller asked
    /// for it.
    pub cache_written: u64,
    /// The most that was let in during any 60 seconds, to the millisecond; each dimension for
    /// itself.
    pub worst_window: Amounts,
    /// Seconds from the start to the first call let in.
    pub first_admission: Option<f64>,
    /// Seconds from the start to the last call let in.
    pub last_admission: Option<f64>,
    /// Admitted amounts by the second, of the last four hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

impl ModelAccount {
    /// Tokens admitted between two moments, both since the start and rounded to whole
    /// seconds.
    pub fn tokens_between(&self, from: Duration, to: Duration) -> Amounts {
        let range = from.as_secs_f64().round().max(0.0)..to.as_secs_f64().round().max(0.0);
        // Neither negative nor anywhere near 2^64.
        let range = range.start as u64..range.end as u64;
        self.series.as_ref().map_or_else(Amounts::default, |series| series.between(&range))
    }

    /// How many calls met this fault.
    pub fn faulted(&self, kind: FaultKind) -> u64 {
        self.faults.get(&kind).copied().unwrap_or(0)
    }
}
