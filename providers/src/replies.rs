//! Replies of real providers, each held against what it means: `replies.jsonl`, a row each, with the
//! page or report that it comes from.

use std::{collections::BTreeMap, time::SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error, KeySource, Kind, Vendor, anthropic,
    call::{Completion, Finish},
    error::Span,
    exchange::{Cut, Reply},
    gemini,
    key::Key,
    message::Redactor,
    observed::Observed,
    openai,
    refusal::Context,
    testing::{self, REQUEST},
};

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    kind: String,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
    expected: Expected,
    cls: String,
    #[serde(default)]
    cut: Option<f64>,
    #[serde(default)]
    embed: bool,
    /// What no reply shows alone: a budget in dollars, or no connection.
    #[serde(default)]
    budget: bool,
    #[serde(default)]
    net: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    outcome: String,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    span: Option<String>,
    #[serde(default)]
    retry_after_s: Option<f64>,
}

fn rows() -> impl Iterator<Item = Row> {
    include_str!("replies.jsonl").lines().map(|line| serde_json::from_str(line).unwrap())
}

/// `{iso+20}` and the like: a time so many seconds from now.
fn dated(text: &str) -> String {
    let Some((before, rest)) = text.split_once('{') else { return text.to_owned() };
    let Some((name, rest)) = rest.split_once('+') else { return text.to_owned() };
    let Some((seconds, after)) = rest.split_once('}') else { return text.to_owned() };
    let Ok(seconds) = seconds.parse::<i64>() else { return text.to_owned() };
    let then = chrono::Utc::now() + chrono::TimeDelta::seconds(seconds);
    let time = match name {
        "iso" => then.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        "epoch" => then.timestamp().to_string(),
        "epochms" => then.timestamp_millis().to_string(),
        "httpdate" => httpdate::fmt_http_date(SystemTime::from(then)),
        _ => return text.to_owned(),
    };
    format!("{before}{time}{after}")
}

fn reply(row: &Row) -> Reply {
    let body = match &row.body {
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    let body = if body.contains("{epoch") || body.contains("{iso") {
        let at = body.find("{epoch").or_else(|| body.find("{iso")).unwrap_or_default();
        format!("{}{}", &body[..at], dated(&body[at..]))
    } else {
        body
    };
    let mut headers = http::HeaderMap::new();
    for (name, value) in &row.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, dated(value).parse().unwrap());
    }
    let mut body = body.into_bytes();
    let cut = row.cut.map(|part| {
        body.truncate((body.len() as f64 * part) as usize);
        Cut::Broken("reset".to_owned())
    });
    Reply { status: row.status, headers, body, cut }
}

/// What the reply to a call means.
fn read(row: &Row) -> Result<Completion, Error> {
    let (vendor, reply): (Vendor, _) = (row.kind.parse().unwrap(), reply(row));
    let settings = testing::settings(vendor);
    match row.kind.as_str() {
        // Its client reads through AWS's own types; the names of errors are the same.
        "bedrock" => {
            let (classifier, key) = (vendor.classifier(), Key::new(None, KeySource::Fixed));
            let redactor = Redactor::of_key(&key);
            let context = Context::new("b", &classifier, &[], redactor, Observed::default());
            Err(context.refused_call(&reply))
        }
        "anthropic" => testing::client(&settings, anthropic::client).read(&REQUEST, &reply),
        "gemini" => testing::client(&settings, gemini::client).read(&REQUEST, &reply),
        _ => testing::client(&settings, openai::client).read(&REQUEST, &reply),
    }
}

fn outcome(came: &Result<Completion, Error>) -> &'static str {
    match came {
        Ok(completion) if completion.answer.is_empty() => "Truncated",
        Ok(completion) if completion.stop_reason.finish() == Finish::Cut => "Truncated",
        Ok(_) => "success",
        Err(error) => error.kind.failure(),
    }
}

fn fault(row: &Row) -> Option<String> {
    let came = read(row);
    let (expected, outcome) = (&row.expected, outcome(&came));
    // Whether an answer keeps to the batch's schema is for the caller to say.
    let judged_later = row.id == "schema-broken-json" && outcome == "success";
    if outcome != expected.outcome
        && !expected.accept.iter().any(|other| other == outcome)
        && !judged_later
    {
        return Some(format!("{outcome}, not {}: {came:?}", expected.outcome));
    }
    let Err(error) = came else { return None };
    let long = |span: &str| matches!(span, "day" | "month" | "credit" | "5h");
    if let Some(span) = &expected.span
        && error.kind == Kind::QuotaExhausted
        && long(span)
    {
        let known = error.span.map_or("none", Span::label);
        let wanted = if span == "5h" { "hours" } else { span };
        if known != wanted {
            return Some(format!("a limit of {known}, not {wanted}"));
        }
    }
    if let Some(wait) = expected.retry_after_s
        && error.kind == Kind::RateLimited
    {
        let told = error.retry_after.map_or(0.0, |wait| wait.as_secs_f64());
        if (told - wait).abs() > 1.5 {
            return Some(format!("a wait of {told} s, not {wait} s"));
        }
    }
    None
}

/// The vectors of embeddings are read elsewhere: `client.rs`. As batches all are tried end to end.
#[test]
fn every_reply_means_what_its_vendor_says() {
    let (mut classes, mut wrong) = (BTreeMap::new(), Vec::new());
    let shows = |row: &Row| !(row.embed && row.status == 200 || row.budget || row.net.is_some());
    for row in rows().filter(shows) {
        let (right, all): &mut (u32, u32) = classes.entry(row.cls.clone()).or_default();
        *all += 1;
        match fault(&row) {
            None => *right += 1,
            Some(why) => wrong.push(format!("{}: {why}", row.id)),
        }
    }
    assert_eq!(classes.values().map(|(_, all)| all).sum::<u32>(), 197, "{classes:?}");
    let table: Vec<_> =
        classes.iter().map(|(class, (right, all))| format!("{class} {right}/{all}")).collect();
    assert!(wrong.is_empty(), "{}\n{}", table.join(", "), wrong.join("\n"));
}
