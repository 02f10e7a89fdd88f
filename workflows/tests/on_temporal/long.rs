//! Documents that are read in parts, each in a workflow of its own.

use serde_json::json;
use tidegate_testkit::Temporal;
use tidegate_workflows::contract::{
    DocumentOutcome, FailedDocument, FailureDetails, FailureType, LongHow, Parts, Step,
};

use crate::common::{Act, Ended, Fake, Gate, full_scale, input, outcome, server, with_worker};

fn parts(count: u32) -> Parts {
    Parts { count, text: 1, how: LongHow::MapReduce }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_document_takes_its_steps_in_order() {
    let parts = |how| Parts { count: 12, text: 1, how };
    let fake = Fake::new(2, 2, move |task| {
        let how = if task.index == 0 { LongHow::MapReduce } else { LongHow::PerChunk };
        Act::Succeed(DocumentOutcome { parts: Some(parts(how)), ..DocumentOutcome::default() })
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 1}))).await;
        let result = batch.result().await.unwrap();
        // Twelve parts, then two groups and one group of these; twelve parts listed.
        assert_eq!(
            (result.totals.succeeded, result.totals.spend.provider_calls),
            (2, 15 + 12),
            "{result:?}"
        );
        let steps = rig.fake.calls().parts;
        assert!(
            steps[..12].iter().chain(&steps[15..27]).all(|step| matches!(step, Step::Part(_))),
            "{steps:?}"
        );
        assert_eq!(steps[14], Step::Reduce { level: 2, group: 0, of: 2 });
        assert_eq!(steps[27], Step::Join);
        assert_eq!(rig.fake.calls().seals[0].failures, Vec::<FailedDocument>::new());
    })
    .await;
}

/// Sixty documents of 300 parts have 20,000 steps with three to six events each: in one shard's
/// history, the server would terminate it at 51,200 events. `TIDEGATE_FULL_SCALE=1` runs that
/// batch; otherwise everything is smaller, including the server's limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_history_grows_with_the_parts_of_long_documents() {
    let full = full_scale();
    let (documents, count, bound) = if full { (60, 300, 10_000) } else { (12, 60, 600) };
    let server = if full {
        Temporal::start(&[])
    } else {
        let limits =
            ["limit.historyCount.suggestContinueAsNew=200", "limit.historyCount.error=1500"];
        Temporal::start(&limits)
    };
    let steps = parts(count).calls();
    with_worker(server.as_ref(), Fake::long(documents, 500, parts(count)), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!(
            (result.totals.succeeded, result.totals.spend.provider_calls),
            (documents, documents * steps),
            "{result:?}"
        );
        let of_parts =
            (0..documents).map(|index| format!("{}/shard-00000/document-{index:05}", batch.id));
        let (mut runs, mut longest) = (0, 0);
        for id in std::iter::once(batch.id.clone()).chain(of_parts) {
            for history in batch.histories(&id).await {
                assert!(history.len() <= bound, "{id} has a history of {} events", history.len());
                runs += 1;
                longest = longest.max(history.len());
            }
        }
        // A document of 334 steps fits into one run; with the small server's limits it does not.
        let expected = if full { documents + 1 } else { documents + 2 };
        assert!(runs >= expected, "{runs} runs");
        println!("{documents} documents of {count} parts: {runs} runs, {longest} events at most");
    })
    .await;
}

/// A part fails: no further step begins, and the use of all steps is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_use_of_a_failed_documents_parts_is_reported() {
    let spend = outcome().spend;
    let fake = Fake::long(1, 1, parts(12)).with_steps(move |task| match task.step {
        Step::Part(11) => {
            let mut details = FailureDetails::default();
            (details.counts.provider_calls, details.counts.rate_limited) = (2, 1);
            details.discarded.spend = spend.tokens();
            Act::FailWith(FailureType::InvalidOutput, details)
        }
        _ => Act::Succeed(outcome()),
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        let totals = result.totals;
        assert_eq!((totals.succeeded, totals.failed, totals.in_flight), (0, 1, 0), "{result:?}");
        assert_eq!((totals.spend.provider_calls, totals.spend.rate_limited), (11 + 2, 1));
        assert_eq!((totals.spend.input_tokens, totals.spend.output_tokens), (1_200, 120));
        assert!((totals.spend.cost_usd - 12.0 * 0.25).abs() < 1e-9, "{totals:?}");
        let failures = rig.fake.calls().seals.remove(0).failures;
        assert_eq!(
            (failures[0].facts.error_type.as_str(), failures[0].facts.provider_calls),
            ("InvalidOutput", 13)
        );
        assert!(failures[0].facts.message.contains("Part(11)"), "{failures:?}");
    })
    .await;
}

/// The long document of a cancelled batch does not fail, and its use is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_use_of_a_cancelled_documents_parts_is_reported() {
    let gate = Gate::default();
    let at = gate.clone();
    let fake = Fake::long(1, 1, parts(12)).with_steps(move |task| match task.step {
        Step::Part(0..6) => Act::Succeed(outcome()),
        _ => Act::Wait(at.clone()),
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("four parts wait", |calls| calls.parts.len() == 10).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let totals = rig.fake.calls().finishes[0].progress.totals;
        assert_eq!((totals.failed, totals.cancelled), (0, 1), "{totals:?}");
        assert_eq!((totals.spend.provider_calls, totals.spend.input_tokens), (6, 600));
    })
    .await;
}
