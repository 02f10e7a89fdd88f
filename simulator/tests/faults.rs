//! Each fault, as a caller meets it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::time::{Duration, Instant};

use common::Stage;
use serde_json::{Value, json};
use tidegate_simulator::FaultKind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn chat() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "One."}]})
}

/// Status, type and code of an error, from both vendors.
async fn errors(fault: &str) -> [(u16, Value, Value, Option<String>); 2] {
    let stage = Stage::new(&format!("[default]\nrpm = 10\n[[faults]]\n{fault}")).await;
    let (anthropic, openai) =
        (stage.ask("One.").await.unwrap(), stage.openai(&chat()).await.unwrap());
    let account = stage.simulator.account().model("m");
    assert_eq!(
        (account.requests, account.ok, account.admitted.total(), account.refused.total()),
        (2, 0, 0, 0),
        "{fault}"
    );
    assert_eq!(account.faults.values().sum::<u64>(), 2, "{fault}");
    [(anthropic, "/error/details/error_code"), (openai, "/error/code")].map(|(reply, code)| {
        let body = reply.json();
        let code = body.pointer(code).cloned().unwrap_or_default();
        (
            reply.status,
            body["error"]["type"].clone(),
            code,
            reply.header("retry-after").map(str::to_owned),
        )
    })
}

#[tokio::test]
async fn errors_have_each_vendors_status_and_type() {
    let none = Value::Null;
    let [a, o] = errors("kind = \"overloaded\"").await;
    assert_eq!(a, (529, json!("overloaded_error"), none.clone(), None));
    assert_eq!(o, (503, json!("service_unavailable_error"), json!("server_is_overloaded"), None));

    let [a, o] = errors("kind = \"server-error\"").await;
    assert_eq!(a, (500, json!("api_error"), none.clone(), None));
    assert_eq!(o, (500, json!("server_error"), none, None));

    let [a, o] = errors("kind = \"rate-limited\"\nretry-after = \"1500ms\"").await;
    assert_eq!(a, (429, json!("rate_limit_error"), json!("ramp_limit_exceeded"), Some("2".into())));
    assert_eq!(o, (429, json!("rate_limit_error"), json!("slow_down"), Some("2".into())));

    let [a, o] = errors("kind = \"spend-limit\"\nretry-after = \"5s\"").await;
    assert_eq!(a, (429, json!("rate_limit_error"), json!("enforced_spend_limit_reached"), None));
    assert_eq!(o, (429, json!("insufficient_quota"), json!("credit_balance_exhausted"), None));
}

