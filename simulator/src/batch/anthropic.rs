//! Anthropic's Message Batches: `POST /v1/messages/batches`, `GET …/{id}`, `GET …/{id}/results`,
//! `POST …/{id}/cancel`.

use std::{collections::HashSet, time::Duration};

use axum::{body::Bytes, http::HeaderMap, response::Response};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    Asked, Body, bounded_store,
    item::{Item, Outcome},
    page::Page,
    progress::{Disposition, Progress, Stage},
    respond,
};
use crate::{
    anthropic::{self, Anthropic},
    problem::Problem,
    rng,
    state::State,
    vendor,
};

/// The most requests of a batch.
const MAX_REQUESTS: usize = 100_000;

/// The longest name of a request.
const MAX_CUSTOM_ID_CHARS: usize = 64;

const PREFIX: &str = "msgbatch_";

pub(crate) async fn create(Asked { state, headers, .. }: Asked, body: Bytes) -> Response {
    respond::<Anthropic>(&state, take(&state, &headers, &body))
}

pub(crate) async fn get(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome =
        find(&state, &headers, &id, |batch, now| Ok(Body::Json(object(batch, now, &id, &headers))));
    respond::<Anthropic>(&state, outcome)
}

/// The newest batches, page by page:
/// <https://docs.anthropic.com/en/api/listing-message-batches>.
pub(crate) async fn list(Asked { state, headers, query, .. }: Asked) -> Response {
    let outcome = anthropic::check(&headers).map(|()| {
        let (store, now) = (state.batches(), state.now());
        let page = Page::asked(&query, "after_id");
        let (batches, more) = store.anthropic.newest(PREFIX, &page);
        let batches = batches.into_iter().map(|(id, batch)| object(batch, now, &id, &headers));
        Body::Json(super::list(batches.collect(), more))
    });
    respond::<Anthropic>(&state, outcome)
}

pub(crate) async fn results(Asked { state, headers, id, .. }: Asked) -> Response {
    let lines = find(&state, &headers, &id, |batch, now| {
        if batch.stage(now) != Stage::Ended {
            // SDKs look for the URL first; what the vendor says to one who does not is not
            // documented.
            return Err(missing(format!("Batch `{id}` has no available results.")));
        }
        let lines = batch
            .dispositions(now)
            .map(|(item, disposition)| format!("{}\n", result(item, disposition)));
        Ok(Body::Lines(lines.collect()))
    });
    respond::<Anthropic>(&state, lines)
}

pub(crate) async fn cancel(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome = find(&state, &headers, &id, |batch, now| {
        if !batch.cancel(now) {
            return Err(Problem::Invalid {
                message: format!("Batch `{id}` has already ended."),
                param: None,
            });
        }
        Ok(Body::Json(object(batch, now, &id, &headers)))
    });
    respond::<Anthropic>(&state, outcome)
}

fn take(state: &State, headers: &HeaderMap, body: &[u8]) -> Result<Body, Problem> {
    anthropic::check(headers)?;
    let (bytes, body) = (body.len(), vendor::json(body)?);
    let requests =
        body.get("requests").and_then(Value::as_array).filter(|requests| !requests.is_empty());
    let requests =
        requests.ok_or_else(|| Problem::invalid("requests: Field required", "requests"))?;
    if requests.len() > MAX_REQUESTS {
        return Err(Problem::invalid(
            format!("requests: List should have at most {MAX_REQUESTS} items"),
            "requests",
        ));
    }
    let number = state.batches().number();
    let (mut items, mut names) = (Vec::with_capacity(requests.len()), HashSet::new());
    for (n, request) in (0..).zip(requests) {
        let wrong = |what: &str| Problem::invalid(format!("requests.{n}.{what}"), "requests");
        let name = request
            .get("custom_id")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("custom_id: Field required"))?;
        // The length and the characters are taken from reports, not from the vendor's documents:
        // the stricter reading.
        let plain =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if name.is_empty() || name.len() > MAX_CUSTOM_ID_CHARS || !plain {
            return Err(wrong("custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"));
        }
        if !names.insert(name) {
            return Err(wrong("custom_id: must be unique within the batch"));
        }
        let params = request
            .get("params")
            .filter(|params| params.is_object())
            .ok_or_else(|| wrong("params: Field required"))?;
        let id = rng::draw(&[state.config.seed, number, n]);
        items.push(Item::new::<Anthropic>(&state.config, headers, id, name, (None, params)));
    }
    let (now, count) = (state.now(), items.len() as u64);
    let batch = Progress::new(now, state.config.batches.duration, items);
    let created = object(&batch, now, &bounded_store::name(PREFIX, number), headers);
    state.batches().anthropic.put(number, bytes, batch);
    state.ledger().batch(count);
    Ok(Body::Json(created))
}

/// The description of a batch.
fn find(
    state: &State,
    headers: &HeaderMap,
    id: &str,
    say: impl FnOnce(&mut Progress, Duration) -> Result<Body, Problem>,
) -> Result<Body, Problem> {
    anthropic::check(headers)?;
    let mut store = state.batches();
    let batch = store
        .anthropic
        .get(PREFIX, id)
        .ok_or_else(|| missing(format!("Batch `{id}` was not found.")))?;
    say(batch, state.now())
}

fn missing(message: String) -> Problem {
    Problem::NotFound { message, code: None }
}

/// The vendor's batch object. Requests count as waiting until the whole batch has ended.
fn object(batch: &Progress, now: Duration, id: &str, headers: &HeaderMap) -> Value {
    let stage = batch.stage(now);
    let ended = stage == Stage::Ended;
    let [mut succeeded, mut errored, mut canceled, mut expired] = [0_u64; 4];
    for (_, disposition) in batch.dispositions(now).filter(|_| ended) {
        *match disposition {
            Disposition::Done(Outcome::Answered { .. }) => &mut succeeded,
            Disposition::Done(Outcome::Failed { .. }) => &mut errored,
            Disposition::Cancelled => &mut canceled,
            Disposition::Expired | Disposition::Waiting => &mut expired,
        } += 1;
    }
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    json!({
        "id": id,
        "type": "message_batch",
        "processing_status": match stage {
            Stage::Ended => "ended",
            Stage::Cancelling => "canceling",
            Stage::Validating | Stage::Running | Stage::Finalizing => "in_progress",
        },
        "request_counts": {
            "processing": if ended { 0 } else { batch.len() },
            "succeeded": succeeded,
            "errored": errored,
            "canceled": canceled,
            "expired": expired,
        },
        "created_at": rfc3339(batch.tenths(0)),
        "expires_at": rfc3339(batch.tenths(0) + TimeDelta::hours(24)),
        "ended_at": ended.then(|| rfc3339(batch.end())),
        "archived_at": null,
        "cancel_initiated_at": batch.cancelled().map(rfc3339),
        "results_url": ended.then(|| format!("http://{host}/v1/messages/batches/{id}/results")),
    })
}

/// One line of the results.
fn result(item: &Item, disposition: Disposition<'_>) -> Value {
    let result = match disposition {
        Disposition::Done(Outcome::Answered { body, .. }) => {
            let mut message = body.clone();
            message["usage"]["service_tier"] = "batch".into();
            json!({"type": "succeeded", "message": message})
        }
        Disposition::Done(Outcome::Failed { body, .. }) => {
            json!({"type": "errored", "error": body})
        }
        Disposition::Cancelled => json!({"type": "canceled"}),
        Disposition::Expired | Disposition::Waiting => json!({"type": "expired"}),
    };
    json!({"custom_id": item.custom_id, "result": result})
}

fn rfc3339(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Micros, true)
}
