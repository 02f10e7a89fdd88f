//! OpenAI's batches: a file of requests is uploaded, and two files with answers and errors come
//! back.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::{
    batch::State,
    batch_endpoint::{BatchEndpoint, ReadLine},
    batch_engine::{BatchVendor, Batches},
    error::Error,
    exchange::Reply,
    json::text,
    reply_reader::ReplyReader,
    settings::{Setup, SetupError},
    verbatim::Operation,
};

/// The metadata field that stores our name of a batch.
const NOTE: &str = "tidegate";

/// The vendor's batches, each with requests to one endpoint.
#[derive(Debug)]
pub(super) struct FileBatches {
    /// The endpoint of requests that are not in the vendor's own form, in the vendor's spelling:
    /// `/v1/chat/completions`.
    endpoint: String,
    files: BatchEndpoint,
    batches: BatchEndpoint,
}

impl FileBatches {
    pub(super) fn new(
        setup: &Setup<'_>,
        replies: &Arc<ReplyReader>,
    ) -> Result<Batches<Self>, SetupError> {
        let endpoint = |path| BatchEndpoint::new(setup, &[path], HeaderMap::new(), replies);
        Ok(Batches(Self {
            endpoint: format!("/v1/{}", replies.protocol.path.join("/")),
            files: endpoint("files")?,
            batches: endpoint("batches")?,
        }))
    }

    fn endpoint(&self, operation: Option<Operation>) -> &str {
        match operation {
            Some(operation) => operation.path(),
            None => &self.endpoint,
        }
    }
}

impl BatchVendor for FileBatches {
    const TAKES_NOTES: bool = true;
    const PAGE_AFTER: &'static str = "after";
    const READ_LINE: ReadLine = read_line;

    fn batches(&self) -> &BatchEndpoint {
        &self.batches
    }

    fn outputs(&self) -> &BatchEndpoint {
        &self.files
    }

    fn line(
        &self,
        custom_id: &str,
        _model: &str,
        operation: Option<Operation>,
        body: &[u8],
    ) -> Vec<u8> {
        let head = format!(
            "{{\"custom_id\":\"{custom_id}\",\"method\":\"POST\",\"url\":\"{}\",\"body\":",
            self.endpoint(operation)
        );
        [head.as_bytes(), body, b"}"].concat()
    }

    async fn store(&self, _name: &str, lines: &[Vec<u8>]) -> Result<Option<String>, Error> {
        let part = Part::bytes(lines.join(&b"\n"[..])).file_name("tidegate.jsonl");
        let form = Form::new().text("purpose", "batch").part("file", part);
        let stored = self.files.wire.upload(form).await?;
        let id = text(&self.files.success(&stored)?, "/id").map(str::to_owned);
        id.map(Some).ok_or_else(|| self.files.unreadable(&stored))
    }

    /// The vendor keeps the file until it is deleted.
    async fn remove(&self, file: &str) -> Result<(), Error> {
        self.files.delete(file).await
    }

    async fn create(
        &self,
        name: &str,
        operation: Option<Operation>,
        _lines: &[Vec<u8>],
        file: Option<String>,
    ) -> Result<Reply, Error> {
        let batch = json!({
            "input_file_id": file, "endpoint": self.endpoint(operation), "completion_window": "24h", "metadata": {NOTE: name}
        });
        self.batches.wire.post(batch.to_string().into_bytes()).await
    }

    fn created(batch: &Value) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(batch.get("created_at").and_then(Value::as_i64)?, 0)
    }

    fn matches(batch: &Value, name: &str, _requests: usize, _since: DateTime<Utc>) -> bool {
        batch.get("metadata").and_then(|notes| notes.get(NOTE)).and_then(Value::as_str)
            == Some(name)
    }

    fn state(batch: &Value) -> Option<State> {
        Some(match text(batch, "/status")? {
            "completed" | "expired" | "cancelled" => State::Ended,
            "failed" => failed(batch),
            _ => State::Running,
        })
    }

    fn requests_file(batch: &Value) -> Option<&str> {
        text(batch, "/input_file_id")
    }

    fn answer_files(batch: &Value) -> Vec<Vec<String>> {
        let files = ["/output_file_id", "/error_file_id"].map(|which| text(batch, which));
        let files = files.into_iter().flatten();
        files.map(|file| vec![file.to_owned(), "content".to_owned()]).collect()
    }
}

fn failed(batch: &Value) -> State {
    let errors = || batch.pointer("/errors/data").and_then(Value::as_array).into_iter().flatten();
    // The number of tokens in a model's queue is limited.
    if errors().any(|error| error["code"] == "token_limit_exceeded") {
        return State::Full;
    }
    let code = errors().find_map(|error| text(error, "/code"));
    State::Failed(code.unwrap_or("no reason was given").to_owned())
}

fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let response = line.get("response").filter(|response| !response.is_null());
    let reply = response.and_then(|response| {
        let status = response
            .get("status_code")
            .and_then(Value::as_u64)
            .and_then(|status| u16::try_from(status).ok())?;
        Some(Reply::from_json(status, response.get("body")?))
    });
    Some((text(line, "/custom_id")?.to_owned(), reply))
}
