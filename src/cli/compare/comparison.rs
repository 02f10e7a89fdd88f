//! A comparison of models, as it is stored.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_activities::output::{
    agreement::{Agreement, Rate},
    forecast::Range,
};
use tidegate_types::ModelId;

use crate::cli::sample_report::Answered;

/// The result of one model's batch.
#[derive(Debug, Serialize)]
pub(super) struct ModelResult {
    pub(super) model: ModelId,
    pub(super) workflow_id: String,
    pub(super) output: String,
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// US dollars for each document with a known price.
    pub(super) cost_usd_each: Option<f64>,
    /// US dollars for all documents of the source.
    pub(super) cost_usd_of_all: Option<f64>,
    /// Mean seconds of a call that gave an answer.
    pub(super) seconds_each: Option<f64>,
    /// Documents whose answers have not passed their checks, of all that were asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed_checks: Option<Rate>,
    /// Agreement with the truth, if it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agreement: Option<Agreement>,
    #[serde(skip)]
    pub(super) answers: BTreeMap<String, Answered>,
}

/// The agreement of two models.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) models: [ModelId; 2],
    /// US dollars for all documents of the source on a route of these two, in this order.
    pub(super) cost_usd_of_route: Option<Range>,
    #[serde(flatten)]
    pub(super) agreement: Agreement,
}

/// The verdicts of a judge on pairs of whole answers that differ as texts.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) model: ModelId,
    /// Different pairs of this comparison.
    pub(super) pairs: u64,
    /// Verdicts on these.
    pub(super) verdicts: u64,
    /// US dollars of the verdicts in the judge's output whose price is known.
    pub(super) cost_usd: f64,
}

/// `comparison.json`.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) documents_in_all: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<Judged>,
    pub(super) models: Vec<ModelResult>,
    pub(super) pairs: Vec<Pair>,
}
