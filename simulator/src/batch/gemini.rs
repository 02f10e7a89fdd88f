//! Gemini's batches, as ai.google.dev/gemini-api/docs/batch-api and /files describe them: a file is
//! stored (`POST /upload/v1beta/files`, in two steps), a batch made of it
//! (`POST /v1beta/models/{model}:batchGenerateContent`), asked after (`GET /v1beta/batches/{id}`),
//! and its answers fetched (`GET /download/v1beta/files/{id}:download?alt=media`).

use std::collections::HashSet;

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    Asked, Body, bounded_store,
    item::Item,
    operation::{BATCH, Batch, OUTPUT, line},
    page::Page,
    progress::Progress,
    respond,
};
use crate::{
    gemini::{self, Gemini},
    problem::Problem,
    rng,
    state::State,
    tokens, vendor,
};

const FILE: &str = "f";

/// The two steps of an upload: what is to come, and then all of it, at a place that is as good as a
/// key.
pub(crate) async fn upload(Asked { state, headers, query, .. }: Asked, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let bad = |what: &str| Problem::Invalid { message: what.to_owned(), param: None };
    let command = header("x-goog-upload-command");
    if command == "start" {
        if let Err(problem) = gemini::check(&headers) {
            return respond::<Gemini>(&state, Err(problem));
        }
        if header("x-goog-upload-protocol") != "resumable"
            || header("x-goog-upload-header-content-length").parse::<u64>().is_err()
        {
            return respond::<Gemini>(
                &state,
                Err(bad("An upload names its protocol and its length.")),
            );
        }
        let mut store = state.batches();
        let number = store.number();
        store.uploads.put(number, 0, None);
        drop(store);
        let id = bounded_store::name(FILE, number);
        let place = format!(
            "http://{}/upload/v1beta/files?upload_id={id}&upload_protocol=resumable",
            header("host")
        );
        let headers = [("x-goog-upload-status", "active".to_owned()), ("x-goog-upload-url", place)];
        return (StatusCode::OK, headers).into_response();
    }
    let id = query.split('&').find_map(|pair| pair.strip_prefix("upload_id=")).unwrap_or_default();
    if command != "upload, finalize" || header("x-goog-upload-offset") != "0" {
        return respond::<Gemini>(&state, Err(bad("The simulator takes a file in one piece.")));
    }
    let bytes = body.len();
    let mut store = state.batches();
    let Some(upload) = store.uploads.get(FILE, id) else {
        drop(store);
        return respond::<Gemini>(&state, Err(bad("There is no such upload.")));
    };
    *upload = Some(body);
    drop(store);
    let file = json!({"file": {"name": format!("files/{id}"), "sizeBytes": bytes.to_string(),
        "mimeType": "application/jsonl", "state": "ACTIVE", "source": "UPLOADED"}});
    ([("x-goog-upload-status", "final")], axum::Json(file)).into_response()
}

pub(crate) async fn delete(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome = gemini::check(&headers).and_then(|()| {
        // A missing file and another caller's file get the same answer.
        let file = state.batches().uploads.remove(FILE, &id).ok_or(Problem::NoAccess);
        file.map(|_| Body::Json(json!({})))
    });
    respond::<Gemini>(&state, outcome)
}

pub(crate) async fn download(Asked { state, headers, id: method, query }: Asked) -> Response {
    let media = query.split('&').any(|pair| pair == "alt=media");
    let id = method.strip_suffix(":download").filter(|_| media).unwrap_or_default();
    let outcome = gemini::check(&headers).and_then(|()| {
        let (mut store, now) = (state.batches(), state.now());
        let batch = store.gemini.get(OUTPUT, id).filter(|batch| batch.has_output(now));
        let batch = batch.ok_or_else(|| missing(&format!("files/{id}")))?;
        let lines = batch.progress.dispositions(now).filter_map(|(item, it)| line(item, it));
        Ok(Body::Lines(lines.map(|line| format!("{line}\n")).collect()))
    });
    respond::<Gemini>(&state, outcome)
}

/// The newest batches, page by page.
pub(crate) async fn list(Asked { state, headers, query, .. }: Asked) -> Response {
    let outcome = gemini::check(&headers).map(|()| {
        let (store, now) = (state.batches(), state.now());
        let query = query.replace("pageSize=", "limit=");
        let page = Page::asked(&query, "pageToken");
        let (batches, more) = store.gemini.newest(BATCH, &page);
        let next = batches.last().map(|(id, _)| id.clone()).filter(|_| more);
        let operations: Vec<Value> =
            batches.into_iter().map(|(id, batch)| batch.operation(now, &id)).collect();
        let mut list = json!({"operations": operations});
        if let Some(next) = next {
            list["nextPageToken"] = next.into();
        }
        Body::Json(list)
    });
    respond::<Gemini>(&state, outcome)
}

