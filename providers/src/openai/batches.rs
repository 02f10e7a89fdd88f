//! OpenAI's batches: a file of requests goes in, two files with answers and errors come out.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

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

/// Under this name a batch's notes hold ours.
const NOTE: &str = "tidegate";

/// How far two clocks may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// The vendor's batches, of requests to one endpoint.
#[derive(Debug)]
pub(super) struct FileBatches {
    /// As the vendor names it: `/v1/chat/completions`.
    endpoint: String,
    files: BatchEndpoint,
    batches: BatchEndpoint,
}

impl FileBatches {
    pub(super) fn new(setup: &Setup<'_>, replies: &Arc<ReplyReader>) -> Result<Self, SetupError> {
        let endpoint = |path| BatchEndpoint::new(setup, &[path], HeaderMap::new(), replies);
        Ok(Self {
            endpoint: format!("/v1/{}", replies.protocol.path.join("/")),
            files: endpoint("files")?,
            batches: endpoint("batches")?,
        })
    }
}

impl BatchApi for FileBatches {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let head = format!(
            "{{\"custom_id\":\"{custom_id}\",\"method\":\"POST\",\"url\":\"{}\",\"body\":",
            self.endpoint
        );
        Ok([head.as_bytes(), &self.batches.body(request)?, b"}"].concat())
    }

    fn submit<'a>(
        &'a self,
        name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let part = Part::bytes(lines.join(&b"\n"[..])).file_name("tidegate.jsonl");
            let form = Form::new().text("purpose", "batch").part("file", part);
            let file = self.files.id(&self.files.upload(form).await?)?;
            let batch = json!({
                "input_file_id": file, "endpoint": self.endpoint, "completion_window": "24h", "metadata": {NOTE: name}
            });
            let body = serde_json::to_vec(&batch)
                .map_err(|_| Error::unsent(Kind::InvalidRequest, "a batch cannot be written"))?;
            let answered = self.batches.post(body).await;
            if certainly_refused(&answered) {
                // Documents should not stay in the vendor's store for nothing. If they do, that
                // changes nothing here.
                let _ = self.files.delete(&file).await;
            }
            self.batches.id(&answered?)
        })
    }

    fn find<'a>(
        &'a self,
        name: &'a str,
        _requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let created = |batch: &Value| {
            DateTime::from_timestamp(batch.get("created_at").and_then(Value::as_i64)?, 0)
        };
        Box::pin(self.batches.find("after", since - SKEW, created, move |batch| {
            batch.get("metadata").and_then(|notes| notes.get(NOTE)).and_then(Value::as_str)
                == Some(name)
        }))
    }

    fn takes_notes(&self) -> bool {
        true
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>> {
        Box::pin(async move {
            let reply = self.batches.get(id).await?;
            let batch = self.batches.success(&reply)?;
            let Some(status) = text(&batch, "/status") else {
                return Err(self.batches.unreadable(&reply));
            };
            Ok(match status {
                "completed" | "expired" | "cancelled" => State::Ended,
                "failed" => self.failed(&batch),
                _ => State::Running,
            })
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.batches.cancel(id))
    }

    /// The file of requests: the vendor keeps it until it is deleted.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let batch = self.batches.success(&self.batches.get(id).await?)?;
            match text(&batch, "/input_file_id") {
                Some(file) => self.files.delete(file).await,
                None => Ok(()),
            }
        })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let batch = self.batches.success(&self.batches.get(id).await?)?;
            let files = ["/output_file_id", "/error_file_id"].map(|which| text(&batch, which));
            let files = files.into_iter().flatten();
            let files = files.map(|file| vec![file.to_owned(), "content".to_owned()]).collect();
            Ok(self.files.answers(files, read_line))
        })
    }
}

impl FileBatches {
    fn failed(&self, batch: &Value) -> State {
        let errors =
            || batch.pointer("/errors/data").and_then(Value::as_array).into_iter().flatten();
        // The queue of a model holds so many tokens and no more.
        if errors().any(|error| error["code"] == "token_limit_exceeded") {
            return State::Full;
        }
        let code = errors().find_map(|error| text(error, "/code"));
        State::Failed(self.batches.redactor().clean(code.unwrap_or("no reason was given")))
    }
}

fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let response = line.get("response").filter(|response| !response.is_null());
    let reply = response.and_then(|response| {
        let status = response
            .get("status_code")
            .and_then(Value::as_u64)
            .and_then(|status| u16::try_from(status).ok())?;
        Some(Reply::of(status, response.get("body")?))
    });
    Some((text(line, "/custom_id")?.to_owned(), reply))
}
