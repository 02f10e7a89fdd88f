//! Whole batches on a real Temporal server, with scripted activities.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use temporalio_client::WorkflowExecutionStatus;
use temporalio_protos::temporal::api::{
    common::v1::Payload, history::v1::history_event::Attributes,
};
use tidegate_types::Spend;
use tidegate_workflows::contract::{
    self, CallCounts, CutAnswers, DocumentOutcome, FailedDocument, FailureDetails, FailureFacts,
    FailureType, Finished, Taken,
};

use crate::common::{
    Act, Ended, Fake, Gate, NOTHING_FOUND, Rig, assert_each_once, input, json_payload, outcome,
    server, sticky_tasks, until, with_no_cache, with_worker,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_document_is_processed_once_and_the_totals_add_up() {
    let tasks = with_worker(server(), Fake::willing(120, 40), adds_up).await;
    assert_ne!(tasks, Some(0), "a worker remembers its workflows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_document_is_processed_once_where_every_task_replays_its_history() {
    let tasks = with_no_cache(server(), Fake::willing(120, 40), adds_up).await;
    assert!(tasks.is_none_or(|tasks| tasks == 0), "{tasks:?} tasks were kept for a worker");
}

/// Runs a batch of three shards. Returns how many tasks of its workflow were kept for a worker that remembers it.
async fn adds_up(rig: Rig) -> usize {
    let batch = rig.start(&input(&json!({}))).await;
    let result = batch.result().await.unwrap();
    let calls = rig.fake.calls();

    assert!(result.done && !result.paused && result.eta.is_none(), "{result:?}");
    assert_eq!(
        (result.documents, result.totals.succeeded, result.totals.failed, result.totals.skipped),
        (120, 120, 0, 0)
    );
    assert_eq!((result.totals.in_flight, result.totals.spend.provider_calls), (0, 120));
    assert_eq!(
        (result.totals.spend.input_tokens, result.totals.spend.output_tokens),
        (12_000, 1_200)
    );
    assert!((result.totals.spend.cost_usd - 30.0).abs() < 1e-6, "{result:?}");
    assert_eq!(result.output, "file:///data/out/");

    assert_each_once(&calls, 3, 40);
    assert!(calls.seals.iter().all(|seal| seal.failures.is_empty()));
    let [finish] = calls.finishes.as_slice() else {
        panic!("finished {} times", calls.finishes.len())
    };
    assert_eq!(finish.progress, result);
    assert_eq!(calls.plans.len(), 1);
    sticky_tasks(&batch.history().await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_wait_in_the_queue_by_the_priority_of_their_lane_and_the_share_of_their_tenant() {
    with_worker(server(), Fake::willing(3, 3), async |rig| {
        for (lane, tenant, key, beat) in [
            ("interactive", "acme", 1, 10),
            ("batch", "acme", 5, 55),
            ("backfill", "acme", 3, 55),
            ("batch", "default", 5, 55),
        ] {
            let batch = rig.start(&input(&json!({"lane": lane, "tenant": tenant}))).await;
            batch.result().await.unwrap();
            let priorities: Vec<_> = batch
                .shard_history(0)
                .await
                .into_iter()
                .filter_map(|event| match event.attributes {
                    Some(Attributes::ActivityTaskScheduledEventAttributes(scheduled)) => {
                        Some(scheduled)
                    }
                    _ => None,
                })
                .filter(|scheduled| {
                    scheduled.activity_type.as_ref().unwrap().name == "tidegate.process_document"
                })
                .map(|scheduled| {
                    let priority = scheduled.priority.unwrap();
                    let beat = scheduled.heartbeat_timeout.unwrap().seconds;
                    (priority.priority_key, priority.fairness_key, beat)
                })
                .collect();
            // A key that all documents share would order nothing, and cost money.
            let share = if tenant == "default" { "" } else { tenant };
            assert_eq!(priorities, vec![(key, share.to_owned(), beat); 3]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_documents_are_sealed_in_order_and_the_batch_completes() {
    let fake = Fake::new(40, 20, |task| match (task.shard, task.index) {
        (0, 17) => Act::Fail(
            FailureType::InvalidRequest,
            CallCounts { provider_calls: 2, rate_limited: 1, deferrals: 3 },
        ),
        (0, 3) => Act::Fail(FailureType::TooLarge, CallCounts::default()),
        (1, 0) => Act::Fail(
            FailureType::ContentRefused,
            CallCounts { provider_calls: 1, ..CallCounts::default() },
        ),
        _ => Act::Succeed(outcome()),
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert!(result.done);
        assert_eq!((result.totals.succeeded, result.totals.failed), (37, 3));
        assert_eq!(
            (
                result.totals.spend.provider_calls,
                result.totals.spend.rate_limited,
                result.totals.spend.deferrals
            ),
            (37 + 3, 1, 3)
        );

        let mut seals = rig.fake.calls().seals;
        seals.sort_by_key(|seal| seal.shard);
        let failed =
            |shard: u32, index: u32, kind: FailureType, provider_calls: u64| FailedDocument {
                index,
                facts: FailureFacts {
                    error_type: kind.as_str().to_owned(),
                    message: format!("document {index} of shard {shard}"),
                    provider_calls,
                    ..FailureFacts::default()
                },
            };
        assert_eq!(
            seals[0].failures,
            [failed(0, 3, FailureType::TooLarge, 0), failed(0, 17, FailureType::InvalidRequest, 2)]
        );
        assert_eq!(seals[1].failures, [failed(1, 0, FailureType::ContentRefused, 1)]);
    })
    .await;
}

/// Cut answers are counted if they were kept, asked for again, or the only answer; the use of the
/// last kind is part of the spend.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_answers_are_counted_and_their_uris_reported() {
    let raised =
        |raised, raised_cost_usd| CutAnswers { raised, raised_cost_usd, ..CutAnswers::default() };
    let spend = Spend { input_tokens: 300, output_tokens: 30, cost_usd: 0.75, ..Spend::default() };
    let kept = "file:///data/out/_tidegate/kept/a.json".to_owned();
    let details = FailureDetails {
        counts: CallCounts { provider_calls: 3, ..CallCounts::default() },
        discarded: Taken { spend, cuts: raised(2, 0.5) },
        kept: Some(kept.clone()),
        ..FailureDetails::default()
    };
    let fake = Fake::new(10, 10, move |task| match task.index {
        2 => Act::Succeed(DocumentOutcome {
            cuts: CutAnswers { cut: 1, ..CutAnswers::default() },
            ..outcome()
        }),
        4 => Act::Succeed(DocumentOutcome { cuts: raised(1, 0.25), ..outcome() }),
        7 => Act::FailWith(FailureType::Truncated, details.clone()),
        _ => Act::Succeed(outcome()),
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"on_cut": "keep"}))).await;
        let totals = batch.result().await.unwrap().totals;
        assert_eq!((totals.succeeded, totals.failed), (9, 1), "{totals:?}");
        assert_eq!(totals.cuts, CutAnswers { cut: 1, ..raised(3, 0.75) });
        let nine = outcome().spend;
        assert_eq!(totals.spend.provider_calls, 9 * nine.provider_calls + 3);
        assert_eq!(totals.spend.output_tokens, 9 * nine.output_tokens + 30);
        let failures = rig.fake.calls().seals[0].failures.clone();
        assert_eq!((failures[0].index, failures[0].facts.provider_calls), (7, 3));
        assert_eq!(
            (failures[0].facts.error_type.as_str(), &failures[0].facts.kept),
            ("Truncated", &Some(kept))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_counts_what_has_ended_and_what_is_in_flight() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(10, 5, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 4).await;
        until("the batch knows of its full window", async || {
            batch.progress().await.totals.in_flight == 4
        })
        .await;
        gate.pass(4);
        rig.fake.until("the window moves on", |calls| calls.started.len() == 8).await;
        until("the batch knows of four documents", async || {
            batch.progress().await.totals.succeeded == 4
        })
        .await;

        let progress = batch.progress().await;
        assert_eq!(
            (progress.documents, progress.totals.in_flight, progress.done),
            (10, 4, false),
            "{progress:?}"
        );
        assert!(progress.started_at.is_some() && progress.eta.is_some(), "{progress:?}");
        gate.open();
        let result = batch.result().await.unwrap();
        assert_eq!(batch.progress().await.totals, result.totals);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_holds_back_new_documents_until_resume() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(120, 60, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 8}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 8).await;
        batch.pause().await;
        batch.shard_has_signal(0, "pause", 1).await;

        gate.pass(8);
        until("the shard is idle", async || batch.shard_totals(0).await.ended() == 8).await;
        assert_eq!(batch.shard_totals(0).await.in_flight, 0);
        until("the batch knows that nothing is in flight", async || {
            batch.progress().await.totals.in_flight == 0
        })
        .await;
        let progress = batch.progress().await;
        assert!(progress.paused && progress.totals.succeeded == 8, "{progress:?}");
        assert_eq!(rig.fake.calls().started.len(), 8);

        gate.open();
        batch.resume().await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.paused), (120, false));
        assert_each_once(&rig.fake.calls(), 2, 60);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_start_while_the_batch_is_paused_begin_paused() {
    let (planning, gate) = (Gate::default(), Gate::default());
    let fake = Fake::waiting(12, 6, &gate).planning_at(&planning);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("the plan is being made", |calls| calls.plans.len() == 1).await;
        batch.pause().await;
        planning.open();
        for shard in [0, 1] {
            until("a shard starts", async || batch.shard_has_begun(shard).await).await;
            assert_eq!(batch.shard_totals(shard).await.in_flight, 0);
        }
        assert!(rig.fake.calls().started.is_empty());
        gate.open();
        batch.resume().await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 12);
    })
    .await;
}

/// A signal to a shard that has not started is lost, and a shard that misses a resume never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_and_resume_are_sent_only_to_shards_that_have_started() {
    with_worker(server(), Fake::willing(16, 1), async |rig| {
        let batches = (0..6).map(|_| async {
            let batch = rig.start(&input(&json!({}))).await;
            for _ in 0..25 {
                batch.pause().await;
                batch.resume().await;
            }
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 16);
            let mut started = BTreeSet::new();
            let mut signalled = 0;
            for event in batch.history().await {
                match event.attributes {
                    Some(Attributes::ChildWorkflowExecutionStartedEventAttributes(child)) => {
                        started.insert(child.workflow_execution.unwrap().workflow_id);
                    }
                    Some(Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(
                        signal,
                    )) => {
                        signalled += 1;
                        assert!(
                            started.contains(&signal.workflow_execution.unwrap().workflow_id),
                            "signalled before it started"
                        );
                    }
                    _ => {}
                }
            }
            signalled
        });
        let signalled: u32 = futures::future::join_all(batches).await.into_iter().sum();
        assert!(signalled > 0, "the test has met no shard");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_batch_seals_and_reports_what_it_has() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(200, 40, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 16}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 16).await;
        gate.pass(10);
        rig.fake.until("the window moves on", |calls| calls.started.len() == 26).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));

        let calls = rig.fake.calls();
        assert_eq!((calls.started.len(), calls.ended.len()), (26, 26));
        let sealed: BTreeSet<_> = calls.seals.iter().map(|seal| seal.shard).collect();
        assert_eq!((sealed, calls.seals.len()), (BTreeSet::from([0]), 1));
        assert!(
            calls.seals.iter().all(|seal| seal.failures.is_empty()),
            "a cancelled document has not failed"
        );
        let [finish] = calls.finishes.as_slice() else {
            panic!("finished {} times", calls.finishes.len())
        };
        let totals = finish.progress.totals;
        assert_eq!(
            (totals.succeeded, totals.failed, totals.in_flight, totals.spend.provider_calls),
            (10, 0, 0, 10)
        );
        assert_eq!(totals.cancelled, 190, "also those whose shard has not begun");
        assert!(!finish.progress.done);
        assert_eq!(batch.shard_status(0).await, WorkflowExecutionStatus::Canceled);
    })
    .await;
}

