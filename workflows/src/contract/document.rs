//! One document: its task, its pack, and its outcome.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use tidegate_types::{CallCounts, Lane, ModelId, Spend, Tenant, WaitsFor};

use crate::contract::job::LongHow;

/// One document of one shard, found by the shard's manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentTask {
    /// [`crate::contract::Plan::job`].
    pub job: String,
    /// The batch's workflow id.
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The document's line in the shard's manifest, counted from 0.
    pub index: u32,
    /// Whether its answer from a provider's batch was cut: it is asked with more room from the
    /// first call on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raised: bool,
    /// Whether it was asked in a provider's batch or a pack: its next call counts as a retry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Its earlier use, if its answers failed the checks and the route's next model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated: Option<Spend>,
}

/// Incomplete answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CutAnswers {
    /// Documents whose result is cut, because the batch keeps cut answers.
    pub cut: u64,
    /// Cut answers that were asked for again with more room. Their use is part of the spend.
    pub raised: u64,
    /// Their price in US dollars, as far as it is known.
    pub raised_cost_usd: f64,
    /// Documents, or parts of long ones, that had more room from the first call on, because too
    /// many answers to the same question were cut before.
    pub began_raised: u64,
}

impl AddAssign for CutAnswers {
    fn add_assign(&mut self, other: Self) {
        // Destructured, so that a new field cannot be forgotten here.
        let Self { cut, raised, raised_cost_usd, began_raised } = other;
        self.cut += cut;
        self.raised += raised;
        self.raised_cost_usd += raised_cost_usd;
        self.began_raised += began_raised;
    }
}

/// Answers from the store of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reused {
    /// Documents with such an answer.
    pub reused: u64,
    /// US dollars that these answers cost when they were bought, as far as known.
    pub saved_usd: f64,
}

impl AddAssign for Reused {
    fn add_assign(&mut self, Self { reused, saved_usd }: Self) {
        self.reused += reused;
        self.saved_usd += saved_usd;
    }
}

/// The spend, and the part of it that went to incomplete answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// The whole spend.
    #[serde(flatten)]
    pub spend: Spend,
    /// Incomplete answers.
    #[serde(flatten)]
    pub cuts: CutAnswers,
}

impl AddAssign for Taken {
    fn add_assign(&mut self, Self { spend, cuts }: Self) {
        self.spend += spend;
        self.cuts += cuts;
    }
}

/// Omits fields that are 0, which is also their default. Each document's outcome is written into a
/// history, where bytes cost the server time.
fn without_zeros<T: Serialize, S: Serializer>(
    fields: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serde_json::to_value(fields).map_err(S::Error::custom)?;
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| value.as_f64() != Some(0.0));
    }
    fields.serialize(serializer)
}

/// One document's outcome, with its use over all attempts of its activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentOutcome {
    /// Whether a result of an earlier run existed, so that no call was made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The parts in which the document is to be read; no call was made yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Whether its answers failed the checks, so that the route's next model is to be asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub escalates: bool,
    /// Its use.
    #[serde(flatten, serialize_with = "without_zeros")]
    pub spend: Spend,
    /// Its incomplete answers.
    #[serde(flatten, serialize_with = "without_zeros")]
    pub cuts: CutAnswers,
    /// Its answer from the store of answers.
    #[serde(flatten, serialize_with = "without_zeros")]
    pub reused: Reused,
    /// Whether it had an answer to this question, but its content has changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    /// Whole seconds in the task queue until a worker took it, by the server's clock.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub queued_seconds: u32,
}

/// A failed document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedDocument {
    /// The document's line in the shard's manifest, counted from 0.
    pub index: u32,
    /// Its failure.
    #[serde(flatten)]
    pub facts: FailureFacts,
}

/// The failure of a document, as in `failures.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFacts {
    /// One of [`FailureType`](super::FailureType), or Temporal's own: `Timeout`, `Panic`.
    pub error_type: String,
    /// The failure's message; at most 500 characters.
    #[serde(default)]
    pub message: String,
    /// Provider calls made for it.
    #[serde(default)]
    pub provider_calls: u64,
    /// URI of an answer that is no result: it is cut, or fails the schema or a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Names of the checks that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// The answers that it was asked for and that were checked, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedAnswer>,
}

