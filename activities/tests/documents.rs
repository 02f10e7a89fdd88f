//! What becomes of a document before and after its call: read or not, too large, of which kind. With
//! a scripted provider, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use rig::{Rig, fails, whole};
use serde_json::{Value, json};
use tidegate_activities::document::answers::Answers;
use tidegate_providers::{Charged, Completion, Error, Kind};
use tidegate_quota::{Dimension, Limits};
use tidegate_workflows::contract::FailureType;

type Answer = Result<Completion, Error>;

fn limits() -> Limits {
    Limits { margin: 1.0, ..Limits::default() }.with(Dimension::Requests, 6_000)
}

async fn of_file(name: &str, bytes: &[u8], more: Value, answers: Vec<Answer>) -> Rig {
    Rig::of_files(limits(), &[(name, bytes)], more, answers).await
}

#[tokio::test]
async fn what_the_model_cannot_take_is_said_before_it_is_sent_and_how_to_go_on() {
    let long = json!({"long": {"how": "per_chunk", "chunk_tokens": 70_000}});
    let native = json!({"attach_pdf": true});
    for (more, way_out) in [
        (json!({}), "\"long\": \"map_reduce\""),
        (long, "chunk_tokens, which is 70000"),
        (native, "\"attach\": \"text\""),
    ] {
        let mut rig = Rig::reading(&"tide ".repeat(50_000), more, vec![]).await;
        rig.provider.context(40_000);
        let failure = rig.end().await.0.unwrap_err();
        assert_eq!(failure.kind, FailureType::TooLarge, "{failure}");
        assert!(failure.message.contains("takes 40000; "), "{failure}");
        assert!(failure.message.contains(way_out), "{failure}");
        assert!(rig.caps().is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn the_provider_may_say_it_and_its_words_leave_room_for_the_way_out() {
    let mut said = fails(Kind::TooLarge, Charged::No);
    if let Err(error) = &mut said {
        error.message = "prompt is too long: 212,345 tokens > 200,000 maximum. ".repeat(20);
    }
    // The estimate is just above what the model takes: that decides nothing.
    let mut rig = Rig::reading(&"tide ".repeat(40_000), json!({}), vec![said]).await;
    rig.provider.context(40_000);
    let failure = rig.end().await.0.unwrap_err();
    assert_eq!((failure.kind, rig.caps().len()), (FailureType::TooLarge, 1));
    assert!(failure.message.starts_with("prompt is too long"), "{failure}");
    assert!(failure.message.ends_with("in parts: \"long\": \"map_reduce\""), "{failure}");
    assert!(failure.message.chars().count() <= 500, "as much as a history shows");
}

#[tokio::test]
async fn what_is_answered_already_is_not_read_again() {
    const PAGE: &[u8] = b"<html><body>The tide is high.";
    let store = tempfile::tempdir().unwrap();
    let answers = format!("file://{}", store.path().join("answers").display());
    let mut first = of_file("a.txt", PAGE, json!({}), vec![whole("High.")]).await;
    first.services.answers = Some(Answers::open(&answers).unwrap());
    first.end().await.0.unwrap();
    // As if pages had been missing.
    let question = std::fs::read_dir(store.path().join("answers")).unwrap().next().unwrap();
    let object = std::fs::read_dir(question.unwrap().path()).unwrap().next().unwrap().unwrap();
    let mut kept: Value = serde_json::from_slice(&std::fs::read(object.path()).unwrap()).unwrap();
    kept["missing_pages"] = json!([2, 7]);
    std::fs::write(object.path(), kept.to_string()).unwrap();

    let mut again = of_file("a.html", PAGE, json!({}), vec![]).await;
    again.services.answers = Some(Answers::open(&answers).unwrap());
    let planned = again.readings();
    let outcome = again.end().await.0.unwrap();
    assert_eq!(again.readings(), planned, "no parser is run");
    let result = again.result_of("a.html").unwrap();
    assert_eq!((outcome.reused.reused, &result["answer"]), (1, &json!("High.")));
    assert_eq!(result["missing_pages"], json!([2, 7]), "it says what it was made of");
}
