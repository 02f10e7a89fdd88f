//! Budgets on a real Redis: exact under concurrency, idempotent, a new day, closed while Redis is
//! away.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
    time::Duration,
};

use common::{SECOND, START};
use proptest::{prelude::*, test_runner::TestCaseError};
use tidegate_quota::{
    Budget, Budgets, Options, Quota, Retries,
    budget::{BudgetHold, BudgetRefused, Unheld},
    redis_store::Store,
};
use tidegate_testkit::{PATIENCE, Redis, unique};
use tidegate_types::Tenant;

const DAY: u64 = 86_400 * SECOND;
const NEVER: u8 = 0;

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn store(url: &str, prefix: &str) -> Store {
    Store::open_within(url, prefix, Duration::from_secs(300), PATIENCE).unwrap()
}

fn budgets(server: &Redis, prefix: &str) -> Budgets {
    Budgets::new(Some(store(&server.url, prefix)))
}

fn refused(answer: Result<BudgetHold, Unheld>) -> BudgetRefused {
    match answer {
        Err(Unheld::Refused(refused)) => refused,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn spent(server: &Redis, key: &str) -> u64 {
    redis::cmd("HGET")
        .arg(key)
        .arg("spent")
        .query::<Option<u64>>(&mut server.connection())
        .unwrap()
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_over_many_connections_hold_exactly_what_fits() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("test");
    let workers: Vec<Budgets> = (0..4).map(|_| budgets(server, &prefix)).collect();
    let budget = Budget::daily(tenant(), 1.0);
    let ask = |number: usize| {
        let (worker, budget) = (workers[number % 4].clone(), budget.clone());
        tokio::spawn(async move { worker.reserve(&budget, &format!("r{number}"), 0.07).await })
    };
    let answers = futures(0..200, ask).await;
    let (held, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((held.len(), refused.len()), (14, 186), "floor(1.00 / 0.07)");
    for refusal in refused {
        assert!(
            matches!(refusal, Err(Unheld::Refused(BudgetRefused { left_usd, .. })) if left_usd < 0.07),
            "{refusal:?}"
        );
    }
    let key = format!("{prefix}:v1:{{tenant:acme}}:budget");
    assert_eq!(spent(server, &key), 980_000_000);

    // What calls cost less comes back, to the nano-dollar.
    for hold in held {
        hold.unwrap().settle(0.012_345_678).await;
    }
    assert_eq!(spent(server, &key), 14 * 12_345_678);
    let left = refused_left(&workers[0], &budget).await;
    assert!((left - (1.0 - 14.0 * 0.012_345_678)).abs() < 1e-9, "{left}");
}

async fn refused_left(budgets: &Budgets, budget: &Budget) -> f64 {
    refused(budgets.reserve(budget, "too much", 1_000.0).await).left_usd
}

async fn futures<T: Send + 'static>(
    numbers: std::ops::Range<usize>,
    ask: impl Fn(usize) -> tokio::task::JoinHandle<T>,
) -> Vec<T> {
    let tasks: Vec<_> = numbers.map(ask).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_all_sizes_that_settle_meanwhile_never_hold_more_than_the_budget() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("test");
    let budgets = budgets(server, &prefix);
    let budget = Budget::of_batch("night", 0.5);
    let ask = |number: usize| {
        let (budgets, budget) = (budgets.clone(), budget.clone());
        let bound = 0.001 * (1 + number * 7 % 23) as f64;
        tokio::spawn(async move {
            match budgets.reserve(&budget, &format!("r{number}"), bound).await {
                Ok(hold) => {
                    let cost = bound * 0.5;
                    hold.settle(cost).await;
                    Some(cost)
                }
                Err(error) => {
                    assert!(matches!(error, Unheld::Refused(_)), "{error:?}");
                    None
                }
            }
        })
    };
    let costs: Vec<f64> = futures(0..120, ask).await.into_iter().flatten().collect();
    let total = spent(server, &format!("{prefix}:v1:{{batch:night}}:budget"));
    assert!(total <= 500_000_000, "{total}");
    assert_eq!(total, costs.iter().map(|cost| (cost * 1e9).round() as u64).sum::<u64>());
    assert!(
        total >= (500_000_000 - 23_000_000) / 2,
        "as much was held as fits, and half of it was spent: {total}"
    );
}

#[tokio::test]
async fn a_day_ends_at_midnight_and_a_batch_never_does() {
    let Some(server) = Redis::shared() else { return };
    let store = store(&server.url, &unique("test"));
    let budgets = Budgets::new(Some(store.clone()));
    let (daily, batch) = (Budget::daily(tenant(), 1.0), Budget::of_batch("b{1}", 1.0));
    let midnight = START - START % DAY + DAY;
    store.set_test_clock(midnight - 90 * SECOND);
    let mut yesterdays = budgets.reserve(&daily, "a", 1.0).await.unwrap();
    yesterdays.sent();
    budgets.reserve(&batch, "a", 1.0).await.unwrap().keep_charged();
    let refusal = refused(budgets.reserve(&daily, "b", 0.5).await);
    assert_eq!(
        (refusal.reset, refusal.left_usd, refusal.needed_usd),
        (Some(Duration::from_secs(90)), 0.0, 0.5)
    );
    assert_eq!(refused(budgets.reserve(&batch, "b", 0.5).await).reset, None);

    store.set_test_clock(midnight - 1);
    assert_eq!(
        refused(budgets.reserve(&daily, "b", 0.5).await).reset,
        Some(Duration::from_micros(1))
    );
    store.set_test_clock(midnight);
    assert_eq!(
        refused(budgets.reserve(&daily, "b", 1.5).await).left_usd,
        1.0,
        "a new day is seen by refusals too"
    );
    let hold = budgets.reserve(&daily, "b", 0.75).await.unwrap();
    assert_eq!(hold.left_usd, 0.25);
    yesterdays.settle(9.0).await;
    assert_eq!(
        refused_left(&budgets, &daily).await,
        0.25,
        "yesterday's call is not paid for today"
    );
    hold.settle(0.5).await;
    assert_eq!(refused_left(&budgets, &daily).await, 0.5);

    store.set_test_clock(midnight - 10 * SECOND);
    assert_eq!(
        refused_left(&budgets, &daily).await,
        0.5,
        "a clock that steps back gives nothing out twice"
    );
    assert_eq!(refused_left(&budgets, &batch).await, 0.0);
}

#[tokio::test]
async fn a_hold_is_given_back_unless_its_call_was_sent() {
    let Some(server) = Redis::shared() else { return };
    let budgets = budgets(server, &unique("test"));
    let budget = Budget::daily(tenant(), 1.0);
    let unsent = budgets.reserve(&budget, "a", 0.25).await.unwrap();
    let mut sent = budgets.reserve(&budget, "b", 0.5).await.unwrap();
    sent.sent();
    drop(sent);
    drop(unsent);
    assert_eq!(eventually_left(&budgets, &budget, 0.5).await, 0.5);
    budgets.reserve(&budget, "c", 0.5).await.unwrap().release().await;
    assert_eq!(refused_left(&budgets, &budget).await, 0.5);

    // A question that is dropped while it is under way holds nothing in the end.
    for number in 0..50 {
        let id = format!("dropped {number}");
        let question = budgets.reserve(&budget, &id, 0.5);
        let _ = tokio::time::timeout(Duration::from_micros(number * 20), question).await;
    }
    assert_eq!(eventually_left(&budgets, &budget, 0.5).await, 0.5);
}

/// What is left, asked until it is as expected or ten seconds have passed.
async fn eventually_left(budgets: &Budgets, budget: &Budget, expected: f64) -> f64 {
    for _ in 0..1_000 {
        if (refused_left(budgets, budget).await - expected).abs() < 1e-12 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    refused_left(budgets, budget).await
}

#[tokio::test]
async fn without_redis_no_budget_is_open() {
    let none = Budgets::default().reserve(&Budget::daily(tenant(), 1.0), "a", 0.0).await;
    assert!(matches!(none, Err(Unheld::Unknown(_))), "{none:?}");

    let Some(mut server) = Redis::start() else { return };
    let budgets = budgets(&server, "closed");
    let budget = Budget::daily(tenant(), 1.0);
    let hold = budgets.reserve(&budget, "a", 0.5).await.unwrap();
    server.kill();
    let away = budgets.reserve(&budget, "b", 0.1).await.unwrap_err();
    assert!(matches!(away, Unheld::Unknown(_)), "{away:?}");
    assert!(
        away.to_string().starts_with("no budget can be kept, so no call is made: Redis is away"),
        "{away}"
    );
    hold.settle(0.1).await;
}

#[tokio::test]
async fn every_key_has_a_time_to_live() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("test");
    let budgets = budgets(server, &prefix);
    budgets.reserve(&Budget::daily(tenant(), 1.0), "a", 0.5).await.unwrap().settle(0.1).await;
    budgets.reserve(&Budget::of_batch("b{1}", 1.0), "a", 0.5).await.unwrap().settle(0.1).await;
    refused(budgets.reserve(&Budget::of_batch("unknown", 0.1), "a", 0.5).await);
    let mut connection = server.connection();
    let mut keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut connection).unwrap();
    keys.sort();
    assert_eq!(
        keys,
        ["{batch:b_1_}", "{tenant:acme}"].map(|who| format!("{prefix}:v1:{who}:budget"))
    );
    for (key, days) in keys.iter().zip([30, 2]) {
        let ttl: i64 = redis::cmd("TTL").arg(key).query(&mut connection).unwrap();
        assert!((days * 86_400 - 60..=days * 86_400).contains(&ttl), "{key} lives for {ttl} s");
    }
}

static RESERVE: LazyLock<String> = LazyLock::new(|| common::joined("budget-reserve-1"));
static SETTLE: LazyLock<String> = LazyLock::new(|| common::joined("budget-settle-1"));

fn reserve(
    connection: &mut redis::Connection,
    key: &str,
    arguments: [String; 5],
) -> redis::RedisResult<(u8, u64, u64)> {
    let reply: (u8, u64, u64, u64, u64) =
        redis::cmd("EVAL").arg(&*RESERVE).arg(1).arg(key).arg(&arguments).query(connection)?;
    Ok((reply.0, reply.1, reply.2))
}

fn settle(
    connection: &mut redis::Connection,
    key: &str,
    id: &str,
    cost: &str,
) -> redis::RedisResult<(u8,)> {
    redis::cmd("EVAL").arg(&*SETTLE).arg(1).arg(key).arg(id).arg(cost).query(connection)
}

/// A run counts for itself, and a document adds to its budget once.
#[tokio::test]
async fn retries_are_counted_by_run() {
    let Some(server) = Redis::start() else { return };
    let options =
        Options { key_prefix: unique("retries"), answer_within: PATIENCE, ..Options::default() };
    let quota = Quota::with_redis(&server.url, [], options).unwrap();
    let long = Some(("0.7", 96));
    let mut counted = Vec::new();
    for (run, adds) in
        [("a-1", None), ("a-1", long), ("a-1", long), ("a-1", Some(("0.8", 4))), ("a-2", None)]
    {
        let Retries { spent, added } = quota.count_retry(run, adds).await.unwrap();
        counted.push((spent, added));
    }
    assert_eq!(counted, [(1, 0), (2, 96), (3, 96), (4, 100), (1, 0)]);
}

#[test]
fn a_bad_call_answers_an_error_and_changes_nothing() {
    let Some(server) = Redis::shared() else { return };
    let key = unique("test");
    let connection = &mut server.connection();
    let ask = |amount: &str, id: &str| [id, amount, "100", "1", "0"].map(str::to_owned);
    reserve(connection, &key, ask("10", "a")).unwrap();
    for bad in ["-1", "1.5", "nan", "inf", "0x10", "", "9007199254740992", " 1", "1e3"] {
        let error = reserve(connection, &key, ask(bad, "b")).unwrap_err().to_string();
        assert!(error.contains("TIDEGATE") && error.contains("argument 2"), "{bad}: {error}");
        let error = settle(connection, &key, "a", bad).unwrap_err().to_string();
        assert!(error.contains("TIDEGATE"), "{bad}: {error}");
    }
    assert!(reserve(connection, &key, ask("1", "")).unwrap_err().to_string().contains("TIDEGATE"));
    assert_eq!(spent(server, &key), 10);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Reserve { id: u8, amount: u64 },
    Settle { id: u8, cost: u64 },
    Release { id: u8 },
    Advance { hours: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u8..12, 0_u64..400).prop_map(|(id, amount)| Step::Reserve { id, amount }),
        3 => (0_u8..12, 0_u64..500).prop_map(|(id, cost)| Step::Settle { id, cost }),
        1 => (0_u8..12).prop_map(|id| Step::Release { id }),
        1 => (-6_i64..30).prop_map(|hours| Step::Advance { hours }),
    ]
}

