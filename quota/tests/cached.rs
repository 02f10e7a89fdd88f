//! Prompts that come into a cache whose reads the provider does not count: callers that were told
//! the wait for whole prompts must not sleep through the turns that come sooner. Kept by both
//! stores.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use common::{Rig, SECOND, ask, both_stores};
use tidegate_quota::{
    Amounts, Charge, Decision, Dimension, Lanes, Limits, ModelQuota, Store,
    store::{Ask, Expectation, Settlement, UsageSample},
};

/// A second's worth is a thousand tokens.
const LIMIT: u64 = 60_000;
const PROMPT: u64 = 3_000;
const BODY: u64 = 1_000;
const TAKES: u64 = 5 * SECOND;

both_stores! {
    nobody_sleeps_long_before_it_is_known_what_a_cache_gives(caching(false));
    where_a_cache_s_reads_count_a_turn_is_told_whole(caching(true));
    a_batch_whose_prompt_comes_into_a_cache_uses_the_limit(caching(false));
}

fn caching(cached_input: bool) -> ModelQuota {
    let limits = Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        burst: Duration::from_secs(1),
        burst_max: Some(Duration::from_secs(60)),
        token_bucket: true,
        ..Limits::default().with(Dimension::Input, LIMIT)
    };
    let charge = Charge { cached_input, ..Charge::default() };
    let lanes = Arc::new(Lanes::single());
    ModelQuota::new("test:model".parse().unwrap(), limits, charge, lanes).unwrap()
}

fn curious(number: usize, input: u64) -> Ask {
    Ask { curious: true, ..ask(format!("c{number}"), Amounts::call(input, 0)) }
}

/// The longest wait that one of many callers is told who come at once.
async fn longest_told<S: Store>(rig: &Rig<S>, callers: std::ops::Range<usize>) -> Duration {
    let mut longest = Duration::ZERO;
    for number in callers {
        if let Decision::Wait { wait, .. } = rig.reserve(&curious(number, PROMPT + BODY)).await {
            longest = longest.max(wait);
        }
    }
    longest
}

async fn nobody_sleeps_long_before_it_is_known_what_a_cache_gives<S: Store>(rig: &Rig<S>) {
    let first = longest_told(rig, 0..60).await;
    assert_eq!(first, Duration::from_secs(10), "nothing is known yet");
    for number in 0..3 {
        settled(rig, number, 0).await;
    }
    rig.advance(Duration::from_secs(60));
    assert_eq!(longest_told(rig, 60..120).await, Duration::from_secs(20));
    rig.advance(Duration::from_secs(180));
    let later = longest_told(rig, 120..180).await;
    assert!(later > Duration::from_secs(130), "it has no cache: {later:?}");
}

async fn where_a_cache_s_reads_count_a_turn_is_told_whole<S: Store>(rig: &Rig<S>) {
    let told = longest_told(rig, 0..60).await;
    assert!(told > Duration::from_secs(100), "{told:?}");
}

async fn settled<S: Store>(rig: &Rig<S>, number: usize, cached: u64) -> Option<Expectation> {
    let all = PROMPT + BODY;
    let settlement = Settlement {
        sample: Some(UsageSample { estimated_input: all, input: all, output: 10 }),
        cached: Some(cached),
        ..Settlement::used(format!("c{number}"), Amounts::call(all - cached, 0))
    };
    rig.store.settle(&rig.model, &settlement).await.unwrap().1
}

/// The provider has the prompt in its cache after the first answer. Each caller sleeps as long as
/// it is told.
async fn a_batch_whose_prompt_comes_into_a_cache_uses_the_limit<S: Store>(rig: &Rig<S>) {
    const CALLS: usize = 160;
    let start = rig.now();
    let mut tickets = vec![None; CALLS];
    let mut cached: Vec<Option<u64>> = vec![None; CALLS];
    let mut agenda: BTreeSet<(u64, usize)> = (0..CALLS).map(|call| (start, call)).collect();
    let (mut warm, mut known) = (false, None::<Expectation>);
    while let Some((at, call)) = agenda.pop_first() {
        rig.at(at);
        if let Some(cached) = cached[call] {
            known = settled(rig, call, cached).await.or(known);
            warm = true;
            continue;
        }
        let input = PROMPT + BODY - known.map_or(0, |known| known.cached);
        let asked = Ask { ticket: tickets[call], ..curious(call, input) };
        let (decision, told) = rig.store.reserve(&rig.model, &asked).await.unwrap();
        known = told.or(known);
        match decision {
            Decision::Granted => {
                cached[call] = Some(if warm { PROMPT } else { 0 });
                agenda.insert((at + TAKES, call));
            }
            Decision::Wait { wait, ticket, .. } => {
                tickets[call] = Some(ticket);
                agenda.insert((at + u64::try_from(wait.as_micros()).unwrap(), call));
            }
            other => panic!("{other:?}"),
        }
    }
    let took = (rig.now() - start) / SECOND;
    let cold = cached.iter().filter(|cached| **cached == Some(0)).count() as u64;
    let least = (CALLS as u64 * BODY + cold * PROMPT - LIMIT) / 1_000 + TAKES / SECOND;
    assert!(took * 10 <= least * 13, "{took} s, where {least} s are possible");
}
