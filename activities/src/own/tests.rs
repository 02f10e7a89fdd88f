#![allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]

use std::time::Duration;

use tidegate_providers::Kind;
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options};
use tidegate_workflows::contract::FailureType;

use super::*;
use crate::{attempt::AttemptState, failure::Retry};

fn quota(requests: u64) -> Quota {
    let model: ModelId = "anthropic:claude".parse().unwrap();
    let limits =
        Limits::default().with(Dimension::Requests, requests).with(Dimension::Combined, 100_000);
    let lanes = Arc::new(Lanes::single());
    let known = ModelQuota::new(model.clone(), limits, Charge::default(), lanes).unwrap();
    let options = Options { max_slot_wait: Duration::ZERO, ..Options::default() };
    Quota::new(tidegate_quota::Quota::in_memory([known], options), model)
}

fn attempt(name: &str) -> Attempt {
    Attempt::new(name.to_owned(), "b".to_owned(), 0, AttemptState::default())
}

async fn used(quota: &Quota) -> u64 {
    quota.guard.quota.inspect(&quota.model).await.unwrap().used().combined
}

#[tokio::test]
async fn a_reply_settles_its_call_and_a_word_on_it_does_too() {
    let (quota, first, second) = (quota(6_000), attempt("a"), attempt("b"));
    let answer = br#"{"usage": {"input_tokens": 30, "output_tokens": 4}, "content": []}"#;
    let done = quota.make(&first, Ask::tokens(100, 50), async |call| {
        call.read_parts(200, &Default::default(), answer)?;
        Ok(())
    });
    assert!(done.await.is_ok());
    assert_eq!(used(&quota).await, 34);
    let done = quota.make(&second, Ask::tokens(100, 50), async |call| {
        call.usage(&Usage { uncached_input: 5, output: 1, ..Usage::default() });
        // An error after the answer belongs to the work.
        Err::<(), _>(std::fmt::Error.into())
    });
    assert!(matches!(done.await, Err(Ended::Work(_))));
    assert_eq!(used(&quota).await, 40);
}

#[tokio::test]
async fn a_429_closes_the_gate_and_the_next_call_waits_for_it() {
    let (quota, first) = (quota(6_000), attempt("a"));
    let headers = [("retry-after", "7")].map(|(name, value)| {
        (name.parse::<reqwest::header::HeaderName>().unwrap(), value.parse().unwrap())
    });
    let refused = quota.make(&first, Ask::tokens(1, 1), async |call| {
        let headers = headers.clone().into_iter().collect();
        call.read_parts(429, &headers, b"{}")?;
        Ok(())
    });
    let Err(Ended::Call(failure)) = refused.await else { unreachable!("it was refused") };
    let seven = Duration::from_secs(7);
    assert_eq!(failure.kind, FailureType::RateLimited);
    assert_eq!(failure.retry, Retry::ByFaults { before: 0, at_least: seven });
    assert_eq!(first.counts().rate_limited, 1);

    let second = attempt("b");
    let waits = quota.make(&second, Ask::tokens(1, 1), async |_| Ok(()));
    let Err(Ended::Call(failure)) = waits.await else { unreachable!("the gate is closed") };
    assert_eq!(failure.kind, FailureType::QuotaWait);
    assert_eq!(second.counts().provider_calls, 0, "no call was made");
}

#[tokio::test]
async fn a_far_turn_is_kept_for_the_next_attempt() {
    let (quota, mut waits) = (quota(1), None);
    for name in ["a", "b"] {
        let attempt = attempt(name);
        let made = quota.make(&attempt, Ask::tokens(1, 1), async |_| Ok(())).await;
        waits = made.err().map(|ended| (ended, attempt.state().call.ticket));
    }
    let Some((Ended::Call(failure), ticket)) = waits else { unreachable!("one a minute") };
    assert!(matches!(failure.retry, Retry::Turn(_)), "{failure:?}");
    assert!(ticket.is_some(), "the turn goes on to the next attempt");
}

#[test]
fn a_fault_is_the_providers_or_the_works() {
    let error = Vendor::OPENAI.read_reply(503, &Default::default(), b"").unwrap_err();
    assert!(matches!(Fault::from(error), Fault::Provider(error) if error.kind == Kind::Overloaded));
    assert!(matches!(Fault::from(std::fmt::Error), Fault::Own(_)));
}
