//! Budgets before every call, with a scripted provider, quota in memory and budgets on a real Redis.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tidegate_activities::{checkpoints::Checkpoints, output::job::payers, storage::Storage};
use tidegate_calls::{
    Attempt, Backoff, Failure, Guard,
    attempt::CallState,
    budget::{Budgets, Payers},
    failure::Retry,
};
use tidegate_providers::{
    BoxFuture, Charged, Completion, Document, Error, Kind, Observed, Parameters, Prices, Provider,
    Request as Call, StopReason,
};
use tidegate_quota::{
    Budget, Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request,
    budget::{BudgetRefused, Payer, Unheld},
    redis_store::Store,
};
use tidegate_testkit::{PATIENCE, Redis};
use tidegate_types::{ModelId, Tenant, Usage};
use tidegate_workflows::contract::{FailureType, Job, WaitsFor};

/// A million tokens of either kind cost a dollar, so the thousand input and thousand output tokens of
/// every call cost 0.002.
const PRICES: &str = "[[price]]\nmodels = [\"test:model\"]\ninput = 1.0\noutput = 1.0";
const COST: f64 = 0.002;

/// Always gives one answer, after a moment in which other documents ask, and counts its calls.
#[derive(Debug)]
struct Same {
    answer: fn() -> Result<Completion, Error>,
    calls: AtomicU32,
}

impl Provider for Same {
    fn complete<'a>(&'a self, _: &'a Call<'a>) -> BoxFuture<'a, Result<Completion, Error>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            tokio::task::yield_now().await;
            (self.answer)()
        })
    }
}

fn as_bounded() -> Result<Completion, Error> {
    used(1_000)
}

fn used(output: u64) -> Result<Completion, Error> {
    Ok(Completion {
        answer: "answer"[..6.min(output as usize)].to_owned(),
        stop_reason: StopReason::EndTurn,
        usage: Some(Usage { uncached_input: 1_000, output, ..Usage::default() }),
        observed: Observed::default(),
    })
}

fn fault(kind: Kind, charged: Charged) -> Result<Completion, Error> {
    Err(Error {
        kind,
        span: None,
        message: kind.to_string(),
        retry_after: None,
        charged,
        status: None,
        timed_out: false,
        observed: Box::default(),
    })
}

/// What the provider does when it is called.
type Answer = fn() -> Result<Completion, Error>;

struct Rig {
    guard: Guard,
    budgets: Arc<Budgets>,
    ledger: tidegate_quota::Budgets,
    provider: Same,
    model: ModelId,
    batch_usd: Option<f64>,
}

impl Rig {
    fn new(
        redis: &Redis,
        daily_usd: Option<f64>,
        answer: fn() -> Result<Completion, Error>,
    ) -> Self {
        let model: ModelId = "test:model".parse().unwrap();
        let limits = Limits {
            burst: Some(Duration::from_secs(60)),
            ..Limits::default().with(Dimension::Requests, 1_000)
        };
        let quota =
            ModelQuota::new(model.clone(), limits, Charge::default(), Arc::new(Lanes::single()))
                .unwrap();
        let guard = Guard::new(Quota::in_memory([quota], Options::default()), Backoff::default());
        let store =
            Store::open_within(&redis.url, "test", Duration::from_secs(300), PATIENCE).unwrap();
        let ledger = tidegate_quota::Budgets::new(Some(store));
        let daily_usd: HashMap<_, _> =
            daily_usd.map(|usd| (Tenant::default(), usd)).into_iter().collect();
        let budgets = Budgets::new(ledger.clone(), daily_usd, Prices::parse(PRICES).unwrap());
        Self {
            guard,
            budgets: Arc::new(budgets),
            ledger,
            provider: Same { answer, calls: AtomicU32::new(0) },
            model,
            batch_usd: None,
        }
    }

    async fn call(&self, number: u32) -> Result<Completion, Failure> {
        self.call_beside(number, 0.0).await
    }

    /// Calls in an attempt that holds so many US dollars beside its call.
    async fn call_beside(&self, number: u32, usd: f64) -> Result<Completion, Failure> {
        let attempt = Attempt::new(format!("r{number}"), "night".to_owned(), CallState::default());
        attempt.hold_beside(usd);
        let request =
            Request::new(self.model.clone(), attempt.reservation.clone()).tokens(1_000, 1_000);
        let call = Call {
            model: "model",
            instructions: "",
            turns: &[],
            said: tidegate_providers::Said::Nothing,
            document: Document::Text(""),
            max_output_tokens: 1_000,
            schema: None,
            cache_instructions: false,
            parameters: Parameters::default(),
        };
        let call_budget = self.budgets.call_budget(&attempt, &request, self.batch_usd)?;
        let (provider, ask) = (&self.provider, || self.provider.complete(&call));
        let came = self.guard.call("chat", &attempt, provider, &request, ask, &call_budget).await;
        // The settlement runs beside the answer.
        while !self.guard.settling.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        came
    }

