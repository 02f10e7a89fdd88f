//! `report.html`: the report for people, in one file that can be mailed. It loads no resources and
//! has no scripts.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::percent_decode_str;
use tidegate_workflows::contract::Fallback;

use crate::{
    number::{count, float, ratio},
    output::{
        agreement::{Agreement, Mistake, Rate},
        finish::{
            checks::{CheckTotals, Checks},
            given_up::{FailureGroup, GivenUp},
            report::Report,
            totals::Timeline,
        },
    },
};

const STYLE: &str = include_str!("page.css");

/// Forbids browsers to load anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const HEIGHT: f64 = 60.0;

/// The whole file.
pub(super) fn page(report: &Report, course: &Timeline) -> String {
    let progress = &report.progress;
    let (totals, spend) = (&progress.totals, &progress.totals.spend);
    let verdict = verdict(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "tidegate: " (verdict) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (verdict) }
                p .faint { (percent_decode_str(&progress.output).decode_utf8_lossy()) " · finished " (report.finished_at) }
                dl {
                    (pair("documents", &count(progress.documents)))
                    (pair("succeeded", &count(totals.succeeded)))
                    (pair("failed", &count(totals.failed)))
                    (pair("done before", &count(totals.skipped)))
                    @if totals.cancelled > 0 { (pair("not asked any more", &count(totals.cancelled))) }
                    @if totals.cuts.cut > 0 { (pair("cut, and kept", &count(totals.cuts.cut))) }
                    @if report.missing > 0 { (pair("missing", &count(report.missing))) }
                    (pair("took", &span(report.duration_seconds)))
                    (pair("cost", &cost(report)))
                    (pair("calls", &count(spend.provider_calls)))
                    (pair("429s", &count(spend.rate_limited)))
                    (pair("waits in Temporal", &count(spend.deferrals)))
                    (pair("tokens in", &count(spend.input_tokens)))
                    (pair("of them from caches", &format!("{:.1} %", report.cache_hit_ratio * 100.0)))
                    (pair("tokens out", &count(spend.output_tokens)))
                    (pair("Temporal actions, about", &count(report.temporal_actions)))
                    (pair("tokens a minute", &count(report.tokens_per_minute.round() as u64)))
                }
                @if let Some(why) = &report.full_price { p { (why) } }
                @if !course.answers.is_empty() { (chart(course)) }
                @if !report.given_up.is_empty() { (failures(&report.given_up)) }
                @if let Some(agreement) = &report.agreement { (agreement_table(agreement)) }
                @if !report.checks.is_empty() { (checks_table(&report.checks)) }
                (models(report))
                p .faint { "The same for programs: report.json; every failure: failures.jsonl." }
            }
        }
    };
    page.into_string()
}

fn verdict(report: &Report) -> String {
    let (progress, totals) = (&report.progress, &report.progress.totals);
    let documents = count(progress.documents);
    if report.missing > 0 {
        return format!("{} of {documents} documents are missing", count(report.missing));
    }
    if !progress.done {
        let ended = count(totals.ended());
        return format!("ended early: {ended} of {documents} documents were worked on");
    }
    if totals.failed > 0 {
        return format!("{} of {documents} documents failed", count(totals.failed));
    }
    format!("all {documents} documents are done")
}

