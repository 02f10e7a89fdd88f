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
}

impl UsageFilter {
    /// The complete events so far. Pieces may be cut anywhere.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Bytes {
        self.incomplete.extend_from_slice(piece);
        let mut passed = Vec::with_capacity(self.incomplete.len());
        while let Some(end) = end_of_event(&self.incomplete) {
            let rest = self.incomplete.split_off(end);
            let event = std::mem::replace(&mut self.incomplete, rest);
            if !is_usage_alone(&event) {
                passed.extend_from_slice(&event);
            }
        }
        if self.incomplete.len() > MAX_EVENT {
            passed.append(&mut self.incomplete);
        }
        passed.into()
    }

    /// The bytes after the last complete event.
    pub(super) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.incomplete).into()
    }
}

/// The offset after the empty line that ends an event.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let end = |mark: &[u8]| {
        let at = bytes.windows(mark.len()).position(|window| window == mark)?;
        Some(at + mark.len())
    };
    [end(b"\n\n"), end(b"\r\n\r\n")].into_iter().flatten().min()
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