/// Documents that wait in Temporal, work, or fail before they notice the cancellation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_documents_of_a_cancelled_batch_count_as_cancelled_and_not_failed() {
    let fake = Fake::new(20, 20, |task| match task.index {
        0 => Act::FailLate { for_good: false },
        1 => Act::FailLate { for_good: true },
        2 => Act::Defer,
        _ => Act::Wait(Gate::default()),
    });
    let finished = Finished { failed: 1, cancelled: 19, ..Finished::default() };
    with_worker(server(), fake.that_finds(finished), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        rig.fake
            .until("a full window", |calls| calls.started.len() == 4 && calls.ended == [(0, 2)])
            .await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.calls();
        assert_eq!(calls.started.len(), 4);
        let [seal] = calls.seals.as_slice() else { panic!("{:?}", calls.seals) };
        let failed: Vec<_> = seal.failures.iter().map(|failed| failed.index).collect();
        assert_eq!(failed, [1], "{seal:?}");
        let totals = calls.finishes[0].progress.totals;
        assert_eq!(
            (totals.failed, totals.cancelled, totals.in_flight, totals.spend.provider_calls),
            (1, 19, 0, 2)
        );
        assert_eq!(batch.shard_totals(0).await, totals);
        let progress = batch.progress().await;
        assert_eq!((progress.totals, progress.documents), (totals, 20));
        assert_eq!(progress.eta, None, "it has ended");
    })
    .await;
}

