//! OpenAI's batches: `POST /v1/files`, `GET /v1/files/{id}/content`, `DELETE /v1/files/{id}`,
//! `POST /v1/batches`, `GET …/{id}`, `POST …/{id}/cancel`.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{Multipart, multipart::MultipartRejection},
    http::HeaderMap,
    response::Response,
};
use serde_json::Value;

use super::{
    Asked, Body, bounded_store,
    job::{Job, Output},
    page::Page,
    respond,
    store::File,
};
use crate::{openai::OpenAi, problem::Problem, state::State, vendor};

const BATCH: &str = "batch_";
const FILE: &str = "file-";

/// Files that batches put out, by the batch's number.
const OUTPUTS: [(Output, &str); 2] =
    [(Output::Answers, "file-output-"), (Output::Errors, "file-error-")];

/// Endpoints that a batch may ask, of those that the simulator knows
/// (<https://developers.openai.com/api/docs/guides/batch>).
const ENDPOINTS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/embeddings"];

pub(crate) async fn upload(
    Asked { state, headers, .. }: Asked,
    form: Result<Multipart, MultipartRejection>,
) -> Response {
    let file = match form {
        _ if !vendor::has_bearer(&headers) => Err(Problem::NoKey),
        Ok(form) => read(form).await,
        Err(rejection) => Err(Problem::Invalid { message: rejection.to_string(), param: None }),
    };
    let kept = file.map(|file| {
        let mut store = state.batches();
        let number = store.number();
        let object = file.object(&bounded_store::name(FILE, number));
        let bytes = file.content.len();
        store.files.put(number, bytes, file);
        Body::Json(object)
    });
    respond::<OpenAi>(&state, kept)
}

pub(crate) async fn content(Asked { state, headers, id, .. }: Asked) -> Response {
    let lines = key(&headers).and_then(|()| lines(&state, &id).ok_or_else(|| missing("file", &id)));
    respond::<OpenAi>(&state, lines.map(Body::Lines))
}

/// Removes a file that was uploaded; the batches that were made of it have read it.
pub(crate) async fn delete(Asked { state, headers, id, .. }: Asked) -> Response {
    let gone = key(&headers)
        .and_then(|()| state.batches().files.remove(FILE, &id).ok_or_else(|| missing("file", &id)));
    let outcome =
        gone.map(|_| Body::Json(serde_json::json!({"id": id, "object": "file", "deleted": true})));
    respond::<OpenAi>(&state, outcome)
}

pub(crate) async fn create(Asked { state, headers, .. }: Asked, body: Bytes) -> Response {
    let outcome = key(&headers).and_then(|()| take(&state, &headers, &body));
    respond::<OpenAi>(&state, outcome)
}

/// The newest batches, page by page:
/// <https://platform.openai.com/docs/api-reference/batch/list>.
pub(crate) async fn list(Asked { state, headers, query, .. }: Asked) -> Response {
    let outcome = key(&headers).map(|()| {
        let (store, now) = (state.batches(), state.now());
        let page = Page::asked(&query, "after");
        let (batches, more) = store.openai.newest(BATCH, &page);
        let batches = batches.into_iter().map(|(id, job)| object(job, now, &id)).collect();
        let mut list = super::list(batches, more);
        list["object"] = "list".into();
        Body::Json(list)
    });
    respond::<OpenAi>(&state, outcome)
}

pub(crate) async fn get(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome = find(&state, &headers, &id, |_, _| Ok(()));
    respond::<OpenAi>(&state, outcome)
}

pub(crate) async fn cancel(Asked { state, headers, id, .. }: Asked) -> Response {
    let outcome = find(&state, &headers, &id, |job, now| {
        let message = "Cannot cancel a batch that is over.".into();
        if job.cancel(now) { Ok(()) } else { Err(Problem::Invalid { message, param: None }) }
    });
    respond::<OpenAi>(&state, outcome)
}

