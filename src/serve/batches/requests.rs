//! The requests of `POST /v1/messages/batches`: one JSON body, read as it arrives and written as the
//! lines of a request file. Only a few requests are in memory at once.

use std::{
    collections::HashSet,
    io::{self, BufReader, Read},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures::StreamExt as _;
use serde::{
    Deserialize, Deserializer as _,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{json, value::RawValue};
use tidegate_activities::storage::Location;
use tidegate_providers::Operation;
use tokio::sync::mpsc;

use super::{
    key_folder::{complete, store_failed},
    line_summary::{LineScanner, LineSummary},
};
use crate::serve::problem::Problem;

/// Anthropic's limits.
const MAX_REQUESTS: usize = 100_000;
const MAX_BYTES: usize = 256 << 20;

/// Maximum length of a `custom_id`, in bytes.
const MAX_ID: usize = 64;

/// Time limit for the next piece of the body.
const PIECE: Duration = Duration::from_secs(60);

/// Pieces and requests that are buffered between reader and writer.
const BUFFERED: usize = 16;

/// Concurrent uploads of parts to the store.
const PARTS: usize = 2;

/// Stores a body's requests.
///
/// # Errors
/// The body is not in Anthropic's form, is too large, or the store does not take it; nothing is stored
/// then.
pub(super) async fn store(location: &Location, body: Body) -> Result<LineSummary, Problem> {
    let (pieces, arrived) = mpsc::channel(BUFFERED);
    let (found, mut lines) = mpsc::channel::<Vec<u8>>(BUFFERED);
    let reading = tokio::task::spawn_blocking(move || {
        read_requests(Pieces { receiver: arrived, piece: Bytes::new() }, &found)
    });
    let mut writer = location.writer().with_max_concurrency(PARTS);
    let mut scanner = LineScanner::default();
    let written = async {
        while let Some(line) = lines.recv().await {
            scanner.scan(&line);
            writer.put(line.into()).await.map_err(store_failed)?;
        }
        // If writing has failed, this also ends the reading.
        drop(lines);
        Ok::<_, Problem>(())
    };
    let (passed, written, read) = tokio::join!(forward(body, pieces), written, reading);
    let read = read.map_err(store_failed);
    let read = read.and_then(|it| it.map_err(|why| Problem::new(StatusCode::BAD_REQUEST, why)));
    complete(writer, passed.and(written).and(read)).await?;
    Ok(scanner.end())
}

/// Forwards a body until it ends or its reader is gone.
async fn forward(body: Body, pieces: mpsc::Sender<Bytes>) -> Result<(), Problem> {
    let (mut body, mut bytes) = (body.into_data_stream(), 0);
    loop {
        let piece = match tokio::time::timeout(PIECE, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) => {
                return Err(Problem::new(StatusCode::BAD_REQUEST, "the body broke off"));
            }
            Ok(None) => return Ok(()),
            Err(_) => {
                let message = format!("nothing more of the body came within {PIECE:?}");
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, message));
            }
        };
        bytes += piece.len();
        if bytes > MAX_BYTES {
            let message = format!("the body has more than {} MB; divide it", MAX_BYTES >> 20);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        if pieces.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

/// A body as a blocking reader.
struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}

/// Reads the requests of a body, and sends the line of each.
fn read_requests(body: impl Read, found: &mpsc::Sender<Vec<u8>>) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(body));
    let mut requests = Requests { found, seen: HashSet::new() };
    let read = reader.deserialize_map(BodyVisitor(&mut requests)).and_then(|()| reader.end());
    read.map_err(|error| error.to_string())?;
    if requests.seen.is_empty() { Err("requests must be there".to_owned()) } else { Ok(()) }
}

struct Requests<'a> {
    found: &'a mpsc::Sender<Vec<u8>>,
    seen: HashSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    custom_id: String,
    params: Box<RawValue>,
}

