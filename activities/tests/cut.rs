//! Answers that are cut, empty or wrong: asked for again with a higher cap or with what was wrong, and
//! stored where no better answer comes. With a scripted provider, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use rig::{Rig, cut, fails, says, whole};
use serde_json::{Value, json};
use tidegate_activities::{
    document::long,
    output::{finish, seal},
};
use tidegate_providers::{Charged, Kind, StopReason};
use tidegate_types::Usage;
use tidegate_workflows::contract::{
    CutAnswers, FailureType, Finish, PartTask, Progress, SealShard, Step,
};

#[tokio::test]
async fn a_cut_answer_is_asked_for_again_with_more_room_and_all_of_it_counts() {
    let answers = vec![cut("The ti"), whole(" \n"), whole("The tide is high.")];
    let mut rig = Rig::new(json!({}), answers).await;
    let outcome = rig.end().await.0.unwrap();
    assert_eq!(rig.caps(), [100, 400, 1_600], "an empty answer is cut, too");
    let result = rig.result().unwrap();
    assert_eq!(
        (&result["answer"], &result["finish"], &result["provider_calls"]),
        (&json!("The tide is high."), &json!("complete"), &json!(3))
    );
    assert_eq!((&result["input_tokens"], &result["output_tokens"]), (&json!(3_000), &json!(300)));
    let cost = result["cost_usd"].as_f64().unwrap();
    let CutAnswers { cut, raised, raised_cost_usd, .. } = outcome.cuts;
    assert_eq!((cut, raised), (0, 2));
    assert!(cost > 0.0 && (raised_cost_usd - cost * 2.0 / 3.0).abs() < 1e-9, "{raised_cost_usd}");
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (3, 300));
    assert!(!rig.folder.path().join("out/_tidegate/kept/a.txt.json").exists(), "needless now");
}

#[tokio::test]
async fn what_is_still_cut_fails_and_what_came_is_kept() {
    let mut rig = Rig::new(json!({}), vec![cut("The"), cut("The ti"), cut("The tide")]).await;
    let (ended, details) = rig.end().await;
    assert_eq!(rig.caps(), [100, 400, 1_600]);
    let failure = ended.unwrap_err();
    assert_eq!((failure.kind, rig.result()), (FailureType::Truncated, None));
    assert!(failure.message.contains("1600") && failure.message.contains("max_output_tokens"));
    let kept = Rig::at(&details.kept.unwrap());
    assert_eq!((&kept["answer"], &kept["finish"]), (&json!("The tide"), &json!("cut")));
    assert_eq!((details.counts.provider_calls, details.discarded.spend.output_tokens), (3, 300));
    assert_eq!(details.discarded.cuts.raised, 2);
}

#[tokio::test]
async fn where_more_room_cannot_be_had_the_cut_answer_is_what_there_is() {
    let mut refused =
        Rig::new(json!({}), vec![cut("The ti"), fails(Kind::InvalidRequest, Charged::No)]).await;
    let mut large =
        Rig::new(json!({}), vec![cut("The ti"), fails(Kind::TooLarge, Charged::No)]).await;
    for rig in [&mut refused, &mut large] {
        let (ended, details) = rig.end().await;
        let failure = ended.unwrap_err();
        assert_eq!(failure.kind, FailureType::Truncated, "{failure}");
        assert!(failure.message.contains("it cannot get more room"), "{failure}");
        assert_eq!(Rig::at(&details.kept.unwrap())["answer"], json!("The ti"));
    }
    assert_eq!(refused.caps(), [100, 400], "and is not asked for again");
}

