//! One document: its task, its pack, and its outcome.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use tidegate_types::{ModelId, Spend};

use super::parts::Parts;

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

const fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
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
    #[serde(skip_serializing_if = "is_zero")]
    pub queued_seconds: u32,
}

/// A failed document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedDocument {
    /// The document's line in the shard's manifest, counted from 0.
    pub index: u32,
    /// One of [`FailureType`](super::FailureType), or Temporal's own: `Timeout`, `Panic`.
    pub error_type: String,
    /// The failure's message; at most 500 characters.
    pub message: String,
    /// Provider calls made for it.
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
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued_seconds: u32,
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
