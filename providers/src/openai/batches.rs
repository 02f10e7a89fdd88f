//! OpenAI's batches: a file of requests goes in, two files with answers and errors come out.

use chrono::{DateTime, Utc};
use http::header;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::{
    batch::State,
    client::key_header,
    desk::{Desk, text},
    error::{Charged, Error, Kind},
    exchange::{Lines, Reply, Wire},
    message::Redactor,
    provider::BoxFuture,
    secret::Secret,
    settings::{Settings, SetupError},
};

/// Under this name a batch's notes hold ours.
const NOTE: &str = "tidegate";

/// The vendor's batches, of requests to one endpoint.
#[derive(Debug)]
pub(crate) struct Batches {
    endpoint: &'static str,
    files: Wire,
    batches: Wire,
    key: Option<Secret>,
}

impl Batches {
    /// `endpoint` as the vendor names it: `/v1/chat/completions`.
    pub(crate) fn new(
        name: &str,
        settings: &Settings,
        endpoint: &'static str,
    ) -> Result<Self, SetupError> {
        let wire = |path| {
            Wire::new(
                name,
                settings,
                &[path],
                key_header(settings, header::AUTHORIZATION, "Bearer "),
            )
        };
        Ok(Self {
            endpoint,
            files: wire("files")?,
            batches: wire("batches")?,
            key: settings.api_key.clone(),
        })
    }

    fn redactor(&self) -> Redactor<'_> {
        Redactor::of_key(self.key.as_ref())
    }
}

impl Desk for Batches {
    fn line(&self, custom_id: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "{{\"custom_id\":\"{custom_id}\",\"method\":\"POST\",\"url\":\"{}\",\"body\":",
            self.endpoint
        );
        [head.as_bytes(), body, b"}"].concat()
    }

    fn submit<'a>(
        &'a self,
        name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let part = Part::bytes(lines.join(&b"\n"[..])).file_name("tidegate.jsonl");
            let form = Form::new().text("purpose", "batch").part("file", part);
            let uploaded = self.files.upload(form, &self.redactor()).await?;
            let file = uploaded
                .json()
                .ok()
                .filter(|_| uploaded.is_success())
                .and_then(|file| text(&file, "/id"));
            // A reply that is no file says what is wrong, and is read like one that is no batch.
            let Some(file) = file else { return Ok(uploaded) };
            let batch = json!({
                "input_file_id": file, "endpoint": self.endpoint, "completion_window": "24h", "metadata": {NOTE: name}
            });
            let body = serde_json::to_vec(&batch)
                .map_err(|_| Error::unsent(Kind::InvalidRequest, "a batch cannot be written"))?;
            let answered = self.batches.post(body, &self.redactor()).await;
            let refused = match &answered {
                Ok(reply) => !reply.is_success() && reply.status < 500,
                Err(error) => error.charged == Charged::No,
            };
            if refused {
                // Documents should not stay in the vendor's store for nothing. If they do, that
                // changes nothing here.
                let _ = self.files.delete(&[&file], &self.redactor()).await;
            }
            answered
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Reply, Error>> {
        Box::pin(async { self.batches.get(&[], &[("limit", "100")], &self.redactor()).await })
    }

    fn is(&self, batch: &Value, name: &str, _requests: usize, _since: DateTime<Utc>) -> bool {
        batch.pointer("/metadata").and_then(|notes| notes.get(NOTE)).and_then(Value::as_str)
            == Some(name)
    }

    fn takes_notes(&self) -> bool {
        true
    }

    /// The file of requests: the vendor keeps it until it is deleted.
    fn forget<'a>(&'a self, batch: &'a Value) -> BoxFuture<'a, Result<Option<Reply>, Error>> {
        Box::pin(async move {
            let Some(file) = text(batch, "/input_file_id") else { return Ok(None) };
            self.files.delete(&[&file], &self.redactor()).await.map(Some)
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.batches.get(&[id], &[], &self.redactor()).await })
    }

    fn state(&self, batch: &Value) -> Option<State> {
        Some(match batch.get("status")?.as_str()? {
            "completed" | "expired" | "cancelled" => State::Ended,
            "failed" => {
                let errors = || {
                    batch.pointer("/errors/data").and_then(Value::as_array).into_iter().flatten()
                };
                // The queue of a model holds so many tokens and no more.
                if errors().any(|error| error["code"] == "token_limit_exceeded") {
                    State::Full
                } else {
                    let code = errors().find_map(|error| text(error, "/code"));
                    State::Failed(
                        self.redactor()
                            .clean(&code.unwrap_or_else(|| "no reason was given".to_owned())),
                    )
                }
            }
            _ => State::Running,
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.batches.act(&[id, "cancel"], &self.redactor()).await })
    }

    fn files(&self, batch: &Value) -> Vec<Vec<String>> {
        let files = ["/output_file_id", "/error_file_id"].map(|which| text(batch, which));
        files.into_iter().flatten().map(|file| vec![file, "content".to_owned()]).collect()
    }

    fn open<'a>(
        &'a self,
        file: &'a [String],
    ) -> BoxFuture<'a, Result<Result<Lines, Reply>, Error>> {
        Box::pin(async move {
            let below: Vec<&str> = file.iter().map(String::as_str).collect();
            self.files.lines(&below, &self.redactor()).await
        })
    }

    fn answer(&self, line: &Value) -> Option<(String, Option<Reply>)> {
        let response = line.get("response").filter(|response| !response.is_null());
        let reply = response.and_then(|response| {
            let status = response
                .get("status_code")
                .and_then(Value::as_u64)
                .and_then(|status| u16::try_from(status).ok())?;
            Some(Reply::of(status, response.get("body")?))
        });
        Some((text(line, "/custom_id")?, reply))
    }
}