impl Requests<'_> {
    fn send_line(&mut self, request: &RawValue) -> Result<(), String> {
        let place = format!("requests.{}", self.seen.len());
        if !request.get().starts_with('{') {
            return Err(format!("{place} must be an object"));
        }
        let Request { custom_id, params } =
            serde_json::from_str(request.get()).map_err(|error| format!("{place}: {error}"))?;
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if !(1..=MAX_ID).contains(&custom_id.len()) || !custom_id.bytes().all(is_letter) {
            return Err(format!(
                "{place}.custom_id must be 1 to {MAX_ID} letters, digits, hyphens and underscores"
            ));
        }
        if !params.get().starts_with('{') {
            return Err(format!("{place}.params must be an object"));
        }
        let mut line = format!(
            r#"{{"custom_id":{},"method":"POST","url":{},"body":{}}}"#,
            json!(custom_id),
            json!(Operation::Messages.path()),
            params.get()
        )
        .into_bytes();
        // A JSON string holds no raw line break, so these are whitespace.
        for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        line.push(b'\n');
        if !self.seen.insert(custom_id) {
            return Err(format!("{place}.custom_id is that of another request, too"));
        }
        if self.seen.len() > MAX_REQUESTS {
            return Err(format!("there are more than {MAX_REQUESTS} requests; divide them"));
        }
        // The receiver is gone if the store has failed.
        self.found.blocking_send(line).map_err(|_| "the store takes no more".to_owned())
    }
}

struct BodyVisitor<'a, 'r>(&'a mut Requests<'r>);

impl<'de> Visitor<'de> for BodyVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with requests")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name != "requests" {
                return Err(A::Error::custom(format_args!("{name} is no field of a batch")));
            }
            map.next_value_seed(RequestsVisitor(&mut *self.0))?;
        }
        Ok(())
    }
}

struct RequestsVisitor<'a, 'r>(&'a mut Requests<'r>);

impl<'de> DeserializeSeed<'de> for RequestsVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RequestsVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<(), A::Error> {
        while let Some(request) = requests.next_element::<Box<RawValue>>()? {
            self.0.send_line(&request).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &str) -> Result<Vec<String>, String> {
        let (found, mut lines) = mpsc::channel(BUFFERED);
        read_requests(body.as_bytes(), &found)?;
        drop(found);
        let mut all = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            all.push(String::from_utf8(line).unwrap());
        }
        Ok(all)
    }

    #[test]
    fn requests_become_lines_as_they_were_written() {
        let body = "{\"requests\": [{\"custom_id\": \"a-1\", \"params\": {\"x\": 1.50,\n \"y\": \"\\n\"}}, {\"params\": {}, \"custom_id\": \"b\"}]}";
        let line = |id: &str, body: &str| {
            format!(
                "{{\"custom_id\":\"{id}\",\"method\":\"POST\",\"url\":\"/v1/messages\",\"body\":{body}}}\n"
            )
        };
        let expected = [line("a-1", "{\"x\": 1.50,  \"y\": \"\\n\"}"), line("b", "{}")];
        assert_eq!(lines(body).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let one = |id: &str| format!(r#"{{"custom_id":"{id}","params":{{}}}}"#);
        let of = |requests: &[String]| format!(r#"{{"requests":[{}]}}"#, requests.join(","));
        for (body, says) in [
            (of(&[]), "requests must be there"),
            ("{}".to_owned(), "requests must be there"),
            ("[]".to_owned(), "an object with requests"),
            (r#"{"requests":[],"model":"m"}"#.to_owned(), "model is no field"),
            (of(&[one("a"), one("a")]), "requests.1.custom_id is that of another"),
            (of(&[one("a b")]), "requests.0.custom_id must be"),
            (of(&[one("")]), "requests.0.custom_id must be"),
            (of(&[one("a").replace("{}", "[]")]), "requests.0.params must be an object"),
            (of(&[one("a").replace("params", "param")]), "requests.0: unknown field"),
            (
                of(&[one("a"), r#"{"params":{}}"#.to_owned()]),
                "requests.1: missing field `custom_id`",
            ),
            (of(&["null".to_owned()]), "requests.0 must be an object"),
            (of(&[one("a"), r#"["b",{}]"#.to_owned()]), "requests.1 must be an object"),
            (r#"{"requests":null}"#.to_owned(), "a list of requests"),
            (of(&[one("a")]) + "x", "trailing characters"),
        ] {
            let error = lines(&body).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
