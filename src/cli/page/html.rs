//! Renders the page's HTML from a snapshot alone.

use std::{
    collections::BTreeSet,
    time::{Duration, UNIX_EPOCH},
};

use maud::{DOCTYPE, Markup, html};
use tidegate_calls::worker_status::RefusedKey;
use tidegate_types::seconds_since_1970;

use super::chart::CHARTS;
use crate::{
    cli::{
        format::{self, cost, count, dollars, duration, percent, ratio, seconds},
        keys,
        snapshot::{BatchView, BudgetView, LimitView, ModelView, Snapshot, WorkerView},
    },
    config::duration::HumanDuration,
};

/// The note in place of buttons.
const NO_ACTIONS: &str = "To pause, resume and set limits from here, name the variable of a token in dashboard.token-env.";

/// Renders the whole page. `may_act` is whether a token is configured, so that there are buttons;
/// `longest_pause` is gate.pause-ttl.
pub(super) fn page(seen: &Snapshot, may_act: bool, longest_pause: HumanDuration) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "tidegate" }
                link rel="icon" href="/favicon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body {
                header {
                    h1 { "tidegate" }
                    span #state .faint role="status" { "as of when it was loaded" }
                }
                main #fleet { (fleet(seen, may_act)) }
                @if may_act { (dialog(longest_pause)) }
            }
        }
    }
}

/// The part that is updated.
pub(super) fn fleet(seen: &Snapshot, may_act: bool) -> Markup {
    html! {
        p .verdict #verdict { (seen.verdict) }
        p .faint { "at " time #at { (seen.at) } }
        @for away in seen.away.iter().filter(|away| **away != seen.verdict) { p .bad { (away) } }
        section aria-labelledby="batches" {
            h2 #batches { "Batches" }
            @if seen.batches.is_empty() { p .faint { "none" } }
            @for batch in &seen.batches { (render_batch(batch, may_act)) }
        }
        section aria-labelledby="models" {
            h2 #models { "Models" }
            @if seen.models.is_empty() { p .faint { "none is configured, or they cannot be seen" } }
            @for model in &seen.models { (render_model(model, now(seen), may_act)) }
        }
        @if !seen.budgets.is_empty() { (render_budgets(&seen.budgets)) }
        (render_workers(&seen.workers))
        @if !may_act { p .faint { (NO_ACTIONS) } }
    }
}

fn now(seen: &Snapshot) -> u64 {
    format::parse_time(Some(&seen.at)).map_or(0, seconds_since_1970)
}

fn render_model(model: &ModelView, now: u64, may_act: bool) -> Markup {
    let name = model.model.as_str();
    html! {
        article {
            div .head {
                h3 { (name) }
                span .badge.bad[model.is_closed()].good[!model.is_closed()] { (model.gate()) }
                @if may_act {
                    @if model.is_closed() { (button("resume", OnWhat::Model(name), "")) }
                    @else { (button("pause", OnWhat::Model(name), "why for")) }
                }
            }
            @if let Some(trouble) = &model.trouble { p .bad[model.is_down] { (trouble) } }
            @if let (Some(binds), false) = (&model.binds, model.is_closed()) { p { "binds: " (binds) } }
            (render_limits(model, may_act))
            @if let Some(left) = model.set_for_seconds {
                p .faint { "what is set ends by itself in " (duration(Duration::from_secs(left))) }
            }
            p .faint {
                (count(model.in_flight)) " calls in flight"
                @if model.call_seconds > 0.0 { ", a call takes " (duration(seconds(model.call_seconds))) }
                @for lane in model.lanes.iter().filter(|lane| lane.in_flight + lane.waiting > 0) {
                    " · " (lane.lane) ": " (count(lane.in_flight)) " in flight, about "
                    (count(lane.waiting)) " wait, the queue is " (duration(seconds(lane.queue_seconds))) " long"
                }
            }
            (render_day(model))
            @if let Some(history) = &model.history {
                div .charts { @for chart in &CHARTS { (chart.draw(&history.points, now)) } }
                @if !history.days.is_empty() {
                    details data-key=(format!("days {name}")) {
                        summary { "429s by day" }
                        table {
                            thead { tr { th { "day (UTC)" } th .number { "429s" } th .number { "failed otherwise" } th .number { "answered" } } }
                            tbody { @for day in history.days.iter().rev() { tr {
                                td { (format::rfc3339(UNIX_EPOCH + Duration::from_secs(day.at)).split('T').next().unwrap_or_default()) }
                                td .number { (count(day.calls.rate_limited)) }
                                td .number { (count(day.calls.failed)) }
                                td .number { (count(day.calls.answered)) }
                            } } }
                        }
                    }
                }
            }
        }
    }
}

fn render_limits(model: &ModelView, may_act: bool) -> Markup {
    let is_set = model.limits.iter().any(|limit| limit.set.is_some());
    html! {
        div .scroll { table {
            thead { tr {
                th { "limit a minute" } th { "used" } th .number { "of" } th .number { "configured" }
                th .number { "set" } th .number { "stated" } th { "who set it" } @if may_act { th { } }
            } }
            tbody { @for limit in &model.limits { (render_limit(model.model.as_str(), limit, may_act)) } }
        } }
        @if may_act && is_set { (button("clear_limits", OnWhat::Model(model.model.as_str()), "")) }
    }
}

fn render_limit(model: &str, limit: &LimitView, may_act: bool) -> Markup {
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), count);
    let who = if limit.why.is_empty() { "as configured".to_owned() } else { limit.why.join("; ") };
    html! {
        tr {
            td { (limit.limited.title()) }
            td { (meter(limit.part())) " " (count(limit.used)) " · " (percent(limit.part())) }
            td .number { (count(limit.effective_limit)) }
            td .number { (number(limit.limit)) }
            td .number { (number(limit.set)) }
            td .number { (number(limit.stated)) }
            td .faint { (who) }
            @if may_act { td {
                button type="button" data-key=(format!("limit {model} {}", limit.limited.key()))
                    data-action="set_limit" data-model=(model) data-limit=(limit.limited.key())
                    data-value=[limit.set.or(limit.limit)] data-ask="value for why"
                    aria-label=(format!("set {} of {model}", limit.limited.title())) { "set" }
            } }
        }
    }
}

