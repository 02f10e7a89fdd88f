//! Reads single values from JSON.

use serde_json::Value;

/// Most objects and lists of a reply or request, brackets in its texts included: each may take 640 bytes of
/// memory. A chat answer of 11,000 tokens with twenty alternatives to each has so many.
const MAX_GROUPS: usize = 500_000;

/// Most commas of a reply: each value takes 32 to 64 bytes of memory. The largest reply of vectors
/// has 2,048 of 3,072 numbers, or 6.3 million.
const MAX_COMMAS: usize = 8_000_000;

/// A text; `None` if the field is absent or no text.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// A count, also as a float or a text; `None` if absent, negative or invalid.
pub(crate) fn count(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, name| value.get(name)).and_then(|value| match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

fn whole(number: f64) -> Option<u64> {
    // Far below 2^53: exact.
    let is_count = number.fract() == 0.0 && (0.0..1e15).contains(&number);
    // A whole number within the range of u64.
    is_count.then_some(number as u64)
}

/// Reads a value in JSON, or as Python prints one: gateways in Python put errors into messages so.
pub(crate) fn literal(text: &str) -> Option<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&from_python(text))).ok()
}

/// Rewrites texts in single quotes, `None`, `True` and `False`.
fn from_python(text: &str) -> String {
    let (mut json, mut rest) = (String::with_capacity(text.len()), text);
    // The quotation mark of the text that is open.
    let mut open: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let word = [("None", "null"), ("True", "true"), ("False", "false")]
            .into_iter()
            .find(|(word, _)| open.is_none() && rest.starts_with(word));
        let (from, to) = match (open, c) {
            _ if word.is_some() => word.map_or((1, ""), |(word, json)| (word.len(), json)),
            (Some(_), '\\') if rest.starts_with("\\'") => (2, "'"),
            (Some(_), '\\') => escape(rest),
            (Some('\''), '"') => (1, "\\\""),
            (Some('\''), '\'') | (None, '\'') => (1, "\""),
            _ => (c.len_utf8(), &rest[..c.len_utf8()]),
        };
        match open {
            Some(mark) if mark == c => open = None,
            None if matches!(c, '"' | '\'') => open = Some(c),
            _ => {}
        }
        json.push_str(to);
        rest = rest.get(from..).unwrap_or_default();
    }
    json
}

/// Parses JSON of a provider or a client, unless it would take far more memory than any answer or request.
pub(crate) fn bounded(json: &[u8]) -> Option<Value> {
    if has_too_many_values(json) { None } else { serde_json::from_slice(json).ok() }
}

/// Returns whether JSON has more values than any answer or request. A text in it that is JSON itself, such as
/// an answer by a schema, is within the same bounds.
pub(crate) fn has_too_many_values(json: &[u8]) -> bool {
    // A request may be a text of many megabytes: SIMD, also in a development build.
    memchr::memchr2_iter(b'{', b'[', json).nth(MAX_GROUPS).is_some()
        || json.len() > MAX_COMMAS && memchr::memchr_iter(b',', json).nth(MAX_COMMAS).is_some()
}

/// Parses a body as JSON, tolerating faults that some servers make in a good answer: half a
/// surrogate becomes U+FFFD, `NaN` and `Infinity` become null, and invalid UTF-8 becomes U+FFFD.
///
/// # Errors
/// The reason why there is no value.
pub(crate) fn lenient(body: &[u8]) -> Result<Value, &'static str> {
    // A byte order mark is no part of the text (RFC 8259, 8.1).
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if has_too_many_values(body) {
        return Err("it has more values than any answer");
    }
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    serde_json::from_str(&mended(&String::from_utf8_lossy(body))).map_err(|_| "it is not JSON")
}