/// The workflow's own counts may miss the result of an activity that was cancelled meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_counts_what_lies_in_the_output() {
    let finished =
        Finished { succeeded: 7, failed: 1, skipped: 2, cancelled: 0, ..Finished::default() };
    with_worker(server(), Fake::willing(10, 10).that_finds(finished), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        let totals = result.totals;
        assert_eq!((totals.succeeded, totals.failed, totals.skipped), (7, 1, 2));
        assert_eq!((result.done, totals.spend.provider_calls), (true, 10));
        assert_eq!(batch.progress().await, result);
        assert_eq!(rig.fake.calls().finishes.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_has_lost_documents_fails_and_names_them() {
    let finished = Finished {
        succeeded: 7,
        missing: 3,
        first_missing: vec!["a.md".to_owned(), "b.md".to_owned()],
        ..Finished::default()
    };
    with_worker(server(), Fake::willing(10, 10).that_finds(finished), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        match batch.result().await {
            Err(Ended::Failed { kind, message }) => {
                assert_eq!(kind, "DocumentsMissing");
                assert_eq!(message, "3 of 10 documents have neither a result nor a failure in file:///data/out/: a.md, b.md, …; start the batch again: it asks for these alone");
            }
            other => panic!("{other:?}"),
        }
        assert!(!batch.progress().await.done);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cancelled_while_it_is_planned_ends_cancelled() {
    let planning = Gate::default();
    with_worker(server(), Fake::willing(10, 10).planning_at(&planning), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("the plan is being made", |calls| calls.plans.len() == 1).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        assert!(rig.fake.calls().started.is_empty() && rig.fake.calls().finishes.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_batch_can_be_cancelled() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(20, 20, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 2}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 2).await;
        batch.pause().await;
        batch.shard_has_signal(0, "pause", 1).await;
        gate.pass(2);
        until("the shard is idle", async || batch.shard_totals(0).await.ended() == 2).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.calls();
        assert_eq!((calls.seals.len(), calls.finishes[0].progress.totals.succeeded), (1, 2));
    })
    .await;
}

/// Redis may be away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_ends_although_its_paused_flag_cannot_be_written() {
    let (gate, flag) = (Gate::default(), Gate::default());
    let fake = Fake::waiting(4, 20, &gate).with_a_flag_that_waits(&flag);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 2}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 2).await;
        batch.pause().await;
        rig.fake.until("the flag is being written", |calls| calls.marks == [true]).await;
        batch.resume().await;
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 4);
        assert_eq!(rig.fake.calls().marks, [true, false]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_refuses_the_input_fails_the_batch_with_the_same_type_and_message() {
    with_worker(server(), Fake::without_plan(), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        assert_eq!(batch.result().await, Err(invalid(NOTHING_FOUND)));
        assert_eq!((rig.fake.calls().plans.len(), rig.fake.calls().finishes.len()), (1, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_without_documents_completes_at_once() {
    with_worker(server(), Fake::willing(0, 40), async |rig| {
        let result = rig.start(&input(&json!({}))).await.result().await.unwrap();
        assert!(result.done && result.documents == 0, "{result:?}");
        assert_eq!(rig.fake.calls().finishes.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_makes_no_sense_fails_the_batch_with_a_sentence() {
    let null = Payload {
        metadata: [("encoding".to_owned(), b"binary/null".to_vec())].into_iter().collect(),
        ..Payload::default()
    };
    let one = |value: &Value| vec![json_payload(value)];
    let cases: [(Vec<Payload>, &str); 8] = [
        (
            one(&input(&json!({"instuctions": "Summarise."}))),
            "unknown field \"instuctions\"; did you mean \"instructions\"?",
        ),
        (one(&input(&json!({"instructions": " "}))), "instructions is empty"),
        (one(&json!([])), "the input must be a JSON object, not a list"),
        (one(&Value::Null), "the input must be a JSON object, not null"),
        (vec![], "the input must be one JSON object, not nothing; for example --input '{"),
        (vec![null], "the input must be a JSON object, and came as \"binary/null\""),
        (
            vec![json_payload(&input(&json!({}))), json_payload(&json!(1))],
            "the input must be one JSON object, not 2 values",
        ),
        (
            vec![Payload { data: b"{".to_vec(), ..json_payload(&json!({})) }],
            "the input is not JSON: ",
        ),
    ];
    with_worker(server(), Fake::willing(1, 1), async |rig| {
        for (payloads, sentence) in cases {
            match rig.start_raw(payloads).await.result().await {
                Err(Ended::Failed { kind, message }) => {
                    assert_eq!(kind, FailureType::InvalidInput.as_str());
                    assert!(message.starts_with(sentence), "{message}");
                }
                other => panic!("{sentence}: {other:?}"),
            }
        }
        assert!(rig.fake.calls().plans.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_an_operator_terminates_fails_the_batch_after_its_report() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(40, 20, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 40}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 40).await;
        batch.terminate_shard(0).await;
        gate.open();
        match batch.result().await {
            Err(Ended::Failed { kind, message }) => {
                assert_eq!(kind, "ShardFailed");
                assert_eq!(message, "shard 0: Terminated");
            }
            other => panic!("{other:?}"),
        }
        let calls = rig.fake.calls();
        assert_eq!(calls.seals.iter().map(|seal| seal.shard).collect::<Vec<_>>(), [1]);
        let [finish] = calls.finishes.as_slice() else {
            panic!("finished {} times", calls.finishes.len())
        };
        assert!(!finish.progress.done && finish.progress.totals.in_flight == 0, "{finish:?}");
        assert_eq!((finish.progress.totals.succeeded, finish.progress.totals.cancelled), (20, 20));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_cannot_be_sealed_fails_the_batch_and_says_why() {
    with_worker(server(), Fake::willing(30, 10).without_seal_of(1), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let message = "shard 1: the store refused the credentials".to_owned();
        assert_eq!(
            batch.result().await,
            Err(Ended::Failed { kind: "ShardFailed".to_owned(), message })
        );
        let calls = rig.fake.calls();
        assert_eq!(
            (calls.seals.len(), calls.finishes.len(), calls.finishes[0].progress.done),
            (2, 1, false)
        );
        assert_eq!(calls.finishes[0].progress.totals.succeeded, 30);
    })
    .await;
}

fn invalid(message: &str) -> Ended {
    Ended::Failed {
        kind: FailureType::InvalidInput.as_str().to_owned(),
        message: message.to_owned(),
    }
}

/// A batch that was cancelled, and one that has lost documents, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_called_at_every_end_if_the_input_names_one() {
    let named = input(&json!({"webhook": "ours"}));
    with_worker(server(), Fake::willing(4, 2), async |rig| {
        rig.start(&input(&json!({}))).await.result().await.unwrap();
        let batch = rig.start(&named).await;
        let result = batch.result().await.unwrap();
        let calls = rig.fake.until("it is told", |calls| !calls.notified.is_empty()).await;
        let [told] = calls.notified.as_slice() else { panic!("{:?}", calls.notified) };
        assert_eq!((told.webhook.as_str(), told.batch.as_str()), ("ours", batch.id.as_str()));
        assert_eq!((told.status, &told.why), (contract::Ended::Completed, &None));
        assert_eq!(told.progress, result);
        assert!(!told.run.is_empty() && told.finished_at.ends_with('Z'), "{told:?}");
    })
    .await;
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(4, 2, &gate), async |rig| {
        let batch = rig.start(&named).await;
        rig.fake.until("all wait", |calls| calls.started.len() == 4).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.until("it is told", |calls| !calls.notified.is_empty()).await;
        assert_eq!(calls.notified[0].status, contract::Ended::Cancelled);
        assert_eq!(calls.notified[0].progress.totals.cancelled, 4);
    })
    .await;
    let lost = Finished {
        succeeded: 3,
        missing: 1,
        first_missing: vec!["a.md".into()],
        ..Finished::default()
    };
    with_worker(server(), Fake::willing(4, 2).that_finds(lost), async |rig| {
        assert!(rig.start(&named).await.result().await.is_err());
        let calls = rig.fake.until("it is told", |calls| !calls.notified.is_empty()).await;
        assert_eq!(calls.notified[0].status, contract::Ended::Failed);
        assert!(calls.notified[0].why.as_ref().unwrap().contains("a.md"), "{calls:?}");
    })
    .await;
}