    /// Opens the budgets as the plan does.
    async fn open(&self) {
        if self.batch_usd.is_some() {
            self.ledger.open(&Payer::Batch("night".to_owned()), 0.0, false).await.unwrap();
        }
    }

    /// Calls until Redis answers again and reports that the budget is lost.
    async fn ended_or_lost(&self, number: u32) -> Failure {
        for _ in 0..1_000 {
            match self.call(number).await {
                Err(failure) if failure.kind == FailureType::Transient => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                ended => return ended.unwrap_err(),
            }
        }
        panic!("Redis never answered");
    }

    /// Retries as Temporal does, though sooner.
    async fn ended(&self, number: u32) -> Result<Completion, Failure> {
        for _ in 0..1_000 {
            match self.call(number).await {
                Err(failure) if failure.is_retried() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                ended => return ended,
            }
        }
        panic!("document {number} is tried again for ever");
    }

    fn calls(&self) -> u32 {
        self.provider.calls.load(Ordering::SeqCst)
    }

    async fn left(&self, budget: Budget) -> f64 {
        match self.ledger.reserve(&budget, "too much", 1_000.0).await {
            Err(Unheld::Refused(BudgetRefused { left_usd, .. })) => left_usd,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    async fn left_today(&self, daily_usd: f64) -> f64 {
        self.left(Budget::daily(Tenant::default(), daily_usd)).await
    }

    /// Waits, for ten seconds at most, until the reservations of dropped calls are released.
    async fn requests_in_window(&self, expected: u64) -> u64 {
        let requests =
            async || self.guard.quota.inspect(&self.model).await.unwrap().used().requests;
        for _ in 0..1_000 {
            if requests().await == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        requests().await
    }
}

#[tokio::test]
async fn a_budget_for_three_calls_makes_three_of_ten_documents() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, Some(3.0 * COST), as_bounded);
    let answers = futures::future::join_all((0..10).map(|number| rig.call(number))).await;
    let (done, waiting): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), waiting.len(), rig.calls()), (3, 7, 3));
    for failure in waiting.into_iter().map(Result::unwrap_err) {
        assert_eq!(failure.waits_for, Some(WaitsFor::Budget), "what others hold may come back");
    }
    // These make no call: the budget is really spent.
    for number in 0..7 {
        let failure = rig.ended(number).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (FailureType::BudgetExceeded, Retry::Never));
        let sentence = "tenant \"default\" may spend 0.006 USD a day; 0.00 USD is left and this call may cost 0.002 USD; the next day begins in ";
        assert!(failure.message.starts_with(sentence), "{failure}");
        assert!(failure.message.ends_with(" min, at 00:00 UTC"), "{failure}");
    }
    assert_eq!(rig.calls(), 3);
    assert_eq!(rig.requests_in_window(3).await, 3, "a call that is refused gives the quota back");
}

/// 64 documents, and a budget that covers their cost but not all of their holds at once.
#[tokio::test]
async fn documents_wait_while_what_others_hold_may_come_back() {
    let Some(redis) = Redis::start() else { return };
    // Each holds 0.002 and costs 0.001.
    let rig = Rig { batch_usd: Some(33.0 * COST), ..Rig::new(&redis, None, || used(0)) };
    rig.open().await;
    let all = futures::future::join_all((0..64).map(|number| rig.ended(number))).await;
    let failed: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of 64: {}", failed.len(), failed[0]);
    assert_eq!(rig.calls(), 64);
    // Now 0.064 of 0.066 are spent: two more fit at most, and then it is over.
    for number in 64..67 {
        if let Err(failure) = rig.ended(number).await {
            assert_eq!(failure.kind, FailureType::BudgetExceeded, "{failure}");
        }
    }
    assert!((65..=66).contains(&rig.calls()), "{}", rig.calls());
}