/// The file out of a form, if it is meant for a batch.
async fn read(mut form: Multipart) -> Result<File, Problem> {
    let broken = |error: axum::extract::multipart::MultipartError| Problem::Invalid {
        message: error.body_text(),
        param: None,
    };
    let (mut purpose, mut file) = (String::new(), None);
    while let Some(field) = form.next_field().await.map_err(broken)? {
        match field.name() {
            Some("purpose") => purpose = field.text().await.map_err(broken)?,
            Some("file") => {
                let name = field.file_name().unwrap_or("upload.jsonl").to_owned();
                file = Some(File::new(name, field.bytes().await.map_err(broken)?));
            }
            _ => {}
        }
    }
    if purpose != "batch" {
        return Err(Problem::invalid(
            "The simulator takes files with the purpose 'batch' alone.",
            "purpose",
        ));
    }
    file.ok_or_else(|| Problem::invalid("'file' is a required property", "file"))
}

/// A file that was uploaded, or that a batch put out.
fn lines(state: &State, id: &str) -> Option<String> {
    let mut store = state.batches();
    for (which, prefix) in OUTPUTS {
        if let Some(job) = store.openai.get(prefix, id) {
            return job.output(state.now(), which);
        }
    }
    store.files.get(FILE, id).map(|file| String::from_utf8_lossy(&file.content).into_owned())
}

fn take(state: &State, headers: &HeaderMap, body: &[u8]) -> Result<Body, Problem> {
    let asked = vendor::json(body)?;
    if asked["completion_window"] != "24h" {
        return Err(Problem::invalid(
            "Invalid value for 'completion_window': expected '24h'.",
            "completion_window",
        ));
    }
    if !asked["endpoint"].as_str().is_some_and(|endpoint| ENDPOINTS.contains(&endpoint)) {
        return Err(Problem::invalid(
            format!("Invalid value for 'endpoint': expected one of {ENDPOINTS:?}."),
            "endpoint",
        ));
    }
    let id = asked["input_file_id"].as_str().unwrap_or_default();
    // The bytes are shared, so that nothing waits while they are read.
    let file = state.batches().files.get(FILE, id).map(|file| file.content.clone());
    let file = file.ok_or_else(|| {
        Problem::invalid(format!("Invalid input file ID: '{id}'."), "input_file_id")
    })?;
    let number = state.batches().number();
    let mut job = Job::new(&state.config, || state.now(), headers, number, &asked, &file);
    if let Some(most) = state.config.batches.queue_tokens {
        let (now, mut store) = (state.now(), state.batches());
        if job.queued(now) + store.openai.all().map(|job| job.queued(now)).sum::<u64>() > most {
            drop(store);
            job.find_no_room(&state.config, state.now(), most);
        }
    }
    let (created, count) =
        (object(&job, state.now(), &bounded_store::name(BATCH, number)), job.progress.len() as u64);
    state.batches().openai.put(number, file.len(), job);
    state.ledger().batch(count);
    Ok(Body::Json(created))
}

/// A batch's object, after something was done to the batch.
fn find(
    state: &State,
    headers: &HeaderMap,
    id: &str,
    change: impl FnOnce(&mut Job, Duration) -> Result<(), Problem>,
) -> Result<Body, Problem> {
    key(headers)?;
    let mut store = state.batches();
    let job = store.openai.get(BATCH, id).ok_or_else(|| missing("batch", id))?;
    let now = state.now();
    change(job, now)?;
    Ok(Body::Json(object(job, now, id)))
}

fn object(job: &Job, now: Duration, id: &str) -> Value {
    let number = id.trim_start_matches(BATCH);
    job.object(now, id, |which| {
        OUTPUTS
            .iter()
            .filter(|(output, _)| *output == which)
            .map(|(_, file)| format!("{file}{number}"))
            .collect()
    })
}

fn key(headers: &HeaderMap) -> Result<(), Problem> {
    if vendor::has_bearer(headers) { Ok(()) } else { Err(Problem::NoKey) }
}

fn missing(what: &str, id: &str) -> Problem {
    Problem::NotFound { message: format!("No {what} found with id '{id}'."), code: None }
}