#[tokio::test]
async fn the_batch_may_keep_cut_answers_or_fail_at_once() {
    let mut rig = Rig::new(json!({"on_cut": "keep"}), vec![cut("The ti")]).await;
    let outcome = rig.end().await.0.unwrap();
    let result = rig.result().unwrap();
    assert_eq!((&result["answer"], &result["finish"]), (&json!("The ti"), &json!("cut")));
    assert_eq!((outcome.cuts.cut, outcome.cuts.raised), (1, 0));

    let mut rig = Rig::new(json!({"on_cut": "fail"}), vec![cut("The ti")]).await;
    let (ended, details) = rig.end().await;
    assert_eq!((ended.unwrap_err().kind, rig.caps().len()), (FailureType::Truncated, 1));
    assert_eq!(Rig::at(&details.kept.unwrap())["answer"], json!("The ti"));

    let schema = json!({"on_cut": "keep", "schema": {"type": "object"}});
    let mut rig = Rig::new(schema, vec![cut("{\"a\":")]).await;
    let failure = rig.end().await.0.unwrap_err();
    assert_eq!(failure.kind, FailureType::Truncated, "half an object is no answer: {failure}");
}

#[tokio::test]
async fn a_wrong_answer_is_told_what_was_wrong_and_then_kept() {
    let schema = json!({"schema": {"type": "object", "required": ["tide"]}});
    let answers = vec![whole("{\"secret\":1}"), whole("{\"tide\":\"high\"}")];
    let mut rig = Rig::new(schema.clone(), answers).await;
    rig.end().await.0.unwrap();
    let asked = rig.provider.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, "Sum up.");
    assert!(asked[1].1.starts_with("Sum up.\n\n") && asked[1].1.contains("\"tide\" is a required"));
    assert!(!asked[1].1.contains("secret"));
    assert_eq!(rig.result().unwrap()["output_tokens"], json!(200), "both are paid for");

    let mut rig = Rig::new(schema, vec![whole("{}"), whole("{\"ti\":0}")]).await;
    let (ended, details) = rig.end().await;
    assert_eq!((ended.unwrap_err().kind, rig.caps()), (FailureType::InvalidOutput, vec![100; 2]));
    assert_eq!(Rig::at(&details.kept.unwrap())["answer"], json!("{\"ti\":0}"));
    assert_eq!(details.discarded.spend.output_tokens, 200);
}

#[tokio::test]
async fn an_unknown_end_is_a_result_that_says_so() {
    let unknown = StopReason::Other("tide_out".to_owned());
    let mut rig = Rig::new(json!({}), vec![says("The tide is high.", unknown)]).await;
    let outcome = rig.end().await.0.unwrap();
    let result = rig.result().unwrap();
    assert_eq!(
        (&result["finish"], &result["stop_reason"]),
        (&json!("unknown"), &json!("tide_out"))
    );
    assert_eq!(outcome.cuts, CutAnswers::default());

    let sealed = SealShard { job: rig.plan.job.clone(), shard: 0, failures: Vec::new() };
    seal::seal(&rig.services.storage, &rig.services.shards, &sealed).await.unwrap();
    let output = format!("file://{}/out/", rig.folder.path().display());
    let (plan, progress) = (rig.plan.clone(), Progress::default());
    let end = Finish { plan, output, progress };
    finish::finish(&rig.services.storage, &end).await.unwrap();
    let report = std::fs::read(rig.folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["unknown_stop_reasons"], json!({"tide_out": 1}));
}

#[tokio::test]
async fn an_answer_that_broke_off_is_paid_for_and_counted() {
    let usage = Usage { uncached_input: 1_000, output: 100, ..Usage::default() };
    let broken = || fails(Kind::Transient, Charged::Usage(usage));
    let mut rig = Rig::new(json!({}), vec![broken(), whole("The tide is high.")]).await;
    let outcome = rig.end().await.0.unwrap();
    assert_eq!((outcome.spend.provider_calls, outcome.spend.output_tokens), (2, 200));
    assert_eq!(rig.result().unwrap()["output_tokens"], json!(200));
    assert_eq!((rig.caps(), outcome.cuts), (vec![100; 2], CutAnswers::default()));
    // The server was killed before it knew of this: the next attempt begins without a state.
    (rig.attempts, rig.state) = (0, json!({}));
    let again = rig.end().await.0.unwrap();
    assert_eq!((again.spend.provider_calls, again.spend.output_tokens), (2, 200));
    assert!(!again.skipped);

    let refused = fails(Kind::ContentRefused, Charged::Usage(usage));
    let mut rig = Rig::new(json!({}), vec![refused]).await;
    let (ended, details) = rig.end().await;
    assert_eq!(ended.unwrap_err().kind, FailureType::ContentRefused);
    assert!(details.discarded.spend.cost_usd > 0.0 && details.kept.is_none(), "{details:?}");
}