fn pair(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn cost(report: &Report) -> String {
    let spend = &report.progress.totals.spend;
    let expected = report.forecast.as_ref().and_then(|forecast| forecast.cost_usd);
    let expected = expected.map_or_else(String::new, |range| {
        format!(" (expected ${:.4} to ${:.4})", range.from, range.to)
    });
    match spend.known_usd() {
        None => "unknown: no price for this model".to_owned(),
        Some(usd) if spend.unpriced_calls > 0 => {
            let calls = count(spend.unpriced_calls);
            format!("${usd:.4}{expected}, without {calls} calls of models that have no price")
        }
        Some(usd) => format!("${usd:.4}{expected}"),
    }
}

fn chart(course: &Timeline) -> Markup {
    let most = course.answers.iter().copied().max().unwrap_or(1).max(1);
    let width = course.answers.len();
    let mut path = String::new();
    for (place, answers) in course.answers.iter().enumerate() {
        let high = ratio(*answers, most) * (HEIGHT - 2.0);
        let _ = write!(path, "M{place} {HEIGHT}v-{high:.1}h.9v{high:.1}z");
    }
    let step = span(float(course.step));
    let title = format!("Answers in each {step}, at most {}", count(most));
    html! {
        figure {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="img"
                aria-label=(title) { path d=(path) {} }
            div .axis { span { "begun" } span { (span(float(course.step) * float(width as u64))) " later" } }
        }
    }
}

fn failures(given_up: &GivenUp) -> Markup {
    let mut kinds: Vec<_> = given_up.0.iter().collect();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.documents));
    html! {
        h2 { "What failed" }
        div .scroll { table {
            thead { tr { th { "type" } th .number { "documents" } th { "in whose words" } th { "such as" } } }
            tbody { @for (name, kind) in kinds { tr {
                td { (name) } td .number { (count(kind.documents)) }
                td { @for said in message_lines(kind) { div { (said) } } } td .faint { (kind.samples.join(", ")) }
            } } }
        } }
    }
}

/// Each message, with its number where there are several.
fn message_lines(kind: &FailureGroup) -> Vec<String> {
    let of_all = |documents| documents == kind.documents;
    let sentences = kind.messages.0.iter().map(|said| {
        let many = if of_all(said.documents) {
            String::new()
        } else {
            format!("{} × ", count(said.documents))
        };
        format!("{many}{}", said.message)
    });
    sentences.collect()
}

fn checks_table(checks: &Checks) -> Markup {
    let numbers =
        |it: &CheckTotals| [it.passed, it.failed, it.unchecked, it.asked_again, it.escalated];
    html! {
        h2 { "Checks" }
        table {
            tr { th { "check" } @for name in ["passed", "failed", "unchecked", "asked again", "went on"] { th .number { (name) } } }
            @for (name, totals) in &checks.by_name {
                tr { td { (name) } @for number in numbers(totals) { td .number { (count(number)) } } }
            }
        }
        @if checks.escalated > 0 {
            p { (count(checks.escalated)) " of " (count(checks.documents)) " documents went to the next model." }
        }
    }
}

fn agreement_table(agreement: &Agreement) -> Markup {
    let row = |name: &str, rate: Rate, most: Option<&Mistake>| {
        let [from, to] = rate.interval();
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let most = most.map(ToString::to_string);
        html! { tr {
            td { (name) } td .number { (count(rate.compared)) } td .number { (percent(rate.part())) }
            td .number { (percent(from)) " to " (percent(to)) } td .faint { (most.unwrap_or_default()) }
        } }
    };
    html! {
        h2 { "How many answers are as they should be" }
        div .scroll { table {
            thead { tr { th { "field" } th .number { "compared" } th .number { "agree" } th .number { "in 95 of 100 samples" } th { "most frequent mistake" } } }
            tbody {
                @for (name, field) in &agreement.fields { (row(name, field.rate, field.confusion.first())) }
                (row("all fields", agreement.documents, None))
            }
        } }
        @for note in agreement.notes().into_iter().chain(agreement.each_document()) { p { (note) } }
    }
}

