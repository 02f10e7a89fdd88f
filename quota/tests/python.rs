//! A program in another language, written from `lua/README.md` alone, shares a quota with this
//! crate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first fault"
)]

mod common;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use common::{START, in_redis, limits, model};
use tidegate_quota::{
    Amounts, Decision, Limited, Limits, Options, Quota, Refused, Request, Snapshot, Store as _,
    Ticket,
    plan::Why,
    redis_store,
    store::{Settled, Settlement},
};
use tidegate_testkit::{PATIENCE, Redis, skip, unique};
use tidegate_types::ModelId;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python");
const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/agent.py");
const STATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/states.py");

/// `None`, with a message, without Python or Redis; a failure with `TIDEGATE_REQUIRE_SERVICES=1`.
fn services() -> Option<&'static Redis> {
    if python().arg("--version").stdout(Stdio::null()).status().is_err() {
        skip("python3 is not on the PATH");
        return None;
    }
    Redis::shared()
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.current_dir(EXAMPLES).env("PYTHONPATH", EXAMPLES).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// The Python client, driven line by line.
struct Agent {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Agent {
    fn start(server: &Redis, prefix: &str, combined: u64) -> Self {
        let mut child = python()
            .args([AGENT, &server.url, prefix, &combined.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, orders, answers }
    }

    fn send_order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert!(answer.ends_with('\n'), "the agent died at: {order}");
        answer.trim_end().to_owned()
    }

