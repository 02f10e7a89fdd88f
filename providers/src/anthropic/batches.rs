//! Message Batches.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use serde_json::Value;

use crate::{
    batch::{Answers, BatchApi, State},
    batch_endpoint::BatchEndpoint,
    call::{BoxFuture, Request},
    client::ReplyReader,
    error::Error,
    exchange::Reply,
    json::text,
    settings::{Setup, SetupError},
};

/// How far two clocks may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// The vendor's batches.
#[derive(Debug)]
pub(super) struct MessageBatches(BatchEndpoint);

impl MessageBatches {
    pub(super) fn new(
        setup: &Setup<'_>,
        headers: HeaderMap,
        replies: &Arc<ReplyReader>,
    ) -> Result<Self, SetupError> {
        let path = &["v1", "messages", "batches"];
        Ok(Self(BatchEndpoint::new(setup, path, headers, replies)?))
    }
}

impl BatchApi for MessageBatches {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let body = self.0.body(request)?;
        Ok([b"{\"custom_id\":\"", custom_id.as_bytes(), b"\",\"params\":", &body, b"}"].concat())
    }

    fn submit<'a>(
        &'a self,
        _name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let length = lines.iter().map(|line| line.len() + 1).sum::<usize>();
            let mut body = Vec::with_capacity(length + 32);
            body.extend_from_slice(b"{\"requests\":[");
            for (number, line) in lines.iter().enumerate() {
                if number > 0 {
                    body.push(b',');
                }
                body.extend_from_slice(line);
            }
            body.extend_from_slice(b"]}");
            self.0.id(&self.0.post(body).await?)
        })
    }

    /// No note is taken of a batch's name: its size and its time must do.
    fn find<'a>(
        &'a self,
        _name: &'a str,
        requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let since = since - SKEW;
        Box::pin(self.0.find("after_id", since, created, move |batch| {
            let counts = batch.get("request_counts").and_then(Value::as_object);
            let counts = counts.into_iter().flat_map(|counts| counts.values());
            let count: u64 = counts.filter_map(Value::as_u64).sum();
            count == requests as u64 && created(batch).is_some_and(|created| created >= since)
        }))
    }

    fn takes_notes(&self) -> bool {
        false
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>> {
        Box::pin(async move {
            let reply = self.0.get(id).await?;
            match text(&self.0.success(&reply)?, "/processing_status") {
                Some("ended") => Ok(State::Ended),
                Some(_) => Ok(State::Running),
                None => Err(self.0.unreadable(&reply)),
            }
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.0.cancel(id))
    }

    /// Nothing can be removed: the vendor removes a batch and its answers after 29 days.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.0.success(&self.0.get(id).await?).map(drop) })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let batch = self.0.success(&self.0.get(id).await?)?;
            let file = text(&batch, "/id").map(|id| vec![id.to_owned(), "results".to_owned()]);
            Ok(self.0.answers(file.into_iter().collect(), read_line))
        })
    }
}

fn created(batch: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text(batch, "/created_at")?).ok().map(|at| at.to_utc())
}

fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let reply = match text(line, "/result/type")? {
        "succeeded" => Some(Reply::of(200, line.pointer("/result/message")?)),
        // No status is given: the error's name decides what it is.
        "errored" => Some(Reply::of(500, line.pointer("/result/error")?)),
        _ => None,
    };
    Some((text(line, "/custom_id")?.to_owned(), reply))
}
