//! A file of requests in a vendor's own form: each line is a document, which is read again when it
//! is processed. Only a block of the file and the positions of its lines are in memory.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Job, Lines, Source};

use crate::{
    batch::{
        document_ids::DocumentIds,
        source::page::{Cursor, FilePosition, LinePosition, Page, PageBudget},
    },
    document::request,
    failure::{Failure, field_fault},
    fingerprint::{Fingerprint, Key, key},
    output::{
        job::{Document, resolve},
        jsonl::{other, unmarked},
        version::Version,
    },
    storage::{Error, Stamp, Storage},
};

/// Bytes that are read at once.
const BLOCK: u64 = 4 << 20;

/// Longest line, in bytes; the HTTP door's longest body is as long.
const MAX_LINE: usize = 32 << 20;

/// The next requests. A line that is not a request becomes a document that fails and reports the
/// reason.
///
/// # Errors
/// `InvalidInput` where there is no such file; `Transient` when the store fails.
pub(super) async fn page(
    storage: &Storage,
    job: &Job,
    lines: &Lines,
    begin: LinePosition,
    names: &DocumentIds,
    room: &PageBudget,
) -> Result<Page, Failure> {
    let Source::Prefix(uri) = &job.source else {
        return Err(Failure::invalid_input("lines are those of one file, which source names"));
    };
    let file = resolve(storage, "source", uri)?;
    let stamp = file.stamp().await.map_err(|error| field_fault("source", error))?;
    let stamp = stamp.ok_or_else(|| field_fault("source", Error::Missing(file.uri())))?;
    let size = stamp.size;
    let mut from = begin.byte;
    let mut reading = Reading::new(file.uri(), &stamp, lines, names, begin);
    while from < size && !reading.is_full(room) {
        let to = (from + BLOCK).min(size);
        let block = file.read_range(from..to).await;
        reading.block(&block.map_err(|error| field_fault("source", error))?, room);
        from = to;
    }
    let next = reading.is_full(room).then(|| reading.place()).filter(|place| place.byte < size);
    if next.is_none() {
        reading.finish_line();
    }
    let files = reading.seen.into_iter().collect();
    let next = next.map(|place| Cursor { files: FilePosition::Line(place), within: None });
    Ok(Page { documents: reading.documents, files, next })
}

/// The fields of a line that are read here; the body is parsed when the document is processed.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

/// A file that is being read.
struct Reading<'a> {
    uri: String,
    /// The file's stamp: with the line's position, it identifies the line's content without reading it.
    stamp: Vec<u8>,
    lines: &'a Lines,
    /// The ids of the pages before.
    names: &'a DocumentIds,
    /// The byte where this page begins.
    begin: u64,
    /// The bytes of the current line, unless it is too long.
    line: BytesMut,
    /// Start and current end of the line, in bytes.
    at: (u64, u64),
    /// Lines before it.
    number: u64,
    /// The first line of this page with each `custom_id`.
    seen: HashMap<Key, u64>,
    documents: Vec<Document>,
}

impl<'a> Reading<'a> {
    fn new(
        uri: String,
        stamp: &Stamp,
        lines: &'a Lines,
        names: &'a DocumentIds,
        begin: LinePosition,
    ) -> Self {
        Self {
            uri,
            stamp: serde_json::to_vec(stamp).unwrap_or_default(),
            lines,
            names,
            begin: begin.byte,
            line: BytesMut::new(),
            at: (begin.byte, begin.byte),
            number: begin.line,
            seen: HashMap::new(),
            documents: Vec::new(),
        }
    }

    /// Whether the page is full.
    fn is_full(&self, room: &PageBudget) -> bool {
        let bytes = self.at.0 - self.begin;
        bytes > 0 && (bytes >= room.bytes as u64 || self.documents.len() >= room.documents)
    }

    /// The position after the last whole line.
    fn place(&self) -> LinePosition {
        LinePosition { byte: self.at.0, line: self.number }
    }

    /// Reads a block, until the page is full.
    fn block(&mut self, mut block: &[u8], room: &PageBudget) {
        while let Some(end) = block.iter().position(|byte| *byte == b'\n') {
            self.add(&block[..end]);
            self.finish_line();
            // After the end of the line.
            self.at = (self.at.1 + 1, self.at.1 + 1);
            block = &block[end + 1..];
            if self.is_full(room) {
                return;
            }
        }
        self.add(block);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.at.1 += bytes.len() as u64;
        if self.line.len() <= MAX_LINE {
            self.line.extend_from_slice(bytes);
        }
    }