/// An answer that was asked for, of a document whose answers are checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedAnswer {
    /// The model that gave it.
    pub model: ModelId,
    /// Index of the model in the route, counted from 0.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub level: u32,
    /// Names of the checks that the answer before failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// Some documents of one shard, asked in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackTask {
    /// [`crate::contract::Plan::job`](super::Plan::job).
    pub job: String,
    /// The batch's workflow id.
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The first document, counted from 0.
    pub from: u32,
    /// The document after the last.
    pub to: u32,
}

/// The outcome of a pack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PackOutcome {
    /// Documents with a result of this run.
    pub succeeded: u32,
    /// Documents that had a result before this run.
    pub skipped: u32,
    /// Documents without an answer, to be sent alone: too large for a pack, unreadable, or missing
    /// in the answer.
    pub left: Vec<u32>,
    /// Documents of `left` that were in a call, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<u32>,
    /// Use of the call.
    pub spent: Spend,
    /// Answers from the store of answers.
    #[serde(flatten)]
    pub reused: Reused,
    /// Documents of `succeeded` that were asked again because their content has changed.
    pub updated: u32,
    /// [`DocumentOutcome::queued_seconds`].
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub queued_seconds: u32,
}

/// Details of a failure: the document's use, and the resource that it waits for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureDetails {
    /// Calls and waits over all attempts.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Set for a `QuotaWait`, and for a `Transient` while answers cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// Tokens of answers that are no result, without their calls.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub discarded: Taken,
    /// URI of the last such answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Names of the checks that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// The answers that it was asked for and that were checked, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedAnswer>,
}

impl From<CallCounts> for FailureDetails {
    fn from(counts: CallCounts) -> Self {
        Self { counts, ..Self::default() }
    }
}

/// Number of answers that are combined into one.
pub const FAN_IN: u32 = 10;

/// Parts of one document that are asked at once.
pub const PARTS_AT_ONCE: u32 = 4;

/// A document that is read in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The number of parts.
    pub count: u32,
    /// A hash of the text and of the way in which it was divided.
    pub text: u64,
    /// Handling of their answers.
    pub how: LongHow,
}

impl Parts {
    /// The number of steps of a level. Level 0 answers the parts; each further level combines the
    /// answers of the level before. `None` after the level with one step, whose answer is the
    /// result.
    pub fn steps(&self, level: u32) -> Option<u32> {
        let mut steps = self.count;
        for level in 1..=level {
            if level > 1 && steps <= 1 {
                return None;
            }
            steps = match self.how {
                LongHow::MapReduce => steps.div_ceil(FAN_IN),
                LongHow::PerChunk => 1,
            };
        }
        Some(steps)
    }

    /// A step of a level, counted from 0.
    pub fn step(&self, level: u32, number: u32) -> Step {
        match (level, self.how) {
            (0, _) => Step::Part(number),
            (_, LongHow::PerChunk) => Step::Join,
            (_, LongHow::MapReduce) => {
                let of = self.steps(level - 1).unwrap_or_default();
                Step::Reduce { level, group: number, of }
            }
        }
    }

    /// Calls that the document takes without failures.
    pub fn calls(&self) -> u64 {
        match self.how {
            LongHow::PerChunk => self.count.into(),
            LongHow::MapReduce => (0..).map_while(|level| self.steps(level)).map(u64::from).sum(),
        }
    }
}

/// A step on the way from parts to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers one part, counted from 0.
    Part(u32),
    /// Combines up to [`FAN_IN`] answers of the level below; the answer of a level's only step is
    /// the result.
    Reduce {
        /// The level, counted from 1; level 0 holds the parts' own answers.
        level: u32,
        /// The step's number, counted from 0.
        group: u32,
        /// Answers of the level below.
        of: u32,
    },
    /// Lists the parts' answers. No call is made.
    Join,
}

/// One step of a document that is read in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartTask {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// The step.
    pub step: Step,
    /// Use of earlier steps.
    pub spent: Spend,
}

