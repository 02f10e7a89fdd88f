//! Gemini's batches: a file of requests goes in, a file of answers comes out, each line with the key
//! of its request (ai.google.dev/gemini-api/docs/batch-api and /files, read in November 2026, and
//! the vendor's SDK 3.4.0). Requests can stand in the call too, up to 20 MB; their answers would then
//! come with the batch's state, all at once.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use serde_json::{Value, json};
use url::Url;

use crate::{
    batch::{Answers, BatchApi, State},
    batch_endpoint::{BatchEndpoint, certainly_refused},
    call::{BoxFuture, Request},
    client::ReplyReader,
    error::{Error, Kind},
    exchange::Reply,
    json::text,
    settings::{Setup, SetupError},
};

/// How far two clocks may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// Pages of a list that are looked at; a hundred batches each.
const MAX_PAGES: usize = 100;

const MEDIA_TYPE: &str = "application/jsonl";

/// The vendor's batches.
#[derive(Debug)]
pub(super) struct FileBatches {
    models: BatchEndpoint,
    batches: BatchEndpoint,
    files: BatchEndpoint,
    uploads: BatchEndpoint,
    downloads: BatchEndpoint,
}

impl FileBatches {
    pub(super) fn new(setup: &Setup<'_>, replies: &Arc<ReplyReader>) -> Result<Self, SetupError> {
        let path = ["v1beta", "models"];
        let models = BatchEndpoint::new(setup, &path, HeaderMap::new(), replies)?;
        Ok(Self {
            batches: models.at(setup, &["v1beta", "batches"], &[])?,
            files: models.at(setup, &["v1beta", "files"], &[])?,
            uploads: models.at(setup, &["upload", "v1beta", "files"], &[])?,
            downloads: models.at(setup, &["download", "v1beta", "files"], &[("alt", "media")])?,
            models,
        })
    }

    /// Stores a file for two days, in two steps; its name.
    async fn upload(&self, name: &str, file: Vec<u8>) -> Result<String, Error> {
        let about = json!({"file": {"displayName": name}}).to_string().into_bytes();
        let length = file.len().to_string();
        let begin = [
            ("x-goog-upload-protocol", "resumable"),
            ("x-goog-upload-command", "start"),
            ("x-goog-upload-header-content-length", length.as_str()),
            ("x-goog-upload-header-content-type", MEDIA_TYPE),
            ("content-type", "application/json"),
        ];
        let begun = self.uploads.post_with(None, &begin, about).await?;
        self.uploads.accepted(&begun)?;
        let place = begun.headers.get("x-goog-upload-url").and_then(|it| it.to_str().ok());
        let place = place.and_then(|it| Url::parse(it).ok());
        let place = place.ok_or_else(|| self.uploads.unreadable(&begun))?;
        let whole = [
            ("x-goog-upload-offset", "0"),
            ("x-goog-upload-command", "upload, finalize"),
            ("content-type", MEDIA_TYPE),
        ];
        let stored = self.uploads.post_with(Some(&place), &whole, file).await?;
        let file = self.uploads.success(&stored)?;
        let name = text(&file, "/file/name").map(str::to_owned);
        name.ok_or_else(|| self.uploads.unreadable(&stored))
    }

    async fn delete_file(&self, name: &str) -> Result<(), Error> {
        self.files.delete(name.trim_start_matches("files/")).await
    }
}

