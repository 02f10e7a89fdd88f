//! Admit, one call, settle: with a scripted provider, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tidegate_calls::{
    Attempt, Backoff, Failure, Guard,
    attempt::{CallState, Patience},
    budget::Budgets,
    failure::Retry,
    waiting::WaitingRoom,
};
use tidegate_providers::{
    BoxFuture, Charged, Completion, Document, Error, Kind, Observed, Parameters, Provider,
    Providers, Request as Call, Secret, Settings, StopReason, Vendor,
};
use tidegate_quota::{
    Change, Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request,
    store::LimitChanges,
};
use tidegate_types::{FailureType, ModelId, Usage, WaitsFor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answers from a list, and counts its calls.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<Completion, Error>>>,
    calls: AtomicU32,
}

impl Provider for Scripted {
    fn complete<'a>(&'a self, _: &'a Call<'a>) -> BoxFuture<'a, Result<Completion, Error>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { answer.unwrap() })
    }
}

fn answered(input: u64, output: u64) -> Result<Completion, Error> {
    Ok(Completion {
        answer: "answer".to_owned(),
        stop_reason: StopReason::EndTurn,
        usage: Some(Usage { uncached_input: input, output, ..Usage::default() }),
        observed: Observed::default(),
    })
}

fn refused(kind: Kind, retry_after: Option<u64>, charged: Charged) -> Result<Completion, Error> {
    let retry_after = retry_after.map(Duration::from_secs);
    Err(Error {
        kind,
        span: None,
        message: format!("{kind}"),
        retry_after,
        charged,
        status: None,
        timed_out: false,
        observed: Box::default(),
    })
}

struct Rig {
    guard: Guard,
    provider: Scripted,
    attempt: Attempt,
    model: ModelId,
    calls: u32,
}

impl Rig {
    fn new(combined: u64, answers: Vec<Result<Completion, Error>>) -> Self {
        let options = Options {
            max_slot_wait: Duration::ZERO,
            jitter: Duration::from_secs(3),
            ..Options::default()
        };
        Self::with_options(combined, answers, options)
    }

    fn with_options(
        combined: u64,
        answers: Vec<Result<Completion, Error>>,
        options: Options,
    ) -> Self {
        let model: ModelId = "test:model".parse().unwrap();
        let limits = Limits {
            margin: 1.0,
            burst: Some(Duration::from_secs(60)),
            ..Limits::default().with(Dimension::Combined, combined)
        };
        let quota =
            ModelQuota::new(model.clone(), limits, Charge::default(), Arc::new(Lanes::single()))
                .unwrap();
        let guard = Guard::new(Quota::in_memory([quota], options), Backoff::default());
        let provider = Scripted { answers: Mutex::new(answers.into()), calls: AtomicU32::new(0) };
        Self {
            guard,
            provider,
            attempt: Attempt::new("a".to_owned(), "batch".to_owned(), CallState::default()),
            model,
            calls: 0,
        }
    }

    async fn call(&mut self, input: u64, max_output: u64) -> Result<Completion, Failure> {
        self.calls += 1;
        self.call_to(&self.provider, &self.attempt, (input, max_output)).await
    }

    async fn call_to(
        &self,
        provider: &dyn Provider,
        attempt: &Attempt,
        (input, max_output): (u64, u64),
    ) -> Result<Completion, Failure> {
        let request = Request::new(self.model.clone(), format!("r{}", self.calls))
            .tokens(input, max_output)
            .ticket(attempt.state().ticket);
        let call = Call {
            model: "model",
            instructions: "",
            turns: &[],
            said: tidegate_providers::Said::Nothing,
            document: Document::Text(""),
            max_output_tokens: 1,
            schema: None,
            cache_instructions: false,
            parameters: Parameters::default(),
        };
        let budgets = Arc::new(Budgets::default());
        let call_budget = budgets.call_budget(attempt, &request, None)?;
        let ask = || provider.complete(&call);
        let came = self.guard.call("chat", attempt, provider, &request, ask, &call_budget).await;
        // The settlement runs beside the answer.
        while !self.guard.settling.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        came
    }

    async fn used(&self) -> u64 {
        self.guard.quota.inspect(&self.model).await.unwrap().used().combined
    }

    fn provider_calls(&self) -> u32 {
        self.provider.calls.load(Ordering::SeqCst)
    }
}

/// Seconds until the next attempt; the failure must have one.
fn delay(failure: &Failure) -> u64 {
    failure.retry.delay(Backoff::default(), 1).unwrap().as_secs()
}

