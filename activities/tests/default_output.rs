//! A batch without `max_output_tokens`: its cap is the least of the bounds on an answer, and affects
//! only the call itself.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::{collections::HashMap, sync::Arc};

use rig::{MODEL, Rig, whole};
use serde_json::{Value, json};
use tidegate_calls::{Attempt, attempt::CallState, budget::Budgets};
use tidegate_providers::Prices;
use tidegate_quota::{
    Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request, budget::Payer,
    redis_store::Store,
};
use tidegate_testkit::{PATIENCE, Redis, unique};

fn default() -> Value {
    json!({"max_output_tokens": 1_024, "default_output": true})
}

fn stated() -> Value {
    json!({"max_output_tokens": 1_024})
}

async fn planned(limits: Limits, more: Value) -> Rig {
    let texts = ["The tide is high."; 8];
    Rig::limited(limits, &texts, more, vec![whole("High."); 8]).await
}

fn stored(rig: &Rig) -> Value {
    let job = rig.plan.job.strip_prefix("file://").unwrap();
    serde_json::from_slice(&std::fs::read(format!("{job}/job.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn the_cap_is_a_tenth_of_the_limit_of_output() {
    let mut rig = planned(Limits::default().with(Dimension::Output, 8_000), default()).await;
    rig.end().await.0.unwrap();
    assert_eq!(rig.caps(), [800]);
    let mut rig = planned(Limits::default().with(Dimension::Requests, 600), default()).await;
    rig.end().await.0.unwrap();
    assert_eq!(rig.caps(), [16_384]);
}

/// Reservations, forecast and pack are as with a stated cap of 1,024.
#[tokio::test]
async fn reservations_forecast_and_pack_are_made_from_what_is_likely() {
    let limits = || {
        Limits::default()
            .with(Dimension::Requests, 20)
            .with(Dimension::Combined, 200_000)
            .with(Dimension::Output, 160_000)
    };
    let with_pack = |mut more: Value| {
        more["pack"] = json!("fitting");
        more
    };
    let (one, other) = (
        planned(limits(), with_pack(default())).await,
        planned(limits(), with_pack(stated())).await,
    );
    assert_eq!(stored(&one)["max_output_tokens"], json!(16_000));
    assert_eq!(stored(&one)["forecast"], stored(&other)["forecast"]);
    assert!(one.plan.pack > 2, "{}", one.plan.pack);
    assert_eq!(one.plan.pack, other.plan.pack);

    let held = async |request: Request| {
        let limits = Limits::default().with(Dimension::Output, 8_000);
        let model = request.model.clone();
        let quota =
            ModelQuota::new(model.clone(), limits, Charge::default(), Arc::new(Lanes::single()));
        let quota = Quota::in_memory([quota.unwrap()], Options::default());
        let permit = quota.admit(&request).await.unwrap();
        let used = quota.inspect(&model).await.unwrap().used();
        drop(permit);
        used.output
    };
    let request = || Request::new(MODEL.parse().unwrap(), "r");
    let likely = held(request().tokens(1_000, 16_384).likely_output(1_024)).await;
    assert_eq!(likely, held(request().tokens(1_000, 1_024)).await, "as before");
    assert!(likely < held(request().tokens(1_000, 16_384)).await);
}

/// A dollar for a hundred calls at once: each probably costs a cent, and 25 cents at its cap.
#[tokio::test]
async fn a_budget_holds_what_is_likely() {
    let Some(redis) = Redis::start() else { return };
    let store =
        Store::open_within(&redis.url, &unique("test"), Options::default().pause_ttl, PATIENCE)
            .unwrap();
    let ledger = tidegate_quota::Budgets::new(Some(store));
    ledger.open(&Payer::Batch("night".to_owned()), 0.0, false).await.unwrap();
    let price = format!("[[price]]\nmodels = [\"{MODEL}\"]\ninput = 0.0\noutput = 8.0");
    let budgets = Budgets::new(ledger, HashMap::new(), Prices::parse(&price).unwrap());
    let budgets = Arc::new(budgets);
    let attempt =
        |number| Attempt::new(format!("r{number}"), "night".to_owned(), CallState::default());
    for (request, affordable) in [
        (Request::new(MODEL.parse().unwrap(), "").tokens(0, 16_384).likely_output(1_024), 100),
        (Request::new(MODEL.parse().unwrap(), "").tokens(0, 16_384), 7),
    ] {
        let requests: Vec<Request> = (0..100)
            .map(|number| Request {
                reservation: format!("{affordable}-{number}"),
                ..request.clone()
            })
            .collect();
        let mut calls = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            let attempt = attempt(number);
            let budget = budgets.call_budget(&attempt, request, Some(1.0)).unwrap();
            calls.push((attempt, request, budget));
        }
        let mut holds = Vec::new();
        for (attempt, request, budget) in &calls {
            if let Ok(hold) = budget.hold(attempt, &request.reservation).await {
                holds.push(hold);
            }
        }
        assert_eq!(holds.len(), affordable);
        for hold in holds {
            hold.settle(Some(&tidegate_types::Usage::default())).await;
        }
    }
}
