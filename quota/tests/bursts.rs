//! How much may go at once, where that is learned: slow start, headers, buckets, refusals. Kept by
//! both stores.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::{collections::BTreeSet, time::Duration};

use common::{Rig, SECOND, both_stores, lanes, limits, model, model_with_lanes};
use tidegate_quota::{
    Amounts, Decision, Limits, ModelQuota, Options, PerDimension, Quota, Refused, Request, Store,
    store::{Ask, Meter, ProviderSignal, Settlement},
};
use tidegate_types::Usage;

/// A thousand tokens are a second's worth.
const LIMIT: u64 = 60_000;

both_stores! {
    an_even_pace_stays_even(model(even()));
    a_burst_grows_while_nothing_is_refused(model(learned()));
    nothing_grows_far_before_a_call_has_come_back(model(learned()));
    a_refused_burst_is_remembered_and_tried_again_after_weeks(model(learned()));
    headers_say_how_much_may_go_at_once(model(learned()));
    headers_free_what_the_provider_has_forgotten(model(learned()));
    a_header_from_before_says_nothing_of_what_went_since(model(learned()));
    a_header_of_a_burst_knows_only_what_came_before(model(bucket()));
    of_the_headers_of_a_burst_the_one_that_tells_most_came_last(model(learned()));
    resets_say_that_a_provider_refills_evenly(model(learned()));
    resets_of_another_kind_prove_no_bucket(model(learned()));
    a_known_bucket_may_be_emptied_while_it_refills(model(bucket()));
    a_refusal_makes_a_bucket_unknown(model(bucket()));
    a_refusal_by_a_bucket_that_is_nearly_spent_says_that_nothing_is_left(model(bucket()));
    a_known_bucket_is_emptied_by_a_batch_at_once(model(bucket()));
    a_burst_leaves_the_share_of_a_lane_that_was_seen_lately(shared());
    a_burst_leaves_nothing_for_lanes_that_nobody_uses(shared());
    a_batch_is_done_when_an_unknown_bucket_allows_it(model(learned()));
    a_store_that_was_lost_under_a_working_fleet_grows_nothing_for_a_window(model(learned()));
}

fn even() -> Limits {
    even_of(LIMIT)
}

fn even_of(limit: u64) -> Limits {
    Limits { burst: Duration::from_secs(1), ..limits(limit) }
}

fn learned() -> Limits {
    Limits { burst_max: Some(Duration::from_secs(60)), ..even() }
}

fn bucket() -> Limits {
    Limits { token_bucket: true, ..learned() }
}

fn shared() -> ModelQuota {
    model_with_lanes(bucket(), lanes(&[("batch", 0.7, 1.0), ("interactive", 0.3, 1.0)]))
}