#[tokio::test]
async fn an_admitted_call_is_made_once_and_settled_with_what_it_used() {
    let mut rig = Rig::new(10_000, vec![answered(700, 50)]);
    assert_eq!(rig.call(1_000, 500).await.unwrap().answer, "answer");
    assert_eq!((rig.used().await, rig.provider_calls()), (750, 1));
    assert_eq!(rig.attempt.counts().provider_calls, 1);
}

#[tokio::test]
async fn a_429_closes_the_gate_and_comes_back_after_retry_after() {
    let mut rig = Rig::new(10_000, vec![refused(Kind::RateLimited, Some(20), Charged::No)]);
    let failure = rig.call(1_000, 500).await.unwrap_err();
    assert_eq!(failure.kind, FailureType::RateLimited);
    assert!((20..=60).contains(&delay(&failure)), "{failure:?}");
    assert_eq!(rig.used().await, 0, "a refused call used no tokens");

    let failure = rig.call(1, 1).await.unwrap_err();
    assert_eq!(failure.kind, FailureType::QuotaWait);
    assert!((19..=23).contains(&delay(&failure)), "{failure:?}");
    assert_eq!(failure.waits_for, Some(WaitsFor::Gate));
    let counts = rig.attempt.counts();
    assert_eq!(
        (counts.provider_calls, counts.rate_limited, counts.deferrals, rig.provider_calls()),
        (1, 1, 1, 1)
    );
}

/// A process holds four large answers at once, and an answer is held until its attempt has written it.
#[tokio::test]
async fn a_large_answer_keeps_its_room_until_its_attempt_ends() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let message = serde_json::json!({"content": "tide ".repeat(400_000)});
        let choice = serde_json::json!({"finish_reason": "stop", "message": message});
        let body = serde_json::json!({"choices": [choice]}).to_string();
        while let Ok((mut client, _)) = listener.accept().await {
            assert!(client.read(&mut [0; 4_096]).await.unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            client.write_all((head + &body).as_bytes()).await.unwrap();
        }
    });
    let settings = Settings::new(Vendor::OPENAI, url.parse().unwrap());
    let settings = settings.api_key(Secret::new("sk-simulated").unwrap());
    let providers = Providers::new([("test".to_owned(), settings)]).unwrap();
    let mut rig = Rig::new(10_000, Vec::new());
    let provider = providers.get(&rig.model).unwrap();
    let mut attempts: Vec<Attempt> = (0..5).map(|_| Attempt::once()).collect();
    for attempt in &attempts[..4] {
        rig.calls += 1;
        assert_eq!(rig.call_to(provider, attempt, (10, 10)).await.unwrap().answer.len(), 2_000_000);
    }
    rig.calls += 1;
    let last = attempts.pop().unwrap();
    let mut fifth = std::pin::pin!(rig.call_to(provider, &last, (10, 10)));
    let some_time = Duration::from_secs(1);
    assert!(tokio::time::timeout(some_time, &mut fifth).await.is_err(), "there is no room");
    attempts.pop();
    assert_eq!(fifth.await.unwrap().answer.len(), 2_000_000);
}

#[tokio::test]
async fn a_worker_that_stops_sends_nothing_more() {
    let mut rig = Rig::new(10_000, vec![answered(700, 50)]);
    rig.guard.stopping.cancel();
    let failure = rig.call(1_000, 500).await.unwrap_err();
    assert_eq!((failure.kind, delay(&failure)), (FailureType::QuotaWait, 0), "handed back at once");
    assert_eq!((rig.used().await, rig.provider_calls()), (0, 0));
    assert!(!rig.attempt.has_sent());
}

#[tokio::test]
async fn an_attempt_that_waits_in_place_ends_when_the_worker_stops_and_keeps_its_turn() {
    let options = Options { max_slot_wait: Duration::from_secs(300), ..Options::default() };
    let mut rig = Rig::with_options(1_000, vec![answered(800, 100)], options);
    rig.call(800, 100).await.unwrap();
    let stopping = rig.guard.stopping.clone();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stopping.cancel();
    };
    let waits = tokio::time::timeout(Duration::from_secs(5), rig.call(800, 100));
    let (ended, ()) = tokio::join!(waits, stop);
    let failure = ended.expect("it is handed back at once").unwrap_err();
    assert_eq!(failure.kind, FailureType::QuotaWait);
    assert!(rig.attempt.state().ticket.is_some(), "its turn is kept");
    assert_eq!(rig.provider_calls(), 1);
}

