//! Gemini's batches: a file of requests is uploaded, and a file of answers comes back, each line
//! with the key of its request (ai.google.dev/gemini-api/docs/batch-api and /files, read in
//! November 2026, and the vendor's SDK 3.4.0). A call can also hold requests of up to 20 MB, but
//! their answers would come with the batch's state, all at once.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use serde_json::{Value, json};
use url::Url;

use crate::{
    batch::State,
    batch_endpoint::{BatchEndpoint, ReadLine},
    batch_engine::{BatchVendor, Batches},
    error::{Error, Kind},
    exchange::Reply,
    json::text,
    reply_reader::ReplyReader,
    settings::{Setup, SetupError},
    verbatim::Operation,
};

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
    pub(super) fn new(
        setup: &Setup<'_>,
        replies: &Arc<ReplyReader>,
    ) -> Result<Batches<Self>, SetupError> {
        let path = ["v1beta", "models"];
        let models = BatchEndpoint::new(setup, &path, HeaderMap::new(), replies)?;
        Ok(Batches(Self {
            batches: models.at(setup, &["v1beta", "batches"], &[])?,
            files: models.at(setup, &["v1beta", "files"], &[])?,
            uploads: models.at(setup, &["upload", "v1beta", "files"], &[])?,
            downloads: models.at(setup, &["download", "v1beta", "files"], &[("alt", "media")])?,
            models,
        }))
    }
}

impl BatchVendor for FileBatches {
    /// A batch's display name stores ours.
    const TAKES_NOTES: bool = true;
    const PAGE_SIZE: (&'static str, &'static str) = ("pageSize", "100");
    const PAGE_AFTER: &'static str = "pageToken";
    const PAGE: &'static str = "operations";
    const READ_LINE: ReadLine = read_line;

    fn batches(&self) -> &BatchEndpoint {
        &self.batches
    }

    fn outputs(&self) -> &BatchEndpoint {
        &self.downloads
    }

    fn line(
        &self,
        custom_id: &str,
        model: &str,
        _operation: Option<Operation>,
        body: &[u8],
    ) -> Vec<u8> {
        let model = Value::from(format!("models/{model}"));
        let head = format!("{{\"key\":\"{custom_id}\",\"request\":{{\"model\":{model},");
        // A body is an object with at least its contents.
        [head.as_bytes(), body.get(1..).unwrap_or_default(), b"}"].concat()
    }

    /// Stores the file for two days, in two requests.
    async fn store(&self, name: &str, lines: &[Vec<u8>]) -> Result<Option<String>, Error> {
        model(lines)?;
        let file = lines.join(&b"\n"[..]);
        let about = json!({"file": {"displayName": name}}).to_string().into_bytes();
        let length = file.len().to_string();
        let begin = [
            ("x-goog-upload-protocol", "resumable"),
            ("x-goog-upload-command", "start"),
            ("x-goog-upload-header-content-length", length.as_str()),
            ("x-goog-upload-header-content-type", MEDIA_TYPE),
            ("content-type", "application/json"),
        ];
        let begun = self.uploads.wire.post_with(None, &begin, about).await?;
        self.uploads.accepted(&begun)?;
        let place = begun.headers.get("x-goog-upload-url").and_then(|it| it.to_str().ok());
        let place = place.and_then(|it| Url::parse(it).ok());
        let place = place.ok_or_else(|| self.uploads.unreadable(&begun))?;
        let whole = [
            ("x-goog-upload-offset", "0"),
            ("x-goog-upload-command", "upload, finalize"),
            ("content-type", MEDIA_TYPE),
        ];
        let stored = self.uploads.wire.post_with(Some(&place), &whole, file).await?;
        let name = text(&self.uploads.success(&stored)?, "/file/name").map(str::to_owned);
        name.map(Some).ok_or_else(|| self.uploads.unreadable(&stored))
    }

    /// The vendor would delete it after two days.
    async fn remove(&self, file: &str) -> Result<(), Error> {
        self.files.delete(file.trim_start_matches("files/")).await
    }