fn mended(text: &str) -> String {
    let (mut mended, mut rest, mut in_string) = (String::with_capacity(text.len()), text, false);
    while let Some(c) = rest.chars().next() {
        let (from, to) = match (in_string, c) {
            (true, '\\') => escape(rest),
            (false, 'N') if rest.starts_with("NaN") => (3, "null"),
            (false, 'I') if rest.starts_with("Infinity") => (8, "null"),
            (false, '-') if rest.starts_with("-Infinity") => (9, "null"),
            _ => (c.len_utf8(), &rest[..c.len_utf8()]),
        };
        in_string ^= c == '"';
        mended.push_str(to);
        rest = rest.get(from..).unwrap_or_default();
    }
    mended
}

/// The length of an escape at the beginning, and its replacement.
fn escape(text: &str) -> (usize, &str) {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let length = match unit(text) {
        None => 1 + text.chars().nth(1).map_or(0, char::len_utf8),
        Some(0xD800..=0xDBFF) if text.get(6..).and_then(unit).is_some_and(is_low) => 12,
        Some(0xD800..=0xDFFF) => return (6, "\\ufffd"),
        Some(_) => 6,
    };
    (length, text.get(..length).unwrap_or(text))
}

fn is_low(unit: u16) -> bool {
    (0xDC00..=0xDFFF).contains(&unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_read_as_they_come() {
        let body = json!({"a": 60, "b": 60.0, "c": "60", "d": 1.5, "e": -1, "f": "-1", "g": null});
        let counts = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| count(&body, &[name]));
        assert_eq!(counts, [Some(60), Some(60), Some(60), None, None, None, None, None]);
    }

    #[test]
    fn values_are_read_as_python_prints_them() {
        let text = r#"{'error': {'code': 'x', 'param': None, "said": "it's", 'quote': 'a "b" \'c\'', 'no': False}}"#;
        let expected = json!({"error": {"code": "x", "param": null, "said": "it's", "quote": "a \"b\" 'c'", "no": false}});
        assert_eq!(literal(text), Some(expected));
        assert_eq!(literal("{'a': "), None);
    }

    #[test]
    fn invalid_json_beside_an_answer_is_tolerated() {
        let cases = [
            (r#"{"a": NaN, "b": [-Infinity, Infinity]}"#, json!({"a": null, "b": [null, null]})),
            (r#"{"a": "NaN \" NaN"}"#, json!({"a": "NaN \" NaN"})),
            (r#"{"a": "x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            (r#"{"a": "\ude00\ud83d\ude00\\ud83d"}"#, json!({"a": "\u{fffd}\u{1f600}\\ud83d"})),
        ];
        for (text, expected) in cases {
            assert_eq!(lenient(text.as_bytes()), Ok(expected), "{text}");
        }
        assert_eq!(lenient(b"{\"a\": \"\xff\"}"), Ok(json!({"a": "\u{fffd}"})));
        assert_eq!(lenient(b"{"), Err("it is not JSON"));
    }

    #[test]
    fn a_reply_of_more_values_than_any_answer_is_not_parsed() {
        let nested = |count: usize| format!("{{\"x\":[{}0]}}", "{\"\":0},".repeat(count));
        let too_many = Err("it has more values than any answer");
        assert_eq!(lenient(nested(MAX_GROUPS).as_bytes()), too_many);
        assert_eq!(bounded(nested(MAX_GROUPS).as_bytes()), None);
        assert!(bounded(nested(1_000).as_bytes()).is_some());
        // An answer that is JSON is a text of the reply.
        let answer = json!({"text": nested(MAX_GROUPS)}).to_string();
        assert_eq!(lenient(answer.as_bytes()), too_many);
        let numbers = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert_eq!(lenient(numbers(MAX_COMMAS + 1).as_bytes()), too_many);
        // The vectors of 2,048 texts.
        let vector = numbers(3_071);
        let vectors =
            format!("{{\"data\":[{}0]}}", format!("{{\"embedding\":{vector}}},").repeat(2_048));
        assert!(!has_too_many_values(vectors.as_bytes()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in r#"[\\"'uNaNdD8c0-9{}:,é-]{0,60}"#) {
            let _ = lenient(text.as_bytes());
            literal(&text);
        }
    }
}
