//! Each algorithm and each way of charging admits exactly what it should, and not one call more.

mod common;

use std::time::Instant;

use common::{Stage, message};
use serde_json::json;
use tidegate_simulator::Dimension;

const ALGORITHMS: [&str; 3] = ["token-bucket", "fixed-window", "sliding-window"];

#[tokio::test]
async fn every_algorithm_admits_the_limit_and_refuses_one_more() {
    for algorithm in ALGORITHMS {
        let stage = Stage::new(&format!("[models.m]\nrpm = 5\nalgorithm = {algorithm:?}")).await;
        for n in 0..5 {
            assert_eq!(
                stage.ask(&format!("Document {n}.")).await.unwrap().status,
                200,
                "{algorithm}: call {n}"
            );
        }
        let refused = stage.ask("Document 5.").await.unwrap();
        assert_eq!(refused.status, 429, "{algorithm}");
        assert!((1..=60).contains(&refused.number("retry-after")), "{algorithm}");
        let account = stage.simulator.account().model("m");
        assert_eq!(
            (account.ok, account.admitted.requests, account.refused.requests),
            (5, 5, 1),
            "{algorithm}"
        );
        assert_eq!(account.worst_window.requests, 5, "{algorithm}");
        stage.simulator.shutdown().await;
    }
}

#[tokio::test]
async fn a_crowd_gets_no_more_than_the_limit() {
    for algorithm in ALGORITHMS {
        let began = Instant::now();
        let stage = Stage::new(&format!("[models.m]\nrpm = 20\nalgorithm = {algorithm:?}")).await;
        let calls = (0..60).map(|n| {
            let stage = &stage;
            async move { stage.ask(&format!("Document {n}.")).await.unwrap().status }
        });
        let statuses = futures::future::join_all(calls).await;
        let ok = statuses.iter().filter(|status| **status == 200).count();
        // While the crowd is served, a token bucket earns a call every 3 seconds.
        let most = if algorithm == "token-bucket" {
            20 + began.elapsed().as_secs() as usize / 3
        } else {
            20
        };
        assert!((20..=most).contains(&ok), "{algorithm}: {ok}");
        assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 60 - ok);
    }
}

#[tokio::test]
async fn each_dimension_refuses_by_its_own_name() {
    // 430 bytes and a little of document; output-spread 0 makes answers of nearly 50 tokens.
    for (limit, dimension) in [
        ("rpm = 1", Dimension::Requests),
        ("tpm = 200", Dimension::Tokens),
        ("itpm = 150", Dimension::Input),
        ("otpm = 60", Dimension::Output),
    ] {
        let stage =
            Stage::new(&format!("mean-output-tokens = 50\noutput-spread = 0.0\n[default]\nalgorithm = \"fixed-window\"\n{limit}"))
                .await;
        let document = "Ten bytes. ".repeat(40);
        assert_eq!(stage.ask(&document).await.unwrap().status, 200, "{limit}");
        assert_eq!(stage.ask(&document).await.unwrap().status, 429, "{limit}");
        let refused = stage.simulator.account().model("m").refused;
        assert_eq!((refused.get(dimension), refused.total()), (1, 1), "{limit}");
    }
}

#[tokio::test]
async fn max_tokens_are_held_and_given_back_or_kept() {
    for (charge, second) in [("max-tokens", 200), ("max-tokens-kept", 429), ("admission", 200)] {
        let stage = Stage::new(&format!(
            "mean-output-tokens = 20\n[models.m]\notpm = 1000\ncharge = {charge:?}"
        ))
        .await;
        assert_eq!(stage.anthropic(&message("One.", 900)).await.unwrap().status, 200, "{charge}");
        assert_eq!(
            stage.anthropic(&message("Two.", 900)).await.unwrap().status,
            second,
            "{charge}"
        );
    }
}

#[tokio::test]
async fn max_tokens_are_held_while_the_call_is_at_work() {
    let stage = Stage::new(
        "latency = { base = \"400ms\" }\n[models.m]\notpm = 1000\ncharge = \"max-tokens\"",
    )
    .await;
    let (one, two) = (message("One.", 600), message("Two.", 600));
    let (first, second) = tokio::join!(stage.anthropic(&one), stage.anthropic(&two));
    let mut statuses = [first.unwrap().status, second.unwrap().status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 429]);
}

#[tokio::test]
async fn output_charged_at_completion_may_leave_a_debt_that_refuses_the_next_call() {
    let stage = Stage::new("mean-output-tokens = 300\noutput-spread = 0.0\n[models.m]\notpm = 200\ncharge = \"completion\"").await;
    let first = stage.ask("One.").await.unwrap();
    assert_eq!(first.status, 200);
    let output = first.json()["usage"]["output_tokens"].as_u64().unwrap();
    assert!(output > 250, "{output}");
    assert_eq!(stage.ask("Two.").await.unwrap().status, 429);
    let account = stage.simulator.account().model("m");
    assert_eq!(
        (account.admitted.output, account.worst_window.output, account.refused.output),
        (output, output, 1)
    );
}

#[tokio::test]
async fn a_model_with_its_own_section_takes_nothing_from_default() {
    let stage = Stage::new("[default]\nrpm = 1\n[models.own]\ntpm = 100000").await;
    for _ in 0..3 {
        let body = json!({"model": "own", "messages": [{"role": "user", "content": "Hello."}]});
        assert_eq!(stage.openai(&body).await.unwrap().status, 200);
    }
    assert_eq!(stage.ask("One.").await.unwrap().status, 200);
    assert_eq!(stage.ask("Two.").await.unwrap().status, 429);
}