    fn reserve(&mut self, id: &str, tokens: u64, ticket: Option<Ticket>) -> String {
        let ticket = ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
        self.send_order(&format!("reserve {id} {tokens} {} {}", ticket.epoch, ticket.position))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A decision as the agent writes it.
fn written(decision: &Decision) -> String {
    match *decision {
        Decision::Granted => "granted 0 - 0 0 0".to_owned(),
        Decision::Wait { wait, hold, deficit, ticket, .. } => {
            format!(
                "wait {} {} {deficit} {} {}",
                wait.as_micros(),
                hold.name(),
                ticket.epoch,
                ticket.position
            )
        }
        Decision::GateClosed { wait, ticket } => {
            format!("paused {} - 0 {} {}", wait.as_micros(), ticket.epoch, ticket.position)
        }
        Decision::Never { capacity, .. } => format!("never 0 - {capacity} 0 0"),
        Decision::Exhausted { wait, .. } => format!("exhausted {} - 0 0 0", wait.as_micros()),
    }
}

/// A snapshot as the agent writes it.
fn seen(snapshot: &Snapshot) -> String {
    let dimensions = Limited::ALL.into_iter().map(|limited| snapshot.for_limit(limited));
    let numbers =
        dimensions.flat_map(|dimension| [dimension.limit, dimension.used, dimension.held]);
    let pause = u64::try_from(snapshot.pause.as_micros()).unwrap();
    [pause, snapshot.reservations]
        .into_iter()
        .chain(numbers)
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

fn ticket_in(answer: &str) -> Ticket {
    let numbers: Vec<&str> = answer.split(' ').collect();
    assert_eq!(numbers[0], "wait", "{answer}");
    Ticket { epoch: numbers[4].parse().unwrap(), position: numbers[5].parse().unwrap() }
}

fn next(random: &mut u64, below: u64) -> u64 {
    *random =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % below
}

#[test]
fn the_python_unit_tests_pass() {
    if services().is_none() {
        return;
    }
    let output = python().args(["-m", "unittest", "-v"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("\nOK") && !said.contains("Ran 0 tests"),
        "{said}"
    );
}

/// The page's claims about these numbers hold for the scripts' answers.
#[test]
fn the_five_states_of_the_page_are_as_it_says() {
    let Some(server) = services() else { return };
    let output = python().args([STATES, &server.url, &unique("test")]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = ["tokens 1.0", "turn 4.5", "tokens 8.5", "lane 0.5", "gate 2.5", "probe 0.5"];
    let fault = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{fault}");
}

/// With a plan after a first answer.
async fn planned(prefix: &str) -> common::Rig<redis_store::Store> {
    let rust = in_redis(model(limits(1_000)), prefix).unwrap();
    let first = rust.ask(0);
    assert_eq!(rust.reserve(&first).await, Decision::Granted);
    let answered = Settlement::used(first.reservation, Amounts::call(0, 0));
    rust.store.settle(&rust.model, &answered).await.unwrap();
    rust
}

/// Copies every key below `from` to `to`, and removes all others there.
fn copy(connection: &mut redis::Connection, from: &str, to: &str) {
    let keys = |connection: &mut redis::Connection, prefix: &str| -> Vec<String> {
        redis::cmd("KEYS").arg(format!("{prefix}:*")).query(connection).unwrap()
    };
    for key in keys(connection, to) {
        redis::cmd("DEL").arg(key).exec(connection).unwrap();
    }
    for key in keys(connection, from) {
        let value: Vec<u8> = redis::cmd("DUMP").arg(&key).query(connection).unwrap();
        let copy = key.replacen(from, to, 1);
        redis::cmd("RESTORE").arg(copy).arg(0).arg(value).exec(connection).unwrap();
    }
}

/// The two clients send different texts (this crate folds constants) and pack numbers by different
/// code. The policy is Rust's: before each step Python gets the state that Rust left.
#[tokio::test]
async fn the_same_state_gives_the_same_answers_in_both_languages() {
    let Some(server) = services() else { return };
    let (combined, ours, theirs) = (1_000, unique("test"), unique("test"));
    let rust = planned(&ours).await;
    let mut connection = server.connection();
    let mut python = Agent::start(server, &theirs, combined);
    let (mut random, mut waiting, mut granted) =
        (7, Vec::<(String, u64, Ticket)>::new(), Vec::<String>::new());
    let mut outcomes = BTreeMap::<String, u64>::new();
    for step in 0..600 {
        rust.advance(Duration::from_millis(next(&mut random, 4_000)));
        python.send_order(&format!("at {}", rust.now()));
        copy(&mut connection, &ours, &theirs);
        let (told, theirs) = match next(&mut random, 10) {
            0..=5 => {
                let returns = !waiting.is_empty() && next(&mut random, 2) == 0;
                let (id, tokens, ticket) = if returns {
                    let (id, tokens, ticket) = waiting.remove(0);
                    (id, tokens, Some(ticket))
                } else {
                    let largest = if next(&mut random, 10) == 0 { 2_000 } else { 400 };
                    (format!("r{step}"), 1 + next(&mut random, largest), None)
                };
                let ask = common::ask(id.clone(), Amounts::call(tokens, 0));
                let decision = rust.reserve(&tidegate_quota::store::Ask { ticket, ..ask }).await;
                match decision {
                    Decision::Wait { ticket, .. } => waiting.push((id.clone(), tokens, ticket)),
                    Decision::Granted => granted.push(id.clone()),
                    _ => {}
                }
                (written(&decision), python.reserve(&id, tokens, ticket))
            }
            kind @ (6 | 7) if !granted.is_empty() => {
                let recent = next(&mut random, granted.len().min(8) as u64);
                let id = granted[granted.len() - 1 - usize::try_from(recent).unwrap()].clone();
                let used = next(&mut random, 1_000);
                let (settlement, order) = if kind == 6 {
                    (
                        Settlement::used(id.clone(), Amounts::call(used, 0)),
                        format!("settle {id} {used}"),
                    )
                } else {
                    (Settlement::released(id.clone()), format!("release {id}"))
                };
                let settled = match rust.store.settle(&rust.model, &settlement).await.unwrap().0 {
                    Settled::Done => "done",
                    Settled::Before => "before",
                    Settled::Unknown => "unknown",
                };
                (settled.to_owned(), python.send_order(&order))
            }
            _ => (
                seen(&rust.store.inspect(&rust.model).await.unwrap()),
                python.send_order("inspect"),
            ),
        };
        assert_eq!(told, theirs, "step {step}");
        *outcomes.entry(told.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    for outcome in ["granted", "wait", "never", "done", "before", "unknown"] {
        assert!(
            outcomes.get(outcome).is_some_and(|count| *count > 3),
            "the history must try {outcome}: {outcomes:?}"
        );
    }
}

#[tokio::test]
async fn a_ticket_given_in_one_language_is_honoured_in_the_other() {
    let Some(server) = services() else { return };
    let prefix = unique("test");
    let rust = planned(&prefix).await;
    let mut python = Agent::start(server, &prefix, 1_000);
    python.send_order(&format!("at {START}"));
    assert_eq!(python.reserve("full", 1_000, None), "granted 0 - 0 0 0");
    let (_, _, first) = rust.refused(&rust.ask(500)).await;
    let second = ticket_in(&python.reserve("second", 500, None));
    let (_, _, third) = rust.refused(&rust.ask(500)).await;
    assert!(
        first.epoch == second.epoch
            && first.position < second.position
            && second.position < third.position
    );

    rust.advance(Duration::from_secs(60));
    python.send_order(&format!("at {}", rust.now()));
    assert!(
        python.reserve("newcomer", 500, None).starts_with("wait"),
        "a newcomer stands behind the tickets"
    );
    assert_eq!(python.reserve("first", 500, Some(first)), "granted 0 - 0 0 0");
    let refused =
        rust.reserve(&tidegate_quota::store::Ask { ticket: Some(third), ..rust.ask(500) }).await;
    assert!(
        matches!(refused, Decision::Wait { .. }),
        "the third goes after the second: {refused:?}"
    );
    assert_eq!(
        rust.reserve(&tidegate_quota::store::Ask { ticket: Some(second), ..rust.ask(500) }).await,
        Decision::Granted
    );
}

#[tokio::test]
async fn settlements_and_pauses_are_seen_by_the_other_language() {
    let Some(server) = services() else { return };
    let prefix = unique("test");
    let rust = planned(&prefix).await;
    let mut python = Agent::start(server, &prefix, 1_000);
    python.send_order(&format!("at {START}"));

    assert_eq!(python.reserve("a", 800, None), "granted 0 - 0 0 0");
    let held = rust.store.inspect(&rust.model).await.unwrap();
    assert_eq!(
        (held.used().combined, held.dimensions.combined.held, held.in_flight.used),
        (800, 800, 1)
    );
    assert_eq!(python.send_order("settle a 300"), "done");
    let settled = rust.store.inspect(&rust.model).await.unwrap();
    assert_eq!(
        (settled.used().combined, settled.dimensions.combined.held, settled.in_flight.used),
        (300, 0, 0)
    );
    let again = rust
        .store
        .settle(&rust.model, &Settlement::used("a", Amounts::call(9, 0)))
        .await
        .unwrap()
        .0;
    assert_eq!(again, Settled::Before, "once is once, in whatever language");

    let pause = tidegate_quota::store::Pause {
        length: Duration::from_secs(20),
        reason: "a test".to_owned(),
    };
    rust.store.pause(&rust.model, &pause).await.unwrap();
    assert!(python.reserve("b", 10, None).starts_with("paused 20000000 - 0 "));
    rust.store.resume(&rust.model).await.unwrap();
    assert_eq!(python.reserve("b", 10, None), "granted 0 - 0 0 0");

    assert_eq!(python.send_order("refused b 30"), "ok");
    let refused = rust.reserve(&rust.ask(10)).await;
    let wait = Duration::from_secs(30);
    assert!(
        matches!(refused, Decision::GateClosed { wait: told, .. } if told == wait),
        "{refused:?}"
    );
    assert_eq!(rust.store.inspect(&rust.model).await.unwrap().reason, "429");

    // The next program with a policy that settles a call gets what Python has logged.
    rust.store.settle(&rust.model, &Settlement::released("none")).await.unwrap();
    let plan = rust.store.inspect(&rust.model).await.unwrap().dimensions.combined.plan.unwrap();
    assert_eq!(plan.capacity.why, Why::TooDeep);
}

/// Python writes the first plan; after a minute a program with a policy writes another, which
/// Python then follows.
#[tokio::test]
async fn a_fleet_that_python_began_is_gone_on_with_by_a_policy() {
    let Some(server) = services() else { return };
    let prefix = unique("test");
    let rust = in_redis(model(limits(1_000)), &prefix).unwrap();
    let mut python = Agent::start(server, &prefix, 1_000);
    python.send_order(&format!("at {START}"));
    assert_eq!(python.reserve("first", 1_000, None), "granted 0 - 0 0 0");
    let at_once = async || {
        rust.store.inspect(&rust.model).await.unwrap().dimensions.combined.plan.unwrap().at_once()
    };
    assert_eq!(at_once().await, 1_000);
    rust.advance(Duration::from_secs(59));
    assert!(matches!(rust.reserve(&rust.ask(1_000)).await, Decision::Wait { .. }));
    assert_eq!(at_once().await, 1_000);

    rust.advance(Duration::from_secs(61));
    python.send_order(&format!("at {}", rust.now()));
    assert_eq!(rust.reserve(&rust.ask(200)).await, Decision::Granted);
    assert_eq!(at_once().await, 250, "no answer has proved the estimates yet");
    assert!(python.reserve("second", 200, None).starts_with("wait "));
    assert_eq!(at_once().await, 250);
}

/// One admission, read from the ledger.
#[derive(Debug, Clone, Copy)]
struct Entry {
    admitted: f64,
    tokens: f64,
}

fn entries(connection: &mut redis::Connection, prefix: &str, into: &mut BTreeMap<String, Entry>) {
    let hash = format!("{prefix}:v1:{{test:model}}:entries");
    let all: BTreeMap<String, Vec<u8>> = redis::cmd("HGETALL").arg(hash).query(connection).unwrap();
    for (id, packed) in all {
        let double = |at: usize| f64::from_le_bytes(packed[at..at + 8].try_into().unwrap());
        into.insert(id, Entry { admitted: double(0), tokens: double(43) });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_and_a_rust_program_keep_one_limit_together() {
    const CALLS: usize = 30;
    const TOKENS: u64 = 100;
    const LIMIT: u64 = 1_000;
    const WINDOW: f64 = 1.0;
    let Some(server) = services() else { return };
    let prefix = unique("test");
    let window = Duration::from_secs_f64(WINDOW);
    let limits = Limits { margin: 1.0, window, burst: Some(window), ..common::limits(LIMIT) };
    let options = Options {
        key_prefix: prefix.clone(),
        max_slot_wait: Duration::from_secs(60),
        answer_within: PATIENCE,
        ..Options::default()
    };
    let quota = Quota::with_redis(&server.url, [model(limits)], options).unwrap();
    let id: ModelId = "test:model".parse().unwrap();

    let common = [
        "--url",
        &server.url,
        "--prefix",
        &prefix,
        "--model",
        "test:model",
        "--name",
        "python",
        "--margin",
        "1",
    ];
    let (calls, tokens, limit, seconds) =
        (CALLS.to_string(), TOKENS.to_string(), LIMIT.to_string(), WINDOW.to_string());
    let sizes = [
        "--calls",
        &calls,
        "--tokens",
        &tokens,
        "--combined",
        &limit,
        "--window",
        &seconds,
        "--burst",
        &seconds,
    ];
    let mut child =
        python().arg("share.py").args(common).args(sizes).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    // Python needs a moment to start; the race begins with its first call.
    let mut lines = vec![printed.next().unwrap().unwrap()];

    let rust = tokio::spawn({
        let (quota, id) = (quota.clone(), id.clone());
        async move {
            for number in 0..CALLS {
                let request = Request::new(id.clone(), format!("rust-{number}")).tokens(TOKENS, 0);
                let mut permit = quota.admit(&request).await.unwrap();
                permit.sent();
                permit
                    .settle(&tidegate_types::Usage { uncached_input: TOKENS, ..Default::default() })
                    .await;
            }
        }
    });
    let (mut connection, mut ledger) = (server.connection(), BTreeMap::new());
    // Each entry stays for a window at least, so ten reads in each window miss none.
    while ledger.len() < 2 * CALLS {
        entries(&mut connection, &prefix, &mut ledger);
        if let Ok(snapshot) = quota.inspect(&id).await {
            assert!(snapshot.used().combined <= LIMIT, "{snapshot:?}");
        }
        if rust.is_finished() && child.try_wait().unwrap().is_some() {
            entries(&mut connection, &prefix, &mut ledger);
            break;
        }
        tokio::time::sleep(window / 20).await;
    }
    rust.await.unwrap();
    assert!(!quota.is_degraded(), "Redis must answer while this is measured");
    lines.extend(printed.map(Result::unwrap));
    assert!(child.wait().unwrap().success());
    assert_eq!(lines.len(), CALLS, "one line for each admission: {lines:#?}");

    let mut admissions: Vec<(&str, Entry)> =
        ledger.iter().map(|(id, entry)| (id.split_once('-').unwrap().0, *entry)).collect();
    admissions.sort_by(|a, b| a.1.admitted.total_cmp(&b.1.admitted));
    for language in ["python", "rust"] {
        assert_eq!(
            admissions.iter().filter(|(name, _)| *name == language).count(),
            CALLS,
            "{language} gets all its calls"
        );
    }
    let turns = admissions.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(
        turns > CALLS / 3,
        "they are admitted by turns, not one after the other: {turns} changes"
    );
    for (_, last) in &admissions {
        let begin = last.admitted - WINDOW * 1e6;
        let inside = admissions
            .iter()
            .filter(|(_, entry)| entry.admitted > begin && entry.admitted <= last.admitted);
        let total: f64 = inside.map(|(_, entry)| entry.tokens).sum();
        assert!(total <= 1_000.0, "{total} tokens in the window that ends at {}", last.admitted);
    }
    let spent = admissions.last().unwrap().1.admitted - admissions[0].1.admitted;
    assert!(
        spent >= WINDOW * 1e6 * 4.0,
        "six windows' worth takes more than four windows: {spent}"
    );
}

/// Through `Quota` and not only the scripts: calls of Python delay `Quota::admit`.
#[tokio::test]
async fn a_pause_by_python_stops_a_rust_quota() {
    let Some(server) = services() else { return };
    let prefix = unique("test");
    let options = Options {
        key_prefix: prefix.clone(),
        max_slot_wait: Duration::ZERO,
        answer_within: PATIENCE,
        ..Options::default()
    };
    let quota = Quota::with_redis(&server.url, [model(limits(1_000))], options).unwrap();
    let mut python = Agent::start(server, &prefix, 1_000);
    let id: ModelId = "test:model".parse().unwrap();
    quota.admit(&Request::new(id.clone(), "before").tokens(1, 0)).await.unwrap().release().await;
    assert!(python.reserve("p", 10, None).starts_with("granted"));
    python.send_order("refused p 45");
    let refused = quota.admit(&Request::new(id, "after").tokens(1, 0)).await.unwrap_err();
    assert!(
        matches!(&refused, Refused::GateClosed { wait, .. } if *wait > Duration::from_secs(40)),
        "{refused}"
    );
}