fn models(report: &Report) -> Markup {
    html! {
        h2 { "Who answered" }
        div .scroll { table {
            thead { tr {
                th { "model" } th .number { "documents" } th .number { "calls" } th .number { "tokens in" }
                th .number { "cached" } th .number { "tokens out" } th .number { "cost" }
            } }
            tbody { @for (model, sum) in &report.models { tr {
                td {
                    (model)
                    @if let Some(Fallback { from, because }) = report.fallbacks.get(model) {
                        div .faint { "in place of " (from) ", " (because) }
                    }
                }
                td .number { (count(sum.documents)) } td .number { (count(sum.provider_calls)) }
                td .number { (count(sum.input_tokens)) } td .number { (count(sum.cached_input_tokens)) }
                td .number { (count(sum.output_tokens)) } td .number { (sum.cost_usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"))) }
            } } }
        } }
        @if !report.left_out.is_empty() {
            h2 { "What of the documents was not sent" }
            div .scroll { table {
                thead { tr { th { "kind" } th .number { "documents" } th .number { "count" } } }
                tbody { @for (kind, total) in &report.left_out { tr {
                    td { (kind.as_str().replace('_', " ")) }
                    td .number { (count(total.documents)) } td .number { (count(total.count)) }
                } } }
            } }
        }
        @if !report.unknown_stop_reasons.is_empty() {
            p { "Answers that ended for a reason that is not known here: "
                @for (reason, answers) in &report.unknown_stop_reasons { (reason) " × " (count(*answers)) " " } }
        }
    }
}

fn span(seconds: f64) -> String {
    let whole = std::time::Duration::try_from_secs_f64(seconds.round()).unwrap_or_default();
    humantime::format_duration(whole).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidegate_workflows::contract::{Because, Progress, Totals};

    use super::*;
    use crate::output::agreement::Compared;

    #[test]
    fn the_report_is_one_file_that_loads_nothing() {
        let mut totals = Totals { succeeded: 1_200, failed: 2, ..Totals::default() };
        totals.spend.cost_usd = 4.25;
        let mut given_up = GivenUp::default();
        for (id, message) in [("a.pdf", "<script>"), ("<b>.pdf", "too long")] {
            let line = serde_json::json!({"id": id, "error_type": "TooLarge", "message": message});
            given_up.add(line.to_string().as_bytes());
        }
        let mut compared = Compared::default();
        compared.add(
            "a",
            &serde_json::json!({"total": 5}),
            r#"{"total": 6}"#,
            (None, None),
            |_, _| None,
        );
        let agreement = compared.into_report(None).agreement;
        let fallback = Fallback { from: "a:a".parse().unwrap(), because: Because::Unchecked };
        let report = Report {
            agreement: Some(agreement),
            checks: Checks {
                by_name: BTreeMap::from([(
                    "total".to_owned(),
                    CheckTotals { passed: 7, ..Default::default() },
                )]),
                documents: 9,
                escalated: 2,
                ..Default::default()
            },
            progress: Progress {
                documents: 1_202,
                totals,
                done: true,
                output: "file:///data/my%20answers/%C3%BC/".to_owned(),
                ..Progress::default()
            },
            finished_at: "2026-11-22T10:10:00Z".to_owned(),
            duration_seconds: 605.0,
            cache_hit_ratio: 0.5,
            tokens_per_minute: 1_234.0,
            temporal_actions: 2_500,
            forecast: None,
            full_price: Some("at the full price".to_owned()),
            missing: 0,
            first_missing: Vec::new(),
            given_up,
            models: BTreeMap::from([("a:b".parse().unwrap(), Default::default())]),
            left_out: BTreeMap::from([(
                tidegate_documents::left_out::Kind::HiddenText,
                crate::output::finish::LeftOutTotal { documents: 1, count: 1_200 },
            )]),
            fallbacks: BTreeMap::from([("a:b".parse().unwrap(), fallback)]),
            older_reader: 0,
            unknown_stop_reasons: BTreeMap::new(),
        };
        let course = Timeline { step: 10, answers: vec![600, 0, 602] };
        let text = page(&report, &course);
        for part in [
            "<h1>2 of 1,202 documents failed</h1>",
            "file:///data/my answers/ü/",
            "<dt>took</dt><dd>10m 5s</dd>",
            "<dt>cost</dt><dd>$4.2500</dd>",
            "Answers in each 10s, at most 602",
            "M1 60v-0.0h.9",
            "<div>1 × &lt;script&gt;</div><div>1 × too long</div>",
            "a.pdf, &lt;b&gt;.pdf",
            "<p>at the full price</p>",
            "<td>total</td><td class=\"number\">7</td>",
            "<p>2 of 9 documents went to the next model.</p>",
            "<div class=\"faint\">in place of a:a, unchecked</div>",
            "<td class=\"faint\">1 × 6 in place of 5</td>",
            "<td>hidden text</td><td class=\"number\">1</td><td class=\"number\">1,200</td>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for loaded in ["http://", "https://", "src=", "href=", "<script"] {
            assert!(!text.contains(loaded), "{loaded}: {text}");
        }
        let early =
            Report { progress: Progress { done: false, ..report.progress.clone() }, ..report };
        assert!(page(&early, &course).contains("ended early: 1,202 of 1,202"));
    }
}
