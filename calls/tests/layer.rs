//! The layer around a real HTTP client, against the simulated provider, which keeps its own counts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod pages;

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};
use tidegate_calls::{Backoff, Guard, Limit, Limited, budget::Budgets, layer::Stopped};
use tidegate_providers::Prices;
use tidegate_quota::{
    Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Refused, Request,
};
use tidegate_simulator::{Config, Simulator};
use tidegate_types::{FailureType, ModelId, Tenant};
use tower_layer::Layer as _;
use tower_service::Service as _;

type Http = Limited<reqwest::Client>;

struct Stage {
    simulator: Simulator,
    quota: Quota,
    model: ModelId,
    http: Http,
}

async fn stage(simulator: &str, requests: u64) -> Stage {
    let simulator = Simulator::start(Config::from_toml(simulator).unwrap()).await.unwrap();
    let model: ModelId = "openai:m".parse().unwrap();
    let limits =
        Limits::default().with(Dimension::Requests, requests).with(Dimension::Combined, 1_000_000);
    let lanes = Arc::new(Lanes::single());
    let known = ModelQuota::new(model.clone(), limits, Charge::default(), lanes).unwrap();
    let quota = Quota::in_memory([known], Options { jitter: Duration::ZERO, ..Options::default() });
    let http = Limit::new(quota.clone(), "openai").layer(plain());
    Stage { simulator, quota, model, http }
}

fn plain() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

impl Stage {
    fn question(&self, number: usize, model: &str) -> reqwest::Request {
        let messages = json!([{"role": "user", "content": format!("Question {number}?")}]);
        let body = json!({"model": model, "max_completion_tokens": 50, "messages": messages});
        let url = format!("{}/v1/chat/completions", self.simulator.base_url());
        plain().post(url).bearer_auth("sk-simulated").json(&body).build().unwrap()
    }

    async fn used(&self) -> [u64; 2] {
        let used = self.quota.inspect(&self.model).await.unwrap().used();
        [used.requests, used.combined]
    }
}

#[tokio::test]
async fn each_call_waits_for_its_turn_and_is_charged_what_it_used() {
    let stage = stage("mean-output-tokens = 20\noutput-spread = 0.0", 6_000).await;
    let asked = (0..20).map(|number| {
        let (mut http, question) = (stage.http.clone(), stage.question(number, "m"));
        async move { http.call(question).await.unwrap().json::<Value>().await.unwrap() }
    });
    let answers = join_all(asked).await;
    let spent: u64 = answers.iter().map(|it| it["usage"]["total_tokens"].as_u64().unwrap()).sum();
    assert_eq!(stage.used().await, [20, spent], "by the answers, not by the estimates");
    assert_eq!(stage.simulator.account().model("m").ok, 20);
}

#[tokio::test]
async fn a_429_closes_the_gate_for_the_next_call() {
    let stage = stage("[[faults]]\nkind = \"rate-limited\"\nretry-after = \"30s\"", 6_000).await;
    let answer = stage.http.clone().call(stage.question(0, "m")).await.unwrap();
    assert_eq!(answer.status(), 429, "the caller sees what the provider says");
    answer.bytes().await.unwrap();
    let seen = stage.quota.inspect(&stage.model).await.unwrap();
    assert_eq!(seen.reason, "rate_limited");
    let next = stage.quota.admit(&Request::once(stage.model.clone()).tokens(1, 1)).await;
    let Err(Refused::GateClosed { wait, .. }) = next else { unreachable!("the gate is closed") };
    assert!(wait > Duration::from_secs(10), "{wait:?}");
}

#[tokio::test]
async fn an_unread_answer_stays_charged() {
    let stage = stage("mean-output-tokens = 20\noutput-spread = 0.0", 6_000).await;
    let answer = stage.http.clone().call(stage.question(0, "m")).await.unwrap();
    let reserved = stage.used().await;
    drop(answer);
    tokio::task::yield_now().await;
    assert_eq!(stage.used().await, reserved);
}

#[tokio::test]
async fn a_model_without_limits_is_not_asked_and_other_requests_pass() {
    let stage = stage("", 6_000).await;
    let refused = stage.http.clone().call(stage.question(0, "other")).await.unwrap_err();
    let stopped = refused.downcast_ref::<Stopped>().unwrap();
    assert!(matches!(stopped, Stopped::Refused(Refused::UnknownModel(_))), "{stopped}");
    assert_eq!(stage.simulator.account().models.len(), 0, "no call was made");
    let list = plain().get(format!("{}/v1/models", stage.simulator.base_url()));
    let list = list.bearer_auth("sk-simulated").build().unwrap();
    assert_eq!(stage.http.clone().call(list).await.unwrap().status(), 200);
    assert_eq!(stage.used().await, [0, 0]);
}

