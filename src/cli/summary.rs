//! Shows a batch's end, in a table.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_activities::output::{
    finish::{CheckTotals, Checks},
    forecast::Forecast,
};
use tidegate_workflows::contract::Progress;

use crate::config::Config;

use super::{
    agreement,
    batch_report::BatchReport,
    exit::Outcome,
    failed,
    format::{self, between, count, dollars, duration, price, ratio},
    output, paths,
};

/// Names and values for [`output::pairs`].
pub(super) fn rows(progress: &Progress, took: Option<Duration>) -> Vec<(&'static str, String)> {
    let totals = &progress.totals;
    let spend = &totals.spend;
    let mut rows = vec![("documents", documents(progress))];
    // As the metric has it: calls for each document that was answered.
    let calls = match totals.succeeded {
        0 => "-".to_owned(),
        answered => format!("{:.2}", ratio(spend.provider_calls, answered)),
    };
    rows.push(("calls per document", calls));
    let cuts = &totals.cuts;
    if cuts.raised > 0 {
        let cost = if cuts.raised_cost_usd > 0.0 {
            format!(", for {}", dollars(cuts.raised_cost_usd))
        } else {
            String::new()
        };
        let answers = if cuts.raised == 1 { "answer" } else { "answers" };
        rows.push((
            "asked again",
            format!("{} cut {answers}, with more room{cost}", count(cuts.raised)),
        ));
    }
    let reused = &totals.reused;
    if reused.reused > 0 {
        let saved = if reused.saved_usd > 0.0 {
            format!(", which saved {}", dollars(reused.saved_usd))
        } else {
            String::new()
        };
        rows.push(("bought before", format!("{} of the answers{saved}", count(reused.reused))));
    }
    rows.push(("429s", count(spend.rate_limited)));
    rows.push(("waits in Temporal", count(spend.deferrals)));
    rows.push(("tokens", tokens(progress)));
    rows.push((
        "cost",
        if spend.provider_calls == 0 {
            "nothing was asked".to_owned()
        } else if spend.input_tokens + spend.output_tokens == 0 {
            let answered = totals.succeeded > 0;
            let known = if answered {
                "unknown (the provider told no tokens)"
            } else {
                "nothing was answered"
            };
            known.to_owned()
        } else if spend.unpriced_calls > 0 {
            let calls = count(spend.unpriced_calls);
            format!("{} (no price is known for the model of {calls} calls)", format::cost(spend))
        } else {
            format::cost(spend)
        },
    ));
    rows.extend(took.map(|took| ("time", duration(took))));
    rows.push(("results", paths::display_url(&progress.output)));
    rows
}

/// The estimate of a batch. `packs`: documents may share calls.
pub(super) fn forecast(forecast: &Forecast, packs: bool) -> Vec<(&'static str, String)> {
    let unreadable = if forecast.unreadable > 0 {
        format!(", {} of them unreadable", forecast.unreadable)
    } else {
        String::new()
    };
    let time = forecast.seconds.map(|range| {
        let [from, to] = [range.from, range.to]
            .map(|seconds| duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)));
        if forecast.provider_batch {
            format!("{from} to {to}, through the provider's batch API")
        } else {
            format!("{from} with all of the limits, {to} with the lane's own share")
        }
    });
    let mut rows = vec![
        (
            "documents",
            format!(
                "{} ({} read for this{unreadable})",
                count(forecast.documents),
                count(forecast.sampled)
            ),
        ),
        ("input tokens", between(forecast.input_tokens)),
        ("output tokens", between(forecast.output_tokens)),
        ("cost", price(forecast.cost_usd)),
        ("time", time.unwrap_or_else(|| "unknown (no limit by the minute)".to_owned())),
    ];
    rows.extend(forecast.temporal_actions.map(|range| ("Temporal actions", between(range))));
    let notes = forecast.full_price.iter().chain(&forecast.notes);
    rows.extend(notes.map(|note| ("note", note.clone())));
    if packs {
        let alone = || "one: tokens bind here, and not requests".to_owned();
        rows.push((
            "in one call",
            if forecast.pack > 1 { format!("up to {} documents", forecast.pack) } else { alone() },
        ));
    }
    rows
}

/// The time from a batch's start to its end; to now, if the time of its end is unknown.
pub(super) fn time_taken(progress: &Progress, closed: Option<SystemTime>) -> Option<Duration> {
    let started = format::parse_time(progress.started_at.as_deref())?;
    closed.unwrap_or_else(SystemTime::now).duration_since(started).ok()
}

/// Shows the result of an ended batch; failed documents make the exit code 3.
pub(super) async fn show_completed(
    config: &Config,
    id: &str,
    progress: &Progress,
    as_json: bool,
    at_least: Option<f64>,
    took: Option<Duration>,
) -> anyhow::Result<Outcome> {
    let BatchReport { given_up, full_price, older_reader, agreement, checks, .. } =
        BatchReport::read(config, progress).await;
    let failed = failed::gather(progress, given_up.unwrap_or_default());
    if as_json {
        let mut value = with_id(id, progress)?;
        value["failures_by_type"] = failed::value(&failed, None);
        for (name, found) in [
            ("full_price", full_price.map(Value::from)),
            ("older_reader", (older_reader > 0).then(|| older_reader.into())),
            ("checks", (!checks.is_empty()).then(|| json!(checks))),
            ("agreement", agreement.as_ref().map(|agreement| json!(agreement))),
        ] {
            if let Some(found) = found {
                value[name] = found;
            }
        }
        output::print_json(&value)?;
    } else {
        let mut rows = rows(progress, took);
        rows.extend(check_rows(&checks));
        rows.extend(full_price.map(|why| ("note", why)));
        rows.extend((older_reader > 0).then(|| ("note", older_reader_note(older_reader))));
        output::print_data(&output::pairs(&rows))?;
        if let Some(agreement) = &agreement {
            output::print_data(&agreement::table(agreement))?;
        }
    }
    if let Some(agreement) = &agreement {
        let notes = agreement.notes().into_iter().chain(agreement.each_document());
        notes.for_each(|note| output::print_message(&note));
    }
    if let Some(at_least) = at_least
        && agreement::enough(agreement.as_ref(), at_least, id) == Outcome::Faulty
    {
        return Ok(Outcome::Faulty);
    }
    if progress.totals.failed > 0 {
        let where_to = paths::display_url(&progress.output);
        output::print_message(&format!(
            "{} failed; failures.jsonl in {where_to} names each",
            format::plural(progress.totals.failed, "document")
        ));
        output::print_message(output::pairs(&failed::rows(&failed, None)).trim_end());
    }
    Ok(outcome(progress))
}

