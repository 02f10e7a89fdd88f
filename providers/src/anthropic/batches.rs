//! Message Batches.

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use serde_json::Value;

use crate::{
    batch::State,
    desk::{Desk, text},
    error::Error,
    exchange::{Lines, Reply, Wire},
    message::Redactor,
    provider::BoxFuture,
    secret::Secret,
    settings::{Settings, SetupError},
};

/// How far two clocks may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// The vendor's batches.
#[derive(Debug)]
pub(super) struct MessageBatches {
    wire: Wire,
    key: Option<Secret>,
}

impl MessageBatches {
    pub(super) fn new(
        name: &str,
        settings: &Settings,
        headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        let wire = Wire::new(name, settings, &["v1", "messages", "batches"], headers)?;
        Ok(Self { wire, key: settings.api_key.clone() })
    }

    fn redactor(&self) -> Redactor<'_> {
        Redactor::of_key(self.key.as_ref())
    }
}

impl Desk for MessageBatches {
    fn line(&self, custom_id: &str, body: &[u8]) -> Vec<u8> {
        [b"{\"custom_id\":\"", custom_id.as_bytes(), b"\",\"params\":", body, b"}"].concat()
    }

    fn submit<'a>(
        &'a self,
        _name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let mut body =
                Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + 32);
            body.extend_from_slice(b"{\"requests\":[");
            for (number, line) in lines.iter().enumerate() {
                if number > 0 {
                    body.push(b',');
                }
                body.extend_from_slice(line);
            }
            body.extend_from_slice(b"]}");
            self.wire.post(body, &self.redactor()).await
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Reply, Error>> {
        Box::pin(async { self.wire.get(&[], &[("limit", "100")], &self.redactor()).await })
    }

    /// No note is taken of a batch's name: its size and its time must do.
    fn is(&self, batch: &Value, _name: &str, requests: usize, since: DateTime<Utc>) -> bool {
        let counts = batch.get("request_counts").and_then(Value::as_object);
        let count: u64 =
            counts.into_iter().flat_map(|counts| counts.values()).filter_map(Value::as_u64).sum();
        let created = batch
            .get("created_at")
            .and_then(Value::as_str)
            .and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        count == requests as u64 && created.is_some_and(|created| created >= since - SKEW)
    }

    fn takes_notes(&self) -> bool {
        false
    }

    /// The vendor removes a batch and its answers after 29 days.
    fn forget<'a>(&'a self, _batch: &'a Value) -> BoxFuture<'a, Result<Option<Reply>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.wire.get(&[id], &[], &self.redactor()).await })
    }

    fn state(&self, batch: &Value) -> Option<State> {
        match batch.get("processing_status")?.as_str()? {
            "ended" => Some(State::Ended),
            _ => Some(State::Running),
        }
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.wire.act(&[id, "cancel"], &self.redactor()).await })
    }

    fn files(&self, batch: &Value) -> Vec<Vec<String>> {
        text(batch, "/id").map(|id| vec![id, "results".to_owned()]).into_iter().collect()
    }

    fn open<'a>(
        &'a self,
        file: &'a [String],
    ) -> BoxFuture<'a, Result<Result<Lines, Reply>, Error>> {
        Box::pin(async move {
            let below: Vec<&str> = file.iter().map(String::as_str).collect();
            self.wire.lines(&below, &self.redactor()).await
        })
    }

    fn answer(&self, line: &Value) -> Option<(String, Option<Reply>)> {
        let reply = match line.pointer("/result/type")?.as_str()? {
            "succeeded" => Some(Reply::of(200, line.pointer("/result/message")?)),
            // No status is told: the error's name decides what it is.
            "errored" => Some(Reply::of(500, line.pointer("/result/error")?)),
            _ => None,
        };
        Some((text(line, "/custom_id")?, reply))
    }
}
