//! `/v1/batches`, in OpenAI's form.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::{Map, Value, json};
use tidegate_providers::Operation;

use super::{
    batch::{self, BatchRequest, NewBatch},
    batch_status::{self, Batch, Course, State},
    expiry, file,
    id::{Kind, OutputFile},
    key_folder::KeyFolder,
};
use crate::{
    config::duration::HumanDuration,
    serve::{body::read_whole_body, door::Door, keys::Holder, problem::Problem},
};

/// Maximum length of the body of `POST /v1/batches`, in bytes.
const MAX_BODY: usize = 64 << 10;

/// OpenAI's limits of metadata.
const MAX_PAIRS: usize = 16;
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 512;

/// The range of the completion window, in seconds.
const WINDOWS: std::ops::RangeInclusive<u64> = 1..=30 * 24 * 60 * 60;

/// The metadata that the door reads.
const LANE: &str = "tidegate_lane";
const MODE: &str = "tidegate_mode";

/// `POST /v1/batches`.
pub(super) async fn create(
    door: &Door,
    holder: &Holder,
    place: &KeyFolder,
    (headers, body): (&HeaderMap, Body),
) -> Result<Response, Problem> {
    let body = read_whole_body(body, MAX_BODY, "requests go into a file (POST /v1/files)").await?;
    let fields: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body: {error}")))?;
    let known =
        ["input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"];
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Problem::invalid(name, "is no field of a batch here"));
    }
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| Problem::invalid(name, "must be a text"))
    };
    let endpoint = text("endpoint")?;
    let takes = [Operation::ChatCompletions, Operation::Responses, Operation::Embeddings];
    if !takes.iter().any(|operation| operation.path() == endpoint) {
        let what = format!("must be one of {}", takes.map(Operation::path).join(", "));
        return Err(Problem::invalid("endpoint", &what));
    }
    let stated = text("completion_window")?;
    let window = read_window(&stated, *door.config.serve.keep_files)?;
    let metadata = read_metadata(fields.get("metadata"))?;
    let output_seconds =
        read_output_seconds(fields.get("output_expires_after"), *door.config.serve.keep_files)?;
    let named = |name| metadata.as_ref().and_then(|metadata| metadata.get(name)?.as_str());
    let lane = batch::choose_lane(holder, window, named(LANE), &door.lanes)?;
    let mode = batch::read_mode(headers, named(MODE))?;
    let (file, content) = file::find(place, &text("input_file_id")?).await?;
    if file.purpose != file::File::PURPOSE {
        return Err(Problem::invalid("input_file_id", "must be a file of purpose batch"));
    }
    let (id, window) = (Kind::Batch.new_id(), (stated.as_str(), window));
    let asked = BatchRequest {
        file: Some(file.id),
        metadata,
        output_seconds,
        ..BatchRequest::new(id, &endpoint, window, &file.seen)
    };
    let new = NewBatch { asked, lane, mode, source: content.uri(), seen: file.seen };
    let asked = new.begin(door, holder, place).await?;
    let batch = batch_status::find(door, place, &asked.id).await?;
    Ok(Json(to_json(&batch)).into_response())
}

fn read_window(stated: &str, longest: Duration) -> Result<Duration, Problem> {
    let window = stated.parse::<HumanDuration>().ok().map(|span| *span);
    let may_be = |window: &Duration| WINDOWS.contains(&window.as_secs()) && *window <= longest;
    window.filter(may_be).ok_or_else(|| {
        let what = "must be a length of time from 1s to 30d, such as 24h, and no longer than serve.keep-files";
        Problem::invalid("completion_window", what)
    })
}

fn read_metadata(given: Option<&Value>) -> Result<Option<Map<String, Value>>, Problem> {
    let pairs = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(pairs)) => pairs,
        Some(_) => return Err(Problem::invalid("metadata", "must be an object")),
    };
    let fits = |(name, value): (&String, &Value)| {
        let value = value.as_str().map(|value| value.chars().count());
        name.chars().count() <= MAX_NAME && value.is_some_and(|length| length <= MAX_VALUE)
    };
    if pairs.len() > MAX_PAIRS || !pairs.iter().all(fits) {
        let what = format!(
            "must be {MAX_PAIRS} pairs of texts at most, of {MAX_NAME} and {MAX_VALUE} characters"
        );
        return Err(Problem::invalid("metadata", &what));
    }
    Ok(Some(pairs.clone()))
}

/// Reads the number of seconds for which the batch's output is kept.
fn read_output_seconds(given: Option<&Value>, longest: Duration) -> Result<Option<u64>, Problem> {
    let policy = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(policy)) => policy,
        Some(_) => return Err(Problem::invalid("output_expires_after", "must be an object")),
    };
    if let Some(name) = policy.keys().find(|name| !["anchor", "seconds"].contains(&name.as_str())) {
        let name = format!("output_expires_after.{name}");
        return Err(Problem::invalid(&name, "is no field of a batch here"));
    }
    let anchor = policy.get("anchor").and_then(Value::as_str);
    let seconds = policy.get("seconds").and_then(Value::as_u64);
    let (anchor, seconds) =
        (("output_expires_after.anchor", anchor), ("output_expires_after.seconds", seconds));
    expiry::read_seconds(anchor, seconds, longest).map(Some)
}

/// Writes it in OpenAI's form.
pub(super) fn to_json(batch: &Batch) -> Value {
    let Batch { asked, stopping_at, course } = batch;
    let Course { state, counts, began_at, ended_at, fault, .. } = course;
    let ended = |as_what| ended_at.filter(|_| *state == as_what);
    let put = |there: bool, put: OutputFile| there.then(|| put.id(&asked.id));
    let errors = fault.as_ref().map(|fault| {
        let one = json!({
            "code": fault.code, "message": fault.message, "param": null, "line": fault.line,
        });
        json!({"object": "list", "data": [one]})
    });
    let finalizing_at = ended_at.filter(|_| *state != State::Failed);
    json!({
        "id": asked.id,
        "object": "batch",
        "endpoint": asked.endpoint,
        "errors": errors,
        "input_file_id": asked.file,
        "completion_window": asked.window,
        "status": state,
        "output_file_id": put(course.has_output, OutputFile::Output),
        "error_file_id": put(course.has_errors, OutputFile::Errors),
        "created_at": asked.created_at,
        "in_progress_at": began_at,
        "expires_at": asked.expires_at,
        "finalizing_at": finalizing_at,
        "completed_at": ended(State::Completed),
        "failed_at": ended(State::Failed),
        "expired_at": ended(State::Expired),
        "cancelling_at": stopping_at,
        "cancelled_at": ended(State::Cancelled),
        "request_counts": {
            "total": asked.total,
            "completed": counts.succeeded,
            "failed": counts.errored + counts.expired,
        },
        "metadata": asked.metadata,
    })
}
