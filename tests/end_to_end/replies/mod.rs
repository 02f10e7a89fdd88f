//! A batch for each class of a provider's replies, in three patterns: always, once among good answers,
//! and for three seconds. `TIDEGATE_FULL_SCALE=1` takes every row of the table instead of one from each
//! class.

mod server;

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_testkit::ReplyRow;

use self::server::{Case, Cases, serve};
use crate::fleet::{Fleet, fleet, free_address, full_scale};

/// Documents of each batch.
const DOCUMENTS: usize = 12;
/// Batches that run at the same time.
const TOGETHER: usize = 90;
/// How long a temporary fault is watched.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of calls for a fault that all documents share: three in a row, and those that were
/// under way. A limit on output is halved in between.
const FEW: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Always,
    Once,
    Spell,
}

fn patterns(row: &ReplyRow) -> Vec<Pattern> {
    let all = [(Pattern::Always, "always"), (Pattern::Once, "once"), (Pattern::Spell, "for3s")];
    let named = |(_, name): &(Pattern, &str)| {
        row.only.is_empty() || row.only.iter().any(|only| only == name)
    };
    all.into_iter().filter(named).map(|(pattern, _)| pattern).collect()
}

/// Whether time alone may end the fault: then no document fails soon.
fn passes(row: &ReplyRow) -> bool {
    matches!(row.expected.outcome.as_str(), "RateLimited" | "Transient" | "Overloaded")
}

/// Whether the reply may be understood as temporary.
fn may_pass(row: &ReplyRow) -> bool {
    passes(row) || row.is("Transient")
}

/// Whether the fault concerns all documents or none.
fn is_shared(row: &ReplyRow) -> bool {
    matches!(row.class.as_str(), "model" | "param" | "auth" | "credit" | "month" | "max_tokens")
        || (row.class == "day" && row.expected.outcome == "QuotaExhausted")
}

/// Whether a temporary refusal costs no document.
fn costs_nothing_once(row: &ReplyRow) -> bool {
    passes(row)
        || row.transient_seen
        || ["success", "QuotaExhausted", "Unauthorized"].iter().any(|it| row.is(it))
}

fn rows() -> Vec<Arc<ReplyRow>> {
    let rows = ReplyRow::all().into_iter().map(Arc::new);
    let only = std::env::var("TIDEGATE_REPLIES").unwrap_or_default();
    let mut seen = HashMap::new();
    rows.filter(|row| {
        if !only.is_empty() {
            return only.split(',').any(|id| row.id == id || row.class == id);
        }
        let class = (row.class.clone(), row.expected.outcome.clone());
        full_scale() || *seen.entry(class).and_modify(|seen| *seen += 1).or_insert(1) == 1
    })
    .collect()
}

/// The base URL, for replies that come from no server.
fn base_url(row: &ReplyRow, name: &str, port: u16) -> String {
    let end =
        if matches!(row.kind.as_str(), "anthropic" | "gemini" | "bedrock") { "" } else { "/v1" };
    match row.net.as_deref() {
        Some("refused") => format!("http://{}{end}", free_address()),
        Some("dns") => format!("http://no-such-host.invalid{end}"),
        Some("tls") => format!("https://127.0.0.1:{port}/{name}{end}"),
        _ => format!("http://127.0.0.1:{port}/{name}{end}"),
    }
}

fn batch(fleet: &Fleet, name: &str, row: &ReplyRow) -> Value {
    let mut batch = json!({
        "source": fleet.uri("in/"), "output": fleet.uri(name), "model": format!("{name}:m"),
        "max_in_flight": 3,
    });
    let fields = batch.as_object_mut().unwrap();
    if row.embed {
        fields.insert("task".to_owned(), json!("embed"));
        fields.insert("pack".to_owned(), json!(3));
        if let Some(length) = row.dimensions {
            fields.insert("dimensions".to_owned(), json!(length));
        }
        return batch;
    }
    fields.insert("instructions".to_owned(), json!("Give the title as JSON."));
    fields.insert("max_output_tokens".to_owned(), json!(64));
    if let Some(schema) = &row.schema {
        fields.insert("schema".to_owned(), schema.clone());
    }
    if row.budget {
        // Enough for about four documents by the estimate, and for all of them by the use of good
        // answers.
        fields.insert("budget_usd".to_owned(), json!(0.0013));
    }
    batch
}

/// The outcome of a batch.
#[derive(Debug)]
struct BatchOutcome {
    succeeded: usize,
    failures: BTreeMap<String, usize>,
    calls: usize,
    bad: usize,
    /// Whether the worker has reported at its start that the provider is unreachable.
    is_named: bool,
}