/// The rules again, as simple as they can be said.
#[derive(Default)]
struct Model {
    day: u64,
    settled: u64,
    held: HashMap<u8, u64>,
}

impl Model {
    fn spent(&self) -> u64 {
        self.settled + self.held.values().sum::<u64>()
    }

    fn reserve(&mut self, id: u8, amount: u64, budget: u64, today: u64) -> bool {
        let begun = if today > self.day {
            Self { day: today, ..Self::default() }
        } else {
            std::mem::take(self)
        };
        *self = begun;
        if self.held.contains_key(&id) {
            return true;
        }
        let fits = self.spent() + amount <= budget;
        if fits {
            self.held.insert(id, amount);
        }
        fits
    }

    fn settle(&mut self, id: u8, cost: u64) -> bool {
        let held = self.held.remove(&id);
        self.settled += held.map_or(0, |_| cost);
        held.is_some()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_comes_to_what_the_rules_say(steps in prop::collection::vec(step(), 1..80), daily: bool) {
        let Some(server) = Redis::shared() else { return Ok(()) };
        history(server, &steps, daily)?;
    }
}

fn history(server: &Redis, steps: &[Step], daily: bool) -> Result<(), TestCaseError> {
    const BUDGET: u64 = 1_000;
    let (key, connection) = (unique("test"), &mut server.connection());
    let (mut model, mut now) = (Model::default(), START);
    let mut seen = HashSet::new();
    for step in steps {
        match step {
            Step::Reserve { id, amount } => {
                let numbers =
                    [*amount, BUDGET, u64::from(daily), now].map(|number| number.to_string());
                let [amount_text, budget, period, clock] = numbers;
                // After a lost reply the same is asked again: twice is as once.
                let ask = [id.to_string(), amount_text, budget, period, clock];
                let (held, left, reset) = reserve(connection, &key, ask.clone()).unwrap();
                prop_assert_eq!(reserve(connection, &key, ask).unwrap(), (held, left, reset));
                let fits = model.reserve(*id, *amount, BUDGET, if daily { now / DAY } else { 0 });
                prop_assert_eq!((held == 1, left), (fits, BUDGET.saturating_sub(model.spent())));
                prop_assert_eq!(reset, if daily { (model.day + 1) * DAY - now } else { 0 });
                seen.insert(*id);
            }
            Step::Settle { id, cost } => {
                let done = settle(connection, &key, &id.to_string(), &cost.to_string()).unwrap().0;
                prop_assert_eq!(done == 1, model.settle(*id, *cost));
                prop_assert_eq!(
                    settle(connection, &key, &id.to_string(), "7").unwrap().0,
                    NEVER,
                    "a second settlement"
                );
            }
            Step::Release { id } => {
                let done = settle(connection, &key, &id.to_string(), "0").unwrap().0;
                prop_assert_eq!(done == 1, model.settle(*id, 0));
            }
            Step::Advance { hours } => {
                now = now.saturating_add_signed(hours * 3_600 * i64::try_from(SECOND).unwrap())
            }
        }
        let ttl: i64 = redis::cmd("TTL").arg(&key).query(connection).unwrap();
        prop_assert_ne!(ttl, -1, "the key has no time to live");
    }
    Ok(())
}