#[tokio::test]
async fn no_turn_is_waited_for_beyond_an_attempts_deadline() {
    for patience in [Patience::Near, Patience::Whole] {
        let options = Options { max_slot_wait: Duration::from_secs(300), ..Options::default() };
        let mut rig = Rig::with_options(1_000, vec![answered(800, 100)], options);
        rig.call(800, 100).await.unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        let attempt = Attempt::alone("b".to_owned());
        rig.attempt = attempt.patience(patience).deadline(Some(deadline));
        let told = tokio::time::timeout(Duration::from_secs(5), rig.call(800, 100)).await;
        let failure = told.expect("it is told its turn").unwrap_err();
        assert_eq!(failure.kind, FailureType::QuotaWait, "{patience:?}");
        assert!(rig.attempt.state().ticket.is_some(), "{patience:?}: its turn is kept");
        assert_eq!((rig.attempt.counts().deferrals, rig.provider_calls()), (1, 1));
    }
}

#[tokio::test]
async fn a_patient_attempt_is_admitted_when_its_turn_comes() {
    let options = Options { jitter: Duration::ZERO, ..Options::default() };
    let options = Options { max_slot_wait: Duration::from_millis(10), ..options };
    let mut rig = Rig::with_options(10_000, vec![answered(700, 50)], options);
    rig.guard.quota.pause(&rig.model, Duration::from_millis(300), "why").await.unwrap();
    let failure = rig.call(1, 1).await.unwrap_err();
    assert_eq!(failure.waits_for, Some(WaitsFor::Gate), "a far turn is refused with its reason");
    rig.attempt = Attempt::once().patience(Patience::Whole);
    rig.call(1_000, 500).await.unwrap();
    assert_eq!(rig.attempt.counts().deferrals, 0);
}

/// The limit has room for one such call a minute. Without its ticket the call would come behind
/// what its first ask left in the queue.
#[tokio::test]
async fn an_attempt_on_watch_keeps_its_turn_while_the_gate_is_closed() {
    let options = Options { jitter: Duration::ZERO, ..Options::default() };
    let options = Options { max_slot_wait: Duration::from_secs(5), ..options };
    let mut rig = Rig::with_options(60, vec![answered(50, 4)], options);
    rig.guard.waiting = Arc::new(WaitingRoom::new(|_| 16));
    rig.guard.quota.pause(&rig.model, Duration::from_millis(1_500), "why").await.unwrap();
    let call = tokio::time::timeout(Duration::from_secs(20), rig.call(50, 10)).await;
    call.expect("it is first in its turn").unwrap();
}

/// A worker's slots are needed by other models too.
#[tokio::test]
async fn patient_attempts_wait_in_half_of_the_slots() {
    let options = Options { jitter: Duration::ZERO, ..Options::default() };
    let options = Options { max_slot_wait: Duration::from_millis(10), ..options };
    let mut rig = Rig::with_options(10_000, vec![answered(700, 50)], options);
    rig.guard.waiting = Arc::new(WaitingRoom::new(|_| 4));
    rig.guard.quota.pause(&rig.model, Duration::from_millis(300), "why").await.unwrap();
    rig.attempt = Attempt::once().patience(Patience::Whole);
    let enter = |rig: &Rig| rig.guard.waiting.enter(&Request::new(rig.model.clone(), "other")).1;
    let (one, two) = (enter(&rig), enter(&rig));
    assert!(one.is_some() && two.is_some());
    let told = Instant::now();
    let failure = rig.call(1, 1).await.unwrap_err();
    assert!(failure.kind == FailureType::QuotaWait && told.elapsed() < Duration::from_millis(200));
    drop(two);
    rig.call(1_000, 500).await.unwrap();
    assert_eq!(rig.provider_calls(), 1);
}

#[tokio::test]
async fn a_document_without_quota_keeps_its_turn_and_makes_no_call() {
    let mut rig = Rig::new(1_000, vec![answered(800, 100)]);
    rig.call(800, 100).await.unwrap();
    let failure = rig.call(800, 100).await.unwrap_err();
    assert_eq!(failure.kind, FailureType::QuotaWait);
    assert!((1..=60).contains(&delay(&failure)), "{failure:?}");
    assert_eq!(failure.waits_for, Some(WaitsFor::Tokens));
    assert!(rig.attempt.state().ticket.is_some());
    assert_eq!((rig.attempt.counts().deferrals, rig.provider_calls()), (1, 1));
}

#[tokio::test]
async fn credit_that_is_gone_is_asked_for_by_one_call_at_a_time() {
    let mut rig = Rig::new(10_000, vec![refused(Kind::QuotaExhausted, None, Charged::No)]);
    for _ in 0..5 {
        let failure = rig.call(10, 10).await.unwrap_err();
        assert_eq!(failure.kind, FailureType::QuotaExhausted);
        assert!(failure.is_retried(), "one refusal is no verdict: {failure:?}");
    }
    assert_eq!(rig.provider_calls(), 1);
}