/// There is one way to admit: what holds an activity's call also holds these calls.
#[tokio::test]
async fn a_provider_that_fails_is_left_alone_until_one_call_finds_out() {
    let stage = stage("[[faults]]\nkind = \"server-error\"", 6_000).await;
    for number in 0..5 {
        let answer = stage.http.clone().call(stage.question(number, "m")).await.unwrap();
        assert!(answer.status().is_server_error(), "the caller sees what the provider says");
        answer.bytes().await.unwrap();
    }
    let held = stage.http.clone().call(stage.question(5, "m")).await.unwrap_err();
    let Some(Stopped::Held(failure)) = held.downcast_ref::<Stopped>() else { panic!("{held}") };
    assert!(failure.is_retried() && failure.kind == FailureType::Overloaded, "{failure:?}");
    assert_eq!(stage.simulator.account().model("m").requests, 5, "no call was made");
    assert_eq!(stage.used().await[0], 5, "nothing was taken for it");
}

#[tokio::test]
async fn a_key_that_is_refused_is_asked_with_by_one_call_at_a_time() {
    let stage = stage("[[refused-keys]]\nkey = \"sk-simulated\"", 6_000).await;
    let answer = stage.http.clone().call(stage.question(0, "m")).await.unwrap();
    assert_eq!(answer.status(), 401);
    answer.bytes().await.unwrap();
    let held = stage.http.clone().call(stage.question(1, "m")).await.unwrap_err();
    let Some(Stopped::Held(failure)) = held.downcast_ref::<Stopped>() else { panic!("{held}") };
    assert!(failure.is_retried() && failure.kind == FailureType::Unauthorized, "{failure:?}");
}

#[tokio::test]
async fn a_budget_that_cannot_be_kept_holds_calls_through_the_layer() {
    let stage = stage("mean-output-tokens = 20\noutput-spread = 0.0", 6_000).await;
    let prices = "[[price]]\nmodels = [\"openai:m\"]\ninput = 1.0\noutput = 1.0";
    let ledger = stage.quota.budgets();
    let spends = [(Tenant::default(), 0.000_000_1)].into();
    let budgets = Budgets::new(ledger, spends, Prices::parse(prices).unwrap());
    let guard = Guard::new(stage.quota.clone(), Backoff::default());
    let mut http = Limit::with_guard(guard, Arc::new(budgets), "openai").layer(plain());
    let held = http.call(stage.question(0, "m")).await.unwrap_err();
    let Some(Stopped::Held(failure)) = held.downcast_ref::<Stopped>() else { panic!("{held}") };
    assert!(failure.message.starts_with("no budget can be kept"), "{failure:?}");
    assert_eq!(stage.simulator.account().models.len(), 0, "no call was made");
}

/// The layer around any service of the `http` crate: here a service that streams.
mod generic {
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[derive(Clone)]
    struct Streams;

    impl tower_service::Service<http::Request<Full<Bytes>>> for Streams {
        type Response = http::Response<Full<Bytes>>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Full<Bytes>>) -> Self::Future {
            let events = "data: {\"choices\": []}\n\n\
                data: {\"usage\": {\"prompt_tokens\": 30, \"completion_tokens\": 7}}\n\ndata: [DONE]\n\n";
            let answer = http::Response::builder().header("content-type", "text/event-stream");
            std::future::ready(Ok(answer.body(Full::from(events)).unwrap()))
        }
    }

    #[tokio::test]
    async fn a_stream_is_charged_by_its_last_event() {
        let stage = stage("", 6_000).await;
        let mut http = Limit::new(stage.quota.clone(), "openai").layer(Streams);
        let body = json!({"model": "m", "stream": true, "messages": [], "max_tokens": 500});
        let request = http::Request::post("http://h/v1/chat/completions");
        let request = request.body(Full::from(body.to_string())).unwrap();
        let answer = http.call(request).await.unwrap();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(text.ends_with(b"[DONE]\n\n"));
        assert_eq!(stage.used().await, [1, 37]);
    }

    /// SDKs stop reading at the last event.
    #[tokio::test]
    async fn a_stream_need_not_be_read_beyond_its_last_event() {
        let stage = stage("", 6_000).await;
        let mut http = Limit::new(stage.quota.clone(), "openai").layer(Streams);
        let body = json!({"model": "m", "stream": true, "messages": [], "max_tokens": 500});
        let request = http::Request::post("http://h/v1/chat/completions");
        let request = request.body(Full::from(body.to_string())).unwrap();
        let mut body = http.call(request).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        let settled = async {
            while stage.used().await != [1, 37] {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), settled).await.unwrap();
    }
}
