//! Answers whose judging needs a process: they are kept before they are judged, and bought once.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::time::Duration;

use rig::{Rig, whole};
use serde_json::{Value, json};
use tidegate_activities::{
    attempt::AttemptState,
    document::{pack, process},
};
use tidegate_documents::{Limits, Reader};
use tidegate_types::{FailureType, fnv1a};
use tidegate_workflows::contract::PackTask;

const KEPT: &str = "out/_tidegate/kept/a.txt.json";

/// A tree: an answer decides how often the schema is gone through, so a process judges it.
fn tree() -> Value {
    let node = json!({"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}});
    json!({"schema": {"$ref": "#/$defs/node", "$defs": {"node": node}}})
}

/// A process that comes to this verdict.
fn verdict(said: &str) -> Reader {
    runs(&format!("cat > /dev/null; echo '{said}'"))
}

fn passes() -> Reader {
    verdict(r#"{"Ok":null}"#)
}

fn runs(script: &str) -> Reader {
    Reader::isolated("/bin/sh", ["-c".to_owned(), script.to_owned()], Limits::default())
}

/// A worker at its limit of processes.
fn no_process() -> Reader {
    Reader::isolated("/nowhere/tidegate", [], Limits::default())
}

#[tokio::test]
async fn an_answer_that_no_process_can_judge_now_is_judged_later_and_not_bought_again() {
    let mut rig = Rig::new(tree(), vec![whole("{}")]).await;
    rig.services.reader = no_process();
    for _ in 0..3 {
        let attempt = rig.attempt();
        let failure = process::process(&rig.services, &attempt, &rig.task).await.unwrap_err();
        assert_eq!((failure.kind, failure.is_retried()), (FailureType::Transient, true));
        assert_eq!(attempt.details().discarded.spend.output_tokens, 0, "it is not given up");
        rig.state = serde_json::to_value(attempt.state()).unwrap();
    }
    rig.services.reader = passes();
    let outcome = rig.end().await.0.unwrap();
    assert_eq!(rig.caps().len(), 1, "one call");
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (1, 100));
    assert_eq!(rig.result().unwrap()["answer"], json!("{}"));
    assert!(!rig.folder.path().join(KEPT).exists());
}

#[tokio::test]
async fn an_answer_outlives_a_worker_that_is_killed_while_it_is_judged() {
    let mut rig = Rig::new(tree(), vec![whole("{}")]).await;
    let begun = rig.folder.path().join("begun");
    rig.services.reader = runs(&format!("touch {}; exec sleep 600", begun.display()));
    let attempt = rig.attempt();
    let judging = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = process::process(&rig.services, &attempt, &rig.task) => {
            panic!("judging never ends: {ended:?}")
        }
        () = judging => {}
    }
    // No heartbeat was sent: only the attempt's number is known.
    let mut state = AttemptState::default();
    state.call.progress = state.call.progress.resumed_by(2);
    rig.state = serde_json::to_value(state).unwrap();
    rig.services.reader = passes();
    let outcome = rig.end().await.0.unwrap();
    assert_eq!(rig.caps().len(), 1, "one call");
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (1, 100));
    assert!(!rig.folder.path().join(KEPT).exists());
}

#[tokio::test]
async fn an_answer_that_was_refused_is_not_judged_again() {
    let mut rig = Rig::new(tree(), vec![whole("[]"), whole("{}")]).await;
    rig.services.reader = verdict(r#"{"Err":"at its top: no object"}"#);
    let attempt = rig.attempt();
    let failure = process::process(&rig.services, &attempt, &rig.task).await.unwrap_err();
    assert_eq!((failure.kind, failure.is_retried()), (FailureType::InvalidOutput, true));
    rig.state = serde_json::to_value(attempt.state()).unwrap();
    rig.services.reader = passes();
    let outcome = rig.end().await.0.unwrap();
    assert_eq!((rig.caps().len(), outcome.spend.output_tokens), (2, 200));
    assert_eq!(rig.result().unwrap()["answer"], json!("{}"));
}

#[tokio::test]
async fn the_answers_of_a_shared_call_are_judged_later_and_not_bought_again() {
    let mut job = tree();
    job["pack"] = json!({"of": 2});
    let mut rig = Rig::with_documents(&["High.", "Low."], job, vec![]).await;
    let task =
        PackTask { job: rig.task.job.clone(), workflow: "w".into(), shard: 0, from: 0, to: 2 };
    let salt = fnv1a(task.job.bytes().chain([0; 8])) & 0xffff;
    let answer = |place: u32| json!({"id": format!("{salt:04x}-{place}"), "answer": {}});
    let answers = json!({"answers": [answer(1), answer(2)]}).to_string();
    rig.provider.answers.lock().unwrap().push_back(whole(&answers));
    rig.services.reader = no_process();
    let attempt = rig.attempt();
    let failure = pack::process(&rig.services, &attempt, &task).await.unwrap_err();
    assert_eq!((failure.kind, failure.is_retried()), (FailureType::Transient, true));
    rig.state = serde_json::to_value(attempt.state()).unwrap();
    rig.services.reader = passes();
    let attempt = rig.attempt();
    let outcome = pack::process(&rig.services, &attempt, &task).await.unwrap();
    assert_eq!((rig.caps().len(), outcome.succeeded, outcome.left), (1, 2, vec![]));
    assert_eq!((outcome.spent.provider_calls, outcome.spent.output_tokens), (1, 100));
    for document in ["a.txt", "b.txt"] {
        assert_eq!(rig.result_of(document).unwrap()["answer"], json!("{}"));
    }
    let run = rig.services.storage.resolve(&task.job).unwrap();
    let folder = rig.folder.path().join("out/_tidegate").join(run.name());
    let left = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("pack")).collect();
    assert!(left.is_empty(), "{left:?}");
}
