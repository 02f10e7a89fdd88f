//! What was asked for with a batch, and its start.

use std::{cmp::Reverse, time::Duration};

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::Lane;
use tidegate_workflows::{
    contract::{Deadline, Lines},
    input::{BatchInput, Mode, word},
};

use super::{
    file::made,
    place::{self, Place},
    seen::Seen,
};
use crate::{
    config::serve::INTERACTIVE,
    serve::{door::Door, keys::Holder, problem::Problem},
    temporal::Temporal,
};

/// What can wait so long is in nobody's way.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The lanes of what can wait, and of what can wait for long.
const STANDARD: &str = "standard";
const BATCH: &str = "batch";

/// What was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) endpoint: String,
    /// Of one that came in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// As the client said it.
    pub(super) window: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Map<String, Value>>,
    /// For how long what it puts out is kept, from its end on, where its author says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_seconds: Option<u64>,
    /// Seconds since 1970.
    pub(super) created_at: u64,
    pub(super) expires_at: u64,
    /// Requests in all.
    pub(super) total: u64,
    /// Why none of it can be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<Fault>,
}

/// Why a batch cannot begin, or did not end as it should.
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

    /// Of a file that holds no request.
    fn of(seen: &Seen) -> Option<Self> {
        match seen {
            Seen { lines: 0, .. } => Some(Self::new("empty_file", "the file has no lines", None)),
            Seen { objects: 0, .. } => Some(Self::new(
                "invalid_json_line",
                "no line of the file is a JSON object; write one request a line",
                Some(1),
            )),
            _ => None,
        }
    }
}

/// A batch that is about to begin.
pub(super) struct New {
    pub(super) id: String,
    pub(super) endpoint: String,
    pub(super) file: Option<String>,
    pub(super) window: (String, Duration),
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) output_seconds: Option<u64>,
    pub(super) lane: Lane,
    pub(super) mode: Mode,
    /// Where its requests lie.
    pub(super) source: String,
    pub(super) seen: Seen,
}

impl New {
    /// Writes down what was asked for, and starts its workflow.
    ///
    /// # Errors
    /// The store or Temporal does not answer: nothing was begun.
    pub(super) async fn begin(
        self,
        door: &Door,
        holder: &Holder,
        place: &Place,
    ) -> Result<Asked, Problem> {
        let Self { id, endpoint, file, window, metadata, output_seconds, lane, mode, source, seen } =
            self;
        let created_at = made(&id);
        let expires_at = created_at + window.1.as_secs();
        let (window, total, fault) = (window.0, seen.lines, Fault::of(&seen));
        let asked = Asked {
            id,
            endpoint,
            file,
            window,
            metadata,
            output_seconds,
            created_at,
            expires_at,
            total,
            fault,
        };
        if asked.fault.is_some() {
            place::write(&place.batch(&asked.id), &asked).await?;
            return Ok(asked);
        }
        let temporal = door.temporal().await?;
        let is_known =
            |(name, _): &(String, u64)| door.route(name).is_some() && holder.may_ask(name);
        let mut known: Vec<(String, u64)> = seen.models.into_iter().filter(is_known).collect();
        // A vendor's batch is of the first that can go into one.
        known.sort_by_key(|(_, lines)| Reverse(*lines));
        let names: Vec<String> = known.into_iter().map(|(name, _)| name).collect();
        let lines = Lines {
            endpoint: asked.endpoint.clone(),
            names: names.clone(),
            may_ask: holder.models.clone(),
            until: Some(expires_at),
        };
        // Where no line names one, none is asked.
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
            deadline: (mode == Mode::Economy).then_some(Deadline::At(expires_at)),
            per_document: Some(false),
            results_jsonl: Some(true),
            ..BatchInput::default()
        };
        place::write(&place.batch(&asked.id), &asked).await?;
        if let Err(problem) = start(&temporal, &asked.id, &input).await {
            if let Err(error) = place.batch(&asked.id).delete().await {
                tracing::warn!(%error, "a batch that did not begin stays behind");
            }
            return Err(problem);
        }
        Ok(asked)
    }
}

async fn start(temporal: &Temporal, id: &str, input: &BatchInput) -> Result<(), Problem> {
    temporal.start(id, input).await.map(drop).map_err(|error| Problem::no_temporal(&error))
}

/// The class of a batch that may take so long: one that its author names, who may not name a better one
/// than the key's own.
///
/// # Errors
/// It is none of those.
pub(super) fn lane(
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

/// Whether a batch may go through its vendor's own batch API, at the vendor's price for that: what its
/// author says in its metadata, else in a header.
///
/// # Errors
/// It is neither of the two words.
pub(super) fn mode(headers: &HeaderMap, named: Option<&str>) -> Result<Mode, Problem> {
    const HEADER: &str = "x-tidegate-mode";
    let header = headers.get(HEADER).map(|value| value.to_str().unwrap_or_default());
    let named = named.map(|said| ("metadata.tidegate_mode", said));
    match named.or_else(|| header.map(|said| (HEADER, said))) {
        Some((name, said)) => word(said).map_err(|what| Problem::invalid(name, &what)),
        None => Ok(Mode::Direct),
    }
}
