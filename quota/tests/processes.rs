//! Processes race for one model on a real Redis, and some are killed. An independent judge checks
//! the sums of their reports.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "tests may stop at the first fault, and the racers report on their standard output"
)]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rand::RngExt as _;
use tidegate_quota::{
    Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Refused, Request,
};
use tidegate_testkit::{PATIENCE, Redis, unique};
use tidegate_types::Usage;

const URL: &str = "TIDEGATE_RACE_URL";
const PREFIX: &str = "TIDEGATE_RACE_PREFIX";
const RACERS: usize = 6;
const TASKS: usize = 6;
const WINDOW: Duration = Duration::from_secs(3);
const INPUT: u64 = 60_000;
const AT_ONCE: u64 = 12;
const RACE: Duration = Duration::from_secs(15);

fn model() -> ModelQuota {
    let limits = Limits {
        concurrent: Some(AT_ONCE),
        margin: 1.0,
        window: WINDOW,
        lease: Duration::from_secs(5),
        ..Limits::default().with(Dimension::Input, INPUT)
    };
    ModelQuota::new(
        "race:model".parse().unwrap(),
        limits,
        Charge::default(),
        Arc::new(Lanes::single()),
    )
    .unwrap()
}

fn quota(url: &str, prefix: &str) -> Quota {
    Quota::with_redis(
        url,
        [model()],
        Options { key_prefix: prefix.to_owned(), answer_within: PATIENCE, ..Options::default() },
    )
    .unwrap()
}

