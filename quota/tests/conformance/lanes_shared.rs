//! Lanes: shares, standby, borrowing, ceilings.

use super::*;

pub(super) async fn a_lane_has_its_share_while_another_takes_all_it_can<S: Store>(rig: &Rig<S>) {
    let ask = |lane| Ask { lane, ..rig.ask(10) };
    let (mut interactive, callers) = (0, [1, 1, 1, 1, 1, 0, 0]);
    let mut waiting = [None; 7];
    for _ in 0..240 {
        rig.advance(Duration::from_millis(500));
        for (caller, lane) in callers.into_iter().enumerate() {
            match rig.reserve(&Ask { ticket: waiting[caller], ..ask(lane) }).await {
                Decision::Granted => {
                    interactive += 10 * lane;
                    waiting[caller] = None;
                }
                Decision::Wait { ticket, .. } => waiting[caller] = Some(ticket),
                other => panic!("{other:?}"),
            }
        }
    }
    let lanes = rig.store.inspect(&rig.model).await.unwrap().lanes;
    let share = lanes[1].used.combined;
    assert!(share >= 580, "interactive has {share} of its 600 ({interactive} in all)");
    assert!(lanes[0].used.combined >= 80, "batch is not starved: {:?}", lanes[0]);
}

/// The room kept for a lane: a fifth of its share of the capacity, 120 of 1,000.
pub(super) async fn a_lane_in_use_finds_its_standby_and_no_more<S: Store>(rig: &Rig<S>) {
    let interactive = |tokens| Ask { lane: 1, ..rig.ask(tokens) };
    assert_eq!(rig.reserve(&interactive(10)).await, Decision::Granted);
    rig.advance(Duration::from_secs(30));
    let batch = fills(rig, &|| rig.ask(10)).await;
    assert_eq!(batch, 870, "all but its standby, and one call of the other lane");
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Hold::Turn);
    let found = fills(rig, &|| interactive(10)).await;
    assert!((120..=130).contains(&found), "{found}");
    let (_, hold, _) = rig.refused(&interactive(1)).await;
    assert!(matches!(hold, Hold::Turn | Hold::Lane), "{hold:?}");
}

pub(super) async fn the_first_call_of_an_idle_lane_goes_at_once<S: Store>(rig: &Rig<S>) {
    let batch = fills(rig, &|| rig.ask(10)).await;
    assert_eq!(batch, 980, "all but one call of each of the other two");
    let found = fills(rig, &|| Ask { lane: 1, ..rig.ask(10) }).await;
    assert_eq!(found, 10);
}

/// Asks until it has to wait. Returns the granted tokens, in calls of ten.
async fn fills<S: Store>(rig: &Rig<S>, ask: &impl Fn() -> Ask) -> u64 {
    let mut granted = 0;
    while rig.reserve(&ask()).await == Decision::Granted {
        granted += 10;
    }
    granted
}

pub(super) async fn a_lane_borrows_unused_room<S: Store>(rig: &Rig<S>) {
    let (mut batch, mut ticket) = (0, None);
    while rig.now() < START + 15 * SECOND {
        match rig.reserve(&Ask { ticket, ..rig.ask(10) }).await {
            Decision::Granted => (batch, ticket) = (batch + 10, None),
            Decision::Wait { ticket: turn, .. } => {
                ticket = Some(turn);
                rig.advance(Duration::from_millis(100));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(batch, 1_000);
}

pub(super) async fn a_lane_keeps_to_its_ceiling<S: Store>(rig: &Rig<S>) {
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 600 };
    assert_eq!(rig.reserve(&rig.ask(601)).await, never);
    let mut batch = 0;
    while rig.reserve(&rig.ask(10)).await == Decision::Granted {
        batch += 10;
    }
    assert_eq!(batch, 600);
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Hold::Turn);
}

/// The lane may have less than one request of three a minute.
pub(super) async fn a_lane_has_one_call_of_the_smallest_limit<S: Store>(rig: &Rig<S>) {
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
    let next = rig.ask(10);
    let (_, hold, ticket) = rig.refused(&next).await;
    assert_eq!(hold, Hold::Lane);
    rig.advance(Duration::from_secs(61));
    let next = Ask { ticket: Some(ticket), ..next };
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

/// Shares guarantee and do not forbid: a lane without a share still gets a call now and then.
pub(super) async fn a_lane_without_a_share_is_not_starved<S: Store>(rig: &Rig<S>) {
    let in_lane = |lane| Ask { lane, ..rig.ask(50) };
    let mut waiting = in_lane(0);
    let (mut batch, mut turns) = (0, Vec::new());
    for _ in 0..600 {
        rig.advance(Duration::from_millis(500));
        let mut ask = turns.pop().unwrap_or_else(|| in_lane(1));
        if let Decision::Wait { ticket, .. } = rig.reserve(&ask).await {
            ask.ticket = Some(ticket);
            turns.push(ask);
        }
        match rig.reserve(&waiting).await {
            Decision::Granted => {
                batch += 1;
                waiting = in_lane(0);
            }
            Decision::Wait { ticket, .. } => waiting.ticket = Some(ticket),
            other => panic!("{other:?}"),
        }
    }
    assert!(batch >= 2, "{batch} calls in five minutes");
}

/// Small calls of one lane fill the model for half an hour, while a call of six tenths of the limit
/// waits in a lane with a guaranteed share. It goes within eight minutes, and the others go on.
pub(super) async fn a_large_document_gets_its_turn_beside_other_lanes<S: Store>(rig: &Rig<S>) {
    let small = |ticket| Ask { lane: 1, ticket, ..rig.ask(50) };
    let mut callers: Vec<(u64, Ask)> = (0..40).map(|_| (START, small(None))).collect();
    let mut large = rig.ask(600);
    let (mut asks_at, mut served) = (START + 60 * SECOND, 0);
    for second in 0..1_800 {
        rig.at(START + second * SECOND);
        for (at, ask) in callers.iter_mut().filter(|(at, _)| *at <= rig.now()) {
            match rig.reserve(ask).await {
                Decision::Granted => (*ask, served) = (small(None), served + 1),
                Decision::Wait { wait, ticket, .. } => {
                    ask.ticket = Some(ticket);
                    *at = rig.now() + micros(wait) / 20 * 17;
                }
                other => panic!("{other:?}"),
            }
        }
        if rig.now() >= asks_at {
            match rig.reserve(&large).await {
                Decision::Granted => {
                    assert!(second < 8 * 60, "after {second} s");
                    assert!(served > 50, "the others were held up: {served}");
                    return;
                }
                Decision::Wait { wait, ticket, .. } => {
                    large.ticket = Some(ticket);
                    asks_at = rig.now() + micros(wait) / 20 * 17;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("it never went");
}
