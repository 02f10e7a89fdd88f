//! Processes race for one model on a real Redis, and some are killed. What they report is added up
//! by a judge that knows nothing of the limiter.

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
use tidegate_testkit::{Redis, unique};
use tidegate_types::Usage;

const URL: &str = "TIDEGATE_RACE_URL";
const PREFIX: &str = "TIDEGATE_RACE_PREFIX";
const RACERS: usize = 6;
const TASKS: usize = 6;
const WINDOW: Duration = Duration::from_secs(3);
const INPUT: u64 = 60_000;
const AT_ONCE: u64 = 12;
const RACE: Duration = Duration::from_secs(15);
/// A report comes later than the admission that it tells of, by less than this.
const LATE: Duration = Duration::from_millis(500);

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
        Options { key_prefix: prefix.to_owned(), ..Options::default() },
    )
    .unwrap()
}

/// Not a test of its own: what [`killed_processes_harm_no_other`] starts again and again.
#[test]
#[ignore = "a racer, started by the test beside it"]
fn racer() {
    let (Ok(url), Ok(prefix)) = (std::env::var(URL), std::env::var(PREFIX)) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The harness has begun a line.
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

/// Calls until it is killed. Reports `in id amount` when admitted and `out id used` before it
/// settles: the reported span lies within the true one.
async fn race(quota: Quota, task: usize) {
    for call in 0.. {
        let id = format!("{}-{task}-{call}", std::process::id());
        let (amount, part, millis) = {
            let mut rng = rand::rng();
            (
                rng.random_range(200..=2_000_u64),
                rng.random_range(50..=100_u64),
                rng.random_range(20..=300_u64),
            )
        };
        let mut ticket = None;
        let mut permit = loop {
            let request = Request::new(model().id, id.clone()).tokens(amount, 0).ticket(ticket);
            match quota.admit(&request).await {
                Ok(permit) => break permit,
                Err(Refused::Wait { wait, ticket: turn, .. }) => {
                    ticket = Some(turn);
                    tokio::time::sleep(wait).await;
                }
                Err(other) => panic!("{other}"),
            }
        };
        permit.sent();
        println!("in {id} {amount}");
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let used = amount * part / 100;
        println!("out {id} {used}");
        permit.settle(&Usage { uncached_input: used, ..Usage::default() }).await;
    }
}

/// A line of a racer, or its end, with the time at which it came.
struct Report {
    at: Duration,
    racer: usize,
    line: Option<String>,
}

struct Race<'a> {
    url: &'a str,
    prefix: String,
    reports: mpsc::Sender<Report>,
    racers: Vec<(usize, Child)>,
    started: usize,
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
                let _ = reports.send(Report { at: now(), racer, line: Some(line) });
            }
            let _ = reports.send(Report { at: now(), racer, line: None });
        });
        self.racers.push((racer, child));
    }

    /// SIGKILL, in the middle of its calls.
    fn kill_oldest(&mut self) {
        let (_, mut child) = self.racers.remove(0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// What the reports say: when each call was admitted, how much it took, and the most that were
/// under way at once.
#[derive(Default)]
struct Witness {
    calls: Vec<(Duration, u64)>,
    by_id: HashMap<String, usize>,
    under_way: HashMap<String, usize>,
    most_at_once: usize,
}

impl Witness {
    fn hear(&mut self, report: &Report) {
        let Some(line) = &report.line else {
            self.under_way.retain(|_, racer| *racer != report.racer);
            return;
        };
        // The harness speaks too.
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["in", id, amount] => {
                assert!(
                    self.by_id.insert(id.to_owned(), self.calls.len()).is_none(),
                    "{id} was admitted twice"
                );
                self.calls.push((report.at, amount.parse().unwrap()));
                self.under_way.insert(id.to_owned(), report.racer);
                self.most_at_once = self.most_at_once.max(self.under_way.len());
            }
            ["out", id, used] => {
                self.calls[self.by_id[id]].1 = used.parse().unwrap();
                self.under_way.remove(id);
            }
            _ => {}
        }
    }

    /// The most that was admitted in any span of this length.
    fn most_within(&self, span: Duration) -> u64 {
        let (mut first, mut sum, mut most) = (0, 0, 0);
        for (at, amount) in &self.calls {
            sum += amount;
            while *at - self.calls[first].0 >= span {
                sum -= self.calls[first].1;
                first += 1;
            }
            most = most.max(sum);
        }
        most
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
    let (prefix, killed) = (race.prefix.clone(), race.started);
    drop(race);
    let mut witness = Witness::default();
    let mut heard: Vec<Report> = reports.iter().collect();
    heard.sort_by_key(|report| report.at);
    heard.iter().for_each(|report| witness.hear(report));

    assert_eq!(killed, RACERS + 10, "ten were replaced");
    let most = witness.most_within(WINDOW - LATE);
    assert!(most <= INPUT, "{most} tokens of {INPUT} in {:?}", WINDOW - LATE);
    assert!(
        witness.most_at_once <= usize::try_from(AT_ONCE).unwrap(),
        "{} calls at once",
        witness.most_at_once
    );
    let used: u64 = witness.calls.iter().map(|(_, amount)| amount).sum();
    let part = used as f64 / (INPUT as f64 * raced.as_secs_f64() / WINDOW.as_secs_f64());
    assert!(part > 0.4, "only {:.0} % of the limit was used while processes died", part * 100.0);

    // What the dead held comes back by itself: tokens with the window, calls at once with their
    // leases.
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
        "{} calls, {:.0} % of the limit, {most} of {INPUT} tokens at most, {} at once",
        witness.calls.len(),
        part * 100.0,
        witness.most_at_once
    );
}