    fn finish_line(&mut self) {
        self.number += 1;
        let line = std::mem::take(&mut self.line).freeze();
        if line.trim_ascii().is_empty() {
            return;
        }
        let id = DocumentId::from_relative_path(&format!("{:07}", self.number));
        let (custom_id, read) = self.read(&line);
        let uri = match &custom_id {
            Some(custom_id) => format!("{}#{custom_id}", self.uri),
            None => self.uri.clone(),
        };
        let unreadable = read.err().map(|why| format!("{} {}: {why}", self.word(), self.number));
        let (from, to) = (self.at.0.to_le_bytes(), self.at.1.to_le_bytes());
        let place = [self.uri.as_bytes(), &self.stamp, &from, &to].concat();
        let content = Some(Fingerprint::of_bytes(&place));
        let version = Version { content, ..Version::default() };
        let file = Document::file(id, uri);
        self.documents.push(Document { unreadable, version, line: Some(self.at), ..file });
    }

    /// The vendor's word for a line of the file, for messages.
    fn word(&self) -> &'static str {
        if self.lines.is_anthropics() { "request" } else { "line" }
    }

    /// Reads the client's id of the request, and whether the line is a valid request.
    fn read(&mut self, line: &Bytes) -> (Option<String>, Result<(), String>) {
        if line.len() > MAX_LINE {
            return (None, Err(format!("it is longer than {MAX_LINE} bytes")));
        }
        let line = unmarked(line);
        // serde would also read a list into a struct.
        if let Some(kind) = other(line) {
            return (None, Err(format!("it is {kind}; a request is an object")));
        }
        let Ok(Line { custom_id, method, url, body }) = serde_json::from_slice(line) else {
            return (None, Err(request::NO_OBJECT.to_owned()));
        };
        let text = |value: Option<&RawValue>| serde_json::from_str::<String>(value?.get()).ok();
        let Some(custom_id) = text(custom_id).filter(|id| !id.is_empty()) else {
            return (None, Err("custom_id must be a text".to_owned()));
        };
        let own = key(&custom_id);
        let before = self.names.line_of(own);
        let first = before.unwrap_or_else(|| *self.seen.entry(own).or_insert(self.number));
        let endpoint = &self.lines.endpoint;
        let read = if first < self.number {
            Err(format!("custom_id is that of {} {first}, too", self.word()))
        } else if text(method).as_deref() != Some("POST") {
            Err("method must be POST".to_owned())
        } else if text(url).as_ref() != Some(endpoint) {
            Err(format!("url must be {endpoint}, as the batch's endpoint is"))
        } else if !body.is_some_and(|body| body.get().starts_with('{')) {
            Err("body must be an object".to_owned())
        } else {
            Ok(())
        };
        (Some(custom_id), read)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn lines_are_found_where_they_lie_and_faults_are_named() {
        let lines = Lines { endpoint: "/v1/responses".to_owned(), ..Lines::default() };
        let good = |id: &str| {
            format!(r#"{{"custom_id":"{id}","method":"POST","url":"/v1/responses","body":{{}}}}"#)
        };
        let file = [
            good("a/1"),
            String::new(),
            "no json".to_owned(),
            good("a/1"),
            good("b").replace("POST", "GET"),
            good("c").replace("/v1/responses", "/v1/embeddings"),
            good("d").replace("{}", "7"),
            r#"{"custom_id":7}"#.to_owned(),
            good("e"),
            r#"["f","POST","/v1/responses",{}]"#.to_owned(),
        ];
        let whole = file.join("\n");
        for step in [1, 7, whole.len()] {
            let (names, uri) = (DocumentIds::default(), "file:///in.jsonl".to_owned());
            let begin = LinePosition::default();
            let stamp = Stamp { etag: None, size: 0, modified: DateTime::default() };
            let mut reading = Reading::new(uri, &stamp, &lines, &names, begin);
            whole
                .as_bytes()
                .chunks(step)
                .for_each(|block| reading.block(block, &PageBudget::page()));
            reading.finish_line();
            let documents = reading.documents;
            for document in &documents {
                let (from, to) = document.line.unwrap();
                let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
                let number: usize = document.id.as_str().parse().unwrap();
                assert_eq!(whole[from..to], file[number - 1]);
            }
            let told: Vec<&str> =
                documents.iter().map(|it| it.unreadable.as_deref().unwrap_or("")).collect();
            assert_eq!(
                told,
                [
                    "",
                    "line 3: it is not one JSON object with each field once",
                    "line 4: custom_id is that of line 1, too",
                    "line 5: method must be POST",
                    "line 6: url must be /v1/responses, as the batch's endpoint is",
                    "line 7: body must be an object",
                    "line 8: custom_id must be a text",
                    "",
                    "line 10: it is an array; a request is an object",
                ]
            );
            assert_eq!(documents[0].uri, "file:///in.jsonl#a/1");
            assert_eq!(documents[6].uri, "file:///in.jsonl");
        }
    }
}