pub(crate) async fn get(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome = gemini::check(&headers).and_then(|()| {
        let (mut store, now) = (state.batches(), state.now());
        let batch = store.gemini.get(BATCH, &id);
        let batch = batch.ok_or_else(|| missing(&format!("batches/{id}")))?;
        Ok(Body::Json(batch.operation(now, &id)))
    });
    respond::<Gemini>(&state, outcome)
}

/// `POST /v1beta/batches/{id}:cancel`.
pub(crate) async fn cancel(Asked { state, headers, id: method, .. }: Asked) -> Response {
    let id = method.strip_suffix(":cancel").unwrap_or_default();
    let outcome = gemini::check(&headers).and_then(|()| {
        let (mut store, now) = (state.batches(), state.now());
        let batch = store.gemini.get(BATCH, id);
        let batch = batch.ok_or_else(|| missing(&format!("batches/{id}")))?;
        batch.progress.cancel(now);
        Ok(Body::Json(json!({})))
    });
    respond::<Gemini>(&state, outcome)
}

fn missing(what: &str) -> Problem {
    Problem::NotFound { message: format!("Requested entity was not found: {what}."), code: None }
}

/// A batch of what was uploaded.
pub(crate) fn create(state: &State, headers: &HeaderMap, model: &str, body: &[u8]) -> Response {
    respond::<Gemini>(state, taken(state, headers, model, body))
}

fn taken(state: &State, headers: &HeaderMap, model: &str, body: &[u8]) -> Result<Body, Problem> {
    gemini::check(headers)?;
    let asked = vendor::json(body)?;
    let batch = &asked["batch"];
    let text = |names: [&str; 2]| names.iter().find_map(|name| batch.pointer(name)?.as_str());
    let Some(display_name) = text(["/displayName", "/display_name"]).filter(|it| !it.is_empty())
    else {
        return Err(Problem::invalid(
            "* BatchGenerateContentRequest.batch.display_name: display_name is required",
            "batch",
        ));
    };
    let file = text(["/inputConfig/fileName", "/input_config/file_name"]);
    let file = file.ok_or_else(|| {
        Problem::invalid("The simulator takes the requests of a batch in a file.", "batch")
    })?;
    let id = file.trim_start_matches("files/");
    let content = state.batches().uploads.get(FILE, id).and_then(|file| file.clone());
    let content = content.ok_or(Problem::NoAccess)?;
    let number = state.batches().number();
    let batch = read(state, headers, number, (model, file, display_name), &content);
    let now = state.now();
    if let Some(most) = state.config.batches.queue_tokens {
        let mut store = state.batches();
        let queued: u64 = store.gemini.all().map(|batch| batch.queued(now)).sum();
        if batch.queued(now) + queued > most {
            // At once, and as a limit: docs/rate-limits, "Batch enqueued tokens".
            return Err(Problem::Ramp);
        }
    }
    let created = batch.operation(now, &bounded_store::name(BATCH, number));
    let count = batch.progress.len() as u64;
    state.batches().gemini.put(number, content.len(), batch);
    state.ledger().batch(count);
    Ok(Body::Json(created))
}

/// Reads the file: a line that is no request fails all of it, later on.
fn read(
    state: &State,
    headers: &HeaderMap,
    number: u64,
    (model, file, display_name): (&str, &str, &str),
    content: &[u8],
) -> Batch {
    let (mut items, mut keys, mut error) = (Vec::new(), HashSet::new(), None);
    let named = format!("{model}:generateContent");
    let lines = content.split(|byte| *byte == b'\n').zip(1_u64..);
    for (line, n) in lines.filter(|(line, _)| !line.trim_ascii().is_empty()) {
        let line = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let key = line["key"].as_str().unwrap_or_default();
        let request = &line["request"];
        let of_model = request["model"].is_null() || request["model"] == format!("models/{model}");
        if key.is_empty() || !request.is_object() || !of_model || !keys.insert(key.to_owned()) {
            error = Some((3, format!("Line {n} of the input file is no request of this batch.")));
            break;
        }
        let id = rng::draw(&[state.config.seed, number, n]);
        items.push(Item::new::<Gemini>(&state.config, headers, id, key, (Some(&named), request)));
    }
    if items.is_empty() && error.is_none() {
        error = Some((3, "The input file is empty.".to_owned()));
    }
    if error.is_some() {
        items.clear();
    }
    Batch {
        progress: Progress::new(state.now(), state.config.batches.duration, items),
        display_name: display_name.to_owned(),
        model: model.to_owned(),
        file: file.to_owned(),
        tokens: tokens::count(content.len()),
        error,
    }
}