/// Asks with as many callers as want to, every 50 ms, and says how many tokens were admitted.
async fn saturate<S: Store>(rig: &Rig<S>, length: Duration) -> u64 {
    let (end, mut admitted, mut turn) = (rig.now() + micros(length), 0, None);
    while rig.now() < end {
        match rig.reserve(&Ask { ticket: turn, ..rig.ask(400) }).await {
            Decision::Granted => (admitted, turn) = (admitted + 400, None),
            Decision::Wait { ticket, .. } => {
                turn = Some(ticket);
                rig.advance(Duration::from_millis(50));
            }
            other => panic!("{other:?}"),
        }
    }
    admitted
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// One call that has come back, so that calls are known to succeed; its headers say so much is
/// used.
async fn come_back<S: Store>(rig: &Rig<S>, told: Option<u64>) {
    let ask = rig.ask(100);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    rig.advance(Duration::from_millis(100));
    ended(rig, &ask, told).await;
}

/// Headers that say the same for some seconds, after which all that they show is believed.
async fn come_back_often<S: Store>(rig: &Rig<S>, told: u64) {
    for _ in 0..4 {
        rig.advance(Duration::from_millis(500));
        come_back(rig, Some(told)).await;
    }
}

async fn ended<S: Store>(rig: &Rig<S>, ask: &Ask, told: Option<u64>) {
    told_with_reset(rig, ask, told, None).await;
}

async fn told_with_reset<S: Store>(
    rig: &Rig<S>,
    ask: &Ask,
    told: Option<u64>,
    reset: Option<Duration>,
) {
    let combined = |told| PerDimension { combined: told, ..PerDimension::default() };
    let meter = Meter {
        used: combined(told),
        limits: combined(reset.map(|_| LIMIT)),
        resets: PerDimension { combined: reset, ..PerDimension::default() },
    };
    let settlement = Settlement { meter, ..Settlement::used(&ask.reservation, ask.amounts) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

async fn refused<S: Store>(rig: &Rig<S>, reservation: &str) {
    let settlement = Settlement {
        signal: ProviderSignal::Refused,
        ..Settlement::used(reservation, Amounts::call(0, 0))
    };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

async fn an_even_pace_stays_even<S: Store>(rig: &Rig<S>) {
    come_back(rig, Some(0)).await;
    let admitted = saturate(rig, Duration::from_secs(20)).await;
    assert!((20_000..=23_000).contains(&admitted), "{admitted}");
}

async fn a_burst_grows_while_nothing_is_refused<S: Store>(rig: &Rig<S>) {
    come_back(rig, None).await;
    let first = saturate(rig, Duration::from_secs(2)).await;
    assert!(first <= 5_000, "a few seconds' worth goes at first: {first}");
    let admitted = first + saturate(rig, Duration::from_secs(12)).await;
    assert!(admitted >= 40_000, "14 s of an even pace are 15,000; there were {admitted}");
    let all = admitted + saturate(rig, Duration::from_secs(45)).await;
    assert!(all <= LIMIT, "and never more than a window holds: {all}");
    rig.advance(Duration::from_secs(120));
    let at_once = saturate(rig, Duration::from_millis(50)).await;
    assert!(at_once >= 50_000, "after a silence what was learned goes at once: {at_once}");
}

async fn nothing_grows_far_before_a_call_has_come_back<S: Store>(rig: &Rig<S>) {
    let admitted = saturate(rig, Duration::from_secs(15)).await;
    assert!((20_000..=27_000).contains(&admitted), "ten seconds ahead at most: {admitted}");
}

async fn a_refused_burst_is_remembered_and_tried_again_after_weeks<S: Store>(rig: &Rig<S>) {
    come_back(rig, None).await;
    saturate(rig, Duration::from_secs(5)).await;
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask.reservation).await;
    rig.advance(Duration::from_secs(3_600));
    let at_once = saturate(rig, Duration::from_secs(10)).await;
    assert!(at_once <= 18_000, "an hour later: {at_once}");
    rig.advance(Duration::from_secs(20 * 86_400));
    come_back(rig, None).await;
    let later = saturate(rig, Duration::from_secs(15)).await;
    assert!(later > at_once + 7_000, "weeks later more is tried: {later} after {at_once}");
}

/// Ten seconds' worth after the first answer, and twice as much after each later one.
async fn headers_say_how_much_may_go_at_once<S: Store>(rig: &Rig<S>) {
    come_back(rig, Some(20_000)).await;
    let at_first = saturate(rig, Duration::from_millis(50)).await;
    assert!((9_000..=12_000).contains(&at_first), "{at_first}");
    rig.advance(Duration::from_secs(120));
    come_back_often(rig, 20_000).await;
    let at_once = saturate(rig, Duration::from_millis(50)).await;
    assert!((34_000..=40_000).contains(&at_once), "40,000 are left: {at_once}");
}

async fn headers_free_what_the_provider_has_forgotten<S: Store>(rig: &Rig<S>) {
    come_back_often(rig, 100).await;
    come_back(rig, Some(100)).await;
    saturate(rig, Duration::from_secs(1)).await;
    rig.advance(Duration::from_secs(20));
    let last = rig.ask(100);
    assert_eq!(rig.reserve(&last).await, Decision::Granted);
    let rest = saturate(rig, Duration::from_millis(50)).await;
    assert!(rest <= 2_500, "our window is full: {rest}");
    rig.advance(Duration::from_secs(2));
    // Refilled by a third since; our window still holds everything.
    ended(rig, &last, Some(38_000)).await;
    rig.advance(Duration::from_millis(500));
    let more = saturate(rig, Duration::from_secs(1)).await;
    assert!((10_000..=22_000).contains(&more), "{more}");
}

/// The answer to a call that began before the burst tells of an empty meter; the burst is not in it.
async fn a_header_from_before_says_nothing_of_what_went_since<S: Store>(rig: &Rig<S>) {
    let early = rig.ask(100);
    rig.reserve(&early).await;
    rig.advance(Duration::from_millis(100));
    come_back_often(rig, 200).await;
    let burst = saturate(rig, Duration::from_millis(50)).await;
    assert!(burst > 50_000, "{burst}");
    rig.advance(Duration::from_secs(1));
    ended(rig, &early, Some(100)).await;
    let more = saturate(rig, Duration::from_millis(50)).await;
    assert!(more <= 2_500, "the rest of the window: {more}");
}

/// All calls of a burst were admitted at once, and the first of them came to the provider first.
async fn a_header_of_a_burst_knows_only_what_came_before<S: Store>(rig: &Rig<S>) {
    come_back_often(rig, 100).await;
    let first = rig.ask(100);
    rig.reserve(&first).await;
    let burst = saturate(rig, Duration::from_millis(50)).await;
    assert!(burst > 50_000, "{burst}");
    rig.advance(Duration::from_secs(1));
    ended(rig, &first, Some(300)).await;
    let more = saturate(rig, Duration::from_millis(50)).await;
    assert!(more <= 2_500, "the rest of the bucket: {more}");
}

/// Two calls that have come back with the whole burst in their headers, or with less where they
/// were the first of it.
async fn of_the_headers_of_a_burst_the_one_that_tells_most_came_last<S: Store>(rig: &Rig<S>) {
    come_back_often(rig, 100).await;
    let (first, last) = (rig.ask(100), rig.ask(100));
    rig.reserve(&first).await;
    let mut burst = Vec::new();
    for _ in 0..100 {
        let ask = rig.ask(500);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        burst.push(ask);
    }
    rig.reserve(&last).await;
    rig.advance(Duration::from_secs(20));
    ended(rig, &last, Some(30_300)).await;
    for ask in &burst {
        ended(rig, ask, None).await;
    }
    rig.advance(Duration::from_secs(1));
    // All have been answered, and what was told last is what is used.
    ended(rig, &first, Some(200)).await;
    let more = saturate(rig, Duration::from_millis(50)).await;
    assert!((20_000..=30_000).contains(&more), "{more}");
}

/// A bucket that is found out by its resets is its level from then on, whether or not headers come.
async fn resets_say_that_a_provider_refills_evenly<S: Store>(rig: &Rig<S>) {
    let at_levels = async |levels: [u64; 2]| {
        for used in levels {
            let ask = rig.ask(100);
            assert_eq!(rig.reserve(&ask).await, Decision::Granted);
            rig.advance(Duration::from_millis(600));
            let reset = Duration::from_millis(used);
            told_with_reset(rig, &ask, Some(used), Some(reset)).await;
        }
    };
    at_levels([600, 16_000]).await;
    let mut level = 60_000.0 - 16_000.0;
    let mut all = 0;
    for _ in 0..60 {
        let admitted = saturate(rig, Duration::from_secs(1)).await;
        level = f64::min(60_000.0, level + 1_000.0) - f64::from(u32::try_from(admitted).unwrap());
        assert!(level >= 0.0, "the provider's bucket is overdrawn after {all}");
        all += admitted;
    }
    assert!(all >= 90_000, "what was left, and the refill: {all}");
}

/// A minute that ends tells a bucket's time at one level by chance, but at no other.
async fn resets_of_another_kind_prove_no_bucket<S: Store>(rig: &Rig<S>) {
    for (used, reset) in [(600, 600), (16_000, 44_000), (20_000, 20_000), (29_000, 29_000)] {
        let ask = rig.ask(100);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_millis(600));
        let reset = Duration::from_millis(reset);
        told_with_reset(rig, &ask, Some(used), Some(reset)).await;
    }
    let mut all = 0;
    for _ in 0..58 {
        all += saturate(rig, Duration::from_secs(1)).await;
    }
    assert!(all <= LIMIT, "no more than a window holds: {all}");
}

async fn a_known_bucket_may_be_emptied_while_it_refills<S: Store>(rig: &Rig<S>) {
    come_back(rig, Some(100)).await;
    let mut level = 60_000.0 - 100.0;
    let mut all = 0;
    for _ in 0..60 {
        let admitted = saturate(rig, Duration::from_secs(1)).await;
        level = f64::min(60_000.0, level + 1_000.0) - f64::from(u32::try_from(admitted).unwrap());
        assert!(level >= 0.0, "the provider's bucket is overdrawn after {all}");
        all += admitted;
    }
    assert!(all >= 100_000, "full bucket and refill: {all}");
}

async fn a_refusal_makes_a_bucket_unknown<S: Store>(rig: &Rig<S>) {
    come_back(rig, Some(100)).await;
    let burst = saturate(rig, Duration::from_millis(50)).await;
    rig.advance(Duration::from_secs(30));
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask.reservation).await;
    let more = saturate(rig, Duration::from_secs(29)).await;
    assert!(burst + more <= LIMIT, "{burst} and {more} in one window");
}

/// What goes is as much as comes back, and what the next call needs.
async fn a_refusal_by_a_bucket_that_is_nearly_spent_says_that_nothing_is_left<S: Store>(
    rig: &Rig<S>,
) {
    come_back(rig, Some(100)).await;
    saturate(rig, Duration::from_secs(1)).await;
    rig.advance(Duration::from_millis(1_500));
    let ask = rig.ask(400);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    refused(rig, &ask.reservation).await;
    let at_once = saturate(rig, Duration::from_secs(2)).await;
    assert_eq!(at_once, 0, "a bucket that refuses has none");
    let more = saturate(rig, Duration::from_secs(20)).await;
    assert!((10_000..=16_000).contains(&more), "and comes back at its rate: {more}");
}

/// Each caller sleeps as long as it is told. Nothing is known of the bucket but that it is one.
async fn a_known_bucket_is_emptied_by_a_batch_at_once<S: Store>(rig: &Rig<S>) {
    let start = rig.now();
    let mut agenda: BTreeSet<(u64, usize)> = (0..50).map(|call| (start, call)).collect();
    let mut asks: Vec<Ask> = (0..50).map(|_| rig.ask(1_000)).collect();
    let (mut answered, mut came_back) = (0, false);
    while let Some((at, call)) = agenda.pop_first() {
        rig.at(at);
        if at >= start + 5 * SECOND && !came_back {
            came_back = true;
            ended(rig, &asks[0], None).await;
        }
        match rig.reserve(&asks[call]).await {
            Decision::Granted => answered += 1,
            Decision::Wait { wait, ticket, .. } => {
                asks[call].ticket = Some(ticket);
                agenda.insert((at + micros(wait), call));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answered, 50);
    let took = (rig.now() - start) / SECOND;
    assert!(took <= 20, "the bucket holds 60 of them, and the last went after {took} s");
}

async fn in_lane<S: Store>(rig: &Rig<S>, lane: usize, tokens: u64) -> bool {
    let ask = Ask { lane, ..rig.ask(tokens) };
    rig.reserve(&ask).await == Decision::Granted
}

async fn a_burst_leaves_the_share_of_a_lane_that_was_seen_lately<S: Store>(rig: &Rig<S>) {
    assert!(in_lane(rig, 1, 100).await);
    rig.advance(Duration::from_secs(90));
    come_back(rig, Some(100)).await;
    let burst = saturate(rig, Duration::from_millis(50)).await;
    assert!((39_000..=43_000).contains(&burst), "seven tenths of the bucket: {burst}");
    let mut own = 0;
    while in_lane(rig, 1, 400).await {
        own += 400;
    }
    assert!(own >= 10_000, "its share, but for a cushion, is there: {own}");
    rig.advance(Duration::from_secs(60));
    let (mut all, mut passed) = (0, 0);
    while passed < 60 {
        all += saturate(rig, Duration::from_secs(1)).await;
        passed += 1;
    }
    assert!(all >= 59_000, "and costs no rate: {all} in a minute");
}

async fn a_burst_leaves_nothing_for_lanes_that_nobody_uses<S: Store>(rig: &Rig<S>) {
    assert!(in_lane(rig, 1, 100).await);
    rig.advance(Duration::from_secs(400));
    come_back(rig, Some(100)).await;
    let burst = saturate(rig, Duration::from_millis(50)).await;
    assert!(burst >= 50_000, "the whole bucket: {burst}");
}

/// A batch as large as a full bucket and a third, on a provider that is known only by its headers.
/// Each call alone is worth more than two seconds, and each caller sleeps as long as it is told.
async fn a_batch_is_done_when_an_unknown_bucket_allows_it<S: Store>(rig: &Rig<S>) {
    const CALLS: usize = 32;
    const TOKENS: u64 = 2_500;
    const TAKES: u64 = 2 * SECOND;
    let start = rig.now();
    let mut asks: Vec<Ask> = (0..CALLS).map(|_| rig.ask(TOKENS)).collect();
    let mut answers = vec![None; CALLS];
    let mut agenda: BTreeSet<(u64, usize)> = (0..CALLS).map(|call| (start, call)).collect();
    let (mut used, mut used_at) = (0, start);
    while let Some((at, call)) = agenda.pop_first() {
        rig.at(at);
        if let Some(told) = answers[call] {
            // A token of a thousand a second comes back in a millisecond.
            told_with_reset(rig, &asks[call], Some(told), Some(Duration::from_millis(told))).await;
            continue;
        }
        match rig.reserve(&asks[call]).await {
            Decision::Granted => {
                let back = (at - used_at) / 1_000;
                (used, used_at) =
                    (u64::saturating_sub(used, back) + TOKENS, used_at + back * 1_000);
                assert!(used <= LIMIT, "the provider's bucket is overdrawn by call {call}");
                answers[call] = Some(used);
                agenda.insert((at + TAKES, call));
            }
            Decision::Wait { wait, ticket, .. } => {
                asks[call].ticket = Some(ticket);
                agenda.insert((at + micros(wait), call));
            }
            other => panic!("{other:?}"),
        }
    }
    let took = (rig.now() - start) as f64;
    let ideal = ((CALLS as u64 * TOKENS - LIMIT) * 1_000 + TAKES) as f64;
    assert!(took <= 1.4 * ideal, "{:.2} times as long as the bucket allows", took / ideal);
}

/// A settlement of a call that the store does not know: there was a fleet at work before.
async fn a_store_that_was_lost_under_a_working_fleet_grows_nothing_for_a_window<S: Store>(
    rig: &Rig<S>,
) {
    let start = rig.now();
    come_back(rig, None).await;
    refused_nothing(rig).await;
    let admitted = saturate(rig, Duration::from_secs(50)).await;
    assert!(admitted <= 54_000, "an even pace: {admitted}");
    rig.at(start + 61 * SECOND);
    let admitted = saturate(rig, Duration::from_secs(10)).await;
    assert!(admitted >= 13_000, "then it grows: {admitted}");
}

async fn refused_nothing<S: Store>(rig: &Rig<S>) {
    let settlement = Settlement::used("of-another-life", Amounts::call(10, 10));
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

/// A caller that was told to wait for half a minute goes as soon as an answer tells that there is
/// room.
#[tokio::test]
async fn who_waits_in_place_is_woken_when_headers_tell_of_room() {
    let model = model(Limits { burst_max: Some(Duration::from_secs(60)), ..even_of(120) });
    let options = Options { max_slot_wait: Duration::from_secs(300), ..Options::default() };
    let (id, quota) = (model.id.clone(), Quota::in_memory([model], options));
    let call = |name: &str| Request::new(id.clone(), name).tokens(30, 1);
    let mut first = quota.admit(&call("first")).await.unwrap();
    first.sent();
    let refused = quota.admit(&call("impatient").max_wait(Duration::ZERO)).await.unwrap_err();
    let Refused::Wait { wait, .. } = refused else { panic!("{refused:?}") };
    assert!(wait > Duration::from_secs(10), "{wait:?}");
    let waiting = tokio::spawn({
        let (quota, call) = (quota.clone(), call("patient"));
        async move { quota.admit(&call).await.map(drop) }
    });
    tokio::task::yield_now().await;
    first.observed(Meter {
        used: PerDimension { combined: Some(31), ..PerDimension::default() },
        ..Meter::default()
    });
    first.settle(&Usage { uncached_input: 30, output: 1, ..Usage::default() }).await;
    tokio::time::timeout(wait / 2, waiting).await.expect("it was woken").unwrap().unwrap();
}