#[tokio::test]
async fn a_call_that_may_have_been_worked_on_stays_charged() {
    let mut rig = Rig::new(
        10_000,
        vec![
            refused(Kind::Timeout, None, Charged::Unknown),
            refused(Kind::Transient, None, Charged::No),
        ],
    );
    assert_eq!(rig.call(1_000, 500).await.unwrap_err().kind, FailureType::Transient);
    assert_eq!(rig.used().await, 1_000 + 165, "a third of the bound was held");
    assert_eq!(rig.call(1_000, 500).await.unwrap_err().kind, FailureType::Transient);
    assert_eq!(rig.used().await, 1_000 + 165, "one that was turned away at the door does not");
}

#[tokio::test]
async fn a_call_that_can_never_fit_fails_without_a_request() {
    let mut rig = Rig::new(1_000, Vec::new());
    let failure = rig.call(5_000, 100).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.retry, rig.provider_calls()),
        (FailureType::TooLarge, Retry::Never, 0)
    );
    assert!(failure.message.contains("1000 is the most"), "{}", failure.message);
}

/// Drops are settled by tasks of their own.
async fn settle_drops() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_before_it_leaves_is_given_back_and_after_it_stays_charged() {
    let rig = Rig::new(1_000, Vec::new());
    let budgets = Arc::new(Budgets::default());
    let request = |name: &str| Request::new(rig.model.clone(), name).tokens(500, 100);
    let (first, second) = (request("x"), request("y"));

    let budget = budgets.call_budget(&rig.attempt, &first, None).unwrap();
    let admitted = rig.guard.admit(&rig.attempt, &first, &budget).await.unwrap();
    assert_eq!(rig.used().await, 500 + 33);
    drop(admitted);
    settle_drops().await;
    assert_eq!((rig.used().await, rig.attempt.counts().provider_calls), (0, 0));

    let budget = budgets.call_budget(&rig.attempt, &second, None).unwrap();
    let sent = rig.guard.admit(&rig.attempt, &second, &budget).await.unwrap().sent();
    drop(sent);
    settle_drops().await;
    assert_eq!((rig.used().await, rig.attempt.counts().provider_calls), (500 + 33, 1));
}

#[tokio::test]
async fn a_key_that_is_refused_is_not_tried_again_by_the_documents_behind_it() {
    let mut rig = Rig::new(10_000, vec![refused(Kind::Unauthorized, None, Charged::No)]);
    for message in
        ["unauthorized", "the key for test:model was refused before; one call tests it again"]
    {
        let failure = rig.call(10, 10).await.unwrap_err();
        assert_eq!(failure.kind, FailureType::Unauthorized);
        assert!(failure.is_retried() && failure.message.starts_with(message), "{failure:?}");
    }
    assert_eq!(rig.provider_calls(), 1);
}

/// A model that the provider does not know is asked for by a few of two hundred documents; another
/// run of a batch asks again.
#[tokio::test]
async fn a_model_that_its_provider_does_not_know_is_asked_a_few_times() {
    let answers = (0..10).map(|_| refused(Kind::UnknownModel, None, Charged::No)).collect();
    let mut rig = Rig::new(100_000, answers);
    for number in 0..200 {
        let failure = rig.call(10, 10).await.unwrap_err();
        assert!(failure.kind == FailureType::InvalidRequest && failure.is_retried());
        assert_eq!(failure.benign, number > 0, "{failure:?}");
    }
    assert_eq!(rig.provider_calls(), 1, "one is in doubt, and the others wait for the next");
    rig.attempt = rig.attempt.clone().of_batch("batch", "another run");
    let failure = rig.call(10, 10).await.unwrap_err();
    assert!(failure.is_retried() && !failure.benign, "{failure:?}");
    assert_eq!(rig.provider_calls(), 2, "what one run was told holds no other");
}

/// The document is no larger than others: the operator's limit is too small.
#[tokio::test]
async fn a_limit_that_an_operator_has_set_too_small_is_named() {
    let mut rig = Rig::new(10_000, vec![answered(10, 10)]);
    let plain = rig.call(20_000, 10).await.unwrap_err();
    assert!(plain.message.ends_with("make it smaller or raise the limit"), "{plain}");
    let told = plain.with_size_advice("read it in parts").message;
    assert!(told.ends_with("read it in parts"), "{told}");

    let mut changes = LimitChanges::default();
    changes.window[Dimension::Combined] = Change::Set(100);
    rig.guard.quota.set_limits(&rig.model, &changes).await.unwrap();
    let set = rig.call(1_000, 10).await.unwrap_err();
    assert_eq!((set.kind, set.retry), (FailureType::TooLarge, Retry::Never));
    let words = "an operator has set that limit to 100; `tidegate limits clear test:model`";
    assert!(set.message.contains(words), "{set}");
    assert_eq!(set.clone().with_size_advice("read it in parts"), set);
    assert_eq!(rig.provider_calls(), 0);
}