/// Else it would wait until nobody else runs, and then for ever.
#[tokio::test]
async fn an_attempt_does_not_wait_for_what_it_holds_itself() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig { batch_usd: Some(4.0 * COST), ..Rig::new(&redis, None, as_bounded) };
    rig.open().await;
    let (tenant, rest_usd) = (Tenant::default(), 3.5 * COST);
    let payers = Payers { tenant: &tenant, batch: "night", batch_usd: rig.batch_usd };
    let rest = rig.budgets.hold_beside(&payers, "r0+checks", rest_usd).await.unwrap();
    let own = rig.call_beside(0, rest_usd).await.unwrap_err();
    assert_eq!((own.kind, own.retry), (FailureType::BudgetExceeded, Retry::Never), "{own}");
    let other = rig.call(1).await.unwrap_err();
    assert_eq!(other.waits_for, Some(WaitsFor::Budget), "{other}");
    drop(rest);
    rig.ended(1).await.unwrap();
    assert_eq!(rig.calls(), 1);
}

#[tokio::test]
async fn a_call_whose_cost_stays_unknown_is_waited_for_by_nobody() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, Some(COST), || fault(Kind::Timeout, Charged::Unknown));
    assert_eq!(rig.call(0).await.unwrap_err().kind, FailureType::Transient);
    assert_eq!(rig.call(1).await.unwrap_err().kind, FailureType::BudgetExceeded);
}

/// Redis loses everything twice; the purchases stay within the budget, and close to it.
#[tokio::test]
async fn what_was_spent_survives_a_redis_that_comes_back_empty() {
    let Some(mut redis) = Redis::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let state = format!("file://{}/state", folder.path().canonicalize().unwrap().display());
    let state = Storage::new([state.as_str()]).unwrap().resolve(&state).unwrap();
    let budget = 40.0 * COST;
    let mut bought = 0;
    for round in 0..3 {
        // A new worker each time: it knows only what is in Redis and in the store.
        let rig = Rig::new(&redis, None, as_bounded);
        let budgets = Arc::try_unwrap(rig.budgets).unwrap();
        let checkpoints = |ledger| Checkpoints::new(state.clone(), ledger);
        let budgets = budgets.with_checkpoints(|ledger| Arc::new(checkpoints(ledger)));
        let rig = Rig { budgets: Arc::new(budgets), batch_usd: Some(budget), ..rig };
        let first = round * 100;
        for number in first..first + 12 {
            rig.ended(number).await.unwrap_or_else(|failure| panic!("{number}: {failure}"));
        }
        bought += rig.calls();
        if round == 2 {
            let rest = futures::future::join_all((300..350).map(|number| rig.ended(number))).await;
            bought += u32::try_from(rest.iter().filter(|answer| answer.is_ok()).count()).unwrap();
            let failed = rest.into_iter().filter_map(Result::err);
            assert!(failed.into_iter().all(|it| it.kind == FailureType::BudgetExceeded));
        }
        redis.kill();
        redis.restart();
    }
    println!("{bought} of 40 calls that the budget is for, over two losses");
    // Each loss costs at most what a checkpoint allows: four calls.
    assert!((40 - 2 * 4 - 1..=40).contains(&bought), "{bought}");
}

#[tokio::test]
async fn without_a_place_for_checkpoints_a_budget_that_is_lost_waits_until_somebody_says() {
    let Some(mut redis) = Redis::start() else { return };
    for (batch_usd, daily_usd, command) in [
        (Some(4.0 * COST), None, "tidegate budget set --batch night --spent-usd"),
        (None, Some(4.0 * COST), "tidegate budget set --tenant default --spent-usd"),
    ] {
        let rig = Rig { batch_usd, ..Rig::new(&redis, daily_usd, as_bounded) };
        rig.open().await;
        rig.call(0).await.unwrap();
        redis.kill();
        redis.restart();
        let lost = rig.ended_or_lost(1).await;
        assert_eq!((lost.kind, lost.waits_for), (FailureType::QuotaWait, Some(WaitsFor::Budget)));
        assert!(lost.benign && lost.message.contains(command), "{lost}");
        assert_eq!(rig.calls(), 1);
        let payer = match batch_usd {
            Some(_) => Payer::Batch("night".to_owned()),
            None => Payer::Tenant(Tenant::default()),
        };
        rig.ledger.set_spent(&payer, 3.0 * COST).await.unwrap();
        rig.call(2).await.unwrap();
        assert_eq!(rig.call(3).await.unwrap_err().kind, FailureType::BudgetExceeded);
    }
}

