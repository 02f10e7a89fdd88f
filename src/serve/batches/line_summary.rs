//! Summarizes a file of requests as it arrives: the number of its lines, and the models that they
//! name. At most one line is in memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// OpenAI's limit of lines.
pub(super) const MAX_LINES: u64 = 50_000;

/// A longer line, in bytes, is counted but not parsed.
const MAX_PARSED: usize = 16 << 20;

/// At most this many models are recorded.
const MAX_MODELS: usize = 32;

/// A longer name, in bytes, is not recorded: no model has one, and the summary is one object.
const MAX_NAME: usize = 512;

/// The summary of a file of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineSummary {
    /// Lines that are not empty.
    pub(super) lines: u64,
    /// Lines that are JSON objects.
    pub(super) objects: u64,
    /// The number of lines that name each model.
    pub(super) models: BTreeMap<String, u64>,
}

/// Scans a file as it arrives.
#[derive(Debug, Default)]
pub(super) struct LineScanner {
    line: Vec<u8>,
    is_too_long: bool,
    seen: LineSummary,
}

/// The part of a line that is parsed.
#[derive(Deserialize)]
struct RequestLine {
    #[serde(default)]
    body: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Body {
    model: String,
}

impl LineScanner {
    pub(super) fn scan(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    /// Lines so far.
    pub(super) fn lines(&self) -> u64 {
        self.seen.lines
    }

    pub(super) fn end(mut self) -> LineSummary {
        self.end_line();
        self.seen
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > MAX_PARSED {
            self.is_too_long = true;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        if is_too_long || !line.trim_ascii().is_empty() {
            self.seen.lines += 1;
            let read = serde_json::from_slice::<RequestLine>(line);
            self.seen.objects += u64::from(is_too_long || read.is_ok());
            let body = read.ok().and_then(|line| line.body);
            let body = body.and_then(|body| serde_json::from_str::<Body>(body.get()).ok());
            if let Some(Body { model }) = body
                && model.len() <= MAX_NAME
                && (self.seen.models.len() < MAX_MODELS || self.seen.models.contains_key(&model))
            {
                *self.seen.models.entry(model).or_default() += 1;
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_wherever_the_file_is_cut() {
        let file = "\u{feff}{\"body\":{\"model\":\"a:b\"}}\n\n{\"body\":{\"model\":\"a:c\"}}\n{\"body\":{\"model\":\"a:c\",\"x\":[1]}}\r\nno json\n{\"body\":7}";
        let seen = |step| {
            let mut scanner = LineScanner::default();
            file.as_bytes().chunks(step).for_each(|piece| scanner.scan(piece));
            scanner.end()
        };
        for step in [1, 3, 1000] {
            let LineSummary { lines, objects, models } = seen(step);
            assert_eq!((lines, objects), (5, 4), "{step}");
            let models: Vec<_> = models.into_iter().collect();
            assert_eq!(models, [("a:b".to_owned(), 1), ("a:c".to_owned(), 2)], "{step}");
        }
    }

    #[test]
    fn a_name_that_no_model_has_is_not_recorded() {
        let mut scanner = LineScanner::default();
        let name = "m".repeat(MAX_NAME + 1);
        scanner.scan(format!("{{\"body\":{{\"model\":\"{name}\"}}}}\n").as_bytes());
        let LineSummary { lines, objects, models } = scanner.end();
        assert_eq!((lines, objects, models.len()), (1, 1, 0));
    }
}
