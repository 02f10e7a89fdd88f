//! `report.json`: the outcome of a batch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_documents::left_out::Kind as LeftOut;
use tidegate_types::{ModelId, Spend, spend::rounded_usd};
use tidegate_workflows::contract::{Fallback, Progress};

use crate::output::{
    agreement::Agreement,
    finish::{checks::Checks, given_up::GivenUp, totals::LeftOutTotal},
    forecast::Forecast,
};

/// `report.json`: the workflow's result, and the totals of the results themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The workflow's result.
    #[serde(flatten)]
    pub progress: Progress,
    /// RFC 3339.
    pub finished_at: String,
    /// From the batch's start to its end.
    pub duration_seconds: f64,
    /// Share of this run's input tokens that was read from prompt caches.
    pub cache_hit_ratio: f64,
    /// Input and output tokens of this run per minute, cached input included.
    pub tokens_per_minute: f64,
    /// Approximate actions that Temporal Cloud charges for, without heartbeats of calls longer than
    /// 25 s and queries by viewers.
    #[serde(default)]
    pub temporal_actions: u64,
    /// The forecast, to compare with the actual use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Reason why documents that could wait paid the full price, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_price: Option<String>,
    /// Documents with neither a result nor a failure, in a batch that has processed all of them.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub missing: u64,
    /// The ids of the first few of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_missing: Vec<String>,
    /// The failures of documents that were given up, by type.
    #[serde(default, skip_serializing_if = "GivenUp::is_empty")]
    pub given_up: GivenUp,
    /// How many answers agree with the author's `truth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The results of the checks.
    #[serde(default, skip_serializing_if = "Checks::is_empty")]
    pub checks: Checks,
    /// Totals of all results under `results/`, including those of earlier runs, by the model that
    /// answered.
    pub models: BTreeMap<ModelId, ModelTotals>,
    /// Reason why each further model of the batch's route may have answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<ModelId, Fallback>,
    /// Content of these results' documents that was not in the text that was sent, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<LeftOut, LeftOutTotal>,
    /// Of these results, the number of files whose text was extracted by an older version of the
    /// reader and may differ from today's.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub older_reader: u64,
    /// Of these results, those with an unknown stop reason, by the provider's word: they may be
    /// cut.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_stop_reasons: BTreeMap<String, u64>,
}

/// The totals of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    /// Answered documents.
    pub documents: u64,
    /// Calls for them.
    pub provider_calls: u64,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars of the calls whose price is known; `null` where none is.
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
