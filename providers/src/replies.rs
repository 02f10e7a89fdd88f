//! Replies of real providers ([`ReplyRow`]), each compared with its expected meaning.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_testkit::{Expected, ReplyRow};
use tidegate_types::Usage;

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

fn reply(row: &ReplyRow) -> Reply {
    let mut body = row.body();
    let headers = row.headers().into_iter();
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let cut = row.cut.map(|part| {
        body.truncate((body.len() as f64 * part) as usize);
        Cut::Broken("reset".to_owned())
    });
    let headers: HeaderMap =
        headers.collect::<Vec<(HeaderName, HeaderValue)>>().into_iter().collect();
    Reply { status: row.status, headers, body, cut }
}

/// Reads the reply to a call.
fn read(row: &ReplyRow) -> Result<Completion, Error> {
    let (vendor, reply): (Vendor, _) = (row.kind.parse().unwrap(), reply(row));
    let settings = testing::settings(vendor);
    match row.kind.as_str() {
        // Bedrock's client reads replies by AWS's own types; the error names are the same.
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

fn fault(row: &ReplyRow) -> Option<String> {
    let came = read(row);
    let (expected, outcome) = (&row.expected, outcome(&came));
    // The caller checks whether an answer satisfies the batch's schema.
    let judged_later = row.id == "schema-broken-json" && outcome == "success";
    if !row.is(outcome) && !judged_later {
        return Some(format!("{outcome}, not {}: {came:?}", expected.outcome));
    }
    let error = match came {
        Ok(completion) => return fault_of_answer(expected, &completion),
        Err(error) => error,
    };
    // Else each document of a batch is asked.
    let is_shared = matches!(row.class.as_str(), "model" | "param" | "max_tokens");
    if is_shared && error.kind == Kind::InvalidRequest {
        return Some("it is about one document".to_owned());
    }
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

fn fault_of_answer(expected: &Expected, completion: &Completion) -> Option<String> {
    let Completion { answer, usage, .. } = completion;
    let tokens =
        |usage: &Usage| [usage.uncached_input, usage.cache_read, usage.cache_write, usage.output];
    let came = usage.as_ref().map(tokens);
    if expected.usage.is_some() && expected.usage != came {
        return Some(format!("tokens {came:?}, not {:?}", expected.usage));
    }
    let wanted = expected.answer.as_ref();
    wanted.is_some_and(|wanted| wanted != answer).then(|| format!("the answer {answer:?}"))
}

/// The vectors of embeddings are tested in `client.rs`, and batches end to end.
#[test]
fn every_reply_has_its_documented_meaning() {
    let (mut classes, mut wrong) = (BTreeMap::new(), Vec::new());
    let shows =
        |row: &ReplyRow| !(row.embed && row.status == 200 || row.budget || row.net.is_some());
    for row in ReplyRow::all().into_iter().filter(shows) {
        let (right, all): &mut (u32, u32) = classes.entry(row.class.clone()).or_default();
        *all += 1;
        match fault(&row) {
            None => *right += 1,
            Some(why) => wrong.push(format!("{}: {why}", row.id)),
        }
    }
    assert_eq!(classes.values().map(|(_, all)| all).sum::<u32>(), 555, "{classes:?}");
    let table: Vec<_> =
        classes.iter().map(|(class, (right, all))| format!("{class} {right}/{all}")).collect();
    assert!(wrong.is_empty(), "{}\n{}", table.join(", "), wrong.join("\n"));
}
