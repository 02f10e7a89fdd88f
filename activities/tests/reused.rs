//! Answers that batches share.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use rig::{Rig, cut, whole};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_activities::output::answers::Answers;
use tidegate_providers::{Completion, Error};

type Answer = Result<Completion, Error>;

/// A batch of its own, which shares answers with others.
async fn batch(store: &TempDir, text: &str, more: Value, answers: Vec<Answer>) -> Rig {
    let mut rig = Rig::reading(text, more, answers).await;
    let prefix = format!("file://{}", store.path().join("answers").display());
    rig.services.answers = Some(Answers::open(&prefix).unwrap());
    rig
}

#[tokio::test]
async fn the_same_question_about_the_same_content_is_bought_once() {
    const TEXT: &str = "The tide is high.";
    let store = tempfile::tempdir().unwrap();
    let mut first = batch(&store, TEXT, json!({}), vec![cut("H"), whole("High.")]).await;
    first.end().await.0.unwrap();
    let bought = first.result().unwrap();

    let mut again = batch(&store, TEXT, json!({}), vec![]).await;
    let outcome = again.end().await.0.unwrap();
    let result = again.result().unwrap();
    assert_eq!((&result["answer"], &result["provider_calls"]), (&json!("High."), &json!(0)));
    assert_eq!(
        (&result["question"], &result["content"]),
        (&bought["question"], &bought["content"])
    );
    assert!(result["uri"] != bought["uri"] && result["cost_usd"] == json!(0.0), "{result}");
    assert_eq!((outcome.reused.reused, outcome.spend.provider_calls), (1, 0));
    assert!(outcome.reused.saved_usd > 0.0, "both calls of the first are saved");
    assert_eq!(Some(outcome.reused.saved_usd), bought["cost_usd"].as_f64());

    let other_question = json!({"instructions": "How high?"});
    for (text, more) in [(TEXT, other_question), ("The tide is low.", json!({}))] {
        let mut other = batch(&store, text, more, vec![whole("Two feet.")]).await;
        let outcome = other.end().await.0.unwrap();
        assert_eq!((outcome.reused.reused, outcome.spend.provider_calls), (0, 1));
    }
}

#[tokio::test]
async fn what_is_not_whole_is_not_shared() {
    let (store, keep) = (tempfile::tempdir().unwrap(), json!({"on_cut": "keep"}));
    for _ in 0..2 {
        let mut rig = batch(&store, "Ebb.", keep.clone(), vec![cut("E")]).await;
        let outcome = rig.end().await.0.unwrap();
        assert_eq!((outcome.reused.reused, outcome.cuts.cut), (0, 1));
    }
}

#[tokio::test]
async fn a_store_that_fails_costs_no_document() {
    let store = tempfile::tempdir().unwrap();
    std::fs::write(store.path().join("answers"), "no folder").unwrap();
    let mut rig = batch(&store, "Ebb.", json!({}), vec![whole("Low.")]).await;
    let outcome = rig.end().await.0.unwrap();
    assert_eq!((outcome.reused.reused, outcome.spend.provider_calls), (0, 1));
}
