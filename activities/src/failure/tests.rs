use std::time::{Duration, SystemTime};

use tidegate_calls::failure::provider::provider_failure;
use tidegate_providers::{self as providers, Kind};
use tidegate_quota::{Dimension, Hold, Refused, Ticket};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{CallCounts, FailureType, WaitsFor};

use super::*;
use crate::{
    attempt::{Attempt, AttemptState, StoreFaults},
    storage,
};

fn counts(provider_calls: u32, rate_limited: u32) -> CallCounts {
    CallCounts { provider_calls, rate_limited, deferrals: 0 }
}

fn error(kind: Kind) -> providers::Error {
    providers::Error {
        kind,
        message: "m".to_owned(),
        retry_after: None,
        charged: providers::Charged::No,
        status: None,
        timed_out: false,
        span: None,
        observed: Box::default(),
    }
}

/// The longest of many delays of an attempt.
fn longest(failure: &Failure, backoff: Backoff, attempt: u32) -> Duration {
    (0..200).filter_map(|_| failure.retry.delay(backoff, attempt)).max().unwrap()
}

#[test]
fn delays_keep_their_bounds() {
    let backoff = Backoff::default();
    let seven = Duration::from_secs(7);
    for before in 0..40 {
        for _ in 0..50 {
            assert!(backoff.jittered(before, Duration::ZERO) <= backoff.max);
            assert!((seven..=backoff.max).contains(&backoff.jittered(before, seven)));
            assert_eq!(backoff.jittered(before, Duration::from_secs(900)), backoff.max);
        }
    }
    assert!(
        (0..200).any(|_| backoff.jittered(0, Duration::ZERO) < Duration::from_secs(3)),
        "jitter is full"
    );
}

fn activity() -> Attempt {
    Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default())
}

#[test]
fn a_store_that_stays_away_is_asked_ever_less_often_as_configured_until_the_deadline() {
    let failure = || Failure::from(storage::Error::Failed("the store is away".to_owned()));
    let (base, max) = (Duration::from_secs(40), Duration::from_secs(300));
    let backoff = Backoff { base, max, ..Backoff::default() };
    let activity = activity();
    let met = |number| {
        let failure = count_store_fault(failure(), &activity, STORE_DEADLINE);
        assert_eq!(activity.state().document.store.faults, number);
        longest(&failure, backoff, 90)
    };
    let first = met(1);
    assert!(first <= backoff.base, "attempts that only waited for quota do not count: {first:?}");
    assert!(first > Duration::from_secs(30), "the base is [gate]'s");
    let _ = met(2);
    assert!(met(3) > Duration::from_secs(120), "and grows");
    assert!(met(4) > Duration::from_secs(240), "to its bound");
    let delays: Vec<_> = (0..200)
        .map(|_| count_store_fault(failure(), &activity, STORE_DEADLINE))
        .map(|failure| into_application_failure(failure, CallCounts::default(), backoff, 9))
        .map(|sent| sent.next_retry_delay().unwrap())
        .collect();
    assert!(delays.iter().all(|delay| *delay <= backoff.max));
    assert!(delays.iter().any(|delay| *delay > Duration::from_secs(240)), "that Temporal gets too");

    let ended = count_store_fault(failure(), &activity, Duration::ZERO);
    assert_eq!((ended.kind, ended.is_retried()), (FailureType::Transient, false), "{ended}");
    activity.call.count_call();
    assert_eq!(
        activity.state().document.store,
        StoreFaults::default(),
        "it was read: the row is over"
    );
}

#[test]
fn a_deadline_counts_from_the_first_fault_of_a_row() {
    let activity = activity();
    let so_far = activity.store_failed(StoreFault::Busy);
    let first = SystemTime::now();
    let at = |after: Duration| {
        let failure = document_fault(storage::Error::Failed("SlowDown".to_owned()));
        let last = FailureType::UnreadableDocument;
        after_store_faults(failure, last, so_far, STORE_DEADLINE, first + after)
    };
    assert!(at(STORE_DEADLINE - Duration::from_secs(60)).is_retried());
    let ended = at(STORE_DEADLINE + Duration::from_secs(60));
    assert_eq!((ended.kind, ended.is_retried()), (FailureType::UnreadableDocument, false));
    assert_eq!(ended.message, "given up after 24 h: SlowDown");
}

