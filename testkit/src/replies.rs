//! Replies of real providers, a row each, with what is right and where they come from
//! (`replies.jsonl`). They are read one by one, and tried as batches.

use std::{collections::BTreeMap, time::SystemTime};

use serde::Deserialize;
use serde_json::Value;

/// One reply.
#[derive(Debug, Deserialize)]
pub struct ReplyRow {
    /// Its name.
    pub id: String,
    /// The dialect in which the call is made: `openai`, `anthropic`, …
    pub kind: String,
    /// The HTTP status; 0 where no reply comes.
    pub status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
    /// The right outcome.
    pub expected: Expected,
    /// The class that it stands for.
    #[serde(rename = "cls")]
    pub class: String,
    /// The connection ends after this part of the body.
    pub cut: Option<f64>,
    /// It is the reply to a call for vectors.
    #[serde(default)]
    pub embed: bool,
    /// The batch has a budget in dollars.
    #[serde(default)]
    pub budget: bool,
    /// The fault of the connection, where it is not in the reply.
    pub net: Option<String>,
    /// The patterns in which it is tried; all of them where none is named.
    #[serde(default)]
    pub only: Vec<String>,
    /// The schema that the batch has.
    pub schema: Option<Value>,
    /// Numbers of each vector that the batch asks for.
    pub dimensions: Option<u32>,
    /// It was seen to pass by itself.
    #[serde(default)]
    pub transient_seen: bool,
}

/// The right outcome for a reply.
#[derive(Debug, Deserialize)]
pub struct Expected {
    /// A failure type, or `success`.
    pub outcome: String,
    /// Others that are right too.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Of a limit: `minute`, `5h`, `day`, `month`, `credit`, …
    pub span: Option<String>,
    /// The wait that it asks for, in seconds.
    pub retry_after_s: Option<f64>,
    /// The tokens of an answer: input beside the cache, read from it, written to it, output.
    pub usage: Option<[u64; 4]>,
    /// The text of an answer.
    pub answer: Option<String>,
    /// The worker names it before a batch meets it.
    #[serde(default)]
    pub config_error: bool,
}

impl ReplyRow {
    /// All rows.
    ///
    /// # Panics
    /// Where a row cannot be read.
    pub fn all() -> Vec<Self> {
        let rows = include_str!("replies.jsonl").lines();
        rows.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether this outcome is right.
    pub fn is(&self, outcome: &str) -> bool {
        self.expected.outcome == outcome || self.expected.accept.iter().any(|it| it == outcome)
    }

    /// Its headers, with the times that they name.
    pub fn headers(&self) -> Vec<(String, String)> {
        self.headers.iter().map(|(name, value)| (name.clone(), dated(value))).collect()
    }

    /// Its body, with the times that it names.
    pub fn body(&self) -> Vec<u8> {
        let text = match &self.body {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            body => body.to_string(),
        };
        dated(&text).into_bytes()
    }
}

/// The text with a time in the place of each `{iso+20}`, `{epoch+4}`, `{epochms+4}` and `{httpdate+5}`:
/// so many seconds from now.
fn dated(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}').and_then(|(name, after)| Some((time(name)?, after))) {
            Some((time, after)) => {
                out.push_str(&time);
                rest = after;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn time(name: &str) -> Option<String> {
    let (form, seconds) = name.split_once('+')?;
    let then = chrono::Utc::now() + chrono::TimeDelta::seconds(seconds.parse().ok()?);
    Some(match form {
        "iso" => then.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        "epoch" => then.timestamp().to_string(),
        "epochms" => then.timestamp_millis().to_string(),
        "httpdate" => httpdate::fmt_http_date(SystemTime::from(then)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_where_they_are_named_and_nothing_else_changes() {
        assert_eq!(dated(r#"{"a": {"b": 1}}"#), r#"{"a": {"b": 1}}"#);
        let seconds: i64 = dated("{epoch+4}").parse().unwrap();
        assert!((3..=5).contains(&(seconds - chrono::Utc::now().timestamp())));
        assert!(dated(r#"{"a": "{iso+20}", "b": "{epochms+4}"}"#).starts_with(r#"{"a": "20"#));
        assert!(!dated(r#"{"a": "{iso+20}", "b": "{epochms+4}"}"#).contains('+'));
    }
}
