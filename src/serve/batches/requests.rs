//! The requests of `POST /v1/messages/batches`: one body of JSON, read as it comes, and written as the
//! lines that a file of requests has. No more of it is in memory than a few requests.

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
use tidegate_activities::storage::{self, Location};
use tidegate_providers::Operation;
use tokio::{io::AsyncWriteExt as _, sync::mpsc};

use super::{
    place::away,
    seen::{Passing, Seen},
};
use crate::serve::problem::Problem;

/// Anthropic takes no more.
const MAX_REQUESTS: usize = 100_000;
const MAX_BYTES: usize = 256 << 20;

/// Of a `custom_id`.
const MAX_ID: usize = 64;

/// The next piece comes within this, or its client is gone.
const PIECE: Duration = Duration::from_secs(60);

/// Pieces and requests that wait for whoever takes them.
const WAITING: usize = 16;

/// Parts that are on their way to the store at once.
const PARTS: usize = 2;

/// Takes a body's requests.
///
/// # Errors
/// The body is not Anthropic's, is too large, or the store does not take it; nothing is there then.
pub(super) async fn take(location: &Location, body: Body) -> Result<Seen, Problem> {
    let (pieces, come) = mpsc::channel(WAITING);
    let (found, mut lines) = mpsc::channel::<Vec<u8>>(WAITING);
    let reading = tokio::task::spawn_blocking(move || read(Pieces::of(come), &found));
    let mut writer = location.writer().with_max_concurrency(PARTS);
    let mut passing = Passing::default();
    let written = async {
        while let Some(line) = lines.recv().await {
            passing.pass(&line);
            writer.put(line.into()).await.map_err(|error| failed(&error.to_string()))?;
        }
        // Who fails here lets the reading end.
        drop(lines);
        Ok::<_, Problem>(())
    };
    let (passed, written, read) = tokio::join!(pass(body, pieces), written, reading);
    let ended = async {
        passed?;
        written?;
        let read = read.map_err(|error| failed(&error.to_string()))?;
        read.map_err(|why| Problem::new(StatusCode::BAD_REQUEST, why))?;
        writer.shutdown().await.map_err(|error| failed(&error.to_string()))
    };
    if let Err(problem) = ended.await {
        if let Err(error) = writer.abort().await {
            tracing::debug!(%error, "requests that broke off may stay behind in part");
        }
        return Err(problem);
    }
    Ok(passing.end())
}

fn failed(why: &str) -> Problem {
    away(&storage::Error::Failed(why.to_owned()))
}

/// Passes a body on, until it ends or nobody reads it.
async fn pass(body: Body, pieces: mpsc::Sender<Bytes>) -> Result<(), Problem> {
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

/// A body for who reads and waits.
struct Pieces {
    come: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Pieces {
    fn of(come: mpsc::Receiver<Bytes>) -> Self {
        Self { come, piece: Bytes::new() }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.come.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}

/// Reads the requests of a body, and hands on the line of each.
fn read(body: impl Read, found: &mpsc::Sender<Vec<u8>>) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(body));
    let mut requests = Requests { found, seen: HashSet::new() };
    let read = reader.deserialize_map(Whole(&mut requests)).and_then(|()| reader.end());
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
    fn take(&mut self, request: &RawValue) -> Result<(), String> {
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
        // Within JSON's texts there is none.
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
        // Nobody takes it whose store has failed.
        self.found.blocking_send(line).map_err(|_| "the store takes no more".to_owned())
    }
}

struct Whole<'a, 'r>(&'a mut Requests<'r>);

impl<'de> Visitor<'de> for Whole<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with requests")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name != "requests" {
                return Err(A::Error::custom(format_args!("{name} is no field of a batch")));
            }
            map.next_value_seed(Each(&mut *self.0))?;
        }
        Ok(())
    }
}

struct Each<'a, 'r>(&'a mut Requests<'r>);

impl<'de> DeserializeSeed<'de> for Each<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Each<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<(), A::Error> {
        while let Some(request) = requests.next_element::<Box<RawValue>>()? {
            self.0.take(&request).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &str) -> Result<Vec<String>, String> {
        let (found, mut lines) = mpsc::channel(WAITING);
        read(body.as_bytes(), &found)?;
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
