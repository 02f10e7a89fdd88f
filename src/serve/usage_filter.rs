//! Hides the usage event of a stream of Chat Completions. The door asks every vendor for usage; a client
//! that did not ask does not see it.

use axum::body::Bytes;
use serde_json::Value;

/// A longer event passes unread.
const MAX_EVENT: usize = 4 << 20;

/// Passes every event on, except an event that holds usage alone.
#[derive(Debug, Default)]
pub(super) struct UsageFilter {
    incomplete: Vec<u8>,
    /// The first `searched` bytes hold no end of an event.
    searched: usize,
}

impl UsageFilter {
    /// The complete events so far. Pieces may be cut anywhere.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Bytes {
        self.incomplete.extend_from_slice(piece);
        let mut passed = Vec::with_capacity(self.incomplete.len());
        let mut begin = 0;
        for at in memchr::memchr_iter(b'\n', &self.incomplete[self.searched..]) {
            let end = self.searched + at + 1;
            let event = &self.incomplete[begin..end];
            if event.ends_with(b"\n\n") || event.ends_with(b"\r\n\r\n") {
                if !is_usage_alone(event) {
                    passed.extend_from_slice(event);
                }
                begin = end;
            }
        }
        self.incomplete.drain(..begin);
        if self.incomplete.len() > MAX_EVENT {
            passed.append(&mut self.incomplete);
        }
        self.searched = self.incomplete.len();
        passed.into()
    }

    /// The bytes after the last complete event.
    pub(super) fn rest(&mut self) -> Bytes {
        self.searched = 0;
        std::mem::take(&mut self.incomplete).into()
    }
}

fn is_usage_alone(event: &[u8]) -> bool {
    let Some(data) = event.strip_prefix(b"data:") else { return false };
    let Ok(data) = serde_json::from_slice::<Value>(data) else { return false };
    let has_choice =
        data.get("choices").and_then(Value::as_array).is_none_or(|all| !all.is_empty());
    !has_choice && data.get("usage").is_some_and(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usage_chunk_is_missing_wherever_the_stream_is_cut() {
        let first = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n: a comment\n\n";
        let usage = "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 1}}\n\n";
        let last = "data: {\"choices\":[],\"usage\":null}\r\n\r\ndata: [DONE]\n\nrest";
        let whole = format!("{first}{usage}{last}");
        for step in [1, 5, whole.len()] {
            let mut filter = UsageFilter::default();
            let mut passed: Vec<u8> =
                whole.as_bytes().chunks(step).flat_map(|piece| filter.pass(piece)).collect();
            passed.extend(filter.rest());
            assert_eq!(String::from_utf8(passed).unwrap(), format!("{first}{last}"), "{step}");
        }
    }
}