/// The input of a document's workflow; in a continued run, with its state so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LongDocument {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// The class of traffic.
    pub lane: Lane,
    /// The tenant whose budget pays.
    pub tenant: Tenant,
    /// [`super::Plan::heartbeat_seconds`].
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// The current level.
    pub level: u32,
    /// The next step of that level, counted from 0.
    pub next: u32,
    /// Use of all steps so far.
    pub taken: Taken,
}

/// The outcome of a document's workflow, which always succeeds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LongOutcome {
    /// Use of its steps, including failed ones.
    #[serde(flatten)]
    pub taken: Taken,
    /// The reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedDocument>,
    /// Whether there is no result because the batch was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

impl LongOutcome {
    /// The outcome with the use of all steps, including those that ended after the failure.
    pub(crate) fn with_taken(self, taken: Taken) -> Self {
        let mut failed = self.failed;
        if let Some(failed) = &mut failed {
            failed.facts.provider_calls = taken.spend.provider_calls;
        }
        Self { taken, failed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_omits_zeros() {
        let spend = Spend { provider_calls: 1, input_tokens: 59, ..Spend::default() };
        let answered = DocumentOutcome { spend, ..DocumentOutcome::default() };
        let written = serde_json::to_value(answered).unwrap();
        assert_eq!(written, json!({"provider_calls": 1, "input_tokens": 59}));
        assert_eq!(serde_json::from_value::<DocumentOutcome>(written).unwrap(), answered);
    }

    #[test]
    fn an_outcome_keeps_every_other_field() {
        let outcome = DocumentOutcome {
            skipped: true,
            parts: None,
            escalates: true,
            spend: Spend { cost_usd: 0.25, deferrals: 3, ..Spend::default() },
            cuts: CutAnswers { cut: 1, raised_cost_usd: 0.5, ..CutAnswers::default() },
            reused: Reused { reused: 1, saved_usd: 0.125 },
            updated: true,
            queued_seconds: 7,
        };
        let written = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<DocumentOutcome>(&written).unwrap(), outcome);
    }
}

#[cfg(test)]
mod failure_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_of_later_versions_are_read() {
        let counts = CallCounts { provider_calls: 3, rate_limited: 2, deferrals: 1 };
        let plain = json!({ "provider_calls": 3, "rate_limited": 2, "deferrals": 1 });
        let read = |value| serde_json::from_value::<FailureDetails>(value).unwrap();
        assert_eq!(read(plain.clone()), FailureDetails::from(counts));
        assert_eq!(serde_json::to_value(FailureDetails::from(counts)).unwrap(), plain);
        assert_eq!(read(json!({})), FailureDetails::default());

        let mut new = plain;
        new["waits_for"] = json!("in_flight");
        let details =
            FailureDetails { waits_for: Some(WaitsFor::InFlight), ..FailureDetails::from(counts) };
        assert_eq!(
            (read(new.clone()), serde_json::to_value(&details).unwrap()),
            (details, new.clone())
        );
        new["waits_for"] = json!("high tide");
        assert_eq!(read(new).waits_for, Some(WaitsFor::Other));
    }
}

#[cfg(test)]
mod parts_tests {
    use super::*;

    #[test]
    fn levels_end_with_one_step() {
        let parts = |count, how| Parts { count, text: 1, how };
        let levels =
            |parts: Parts| -> Vec<u32> { (0..).map_while(|level| parts.steps(level)).collect() };
        assert_eq!(levels(parts(300, LongHow::MapReduce)), [300, 30, 3, 1]);
        assert_eq!(levels(parts(12, LongHow::MapReduce)), [12, 2, 1]);
        assert_eq!(levels(parts(10, LongHow::MapReduce)), [10, 1]);
        assert_eq!(levels(parts(1, LongHow::MapReduce)), [1, 1]);
        assert_eq!(levels(parts(12, LongHow::PerChunk)), [12, 1]);
        assert_eq!(parts(300, LongHow::MapReduce).calls(), 334);
        assert_eq!(parts(300, LongHow::PerChunk).calls(), 300);
        let step = parts(12, LongHow::MapReduce).step(2, 0);
        assert_eq!(step, Step::Reduce { level: 2, group: 0, of: 2 });
        assert_eq!(parts(12, LongHow::PerChunk).step(1, 0), Step::Join);
    }
}