/// Its answer from a provider's batch was cut: one raise is used.
#[tokio::test]
async fn a_document_may_begin_raised() {
    let mut rig = Rig::new(json!({}), vec![cut("The"), cut("The ti")]).await;
    rig.task.raised = true;
    let (ended, _) = rig.end().await;
    assert_eq!((ended.unwrap_err().kind, rig.caps()), (FailureType::Truncated, vec![400, 1_600]));
}

#[tokio::test]
async fn a_result_of_cut_parts_is_cut() {
    let long = json!({"on_cut": "keep", "long": {"how": "per_chunk", "chunk_tokens": 50}});
    let text = "The harbour master writes about the tide and the ships. ".repeat(8);
    let answers = vec![whole("One."), cut("Tw"), whole("Three.")];
    let mut rig = Rig::reading(&text, long, answers).await;
    let parts = rig.end().await.0.unwrap().parts.unwrap();
    let steps = (0..parts.count).map(Step::Part).chain([Step::Join]);
    let (mut counted, mut spent) = (0, tidegate_types::Spend::default());
    for step in steps {
        rig.state = json!({});
        rig.provider.answers.lock().unwrap().push_back(whole("More."));
        let task = PartTask { document: rig.task.clone(), parts, step, spent };
        let attempt = rig.attempt();
        let outcome = long::process(&rig.services, &attempt, &task).await.unwrap();
        counted += outcome.cuts.cut;
        spent += outcome.spend;
    }
    let result = rig.result().unwrap();
    assert_eq!((counted, &result["finish"]), (1, &json!("cut")), "a document, not a part");
    assert_eq!(result["stop_reason"], json!("max_tokens"));
    assert!(result["parts"].as_array().unwrap().len() > 1);
}

#[tokio::test]
async fn a_model_that_writes_no_more_is_asked_for_no_more() {
    let mut rig = Rig::new(json!({}), vec![cut("The"), cut("The ti")]).await;
    rig.provider.cap(250);
    let failure = rig.end().await.0.unwrap_err();
    assert_eq!((failure.kind, rig.caps()), (FailureType::Truncated, vec![100, 250]));
    assert!(failure.message.contains("all that anthropic:claude-sonnet-5-5 writes"), "{failure}");
}

/// The first two answers were cut: the cap is too small for the question.
#[tokio::test]
async fn where_many_are_cut_later_documents_begin_with_more_room() {
    let refused = fails(Kind::InvalidRequest, Charged::No);
    let answers =
        vec![cut("a"), whole("A."), cut("b"), whole("B."), whole("C."), refused, whole("D.")];
    let mut rig =
        Rig::with_documents(&["One.", "Two.", "Three.", "Four."], json!({}), answers).await;
    let mut cuts = Vec::new();
    for _ in 0..4 {
        let outcome = rig.end().await.0.unwrap();
        cuts.push((outcome.cuts.raised, outcome.cuts.began_raised));
        rig.next_document();
    }
    assert_eq!(cuts, [(1, 0), (1, 0), (0, 1), (0, 0)]);
    let caps = rig.caps();
    assert_eq!(caps[..5], [100, 400, 100, 400, 400]);
    assert_eq!(caps[5..], [400, 100], "where that much cannot be had, as the batch states");
}

#[tokio::test]
async fn who_keeps_cut_answers_gets_no_more_room() {
    let answers = vec![cut("a"), cut("b"), cut("c"), cut("d")];
    let mut rig =
        Rig::with_documents(&["One.", "Two.", "Three."], json!({"on_cut": "keep"}), answers).await;
    for _ in 0..3 {
        rig.end().await.0.unwrap();
        rig.next_document();
    }
    assert_eq!(rig.caps(), [100; 3]);
}