#[tokio::test]
async fn a_call_just_after_a_refusal_fails_without_asking() {
    let Some(mut redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, Some(COST), as_bounded);
    rig.call(0).await.unwrap();
    assert_eq!(rig.call(1).await.unwrap_err().kind, FailureType::BudgetExceeded);
    redis.kill();
    assert_eq!(rig.call(2).await.unwrap_err().kind, FailureType::BudgetExceeded);
    assert_eq!(rig.calls(), 1);
}

#[tokio::test]
async fn what_a_call_did_not_cost_can_be_spent() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, Some(3.0 * COST), || used(0));
    for number in 0..5 {
        rig.call(number).await.unwrap();
    }
    assert_eq!(
        rig.call(5).await.unwrap_err().kind,
        FailureType::BudgetExceeded,
        "0.005 is spent, and 0.002 does not fit"
    );
    assert_eq!(rig.calls(), 5);
}

#[tokio::test]
async fn a_call_is_held_in_both_budgets_or_in_none() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig { batch_usd: Some(2.0 * COST), ..Rig::new(&redis, Some(1.0), as_bounded) };
    rig.open().await;
    let answers = futures::future::join_all((0..6).map(|number| rig.call(number))).await;
    assert_eq!((answers.iter().filter(|answer| answer.is_ok()).count(), rig.calls()), (2, 2));
    let failure = answers.into_iter().find_map(Result::err).unwrap();
    assert!(
        failure.message.starts_with("batch \"night\" may spend 0.004 USD in all; 0.00 USD is left"),
        "{failure}"
    );
    let expected = 1.0 - 2.0 * COST;
    for _ in 0..1_000 {
        if (rig.left_today(1.0).await - expected).abs() < 1e-9 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let left = rig.left_today(1.0).await;
    assert!((left - expected).abs() < 1e-9, "the tenant pays for two calls and no more: {left}");
}

#[tokio::test]
async fn a_failed_call_is_charged_with_what_it_may_have_cost() {
    let Some(redis) = Redis::start() else { return };
    let cases: [(Answer, f64); 4] = [
        (|| fault(Kind::RateLimited, Charged::No), 0.0),
        (
            || {
                fault(
                    Kind::InvalidOutput,
                    Charged::Usage(Usage { uncached_input: 1_000, ..Usage::default() }),
                )
            },
            COST / 2.0,
        ),
        (|| fault(Kind::Timeout, Charged::Unknown), COST),
        (|| as_bounded().map(|completion| Completion { usage: None, ..completion }), COST),
    ];
    let mut spent = 0.0;
    for (number, (answer, cost)) in (0..).zip(cases) {
        let rig = Rig::new(&redis, Some(1.0), answer);
        let _ = rig.call(number).await;
        spent += cost;
        let left = rig.left_today(1.0).await;
        assert!((left - (1.0 - spent)).abs() < 1e-9, "case {number}: {left} left, {spent} spent");
    }
}

#[tokio::test]
async fn without_redis_a_budget_is_closed_and_the_document_comes_back() {
    let Some(mut redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, Some(1.0), as_bounded);
    redis.kill();
    let failure = rig.call(0).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.is_retried(), rig.calls()),
        (FailureType::Transient, true, 0)
    );
    assert!(
        failure.message.starts_with("no budget can be kept, so no call is made: Redis is away"),
        "{failure}"
    );

    let rig = Rig::new(&redis, None, as_bounded);
    rig.call(0).await.unwrap();
    assert_eq!(rig.calls(), 1, "where no budget applies, Redis is not asked");
}

#[tokio::test]
async fn a_budget_wants_a_price() {
    let Some(redis) = Redis::start() else { return };
    let rig = Rig::new(&redis, None, as_bounded);
    let job = json!({
        "source": {"prefix": "file:///in/"}, "output": "file:///out/", "instructions": "x",
        "model": "test:other", "lane": "batch", "tenant": "default", "max_output_tokens": 1,
    });
    let mut job: Job = serde_json::from_value(job).unwrap();
    let (other, priced) = ("test:other".parse().unwrap(), "test:model".parse().unwrap());
    let check = |job: &Job, models: &[&ModelId]| {
        rig.budgets.check(&payers(job, "night"), models.iter().copied())
    };
    check(&job, &[&other]).unwrap();
    job.budget_usd = Some(1.0);
    let failure = check(&job, &[&priced, &other]).unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureType::InvalidInput, Retry::Never));
    assert!(
        failure.message.starts_with("no price is known for test:other, so the budget of batch \"night\" cannot be kept; add price")
    );
    check(&job, &[&priced]).unwrap();
}