/// Not a test: the process that [`killed_processes_harm_no_other`] starts many times.
#[test]
#[ignore = "a racer, started by the test beside it"]
fn racer() {
    let (Ok(url), Ok(prefix)) = (std::env::var(URL), std::env::var(PREFIX)) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The test harness has begun a line.
    println!();
    runtime.block_on(async {
        let quota = quota(&url, &prefix);
        let tasks: Vec<_> =
            (0..TASKS).map(|task| tokio::spawn(race(quota.clone(), task))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Makes calls until it is killed. Reports `in id amount asked admitted` when admitted and `out id
/// now` before it settles, with its own times: a report may be read seconds later. Each call uses
/// three quarters of its estimate, so that the learned expectation is exact: calls that use more
/// than others may put the window over its limit until they settle.
async fn race(quota: Quota, task: usize) {
    for call in 0.. {
        let id = format!("{}-{task}-{call}", std::process::id());
        let (used, millis) = {
            let mut rng = rand::rng();
            (3 * rng.random_range(50..=500_u64), rng.random_range(20..=300_u64))
        };
        let mut ticket = None;
        let (mut permit, asked) = loop {
            let asked = now();
            let request =
                Request::new(model().id, id.clone()).tokens(used / 3 * 4, 0).ticket(ticket);
            match quota.admit(&request).await {
                Ok(permit) => break (permit, asked),
                Err(Refused::Wait { wait, ticket: turn, .. }) => {
                    ticket = Some(turn);
                    tokio::time::sleep(wait).await;
                }
                Err(other) => panic!("{other}"),
            }
        };
        permit.sent();
        println!("in {id} {used} {} {}", asked.as_nanos(), now().as_nanos());
        tokio::time::sleep(Duration::from_millis(millis)).await;
        println!("out {id} {}", now().as_nanos());
        permit.settle(&Usage { uncached_input: used, ..Usage::default() }).await;
    }
}

/// A report of a racer.
struct Report {
    racer: usize,
    line: String,
}

struct Race<'a> {
    url: &'a str,
    prefix: String,
    reports: mpsc::Sender<Report>,
    racers: Vec<(usize, Child)>,
    started: usize,
    /// When each racer was killed: none of its calls is under way after that.
    killed: HashMap<usize, Duration>,
}

impl Race<'_> {
    fn start_one(&mut self) {
        let racer = self.started;
        self.started += 1;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["racer", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(URL, self.url)
            .env(PREFIX, &self.prefix)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, reports) = (BufReader::new(child.stdout.take().unwrap()), self.reports.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let _ = reports.send(Report { racer, line });
            }
        });
        self.racers.push((racer, child));
    }

    /// SIGKILL, in the middle of its calls.
    fn kill_oldest(&mut self) {
        let (racer, mut child) = self.racers.remove(0);
        self.killed.insert(racer, now());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A call that was admitted between `asked` and `admitted`, and was in flight from `admitted` to
/// `ended` or to the end of its lease.
struct Call {
    asked: Duration,
    admitted: Duration,
    ended: Option<Duration>,
    /// Tokens that it uses.
    amount: u64,
    racer: usize,
}

/// Checks the reports. Each bound uses certain times only, however late a reply or a report came: a
/// fault may escape in one run, but a slow machine never looks like a fault.
#[derive(Default)]
struct Witness {
    calls: Vec<Call>,
    by_id: HashMap<String, usize>,
}

impl Witness {
    fn hear(&mut self, report: &Report) {
        // The harness writes lines too, and a killed racer's last line may be incomplete.
        let nanos = |text: &str| text.parse().ok().map(Duration::from_nanos);
        match report.line.split(' ').collect::<Vec<_>>()[..] {
            ["in", id, amount, asked, admitted] => {
                let (Some(asked), Some(admitted)) = (nanos(asked), nanos(admitted)) else { return };
                let amount = amount.parse().unwrap();
                let index = self.calls.len();
                assert!(
                    self.by_id.insert(id.to_owned(), index).is_none(),
                    "{id} was admitted twice"
                );
                let racer = report.racer;
                self.calls.push(Call { asked, admitted, ended: None, amount, racer });
            }
            ["out", id, ended] => {
                let Some(ended) = nanos(ended) else { return };
                self.calls[self.by_id[id]].ended = Some(ended);
            }
            _ => {}
        }
    }

    /// The most that was certainly admitted in any span of this length: asked for and admitted
    /// inside it.
    fn most_within(&self, span: Duration) -> u64 {
        let within = |start: Duration| {
            self.calls
                .iter()
                .filter(move |call| call.asked >= start && call.admitted < start + span)
                .map(|call| call.amount)
                .sum()
        };
        self.calls.iter().map(|call| within(call.asked)).max().unwrap_or_default()
    }

    /// The most calls that were certainly under way at one time.
    fn most_at_once(&self, killed: &HashMap<usize, Duration>) -> u64 {
        let mut steps: Vec<_> = self
            .calls
            .iter()
            .map(|call| {
                let ended = call.ended.unwrap_or_else(|| killed[&call.racer]);
                (call.admitted, ended.min(call.asked + model().limits.lease()))
            })
            .filter(|(from, to)| from < to)
            .flat_map(|(from, to)| [(from, 1_i64), (to, -1)])
            .collect();
        steps.sort_unstable();
        let at_once = steps.iter().scan(0, |sum, (_, step)| {
            *sum += step;
            Some(*sum)
        });
        at_once.max().unwrap_or_default().unsigned_abs()
    }
}

#[test]
fn killed_processes_harm_no_other() {
    let Some(server) = Redis::shared() else { return };
    let (sender, reports) = mpsc::channel();
    let mut race = Race {
        url: &server.url,
        prefix: unique("test"),
        reports: sender,
        racers: Vec::new(),
        started: 0,
        killed: HashMap::new(),
    };
    for _ in 0..RACERS {
        race.start_one();
    }
    let started = Instant::now();
    while started.elapsed() < RACE {
        sleep(Duration::from_millis(1_500));
        race.kill_oldest();
        race.start_one();
    }
    let raced = started.elapsed();
    while !race.racers.is_empty() {
        race.kill_oldest();
    }
    let Race { prefix, started: raced_in_all, killed, reports: sender, .. } = race;
    drop(sender);
    let mut witness = Witness::default();
    reports.iter().for_each(|report| witness.hear(&report));

    assert_eq!(raced_in_all, RACERS + 10, "ten were replaced");
    let most = witness.most_within(WINDOW);
    assert!(most <= INPUT, "{most} tokens of {INPUT} in {WINDOW:?}");
    let at_once = witness.most_at_once(&killed);
    assert!(at_once <= AT_ONCE, "{at_once} calls at once");
    let used: u64 = witness.calls.iter().map(|call| call.amount).sum();
    let part = used as f64 / (INPUT as f64 * raced.as_secs_f64() / WINDOW.as_secs_f64());
    assert!(part > 0.4, "only {:.0} % of the limit was used while processes died", part * 100.0);

    // Amounts held by killed processes are given back: tokens with the window, calls at once with
    // their leases.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let patience = Instant::now() + 4 * model().limits.lease();
    loop {
        let left = runtime
            .block_on(async { quota(&server.url, &prefix).inspect(&model().id).await })
            .unwrap();
        let held = (left.get(Dimension::Input).used, left.in_flight.used, left.reservations);
        if held == (0, 0, 0) {
            break;
        }
        assert!(
            Instant::now() < patience,
            "the dead still hold {held:?} (tokens, calls at once, reservations)"
        );
        sleep(Duration::from_millis(100));
    }
    println!(
        "{} calls, {:.0} % of the limit, {most} of {INPUT} tokens at most, {at_once} at once",
        witness.calls.len(),
        part * 100.0,
    );
}