    async fn create(
        &self,
        name: &str,
        _operation: Option<Operation>,
        lines: &[Vec<u8>],
        file: Option<String>,
    ) -> Result<Reply, Error> {
        let batch = json!({"batch": {"displayName": name, "inputConfig": {"fileName": file}}});
        let method = format!("{}:batchGenerateContent", model(lines)?);
        self.models.wire.post_below(&[method], batch.to_string().into_bytes()).await
    }

    fn id(batch: &Value) -> Option<String> {
        text(batch, "/name").map(|name| name.trim_start_matches("batches/").to_owned())
    }

    fn created(batch: &Value) -> Option<DateTime<Utc>> {
        let created = text(batch, "/metadata/createTime")?;
        DateTime::parse_from_rfc3339(created).ok().map(|at| at.to_utc())
    }

    fn matches(batch: &Value, name: &str, _requests: usize, since: DateTime<Utc>) -> bool {
        text(batch, "/metadata/displayName") == Some(name)
            && Self::created(batch).is_none_or(|at| at >= since)
    }

    fn next_page(list: &Value, _since: DateTime<Utc>) -> Option<String> {
        text(list, "/nextPageToken").filter(|token| !token.is_empty()).map(str::to_owned)
    }

    fn state(batch: &Value) -> Option<State> {
        let state = text(batch, "/metadata/state")?;
        Some(match state.trim_start_matches("BATCH_STATE_").trim_start_matches("JOB_STATE_") {
            "SUCCEEDED" | "CANCELLED" | "EXPIRED" => State::Ended,
            "FAILED" => failed(batch),
            _ => State::Running,
        })
    }

    fn cancel_path(id: &str) -> Vec<String> {
        vec![format!("{id}:cancel")]
    }

    fn requests_file(batch: &Value) -> Option<&str> {
        text(batch, "/metadata/inputConfig/fileName")
    }

    fn answer_files(batch: &Value) -> Vec<Vec<String>> {
        let places = ["/metadata/output/responsesFile", "/response/responsesFile"];
        // A batch that was cancelled or has expired may have no file.
        let file = places.iter().find_map(|place| text(batch, place));
        let file = file.map(|it| format!("{}:download", it.trim_start_matches("files/")));
        file.map(|it| vec![it]).into_iter().collect()
    }
}

/// The model of a batch's lines, which all have the same.
fn model(lines: &[Vec<u8>]) -> Result<String, Error> {
    let first = lines.first().and_then(|line| serde_json::from_slice::<Value>(line).ok());
    let model = first.as_ref().and_then(|line| text(line, "/request/model"));
    let model = model.map(|model| model.trim_start_matches("models/").to_owned());
    model.ok_or_else(|| {
        Error::unsent(Kind::InvalidRequest, "a batch has no request that names a model")
    })
}

fn failed(batch: &Value) -> State {
    let code = batch.pointer("/error/code").and_then(Value::as_u64);
    let (status, name) = http(code.unwrap_or_default());
    if status == 429 {
        return State::Full;
    }
    State::Failed(if code.is_some() { name } else { "no reason was given" }.to_owned())
}

/// Reads a line of answers. A line without an answer has a status in the form of Google's RPCs: a
/// number and a message.
fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let reply = match (line.get("response"), line.get("error").or_else(|| line.get("status"))) {
        (Some(response), _) if response.is_object() => Some(Reply::from_json(200, response)),
        (_, Some(error)) if error.is_object() => {
            let (status, name) = http(error.get("code").and_then(Value::as_u64)?);
            let message = text(error, "/message").unwrap_or_default();
            let error = json!({"error": {"code": status, "status": name, "message": message,
                "details": error.get("details")}});
            Some(Reply::from_json(status, &error))
        }
        _ => None,
    };
    Some((text(line, "/key")?.to_owned(), reply))
}

/// The HTTP status and the name of an RPC's status
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
