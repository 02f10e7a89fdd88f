//! Answers with checks: asked for again with what was wrong, judged, sent to the next model, stored
//! where none passes; and nothing is bought twice. With a scripted provider, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::time::Duration;

use rig::{MODEL, NEXT, Rig, fails, whole};
use serde_json::{Value, json};
use tidegate_activities::{attempt::AttemptState, document::process, failure::Failure};
use tidegate_calls::budget::Budgets;
use tidegate_providers::{Charged, Kind, Prices};
use tidegate_quota::{Budget, budget::Unheld, redis_store::Store};
use tidegate_testkit::{PATIENCE, Redis};
use tidegate_types::{FailureType, Spend, Tenant};
use tidegate_workflows::contract::DocumentOutcome;

const KEPT: &str = "out/_tidegate/kept/a.txt.json";
const CHECKING: &str = "out/_tidegate/checking/a.txt.json";

fn checks(more: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"depth": {"type": "number"}}});
    let mut job = json!({"schema": schema,
        "checks": [{"name": "depth", "expression": "answer.depth > 3"}]});
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

fn judged(more: Value) -> Value {
    let judge = json!({"model": MODEL, "instructions": "Is it deep?"});
    let mut job = json!({"checks": [
        {"name": "said", "expression": "answer != ''"}, {"name": "deep", "judge": judge}]});
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

fn verdict(
    passed: bool,
    reason: &str,
) -> Result<tidegate_providers::Completion, tidegate_providers::Error> {
    whole(&json!({"passed": passed, "reason": reason}).to_string())
}

/// Runs one attempt; unless the worker dies, the next attempt gets its state.
async fn attempt(rig: &mut Rig, dies: bool) -> Result<DocumentOutcome, Failure> {
    let attempt = rig.attempt();
    let ended = process::process(&rig.services, &attempt, &rig.task).await;
    rig.state = match dies {
        true => serde_json::to_value(AttemptState::default()).unwrap(),
        false => serde_json::to_value(attempt.state()).unwrap(),
    };
    ended
}

#[tokio::test]
async fn what_passes_at_once_takes_one_call() {
    let mut rig = Rig::new(checks(json!({})), vec![whole(r#"{"depth": 4}"#)]).await;
    let outcome = rig.end().await.0.unwrap();
    let result = rig.result().unwrap();
    assert_eq!((rig.attempts, outcome.spend.provider_calls), (1, 1));
    assert_eq!(result["checks"], json!([{"name": "depth", "passed": true}]));
    assert_eq!((&result["asked"], &result["unchecked"]), (&Value::Null, &Value::Null));
    assert!(!rig.folder.path().join(CHECKING).exists());
}

#[tokio::test]
async fn what_fails_is_asked_once_more_with_what_was_wrong() {
    let answers = vec![whole(r#"{"depth": 2}"#), whole(r#"{"depth": 5}"#)];
    // Second asks are not retries.
    let mut rig = Rig::new(checks(json!({"retry_budget": 0})), answers).await;
    let outcome = rig.end().await.0.unwrap();
    let asked = rig.provider.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, "Sum up.");
    assert!(asked[1].1.contains("does not pass") && asked[1].1.contains("answer.depth > 3"));
    let result = rig.result().unwrap();
    assert_eq!(result["answer"], json!(r#"{"depth": 5}"#));
    assert_eq!(result["asked"][1]["failed"], json!(["depth"]));
    assert_eq!((&result["provider_calls"], &result["output_tokens"]), (&json!(2), &json!(200)));
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (2, 200));
    for object in [KEPT, CHECKING] {
        assert!(!rig.folder.path().join(object).exists(), "{object} is needless now");
    }
}

#[tokio::test]
async fn what_fails_twice_is_kept() {
    let answers = vec![whole(r#"{"depth": 2}"#), whole(r#"{"depth": 3}"#)];
    let mut rig = Rig::new(checks(json!({})), answers).await;
    let (ended, details) = rig.end().await;
    let failure = ended.unwrap_err();
    assert_eq!((failure.kind, rig.result()), (FailureType::CheckFailed, None));
    assert_eq!(failure.message, "the answer does not pass \"depth\"", "and quotes nothing of it");
    assert_eq!(details.failed_checks, ["depth"]);
    let asked: Vec<_> = details.asked.iter().map(|it| it.failed.as_slice()).collect();
    assert_eq!(asked, [&[][..], &["depth".to_owned()]]);
    let kept = Rig::at(&details.kept.unwrap());
    assert_eq!(kept["answer"], json!(r#"{"depth": 3}"#));
    assert_eq!(kept["checks"][0]["passed"], json!(false));
    assert_eq!((details.counts.provider_calls, details.discarded.spend.output_tokens), (2, 200));
    assert!(!rig.folder.path().join(CHECKING).exists());
    // The next run of the batch begins anew.
    rig.state = json!({});
    rig.provider.answers.lock().unwrap().push_back(whole(r#"{"depth": 9}"#));
    assert!(rig.end().await.0.is_ok());
    assert_eq!(rig.provider.asked.lock().unwrap()[2].1, "Sum up.");
}

#[tokio::test]
async fn a_judge_sees_the_answer_in_the_next_attempt_and_its_reason_is_told() {
    let answers = vec![
        whole("A puddle.</answer>"),
        verdict(false, "A puddle is shallow."),
        whole("A fjord."),
        verdict(true, "It is."),
    ];
    let mut rig = Rig::new(judged(json!({"retry_budget": 0})), answers).await;
    let first = attempt(&mut rig, false).await.unwrap_err();
    assert!(
        first.benign && first.is_retried() && first.kind == FailureType::CheckFailed,
        "{first}"
    );
    let outcome = rig.end().await.0.unwrap();
    assert_eq!(rig.attempts, 4, "one call each");
    let asked = rig.provider.asked.lock().unwrap().clone();
    assert!(asked[1].1.starts_with("Is it deep?\n\n"), "{}", asked[1].1);
    assert!(asked[2].1.contains("deep: A puddle is shallow."), "{}", asked[2].1);
    let result = rig.result().unwrap();
    assert_eq!(result["answer"], json!("A fjord."));
    let names: Vec<_> = result["checks"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("said"), &json!("deep")]);
    assert_eq!((&result["provider_calls"], outcome.spend.output_tokens), (&json!(4), 400));
}

/// The worker dies after each call, and its attempt is never reported.
#[tokio::test]
async fn a_killed_worker_buys_neither_the_answer_nor_the_judgement_twice() {
    let answers = vec![
        whole("A puddle."),
        verdict(false, "A puddle is shallow."),
        whole("A fjord."),
        verdict(true, "It is."),
    ];
    let mut rig = Rig::new(judged(json!({"retry_budget": 0})), answers).await;
    let mut ended = attempt(&mut rig, true).await;
    while ended.is_err() {
        ended = attempt(&mut rig, true).await;
    }
    assert_eq!((rig.attempts, rig.provider.asked.lock().unwrap().len()), (4, 4));
    let (result, outcome) = (rig.result().unwrap(), ended.unwrap());
    assert_eq!((&result["answer"], &result["provider_calls"]), (&json!("A fjord."), &json!(4)));
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (4, 400));
}

#[tokio::test]
async fn a_judge_that_cannot_be_asked_leaves_the_answer_unchecked() {
    let of_next = json!({"checks": [
        {"name": "said", "expression": "answer != ''"},
        {"name": "deep", "judge": {"model": NEXT, "instructions": "Is it deep?"}}]});
    for (paused, refusal) in [
        (true, None),
        (false, Some(fails(Kind::InvalidRequest, Charged::No))),
        (false, Some(whole("It is deep, I think."))),
    ] {
        let answers = [whole("A fjord.")].into_iter().chain(refusal).collect();
        let mut rig = Rig::new(of_next.clone(), answers).await;
        if paused {
            let (next, hour) = (NEXT.parse().unwrap(), Duration::from_secs(3_600));
            rig.services.guard.quota.pause(&next, hour, "429").await.unwrap();
        }
        rig.end().await.0.unwrap();
        let result = rig.result().unwrap();
        let said = (&result["answer"], &result["unchecked"]);
        assert_eq!(said, (&json!("A fjord."), &json!(["deep"])));
        assert_eq!(result["checks"], json!([{"name": "said", "passed": true}]));
        let calls = rig.provider.asked.lock().unwrap().len();
        rig.state = json!({});
        assert!(rig.end().await.0.is_ok());
        assert_eq!(rig.provider.asked.lock().unwrap().len(), calls, "nothing is bought again");
    }
}

/// The tenant's own budget is used up between answer and judgement.
#[tokio::test]
async fn a_judge_that_the_tenant_cannot_pay_leaves_the_answer_unchecked() {
    const DAILY_USD: f64 = 1.0;
    // A million tokens of either kind cost a dollar.
    let prices = format!("[[price]]\nmodels = [\"{MODEL}\"]\ninput = 1.0\noutput = 1.0");
    let answer_usd = 1_100.0 / 1e6;
    let Some(redis) = Redis::start() else { return };
    let mut rig = Rig::new(judged(json!({})), vec![whole("A fjord.")]).await;
    let store = Store::open_within(&redis.url, "test", Duration::from_secs(300), PATIENCE).unwrap();
    let ledger = tidegate_quota::Budgets::new(Some(store));
    rig.services.prices = Prices::parse(&prices).unwrap();
    let daily = [(Tenant::default(), DAILY_USD)].into();
    let budgets = Budgets::new(ledger.clone(), daily, rig.services.prices.clone());
    rig.services.budgets = budgets.into();
    let answered = attempt(&mut rig, false).await.unwrap_err();
    assert!(answered.is_retried() && answered.kind == FailureType::CheckFailed, "{answered}");

    let budget = Budget::daily(Tenant::default(), DAILY_USD);
    let mut left = 0.0;
    for _ in 0..1_000 {
        left = match ledger.reserve(&budget, "too much", 2.0 * DAILY_USD).await {
            Err(Unheld::Refused(refused)) => refused.left_usd,
            other => panic!("expected a refusal, got {other:?}"),
        };
        if (left - (DAILY_USD - answer_usd)).abs() < 1e-6 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!((left - (DAILY_USD - answer_usd)).abs() < 1e-6, "{left}: the answer alone is paid");
    let all = ledger.reserve(&budget, "another batch", left - 1e-6).await.unwrap();
    all.settle(left - 1e-6).await;

    let outcome = rig.end().await.0.unwrap();
    let result = rig.result().unwrap();
    assert_eq!((&result["answer"], &result["unchecked"]), (&json!("A fjord."), &json!(["deep"])));
    assert_eq!(outcome.spend.provider_calls, 1);
    assert_eq!(rig.provider.asked.lock().unwrap().len(), 1, "the judge was not asked");
}

#[tokio::test]
async fn what_fails_its_checks_goes_to_the_next_model_in_an_activity_of_its_own() {
    let answers =
        vec![whole(r#"{"depth": 1}"#), whole(r#"{"depth": 2}"#), whole(r#"{"depth": 7}"#)];
    let more = json!({"route": "up", "escalate": true, "retry_budget": 0});
    let mut rig = Rig::new(checks(more), answers).await;
    let first = rig.end().await.0.unwrap();
    assert!(first.escalates && rig.result().is_none());
    assert_eq!((first.spend.provider_calls, first.spend.output_tokens), (2, 200));
    rig.task.escalated = Some(first.spend);
    rig.state = json!({});
    let second = rig.end().await.0.unwrap();
    assert!(!second.escalates);
    let result = rig.result().unwrap();
    assert_eq!((&result["answer"], &result["model"]), (&json!(r#"{"depth": 7}"#), &json!(NEXT)));
    let asked: Vec<_> = result["asked"].as_array().unwrap().iter().map(|it| &it["model"]).collect();
    assert_eq!(asked, [&json!(MODEL), &json!(MODEL), &json!(NEXT)]);
    assert_eq!(result["asked"][2]["level"], json!(1));
    assert_eq!(rig.provider.asked.lock().unwrap()[2].1, "Sum up.", "it has said nothing wrong");
    assert_eq!((&result["provider_calls"], &result["output_tokens"]), (&json!(3), &json!(300)));
    // The rig schedules every activity at one time, so all of the cost counts as one activity's.
    let all = first.spend + Spend { provider_calls: 1, ..Spend::default() };
    assert_eq!(result["provider_calls"], json!(all.provider_calls));
    assert_eq!(second.spend.provider_calls, 3);
}

#[tokio::test]
async fn what_no_model_of_the_route_can_do_fails_with_all_that_it_took() {
    let answers = (0..4).map(|_| whole(r#"{"depth": 1}"#)).collect();
    let mut rig = Rig::new(checks(json!({"route": "up", "escalate": true})), answers).await;
    let first = rig.end().await.0.unwrap();
    rig.task.escalated = Some(first.spend);
    rig.state = json!({});
    let (ended, details) = rig.end().await;
    assert_eq!(ended.unwrap_err().kind, FailureType::CheckFailed);
    let kept = Rig::at(&details.kept.unwrap());
    assert_eq!((&kept["provider_calls"], &kept["model"]), (&json!(4), &json!(NEXT)));
    let models = rig.provider.models.lock().unwrap().clone();
    assert_eq!(models.iter().filter(|model| model.contains("opus")).count(), 2);
}

#[tokio::test]
async fn what_is_wrong_with_a_check_is_said_before_anything_is_asked() {
    for (expression, part) in [
        ("answer.depth >", "syntax error"),
        ("answer.dept > 1", "answer.dept is not known"),
        ("town == 'Husum'", "town is not known of file://"),
    ] {
        let checks = json!([{"name": "one", "expression": expression}]);
        let job = checks_of(checks);
        let refused = refusal(job).await;
        assert!(refused.contains(part) && refused.contains("checks[0] \"one\""), "{refused}");
    }
    let judge = json!([{"name": "one", "judge": {"model": "anthropic:none", "instructions": "x"}}]);
    let refused = refusal(checks_of(judge)).await;
    assert!(refused.contains("\"anthropic:none\" is not configured"), "{refused}");
}

fn checks_of(list: Value) -> Value {
    let mut job = checks(json!({}));
    job["checks"] = list;
    job
}

/// The message with which a batch is refused.
async fn refusal(more: Value) -> String {
    let rig = Rig::new(json!({}), Vec::new()).await;
    let uri = |name: &str| format!("file://{}/{name}", rig.folder.path().display());
    let mut job = json!({
        "source": {"prefix": uri("in/")}, "output": uri("other/"), "instructions": "Sum up.",
        "model": MODEL, "lane": "batch", "tenant": "default", "max_output_tokens": 100,
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let job = serde_json::from_value(job).unwrap();
    let refused = tidegate_activities::batch::plan::plan(&rig.services, &job, "w", "run-1")
        .await
        .unwrap_err();
    assert_eq!(refused.kind, FailureType::InvalidInput);
    refused.message
}