/// The outcomes of each check, and the number of documents that went to the next model.
fn check_rows(checks: &Checks) -> Vec<(&'static str, String)> {
    let row = |(name, totals): (&String, &CheckTotals)| {
        let parts = [
            (totals.passed, "passed"),
            (totals.failed, "failed"),
            (totals.unchecked, "unchecked"),
            (totals.asked_again, "asked again"),
            (totals.escalated, "went on"),
        ];
        ("check", format!("{name}: {}", counts(&parts)))
    };
    let mut rows: Vec<_> = checks.by_name.iter().map(row).collect();
    if checks.escalated > 0 {
        let (went, all) = (count(checks.escalated), count(checks.documents));
        rows.push(("next model", format!("{went} of {all} documents")));
    }
    rows
}

/// A note: results of an older reader may be wrong, and a plain rerun keeps them.
fn older_reader_note(results: u64) -> String {
    format!(
        "{} from an older reader; --reread reads the documents again, and asks again if the text changed",
        format::plural(results, "result")
    )
}

/// The contract's fields and the batch's id.
pub(super) fn with_id(id: &str, progress: &Progress) -> anyhow::Result<Value> {
    let progress = Progress { totals: progress.totals.rounded(), ..progress.clone() };
    let mut value = serde_json::to_value(progress).context("writing the result")?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("workflow_id".to_owned(), id.into());
    }
    Ok(value)
}

fn outcome(progress: &Progress) -> Outcome {
    if progress.totals.failed > 0 { Outcome::SomeFailed } else { Outcome::Done }
}

fn documents(progress: &Progress) -> String {
    let totals = &progress.totals;
    let parts = [
        (totals.failed, "failed"),
        (totals.cuts.cut, "cut"),
        (totals.updated, "updated"),
        (totals.skipped, "done before"),
        (totals.cancelled, "cancelled"),
        (progress.renamed, "renamed"),
    ];
    let parts = counts(&parts);
    let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
    format!("{}{parts}", count(progress.documents))
}

/// The numbers above 0: `3 failed, 1 cut`.
fn counts(parts: &[(u64, &str)]) -> String {
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    parts.join(", ")
}

fn tokens(progress: &Progress) -> String {
    let spend = &progress.totals.spend;
    let cached = if spend.cached_input_tokens > 0 {
        format!(" ({} cached)", count(spend.cached_input_tokens))
    } else {
        String::new()
    };
    format!("{} in{cached}, {} out", count(spend.input_tokens), count(spend.output_tokens))
}

#[cfg(test)]
mod tests {
    use tidegate_types::Spend;
    use tidegate_workflows::contract::{Reused, Totals};

    use super::*;

    #[test]
    fn an_ended_batch_took_until_its_end() {
        let started_at = Some("2026-11-20T10:00:00Z".to_owned());
        let progress = Progress { started_at, ..Progress::default() };
        let closed = format::parse_time(Some("2026-11-20T10:00:16.5Z"));
        assert_eq!(time_taken(&progress, closed), Some(Duration::from_millis(16_500)));
        assert!(time_taken(&progress, None) > Some(Duration::from_secs(17)), "it may still run");
    }

    #[test]
    fn a_batch_in_figures() {
        let totals = Totals {
            succeeded: 97,
            failed: 3,
            skipped: 20,
            reused: Reused { reused: 7, saved_usd: 0.5 },
            updated: 4,
            spend: Spend {
                provider_calls: 110,
                input_tokens: 1_500,
                output_tokens: 10,
                unpriced_calls: 110,
                ..Spend::default()
            },
            ..Totals::default()
        };
        let progress = Progress {
            documents: 120,
            totals,
            output: "file:///data/out/".to_owned(),
            ..Progress::default()
        };
        let rows = rows(&progress, Some(Duration::from_secs(65)));
        let expected = [
            ("documents", "120 (3 failed, 4 updated, 20 done before)"),
            ("calls per document", "1.13"),
            ("bought before", "7 of the answers, which saved $0.5000"),
            ("429s", "0"),
            ("waits in Temporal", "0"),
            ("tokens", "1,500 in, 10 out"),
            ("cost", "unknown (no price is known for the model of 110 calls)"),
            ("time", "1m 5s"),
            ("results", "/data/out/"),
        ];
        assert_eq!(rows, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(outcome(&progress), Outcome::SomeFailed);
        let unanswered = super::rows(&Progress::default(), None);
        assert!(unanswered.contains(&("calls per document", "-".to_owned())), "{unanswered:?}");
        assert_eq!(outcome(&Progress::default()), Outcome::Done);
    }
}
