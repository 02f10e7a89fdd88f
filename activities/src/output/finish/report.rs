//! `report.json`: what a batch came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_documents::left_out::Kind as LeftOut;
use tidegate_types::{ModelId, Spend, spend::rounded_usd};
use tidegate_workflows::contract::{Fallback, Progress};

use super::{checks::Checks, counted::LeftOutTotal, given_up::GivenUp};
use crate::{
    number::float,
    output::{agreement::Agreement, forecast::Forecast},
};

/// `report.json`: the workflow's result, and what only the results themselves can tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The workflow's result.
    #[serde(flatten)]
    pub progress: Progress,
    /// RFC 3339.
    pub finished_at: String,
    /// From the batch's start to its end.
    pub duration_seconds: f64,
    /// Input tokens of this run read from prompt caches, as a part of all input.
    pub cache_hit_ratio: f64,
    /// Tokens of this run, input and output, by the minute: the effective rate, cached input
    /// included.
    pub tokens_per_minute: f64,
    /// What Temporal Cloud charges for it, about: without the beats of calls longer than 15 s, and the
    /// questions of those who look on.
    #[serde(default)]
    pub temporal_actions: u64,
    /// What the batch was expected to take, to be held against what it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Why documents that could wait cost as much as others, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_price: Option<String>,
    /// Documents with neither a result nor a failure, in a batch that has worked on all of them.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub missing: u64,
    /// The ids of the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_missing: Vec<String>,
    /// What was said of documents that were given up, by type.
    #[serde(default, skip_serializing_if = "GivenUp::is_empty")]
    pub given_up: GivenUp,
    /// How many answers are as the author's `truth` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// What the checks of these answers have come to.
    #[serde(default, skip_serializing_if = "Checks::is_empty")]
    pub checks: Checks,
    /// Everything under `results/`, results of earlier runs included, by the model that answered.
    pub models: BTreeMap<ModelId, ModelTotals>,
    /// Why each model of the batch's route that is not the first may have answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<ModelId, Fallback>,
    /// What of the documents of these results was not in the text that was sent, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<LeftOut, LeftOutTotal>,
    /// Of these results, those of files that an older version of the reader has read: it may make
    /// another text of them today.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub older_reader: u64,
    /// Of these results, those whose provider gave a reason for their end that is not known here,
    /// by its own word: whether they are whole is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_stop_reasons: BTreeMap<String, u64>,
}

/// One model's part of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    /// Answered documents.
    pub documents: u64,
    /// Calls that they took.
    pub provider_calls: u64,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars, of the calls whose price is known; `null` where it is known of none.
    pub cost_usd: Option<f64>,
}

impl From<(u64, Spend)> for ModelTotals {
    fn from((documents, spend): (u64, Spend)) -> Self {
        Self {
            documents,
            provider_calls: spend.provider_calls,
            input_tokens: spend.input_tokens,
            cached_input_tokens: spend.cached_input_tokens,
            output_tokens: spend.output_tokens,
            cost_usd: spend.known_usd().map(rounded_usd),
        }
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}