fn fault(row: &ReplyRow, pattern: Pattern, outcome: &BatchOutcome) -> Option<String> {
    let BatchOutcome { succeeded, failures, calls, bad, is_named } = outcome;
    let failed: usize = failures.values().sum();
    let others: Vec<_> =
        failures.keys().filter(|kind| !row.is(kind) && *kind != "Cancelled").collect();
    let wrong = if row.budget {
        if row.is("success") {
            (*succeeded < DOCUMENTS).then_some("the budget holds all at the true usage")
        } else {
            let over = failures.get("BudgetExceeded").copied().unwrap_or_default();
            (over < DOCUMENTS / 3).then_some("the budget does not hold")
        }
    } else if !others.is_empty() {
        Some("another outcome")
    } else if row.expected.config_error != *is_named {
        Some("named before the batch, or not")
    } else if pattern == Pattern::Always {
        if row.is("success") {
            // Texts that share a call may be asked separately afterwards.
            let most = if row.embed { 2 * DOCUMENTS } else { DOCUMENTS };
            (*succeeded < DOCUMENTS || *calls > most).then_some("answers are thrown away")
        } else if *succeeded > 0 {
            Some("succeeded")
        } else if may_pass(row) {
            None
        } else if failed < DOCUMENTS {
            Some("not all failed by name")
        } else if is_shared(row) && *calls > FEW {
            Some("asked for each document")
        } else {
            // Truncated answers are asked for with more room, twice.
            (*calls > 3 * DOCUMENTS).then_some("asked too often")
        }
    } else if costs_nothing_once(row) && failures.keys().all(|it| *it == row.expected.outcome) {
        if *succeeded < DOCUMENTS {
            Some("one passing refusal costs documents")
        } else {
            (pattern == Pattern::Once && *calls > DOCUMENTS + 2).then_some("asked too often")
        }
    } else if failed > *bad && !row.embed {
        Some("a refusal costs other documents")
    } else if succeeded + failed < DOCUMENTS {
        Some("not all came to an end")
    } else {
        None
    };
    wrong.map(|why| format!("{} {pattern:?}: {why}: {outcome:?}", row.id))
}

/// Runs the batches of some rows at the same time; returns their outcomes.
async fn run(all: &[(Arc<ReplyRow>, Pattern)]) -> Option<Vec<BatchOutcome>> {
    let cases: Cases = Arc::new(Mutex::default());
    let port = serve(Arc::clone(&cases)).await;
    let mut settings = String::new();
    for (number, (row, pattern)) in all.iter().enumerate() {
        let (name, case) = (format!("c{number}"), Case::new(Arc::clone(row), *pattern));
        let url = base_url(row, &name, port);
        cases.lock().insert(name.clone(), case);
        let _ = writeln!(
            settings,
            "[providers.{name}]\nkind = \"{}\"\nbase-url = \"{url}\"\n{}[models.\"{name}:m\"]\nrpm = 6_000\nprice = {{ input-usd-per-mtok = 1.0, output-usd-per-mtok = 2.0 }}",
            row.kind,
            if row.kind == "bedrock" {
                "region = \"us-east-1\"\n"
            } else {
                "api-key-env = \"SIMULATED_KEY\"\n"
            },
        );
    }
    let mut fleet = fleet("", &settings).await?;
    fleet.documents(DOCUMENTS, 60);
    fleet.worker_with(&[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
    fleet.working().await;
    let mut started = Vec::new();
    for (number, (row, _)) in all.iter().enumerate() {
        let name = format!("c{number}");
        fleet.start(&name, &batch(&fleet, &name, row)).await;
        started.push(Instant::now());
    }
    let mut cancelled = vec![false; all.len()];
    let begun = Instant::now();
    loop {
        let mut open = 0;
        for (number, (row, pattern)) in all.iter().enumerate() {
            let name = format!("c{number}");
            if fleet.path(&format!("{name}/report.json")).exists() {
                continue;
            }
            open += 1;
            let is_passing = may_pass(row) && *pattern == Pattern::Always;
            if is_passing && !cancelled[number] && started[number].elapsed() > PATIENCE {
                cancelled[number] = true;
                fleet.cli(&["workflow", "cancel", "--workflow-id", &name]).await;
            }
        }
        if open == 0 || begun.elapsed() > Duration::from_secs(240) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let mut outcome = Vec::new();
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    for number in 0..all.len() {
        let report = std::fs::read(fleet.path(&format!("c{number}/report.json")));
        let report: Value = report.map_or(Value::Null, |it| serde_json::from_slice(&it).unwrap());
        let cases = cases.lock();
        let case = &cases[&format!("c{number}")];
        let count = |value: &Value| usize::try_from(value.as_u64().unwrap_or_default()).unwrap();
        let failures = report["failures"].as_object().into_iter().flatten();
        outcome.push(BatchOutcome {
            succeeded: count(&report["succeeded"]),
            failures: failures.map(|(kind, number)| (kind.clone(), count(number))).collect(),
            calls: case.calls(),
            bad: case.bad_replies(),
            is_named: log.lines().any(|line| {
                line.contains("no call to this provider can be made")
                    && line.contains(&format!("provider=\"c{number}\""))
            }),
        });
    }
    fleet.stop().await;
    Some(outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_class_as_a_batch_in_three_patterns() {
    let all: Vec<_> = rows()
        .into_iter()
        .flat_map(|row| patterns(&row).into_iter().map(move |pattern| (Arc::clone(&row), pattern)))
        .collect();
    let (mut classes, mut wrong) = (BTreeMap::new(), Vec::new());
    for some in all.chunks(TOGETHER) {
        let Some(outcome) = run(some).await else { return };
        for ((row, pattern), outcome) in some.iter().zip(&outcome) {
            let (right, all): &mut (u32, u32) = classes.entry(row.class.clone()).or_default();
            *all += 1;
            match fault(row, *pattern, outcome) {
                None => *right += 1,
                Some(why) => wrong.push(why),
            }
        }
    }
    for (class, (right, all)) in &classes {
        println!("{class}: {right} of {all} right");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