#[test]
fn what_a_store_refuses_is_tried_a_few_times_and_ends_with_a_sentence() {
    let forbidden = || storage::Error::Forbidden("cannot read s3://b/a: 403".to_owned());
    let misconfigured = || storage::Error::Misconfigured("cannot read s3://b/a: 400".to_owned());
    for (failure, last) in [
        (Failure::from as fn(storage::Error) -> Failure, FailureType::InvalidInput),
        (document_fault, FailureType::UnreadableDocument),
        (|error| field_fault("source", error), FailureType::InvalidInput),
    ] {
        for error in [&forbidden as &dyn Fn() -> storage::Error, &misconfigured] {
            let activity = activity();
            for _ in 1..MAX_STORE_REFUSALS {
                // A busy store in between does not count as a refusal.
                let busy = Failure::from(storage::Error::Failed("503".to_owned()));
                assert!(count_store_fault(busy, &activity, STORE_DEADLINE).is_retried());
                let again = count_store_fault(failure(error()), &activity, STORE_DEADLINE);
                assert_eq!((again.kind, again.is_retried()), (FailureType::Transient, true));
            }
            let ended = count_store_fault(failure(error()), &activity, STORE_DEADLINE);
            assert_eq!((ended.kind, ended.is_retried()), (last, false));
            assert!(ended.message.starts_with("given up after 4 tries: "), "{ended}");
            assert!(ended.message.contains("cannot read s3://b/a"), "{ended}");
        }
    }
    let gone = field_fault("source", storage::Error::Missing("s3://b/a".to_owned()));
    assert_eq!((gone.kind, gone.is_retried()), (FailureType::InvalidInput, false), "at once");
}

#[test]
fn every_kind_of_provider_error_has_its_row() {
    #[rustfmt::skip]
    let cases = [
        // kind                 calls so far   expected type                retried
        (Kind::RateLimited,     counts(1, 1),  FailureType::RateLimited,    true),
        (Kind::RateLimited,     counts(90, 90), FailureType::RateLimited,   true),
        (Kind::Overloaded,      counts(1, 0),  FailureType::Overloaded,     true),
        (Kind::Overloaded,      counts(8, 0),  FailureType::Overloaded,     false),
        (Kind::Transient,       counts(7, 0),  FailureType::Transient,      true),
        (Kind::Timeout,         counts(12, 4), FailureType::Transient,      false),
        (Kind::QuotaExhausted,  counts(1, 0),  FailureType::QuotaExhausted, false),
        (Kind::Unauthorized,    counts(1, 0),  FailureType::Unauthorized,   false),
        (Kind::InvalidRequest,  counts(1, 0),  FailureType::InvalidRequest, false),
        (Kind::TooLarge,        counts(1, 0),  FailureType::TooLarge,       false),
        (Kind::ContentRefused,  counts(1, 0),  FailureType::ContentRefused, false),
        (Kind::InvalidOutput,   counts(1, 0),  FailureType::InvalidOutput,  false),
    ];
    for (kind, counts, expected, retried) in cases {
        let failure = Failure::from_provider(&error(kind), &counts);
        assert_eq!((failure.kind, failure.is_retried()), (expected, retried), "{kind:?}");
        let sent = into_application_failure(failure, counts, Backoff::default(), 1);
        assert_eq!(
            (sent.type_name(), sent.is_non_retryable()),
            (Some(expected.as_str()), !retried)
        );
    }
}

#[test]
fn a_providers_faults_grow_by_their_own_count() {
    let backoff = Backoff { base: Duration::from_secs(1), ..Backoff::default() };
    let first = Failure::from_provider(&error(Kind::Transient), &counts(1, 0));
    assert!(longest(&first, backoff, 30) <= backoff.base, "attempts that only waited do not count");
    let fourth = Failure::from_provider(&error(Kind::Transient), &counts(9, 5));
    let delay = longest(&fourth, backoff, 1);
    assert!((Duration::from_secs(6)..=Duration::from_secs(8)).contains(&delay), "{delay:?}");
    let asked = providers::Error { retry_after: Some(backoff.max * 9), ..error(Kind::RateLimited) };
    let asked = Failure::from_provider(&asked, &counts(1, 1));
    assert_eq!(asked.retry.delay(backoff, 1), Some(backoff.max));
}

#[test]
fn a_batch_apis_failure_is_never_final() {
    let backoff = Backoff::default();
    for attempt in [1, 3, 80] {
        let refused = Failure::from_batch_api(&error(Kind::InvalidRequest), attempt);
        assert_eq!(refused.retry.delay(backoff, attempt), Some(backoff.max));
        assert!(Failure::from_batch_api(&error(Kind::Overloaded), attempt).is_retried());
    }
}

#[test]
fn an_open_circuit_is_come_back_to_when_it_may_be_tried() {
    let open = Duration::from_secs(5);
    let failure = Failure::circuit_open(&"a:b".parse().unwrap(), open, None);
    for _ in 0..50 {
        let delay = failure.retry.delay(Backoff::default(), 1).unwrap();
        assert!((open..=open * 2).contains(&delay), "{delay:?}");
    }
}