fn render_day(model: &ModelView) -> Markup {
    let day = &model.day;
    let limits =
        [("requests", day.requests, day.requests_limit), ("tokens", day.tokens, day.tokens_limit)];
    html! {
        @for (what, used, limit) in limits { @if let Some(limit) = limit {
            p { (meter(ratio(used, limit))) " " (count(used)) " of " (count(limit)) " " (what) " today" }
        } }
    }
}

fn render_batch(seen: &BatchView, may_act: bool) -> Markup {
    let (id, running) = (seen.id(), seen.batch.is_running());
    let end = seen
        .eta()
        .map_or_else(|| "end unknown".to_owned(), |eta| format!("done in {}", duration(eta)));
    html! {
        article .batch {
            div .head {
                h3 { (id) }
                span .badge.bad[seen.status() == "failed"].good[seen.status() == "running"] { (seen.status()) }
                @if may_act {
                    @if running {
                        @if seen.is_paused() { (button("resume", OnWhat::Batch(id), "")) }
                        @else { (button("pause", OnWhat::Batch(id), "why")) }
                        (button("cancel", OnWhat::Batch(id), "why"))
                    } @else if seen.progress().is_some_and(|progress| progress.totals.failed > 0) {
                        (button("retry", OnWhat::Batch(id), ""))
                    }
                }
            }
            @if let Some(progress) = seen.progress() {
                @let totals = &progress.totals;
                p {
                    progress value=(totals.ended()) max=(progress.documents.max(1))
                        aria-label=(format!("progress of {id}")) { } " "
                    b { (count(totals.ended())) } " of " (count(progress.documents))
                    @if totals.failed > 0 { " · " span .bad { (count(totals.failed)) " failed" } }
                    @if running { " · " (count(totals.in_flight)) " in flight · " (end) }
                    @if let (false, Some(took)) = (running, seen.took()) { " · took " (duration(took)) }
                    " · " (format!("{:.0}", seen.per_minute())) " a minute"
                    " · " (cost(&totals.spend))
                    @if totals.spend.rate_limited > 0 { " · " (count(totals.spend.rate_limited)) " 429s" }
                }
            }
            @if let Some(why) = seen.why() { p { (why) } }
            @if !seen.failed.is_empty() {
                details data-key=(format!("failed {id}")) open[running] {
                    summary { "failures by type" }
                    table {
                        thead { tr { th { "type" } th .number { "documents" } th { "in whose words, and which" } th { "next" } } }
                        tbody { @for failed in &seen.failed { tr {
                            td { (failed.kind) }
                            td .number { (count(failed.documents)) }
                            td {
                                (failed.words().as_deref().unwrap_or("known when the batch has ended"))
                                @if !failed.samples.is_empty() {
                                    div .faint { (failed.samples.join(", ")) }
                                }
                            }
                            td .faint { (failed.next(None)) }
                        } } }
                    }
                }
            }
        }
    }
}

fn render_budgets(budgets: &[BudgetView]) -> Markup {
    html! {
        section aria-labelledby="budgets" {
            h2 #budgets { "Budgets of today" }
            @for budget in budgets {
                @let part = if budget.budget_usd > 0.0 { budget.spent_usd / budget.budget_usd } else { 1.0 };
                p .bad[part >= 0.9] {
                    (budget.tenant) ": " (meter(part)) " " (dollars(budget.spent_usd)) " of "
                    (dollars(budget.budget_usd)) " · " (percent(part))
                }
            }
        }
    }
}