/// Faults of the connection strike every API alike.
#[tokio::test]
async fn every_api_meets_the_faults_of_the_wire() {
    let responses = json!({"model": "m", "input": "One."});
    let gemini = json!({"contents": [{"parts": [{"text": "One."}]}]});
    let bedrock = json!({"messages": [{"role": "user", "content": [{"text": "One."}]}]});
    for kind in ["html", "malformed", "slow", "hang", "reset-before", "reset-after"] {
        let stage =
            Stage::new(&format!("faults = [{{ kind = \"{kind}\", delay = \"50ms\" }}]")).await;
        let replies = [
            stage.responses(&responses).await,
            stage.gemini("m", &gemini).await,
            stage.bedrock("m", &bedrock).await,
        ];
        for reply in replies {
            match (kind, reply) {
                ("html", Ok(reply)) => assert_eq!(
                    (reply.status, reply.header("content-type")),
                    (502, Some("text/html"))
                ),
                ("malformed", Ok(reply)) => assert!(
                    reply.status == 200 && serde_json::from_str::<Value>(&reply.text).is_err()
                ),
                ("slow", Ok(reply)) => assert!(reply.status == 200 && reply.json().is_object()),
                ("hang" | "reset-before" | "reset-after", Err(_)) => {}
                (_, reply) => panic!("{kind}: {reply:?}"),
            }
        }
        let account = stage.simulator.account().model("m");
        assert_eq!(
            (account.requests, account.faults.values().sum::<u64>(), account.ok),
            (3, 3, 0),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_gateway_answers_in_html() {
    let stage = Stage::new("faults = [{ kind = \"html\" }]").await;
    let reply = stage.ask("One.").await.unwrap();
    assert_eq!((reply.status, reply.header("content-type")), (502, Some("text/html")));
    assert!(reply.text.starts_with("<html>"));
}

#[tokio::test]
async fn a_reset_before_sends_nothing_and_charges_nothing() {
    let stage = Stage::new("faults = [{ kind = \"reset-before\", times = 1 }]").await;
    // Without a body that was begun, the error is one of sending.
    let error = stage.ask("One.").await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    assert_eq!(stage.ask("One.").await.unwrap().status, 200);
    let account = stage.simulator.account().model("m");
    assert_eq!(
        (account.faulted(FaultKind::ResetBefore), account.admitted.requests, account.ok),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn a_reset_after_breaks_the_answer_off_and_charges_it() {
    let stage =
        Stage::new("mean-output-tokens = 2000\nfaults = [{ kind = \"reset-after\", times = 1 }]")
            .await;
    let body = common::message("One.", 4_000);
    let error = stage.anthropic(&body).await.unwrap_err();
    assert!(error.is_body() || error.is_decode() || error.is_request(), "{error:?}");
    assert_eq!(stage.anthropic(&body).await.unwrap().status, 200);
    let account = stage.simulator.account();
    let model = account.model("m");
    assert_eq!(
        (model.faulted(FaultKind::ResetAfter), model.admitted.requests, model.ok),
        (1, 2, 1)
    );
    // The caller never had the first answer, so nothing was answered twice.
    assert_eq!(account.answered_twice, 0);
}

/// The bytes that come before a reset, on a bare connection.
async fn until_reset(kind: &str) -> Vec<u8> {
    let stage = Stage::new(&format!("faults = [{{ kind = {kind:?} }}]")).await;
    let address = stage.simulator.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = chat().to_string();
    let length = body.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let error = stream.read_to_end(&mut bytes).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{kind}");
    bytes
}

#[tokio::test]
async fn a_reset_is_one_on_the_wire() {
    assert!(until_reset("reset-before").await.is_empty());
    // The reset may overtake what was sent; if it does not, an answer has begun.
    let begun = until_reset("reset-after").await;
    assert!(
        begun.is_empty() || begun.starts_with(b"HTTP/1.1 200 OK"),
        "{}",
        String::from_utf8_lossy(&begun)
    );
}

#[tokio::test]
async fn a_malformed_answer_breaks_off() {
    let stage = Stage::new("faults = [{ kind = \"malformed\" }]").await;
    let reply = stage.ask("One.").await.unwrap();
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert!(serde_json::from_str::<Value>(&reply.text).is_err());
    assert_eq!(stage.simulator.account().model("m").admitted.requests, 1);
}

#[tokio::test]
async fn a_slow_answer_drags_on_and_is_whole() {
    let stage = Stage::new("faults = [{ kind = \"slow\", delay = \"500ms\" }]").await;
    let began = Instant::now();
    let reply = stage.ask("One.").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(500));
    assert_eq!((reply.status, &reply.json()["type"]), (200, &json!("message")));
}

#[tokio::test]
async fn a_hang_lasts_until_the_caller_leaves_or_the_delay_ends() {
    let stage = Stage::new(
        "faults = [{ kind = \"hang\", times = 1 }, { kind = \"hang\", delay = \"100ms\" }]",
    )
    .await;
    assert!(tokio::time::timeout(Duration::from_millis(300), stage.ask("One.")).await.is_err());
    assert!(stage.ask("Two.").await.is_err());
    let account = stage.simulator.account().model("m");
    assert_eq!(
        (account.faulted(FaultKind::Hang), account.abandoned, account.admitted.requests),
        (2, 0, 0)
    );
}

#[tokio::test]
async fn a_shutdown_ends_hanging_calls() {
    let stage = Stage::new("faults = [{ kind = \"hang\" }]").await;
    let (client, url) = (stage.client.clone(), stage.simulator.base_url());
    let hanging = tokio::spawn(async move {
        let body =
            json!({"model": "m", "messages": [{"role": "user", "content": "One."}]}).to_string();
        client.post(format!("{url}/v1/chat/completions")).bearer_auth("k").body(body).send().await
    });
    while stage.simulator.account().model("m").in_flight == 0 {
        tokio::task::yield_now().await;
    }
    let url = stage.simulator.base_url();
    stage.simulator.shutdown().await;
    assert!(hanging.await.unwrap().is_err());
    assert!(stage.client.get(url).send().await.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_simulator_that_is_dropped_stops() {
    let stage = Stage::new("").await;
    let url = format!("{}/healthz", stage.simulator.base_url());
    drop(stage.simulator);
    // A kept connection may be served once more; soon no connection is taken.
    while stage.client.get(&url).send().await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn faults_strike_where_and_when_they_are_meant_to() {
    let stage = Stage::new(
        "faults = [{ kind = \"server-error\", matching = \"poison\" }, { kind = \"overloaded\", from = \"1h\" }, { kind = \"html\", to = \"1ns\" }]",
    )
    .await;
    assert_eq!(stage.ask("A harmless page.").await.unwrap().status, 200);
    assert_eq!(stage.ask("A page of poison.").await.unwrap().status, 500);
}

#[tokio::test]
async fn chance_repeats_itself_with_the_seed() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let stage = Stage::new(&format!(
            "seed = {seed}\nfaults = [{{ kind = \"overloaded\", rate = 0.3 }}]"
        ))
        .await;
        let mut statuses = Vec::new();
        for n in 0..60 {
            statuses.push(stage.ask(&format!("Document {n}.")).await.unwrap().status);
        }
        let struck = statuses.iter().filter(|status| **status == 529).count();
        assert!((8..=30).contains(&struck), "{struck} of 60");
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
