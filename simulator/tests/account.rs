//! The account: what it counts, and over HTTP.

mod common;

use std::time::Duration;

use common::Stage;
use tidegate_simulator::Account;

#[tokio::test]
async fn numbers_agree_with_what_callers_were_told() {
    let stage =
        Stage::new("[default]\nrpm = 12\n[[faults]]\nkind = \"overloaded\"\nmatching = \"bad\"")
            .await;
    let (mut input, mut output) = (0, 0);
    for n in 0..10 {
        let usage = stage.ask(&format!("Document {n}.")).await.unwrap().json()["usage"].clone();
        input += usage["input_tokens"].as_u64().unwrap();
        output += usage["output_tokens"].as_u64().unwrap();
    }
    assert_eq!(stage.ask("A bad one.").await.unwrap().status, 529);
    let account = stage.simulator.account();
    let model = account.model("m");
    assert_eq!(
        (model.requests, model.ok, model.in_flight, model.max_in_flight, model.abandoned),
        (11, 10, 0, 1, 0)
    );
    assert_eq!(
        (model.admitted.requests, model.admitted.input, model.admitted.output),
        (10, input, output)
    );
    assert_eq!(model.admitted.tokens, input + output);
    assert_eq!(model.worst_window, model.admitted);
    assert_eq!(model.tokens_between(Duration::ZERO, Duration::from_secs(60)), model.admitted);
    assert_eq!(model.tokens_between(Duration::from_secs(60), Duration::from_secs(99)).total(), 0);
    assert!(
        model.first_admission < model.last_admission
            && model.last_admission < Some(account.uptime_seconds)
    );
    assert_eq!((account.prompts, account.answered_twice), (10, 0));
}

#[tokio::test]
async fn documents_answered_twice_are_counted_once_each() {
    let stage = Stage::new("").await;
    for document in ["A.", "B.", "A.", "A.", "C.", "B."] {
        stage.ask(document).await.unwrap();
    }
    let account = stage.simulator.account();
    assert_eq!((account.prompts, account.answered_twice), (3, 2));
}

#[tokio::test]
async fn a_caller_who_leaves_is_charged_and_counted() {
    let stage =
        Stage::new("latency = { base = \"1h\" }\n[default]\nrpm = 5\ncharge = \"completion\"")
            .await;
    assert!(tokio::time::timeout(Duration::from_millis(300), stage.ask("One.")).await.is_err());
    let mut model = stage.simulator.account().model("m");
    while model.in_flight > 0 {
        tokio::task::yield_now().await;
        model = stage.simulator.account().model("m");
    }
    assert_eq!((model.requests, model.abandoned, model.ok), (1, 1, 0));
    assert!(model.admitted.output > 0 && model.admitted.requests == 1);
}

#[tokio::test]
async fn the_account_is_served_and_begun_anew() {
    let stage = Stage::new("").await;
    assert_eq!(stage.get("/healthz").await.text, "ok");
    stage.ask("One.").await.unwrap();
    let short: Account = serde_json::from_str(&stage.get("/account").await.text).unwrap();
    assert_eq!((short.model("m").ok, short.model("m").series), (1, None));
    let long: Account = serde_json::from_str(&stage.get("/account?series").await.text).unwrap();
    assert_eq!(long.models, stage.simulator.account().models);
    assert_eq!(stage.post("/account/reset", &[], String::new()).await.unwrap().status, 204);
    let account = stage.simulator.account();
    assert_eq!(
        (account.model("m").requests, account.model("m").admitted.total(), account.prompts),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn latency_grows_with_the_answer() {
    let stage = Stage::new(
        "output-spread = 0.0\nlatency = { base = \"100ms\", per-output-token = \"1ms\" }",
    )
    .await;
    let began = std::time::Instant::now();
    let output =
        stage.ask("One.").await.unwrap().json()["usage"]["output_tokens"].as_u64().unwrap();
    assert!(began.elapsed() >= Duration::from_millis(100 + output));
}
