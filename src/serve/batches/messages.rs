//! `/v1/messages/batches`, in Anthropic's form.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use chrono::DateTime;
use serde_json::{Value, json};
use tidegate_providers::Operation;

use super::{
    batch::{self, BatchRequest, NewBatch},
    batch_status::{self, Batch, Course, State},
    file,
    id::{Kind, OutputFile},
    key_folder::KeyFolder,
    requests,
};
use crate::serve::{door::Door, keys::Holder, problem::Problem};

/// Anthropic's batches end within a day.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// `POST /v1/messages/batches`.
pub(super) async fn create(
    door: &Door,
    holder: &Holder,
    place: &KeyFolder,
    (headers, body): (&HeaderMap, Body),
    base: &str,
) -> Result<Response, Problem> {
    let lane = batch::choose_lane(holder, WINDOW, None, &door.lanes)?;
    let mode = batch::read_mode(headers, None)?;
    let id = Kind::MessageBatch.new_id();
    let requests = place.requests(&id);
    let seen = requests::store(&requests, body).await?;
    let window = ("24h", WINDOW.min(*door.config.serve.keep_files));
    let asked = BatchRequest::new(id, Operation::Messages.path(), window, &seen);
    let new = NewBatch { asked, lane, mode, source: requests.uri(), seen };
    let asked = match new.begin(door, holder, place).await {
        Ok(asked) => asked,
        Err(problem) => {
            if let Err(error) = requests.delete().await {
                tracing::warn!(%error, "the requests of a refused batch stay behind");
            }
            return Err(problem);
        }
    };
    let batch = batch_status::find(door, place, &asked.id).await?;
    Ok(Json(to_json(&batch, base)).into_response())
}

/// `GET /v1/messages/batches/{id}/results`.
pub(super) async fn results(door: &Door, place: &KeyFolder, id: &str) -> Result<Response, Problem> {
    let batch = batch_status::find(door, place, id).await?;
    if !batch.course.state.has_ended() {
        let message = format!("the batch {id} has not ended: its results are not there yet");
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    file::content(place.output_file(id, OutputFile::Output), "application/x-jsonl").await
}

/// `DELETE /v1/messages/batches/{id}`.
pub(super) async fn delete(door: &Door, place: &KeyFolder, id: &str) -> Result<Response, Problem> {
    let batch = batch_status::find(door, place, id).await?;
    if !batch.course.state.has_ended() {
        let message = format!("the batch {id} has not ended; cancel it first");
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    place.remove(id).await?;
    Ok(Json(json!({"id": id, "type": "message_batch_deleted"})).into_response())
}

/// Writes it in Anthropic's form: counts of results appear when the batch has ended.
pub(super) fn to_json(batch: &Batch, base: &str) -> Value {
    let Batch { asked, stopping_at, course: Course { state, counts, ended_at, .. } } = batch;
    let has_ended = state.has_ended();
    let status = match state {
        _ if has_ended => "ended",
        State::Cancelling => "canceling",
        _ => "in_progress",
    };
    let rest = |count: u64| if has_ended { count } else { 0 };
    let errored = match state {
        // The batch failed as a whole.
        State::Failed => asked.total,
        _ => counts.errored,
    };
    let results = format!("{base}/v1/messages/batches/{}/results", asked.id);
    json!({
        "id": asked.id,
        "type": "message_batch",
        "processing_status": status,
        "request_counts": {
            "processing": if has_ended { 0 } else { asked.total },
            "succeeded": rest(counts.succeeded),
            "errored": rest(errored),
            "canceled": rest(counts.cancelled),
            "expired": rest(counts.expired),
        },
        "ended_at": ended_at.and_then(time),
        "created_at": time(asked.created_at),
        "expires_at": time(asked.expires_at),
        "archived_at": null,
        "cancel_initiated_at": stopping_at.and_then(time),
        "results_url": (has_ended && *state != State::Failed).then_some(results),
    })
}

/// Writes a time as RFC 3339.
fn time(seconds: u64) -> Option<String> {
    let at = DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
    Some(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}