impl BatchApi for FileBatches {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let body = self.batches.body(request)?;
        let model = Value::from(format!("models/{}", request.model));
        let head = format!("{{\"key\":\"{custom_id}\",\"request\":{{\"model\":{model},");
        // A body is an object, and has its contents.
        Ok([head.as_bytes(), body.get(1..).unwrap_or_default(), b"}"].concat())
    }

    fn submit<'a>(
        &'a self,
        name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let first = lines.first().and_then(|line| serde_json::from_slice::<Value>(line).ok());
            let model = first.as_ref().and_then(|line| text(line, "/request/model"));
            let model = model.ok_or_else(|| {
                Error::unsent(Kind::InvalidRequest, "a batch has no request that names a model")
            })?;
            let file = self.upload(name, lines.join(&b"\n"[..])).await?;
            let batch = json!({"batch": {"displayName": name, "inputConfig": {"fileName": file}}});
            let method = format!("{}:batchGenerateContent", model.trim_start_matches("models/"));
            let answered = self.models.post_below(&[method], batch.to_string().into_bytes()).await;
            if certainly_refused(&answered) {
                // It would be gone in two days by itself.
                let _ = self.delete_file(&file).await;
            }
            let reply = answered?;
            let made = self.batches.success(&reply)?;
            id(&made).ok_or_else(|| self.batches.unreadable(&reply))
        })
    }

    /// A batch's display name is the note.
    fn find<'a>(
        &'a self,
        name: &'a str,
        _requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let is = move |batch: &Value| {
            let created = text(batch, "/metadata/createTime");
            let created = created.and_then(|at| DateTime::parse_from_rfc3339(at).ok());
            text(batch, "/metadata/displayName") == Some(name)
                && created.is_none_or(|at| at >= since - SKEW)
        };
        Box::pin(async move {
            let (mut ids, mut next): (Vec<String>, Option<String>) = (Vec::new(), None);
            for _ in 0..MAX_PAGES {
                let mut query = vec![("pageSize", "100")];
                query.extend(next.as_deref().map(|next| ("pageToken", next)));
                let list = self.batches.success(&self.batches.list(&query).await?)?;
                let page = list.get("operations").and_then(Value::as_array);
                ids.extend(page.into_iter().flatten().filter(|batch| is(batch)).filter_map(id));
                let token = text(&list, "/nextPageToken").filter(|token| !token.is_empty());
                match token.map(str::to_owned) {
                    // A server that knows of no pages sends the same one again.
                    Some(token) if next.as_ref() != Some(&token) => next = Some(token),
                    _ => break,
                }
            }
            Ok(ids)
        })
    }

    fn takes_notes(&self) -> bool {
        true
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>> {
        Box::pin(async move {
            let reply = self.batches.get(id).await?;
            let batch = self.batches.success(&reply)?;
            let Some(state) = text(&batch, "/metadata/state") else {
                return Err(self.batches.unreadable(&reply));
            };
            Ok(match state.trim_start_matches("BATCH_STATE_").trim_start_matches("JOB_STATE_") {
                "SUCCEEDED" | "CANCELLED" | "EXPIRED" => State::Ended,
                "FAILED" => self.failed(&batch),
                _ => State::Running,
            })
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let reply = self.batches.act(&[&format!("{id}:cancel")]).await?;
            self.batches.success(&reply).map(drop)
        })
    }

    /// The file of requests. It would be gone in two days by itself.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let batch = self.batches.success(&self.batches.get(id).await?)?;
            match text(&batch, "/metadata/inputConfig/fileName") {
                Some(file) => self.delete_file(file).await,
                None => Ok(()),
            }
        })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let batch = self.batches.success(&self.batches.get(id).await?)?;
            let places = ["/metadata/output/responsesFile", "/response/responsesFile"];
            // One that was cancelled or has expired may have none.
            let file = places.iter().find_map(|place| text(&batch, place));
            let file = file.map(|it| format!("{}:download", it.trim_start_matches("files/")));
            Ok(self.downloads.answers(file.map(|it| vec![it]).into_iter().collect(), read_line))
        })
    }
}

impl FileBatches {
    fn failed(&self, batch: &Value) -> State {
        let code = batch.pointer("/error/code").and_then(Value::as_u64);
        let (status, name) = http(code.unwrap_or_default());
        if status == 429 {
            return State::Full;
        }
        let name = if code.is_some() { name } else { "no reason was given" };
        State::Failed(self.batches.redactor().clean(name))
    }
}

/// Of an operation.
fn id(made: &Value) -> Option<String> {
    text(made, "/name").map(|name| name.trim_start_matches("batches/").to_owned())
}

/// A line without an answer has a status, as Google's RPCs have it: a number and words.
fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let reply = match (line.get("response"), line.get("error").or_else(|| line.get("status"))) {
        (Some(response), _) if response.is_object() => Some(Reply::of(200, response)),
        (_, Some(error)) if error.is_object() => {
            let (status, name) = http(error.get("code").and_then(Value::as_u64)?);
            let message = text(error, "/message").unwrap_or_default();
            let error = json!({"error": {"code": status, "status": name, "message": message,
                "details": error.get("details")}});
            Some(Reply::of(status, &error))
        }
        _ => None,
    };
    Some((text(line, "/key")?.to_owned(), reply))
}

/// A status of an RPC as HTTP has it, and its name
/// (github.com/googleapis/googleapis/blob/master/google/rpc/code.proto).
fn http(code: u64) -> (u16, &'static str) {
    match code {
        1 => (499, "CANCELLED"),
        3 | 400 => (400, "INVALID_ARGUMENT"),
        4 | 504 => (504, "DEADLINE_EXCEEDED"),
        5 | 404 => (404, "NOT_FOUND"),
        7 | 403 => (403, "PERMISSION_DENIED"),
        8 | 429 => (429, "RESOURCE_EXHAUSTED"),
        9 => (400, "FAILED_PRECONDITION"),
        10 | 409 => (409, "ABORTED"),
        11 => (400, "OUT_OF_RANGE"),
        14 | 503 => (503, "UNAVAILABLE"),
        16 | 401 => (401, "UNAUTHENTICATED"),
        _ => (500, "INTERNAL"),
    }
}