#[test]
fn waiting_for_quota_is_benign_ends_in_time_and_says_for_what() {
    let model: ModelId = "a:b".parse().unwrap();
    let ticket = Ticket { epoch: 1, position: 1 };
    let closed =
        Refused::GateClosed { model: model.clone(), wait: Duration::from_secs(500), ticket };
    let details = |refused: &Refused, delay: Duration| {
        let failure = Failure::refused(refused);
        let sent =
            into_application_failure(failure.clone(), CallCounts::default(), Backoff::default(), 7);
        assert_eq!(sent.next_retry_delay(), Some(delay));
        assert_eq!(sent.category(), ApplicationErrorCategory::Benign);
        assert!(!sent.is_non_retryable());
        failure.waits_for
    };
    assert_eq!(details(&closed, Duration::from_secs(60)), Some(WaitsFor::Gate));
    let (levels, windows) = (Dimension::ALL.map(Hold::Level), Dimension::ALL.map(Hold::Window));
    let others = [Hold::InFlight, Hold::Turn, Hold::Lane, Hold::Probe];
    for hold in levels.into_iter().chain(windows).chain(others) {
        let (wait, ticket) = (Duration::from_secs(20), Ticket { epoch: 1, position: 1 });
        let refused =
            Refused::Wait { model: model.clone(), wait, hold, deficit: 1, ticket, turn: wait };
        let waits_for = details(&refused, Duration::from_millis(16_300)).unwrap();
        assert_eq!(waits_for.as_str(), hold.name());
    }
    // The wait for a far turn may be longer than that after a fault, but is bounded.
    let far = |seconds| Refused::Wait {
        model: model.clone(),
        wait: Duration::from_secs(seconds),
        hold: Hold::Turn,
        deficit: 1,
        ticket: Ticket { epoch: 1, position: 1 },
        turn: Duration::from_secs(seconds),
    };
    details(&far(200), Duration::from_millis(189_500));
    details(&far(2_000), Duration::from_secs(300));
}

#[test]
fn what_moves_a_cursor_is_escaped() {
    let failure = Failure::invalid_input("a\u{1b}]0;title\u{7}b\nc\rd");
    let told = into_application_failure(failure, counts(0, 0), Backoff::default(), 1);
    assert_eq!(told.to_string(), "a\\u{1b}]0;title\\u{7}b\nc\\rd");
}

#[test]
fn messages_are_cut() {
    let long = Failure::never(FailureType::Transient, "ä".repeat(5_000));
    let long = into_application_failure(long, CallCounts::default(), Backoff::default(), 1);
    assert_eq!(long.to_string().chars().filter(|c| *c == 'ä').count(), MAX_MESSAGE_CHARS);
}

#[test]
fn a_cut_answer_without_more_room_is_truncated() {
    for (kind, room) in [
        (FailureType::BudgetExceeded, false),
        (FailureType::TooLarge, false),
        (FailureType::InvalidRequest, false),
        (FailureType::ContentRefused, true),
        (FailureType::QuotaExhausted, true),
    ] {
        let failure = Failure::never(kind, "why").without_room();
        let expected = if room { kind } else { FailureType::Truncated };
        assert_eq!((failure.kind, failure.is_retried()), (expected, false));
        assert!(failure.message.contains("why"));
    }
    let again = Failure::never(FailureType::TooLarge, "m").at_another_model();
    assert_eq!(again.clone().without_room(), again, "another model is asked first");
    let short = |is_empty, room| Shortfall { is_empty, room };
    let (first, last) = (Failure::cut(short(false, 100)), Failure::truncated(short(true, 1_600)));
    assert!(first.message.starts_with("the answer was cut at 100 output tokens; "));
    assert!(last.message.starts_with("the answer is empty (it had 1600 output tokens); raise"));
    assert_eq!((first.kind, first.is_retried()), (FailureType::Truncated, true));
    assert_eq!((last.kind, last.is_retried()), (FailureType::Truncated, false));
}

/// Programs in other languages see only the name.
#[test]
fn a_kind_has_the_name_of_its_failure() {
    for kind in [
        Kind::RateLimited,
        Kind::Overloaded,
        Kind::Transient,
        Kind::Timeout,
        Kind::QuotaExhausted,
        Kind::Unauthorized,
        Kind::InvalidRequest,
        Kind::UnknownModel,
        Kind::Unsupported,
        Kind::OutputCapTooLarge,
        Kind::Unreachable,
        Kind::TooLarge,
        Kind::ContentRefused,
        Kind::InvalidOutput,
    ] {
        assert_eq!(provider_failure(kind).as_str(), kind.failure());
    }
}

/// Whatever a document does to its worker, it does not go round the fleet for ever; and it
/// survives some workers that are killed for another reason.
#[tokio::test]
async fn what_was_under_way_at_each_of_five_deaths_is_not_tried_again() {
    let mut state = AttemptState::default();
    for number in 1..=6 {
        state.call.progress = state.call.progress.resumed_by(number);
        let attempt = Attempt::new("r".to_owned(), "b".to_owned(), 0, state.clone());
        let work = std::future::ready(Ok(()));
        let ended = unless_deadly(&attempt, document_kills_its_worker, work).await;
        match number {
            6 => {
                let failure = ended.unwrap_err();
                assert_eq!(failure.kind, FailureType::UnreadableDocument);
                assert!(failure.message.starts_with("5 workers died"), "{failure}");
            }
            _ => ended.unwrap(),
        }
    }
}
