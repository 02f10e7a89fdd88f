//! Message Batches: the call holds the requests, and one file the answers. Nothing can be deleted:
//! the vendor deletes a batch and its answers after 29 days.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use serde_json::Value;

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

/// The vendor's batches.
#[derive(Debug)]
pub(super) struct MessageBatches(BatchEndpoint);

impl MessageBatches {
    pub(super) fn new(
        setup: &Setup<'_>,
        headers: HeaderMap,
        replies: &Arc<ReplyReader>,
    ) -> Result<Batches<Self>, SetupError> {
        let path = &["v1", "messages", "batches"];
        Ok(Batches(Self(BatchEndpoint::new(setup, path, headers, replies)?)))
    }
}

impl BatchVendor for MessageBatches {
    /// A batch's name is not stored: its size and time must identify it.
    const TAKES_NOTES: bool = false;
    const PAGE_AFTER: &'static str = "after_id";
    const READ_LINE: ReadLine = read_line;

    fn batches(&self) -> &BatchEndpoint {
        &self.0
    }

    fn line(
        &self,
        custom_id: &str,
        _model: &str,
        _operation: Option<Operation>,
        body: &[u8],
    ) -> Vec<u8> {
        [b"{\"custom_id\":\"", custom_id.as_bytes(), b"\",\"params\":", body, b"}"].concat()
    }

    async fn create(
        &self,
        _name: &str,
        _operation: Option<Operation>,
        lines: &[Vec<u8>],
        _file: Option<String>,
    ) -> Result<Reply, Error> {
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
        self.0.wire.post(body).await
    }

    fn created(batch: &Value) -> Option<DateTime<Utc>> {
        DateTime::parse_from_rfc3339(text(batch, "/created_at")?).ok().map(|at| at.to_utc())
    }

    fn matches(batch: &Value, _name: &str, requests: usize, since: DateTime<Utc>) -> bool {
        let counts = batch.get("request_counts").and_then(Value::as_object);
        let counts = counts.into_iter().flat_map(|counts| counts.values());
        let count: u64 = counts.filter_map(Value::as_u64).sum();
        count == requests as u64 && Self::created(batch).is_some_and(|created| created >= since)
    }

    fn state(batch: &Value) -> Option<State> {
        let status = text(batch, "/processing_status")?;
        Some(if status == "ended" { State::Ended } else { State::Running })
    }

    fn answer_files(batch: &Value) -> Vec<Vec<String>> {
        let id = text(batch, "/id");
        id.map(|id| vec![id.to_owned(), "results".to_owned()]).into_iter().collect()
    }
}

fn read_line(line: &Value) -> Option<(String, Option<Reply>)> {
    let reply = match text(line, "/result/type")? {
        "succeeded" => Some(Reply::from_json(200, line.pointer("/result/message")?)),
        // The line has no status: it is read as an error in a success.
        "errored" => Some(Reply::from_json(200, line.pointer("/result/error")?)),
        _ => None,
    };
    Some((text(line, "/custom_id")?.to_owned(), reply))
}