fn render_workers(workers: &[WorkerView]) -> Markup {
    let first = workers.first().map(|worker| &worker.configuration);
    let differ = workers.iter().any(|worker| Some(&worker.configuration) != first);
    html! {
        section aria-labelledby="workers" {
            h2 #workers { "Workers" }
            @if workers.is_empty() { p .bad { "no worker is alive" } }
            @else { div .scroll { table {
                thead { tr {
                    th { "worker" } th { "version" } th { "configuration" } th { "queue" } th { "for" }
                    th .number { "slots" } th .number { "answered lately" } th .number { "failed lately" }
                } }
                tbody { @for worker in workers { tr {
                    td { (worker.worker) @for key in &worker.refused_keys { (refused(worker, key)) } }
                    td { (worker.version) }
                    td .bad[differ] { (worker.configuration) }
                    td { (worker.queue) }
                    td { (duration(Duration::from_secs(worker.seconds))) }
                    td .number { (count(worker.slots)) }
                    td .number { (count(worker.answered())) }
                    td .number { (count(worker.failed())) }
                } } }
            } } }
            @if differ { p .bad { "the workers are configured differently: `tidegate doctor` says in what" } }
        }
    }
}

fn refused(worker: &WorkerView, key: &RefusedKey) -> Markup {
    html! { div .bad { (keys::sentence(&worker.worker, key)) } }
}

fn meter(part: f64) -> Markup {
    html! { meter value=(format!("{:.4}", part.min(1.0))) max="1" { (percent(part)) } }
}

/// The target of a button.
#[derive(Clone, Copy)]
enum OnWhat<'a> {
    Model(&'a str),
    Batch(&'a str),
}

/// A button. `ask` names the dialog's fields for the action, apart from the token.
fn button(action: &str, what: OnWhat<'_>, ask: &str) -> Markup {
    let (model, batch) = match what {
        OnWhat::Model(name) => (Some(name), None),
        OnWhat::Batch(name) => (None, Some(name)),
    };
    let name = model.or(batch).unwrap_or_default();
    let words = match action {
        "retry" => "retry what failed",
        "clear_limits" => "give the configured limits back",
        other => other,
    };
    html! {
        button type="button" data-key=(format!("{action} {name}")) data-action=(action)
            data-model=[model] data-batch=[batch] data-ask=(ask)
            aria-label=(format!("{words}: {name}")) { (words) }
    }
}

/// The times that the dialog offers, besides the longest pause: 10 minutes, an hour, 4 hours and a day.
const LENGTHS: [u64; 4] = [600, 3_600, 4 * 3_600, 24 * 3_600];

/// The dialog for an action's fields; the script shows the needed ones, and for a pause no time beyond
/// the longest.
fn dialog(longest_pause: HumanDuration) -> Markup {
    let longest = longest_pause.as_secs();
    let lengths: BTreeSet<u64> = LENGTHS.into_iter().chain([longest]).collect();
    html! {
        dialog #ask aria-labelledby="asked" {
            form method="dialog" {
                h2 #asked { }
                label data-field="value" { "limit a minute, as the provider states it"
                    input name="value" type="number" min="1" step="1"; }
                label data-field="for" { "for"
                    select name="for" data-longest-pause=(longest) {
                        option value="" { "until it is taken back" }
                        @for length in lengths {
                            option value=(length) { (HumanDuration(Duration::from_secs(length))) }
                        }
                    } }
                label data-field="why" { "why" input name="why" maxlength="200" autocomplete="off"; }
                label data-field="token" { "token (dashboard.token-env)"
                    input name="token" type="password" autocomplete="off"; }
                p #refused .bad role="alert" { }
                div .head {
                    button type="submit" value="do" { "do it" }
                    button type="button" value="no" { "leave it" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::snapshot::busy;

    #[test]
    fn the_page_says_what_the_snapshot_says() {
        let longest_pause = HumanDuration(Duration::from_secs(300));
        let text = page(&busy(), true, longest_pause).into_string();
        for part in [
            "data-longest-pause=\"300\"",
            "<option value=\"300\">5m</option><option value=\"600\">10m</option>",
            "running at 97.0 % of openai:gpt-4.1-mini; tokens bind",
            "margin 0.98",
            "<b>1,250</b> of 5,000",
            "contracts-20261120-184530-03f9a",
            "it waits for quota: tokens",
            "the document is too long",
            "annex-b.pdf",
            "$7.50 of $10.00 · 75.0 %",
            "tidegate-a-1",
            "data-action=\"pause\" data-model=\"openai:gpt-4.1-mini\"",
            "data-action=\"set_limit\" data-model=\"openai:gpt-4.1-mini\" data-limit=\"tpm\" data-value=\"400000\"",
            "data-action=\"cancel\" data-batch=\"contracts-20261120-184530-03f9a\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = page(&busy(), false, longest_pause).into_string();
        assert!(!text.contains("data-action") && text.contains("dashboard.token-env"), "{text}");
    }

    #[test]
    fn what_others_have_named_is_text() {
        let mut seen = busy();
        seen.batches[0].batch.id = "<script>alert(1)</script>".to_owned();
        let text = page(&seen, true, HumanDuration(Duration::from_secs(300))).into_string();
        assert!(text.contains("&lt;script&gt;alert(1)"), "{text}");
        assert!(!text.contains("<script>alert"), "{text}");
        // The policy forbids inline styles and inline scripts.
        assert!(!text.contains(" style=") && !text.contains("onclick"), "{text}");
    }
}
