//! `/v1/messages/batches`, in Anthropic's form.

use std::{collections::HashMap, time::Duration};

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
    batch::{self, New},
    file,
    id::{Kind, Put},
    page::Wanted,
    place::{Place, away},
    requests,
    standing::{self, Batch, State},
};
use crate::serve::{door::Door, keys::Holder, problem::Problem};

/// Anthropic's batches end within a day.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// A page of batches, and the longest.
const USUAL: usize = 20;
const MOST: usize = 1_000;

/// `POST /v1/messages/batches`.
pub(super) async fn create(
    door: &Door,
    holder: &Holder,
    place: &Place,
    (headers, body): (&HeaderMap, Body),
    base: &str,
) -> Result<Response, Problem> {
    let lane = batch::lane(holder, WINDOW, None, &door.lanes)?;
    let mode = batch::mode(headers, None)?;
    let id = Kind::MessageBatch.new_id();
    let requests = place.requests(&id);
    let seen = requests::take(&requests, body).await?;
    let new = New {
        endpoint: Operation::Messages.path().to_owned(),
        file: None,
        window: ("24h".to_owned(), WINDOW.min(door.keep_files)),
        metadata: None,
        output_seconds: None,
        lane,
        mode,
        source: requests.uri(),
        seen,
        id,
    };
    let asked = match new.begin(door, holder, place).await {
        Ok(asked) => asked,
        Err(problem) => {
            requests.delete().await.map_err(|error| away(&error))?;
            return Err(problem);
        }
    };
    let batch = standing::find(door, place, &asked.id).await?;
    Ok(Json(told(&batch, base)).into_response())
}

/// `GET /v1/messages/batches`.
pub(super) async fn list(
    door: &Door,
    place: &Place,
    query: &HashMap<String, String>,
    base: &str,
) -> Result<Response, Problem> {
    let wanted = Wanted::read(query, (USUAL, MOST), |id| Kind::MessageBatch.is_id(id))?;
    let (batches, has_more) = standing::list(door, place, Kind::MessageBatch, &wanted).await?;
    let id = |batch: &Batch| batch.asked.id.clone();
    let (first, last) = (batches.first().map(id), batches.last().map(id));
    let data: Vec<Value> = batches.iter().map(|batch| told(batch, base)).collect();
    Ok(Json(json!({
        "data": data, "has_more": has_more, "first_id": first, "last_id": last,
    }))
    .into_response())
}

/// `GET /v1/messages/batches/{id}/results`.
pub(super) async fn results(door: &Door, place: &Place, id: &str) -> Result<Response, Problem> {
    let batch = standing::find(door, place, id).await?;
    if !batch.state.has_ended() {
        let message = format!("the batch {id} has not ended: its results are not there yet");
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    file::content(place.put(id, Put::Output), "application/x-jsonl").await
}

/// `DELETE /v1/messages/batches/{id}`.
pub(super) async fn delete(door: &Door, place: &Place, id: &str) -> Result<Response, Problem> {
    let batch = standing::find(door, place, id).await?;
    if !batch.state.has_ended() {
        let message = format!("the batch {id} has not ended; cancel it first");
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    place.remove(id).await.map_err(|error| away(&error))?;
    Ok(Json(json!({"id": id, "type": "message_batch_deleted"})).into_response())
}

/// As Anthropic tells it: what requests came to, when all have ended.
pub(super) fn told(batch: &Batch, base: &str) -> Value {
    let Batch { asked, state, counts, stopping_at, ended_at, .. } = batch;
    let has_ended = state.has_ended();
    let status = match state {
        _ if has_ended => "ended",
        State::Cancelling => "canceling",
        _ => "in_progress",
    };
    let rest = |count: u64| if has_ended { count } else { 0 };
    let errored = match state {
        // As a whole.
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

/// As RFC 3339.
fn time(seconds: u64) -> Option<String> {
    let at = DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
    Some(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}
