//! The request for a batch, and the start of its workflow.

use std::{cmp::Reverse, time::Duration};

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::Lane;
use tidegate_workflows::{
    contract::{Deadline, Lines, Mode},
    input::{BatchInput, word},
};

use super::{
    id::created_at,
    key_folder::{self, KeyFolder},
    line_summary::LineSummary,
};
use crate::{
    config::serve::INTERACTIVE,
    serve::{door::Door, keys::Holder, problem::Problem},
};

/// A batch with at least this window may go to the last lane.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The lanes that batches may use, apart from the key's own.
const STANDARD: &str = "standard";
const BATCH: &str = "batch";

/// The stored request for a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BatchRequest {
    pub(super) id: String,
    pub(super) endpoint: String,
    /// The input file, if the batch came in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// The window in the client's own words.
    pub(super) window: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Map<String, Value>>,
    /// Seconds after the batch's end for which its output is kept, if the client sets that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_seconds: Option<u64>,
    /// Seconds since 1970.
    pub(super) created_at: u64,
    pub(super) expires_at: u64,
    /// The number of requests.
    pub(super) total: u64,
    /// The reason why the batch cannot begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<Fault>,
}

/// The reason why a batch cannot begin, or did not end normally.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) code: String,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
}

impl Fault {
    pub(super) fn new(code: &str, message: impl Into<String>, line: Option<u64>) -> Self {
        Self { code: code.to_owned(), message: message.into(), line }
    }

    /// The fault of a file without a request.
    fn from_summary(seen: &LineSummary) -> Option<Self> {
        match seen {
            LineSummary { lines: 0, .. } => {
                Some(Self::new("empty_file", "the file has no lines", None))
            }
            LineSummary { objects: 0, .. } => Some(Self::new(
                "invalid_json_line",
                "no line of the file is a JSON object; write one request a line",
                Some(1),
            )),
            _ => None,
        }
    }
}

impl BatchRequest {
    /// A request that came now, with its window in the client's words and as a time.
    pub(super) fn new(
        id: String,
        endpoint: &str,
        window: (&str, Duration),
        seen: &LineSummary,
    ) -> Self {
        let created_at = created_at(&id);
        Self {
            id,
            endpoint: endpoint.to_owned(),
            file: None,
            window: window.0.to_owned(),
            metadata: None,
            output_seconds: None,
            created_at,
            expires_at: created_at + window.1.as_secs(),
            total: seen.lines,
            fault: Fault::from_summary(seen),
        }
    }
}

/// A batch that is about to begin.
pub(super) struct NewBatch {
    pub(super) asked: BatchRequest,
    pub(super) lane: Lane,
    pub(super) mode: Mode,
    /// The location of its requests.
    pub(super) source: String,
    pub(super) seen: LineSummary,
}

impl NewBatch {
    /// Stores the request and starts its workflow.
    ///
    /// # Errors
    /// The store or Temporal does not answer: nothing was started.
    pub(super) async fn begin(
        self,
        door: &Door,
        holder: &Holder,
        place: &KeyFolder,
    ) -> Result<BatchRequest, Problem> {
        let Self { asked, lane, mode, source, seen } = self;
        if asked.fault.is_some() {
            key_folder::write(&place.batch(&asked.id), &asked).await?;
            return Ok(asked);
        }
        let temporal = door.temporal().await?;
        let is_known =
            |(name, _): &(String, u64)| door.route(name).is_some() && holder.may_ask(name);
        let mut known: Vec<(String, u64)> = seen.models.into_iter().filter(is_known).collect();
        // A vendor's batch uses the first model that has a batch API: prefer the model of most lines.
        known.sort_by_key(|(_, lines)| Reverse(*lines));
        let names: Vec<String> = known.into_iter().map(|(name, _)| name).collect();
        let lines = Lines {
            endpoint: asked.endpoint.clone(),
            names: names.clone(),
            may_ask: holder.models.clone(),
            until: Some(asked.expires_at),
        };
        // If no line names a known model, none is asked: the target is a placeholder.
        let target =
            names.first().or_else(|| holder.models.first()).or_else(|| door.names.first()).cloned();
        let target = target.unwrap_or_default();
        let (model, route) = match target.parse() {
            Ok(model) => (Some(model), None),
            Err(_) => (None, Some(target)),
        };
        let input = BatchInput {
            source: Some(source),
            output: place.output(&asked.id).uri(),
            lines: Some(lines),
            model,
            route,
            lane: Some(lane),
            tenant: Some(holder.tenant.clone()),
            deadline: (mode == Mode::Economy).then_some(Deadline::At(asked.expires_at)),
            per_document: Some(false),
            results_jsonl: Some(true),
            ..BatchInput::default()
        };
        key_folder::write(&place.batch(&asked.id), &asked).await?;
        if let Err(error) = temporal.start(&asked.id, &input).await {
            if let Err(left) = place.batch(&asked.id).delete().await {
                tracing::warn!(error = %left, "a batch that did not begin stays behind");
            }
            return Err(Problem::no_temporal(&error));
        }
        Ok(asked)
    }
}

/// The lane of a batch with this window. The client may name one, but none better than the key's own.
///
/// # Errors
/// The client may not use the named lane.
pub(super) fn choose_lane(
    holder: &Holder,
    window: Duration,
    named: Option<&str>,
    lanes: &[Lane],
) -> Result<Lane, Problem> {
    let own = holder.lane.as_str();
    let is_there = |name: &str| lanes.iter().any(|lane| lane.as_str() == name);
    let mut may = vec![own];
    may.extend((own == INTERACTIVE && is_there(STANDARD)).then_some(STANDARD));
    may.extend((own != BATCH && is_there(BATCH)).then_some(BATCH));
    let chosen = match named {
        Some(named) => may.iter().find(|lane| **lane == named).copied().ok_or_else(|| {
            let what = format!("must be one of {}", may.join(", "));
            Problem::invalid("metadata.tidegate_lane", &what)
        })?,
        None if window >= DAY => may.last().copied().unwrap_or(own),
        None => may.iter().find(|lane| **lane != INTERACTIVE).copied().unwrap_or(own),
    };
    Lane::new(chosen).map_err(|error| Problem::invalid("lane", &error.to_string()))
}

/// Reads whether a batch may go through its vendor's batch API, at that API's price. The metadata
/// decides, otherwise a header.
///
/// # Errors
/// The value is neither of the two modes.
pub(super) fn read_mode(headers: &HeaderMap, named: Option<&str>) -> Result<Mode, Problem> {
    const HEADER: &str = "x-tidegate-mode";
    let header = headers.get(HEADER).map(|value| value.to_str().unwrap_or_default());
    let named = named.map(|said| ("metadata.tidegate_mode", said));
    match named.or_else(|| header.map(|said| (HEADER, said))) {
        Some((name, said)) => word(said).map_err(|what| Problem::invalid(name, &what)),
        None => Ok(Mode::Direct),
    }
}
