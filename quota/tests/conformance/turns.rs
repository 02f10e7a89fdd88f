//! Turns of waiting callers, and callers that leave.

use super::*;

/// Every caller comes back after its wait, in any order; large and small calls are admitted in the
/// order of their first ask.
pub(super) async fn turns_are_first_come_first_served<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    let mut waiting = Vec::new();
    for number in 0..40_u64 {
        let tokens = if number % 7 == 3 { 5_000 } else { 200 + 37 * number };
        let (ask, wait) = waits(rig, rig.ask(tokens)).await;
        waiting.push((rig.now() + micros(wait), number, ask));
        rig.advance(Duration::from_millis(1));
    }
    let (mut order, mut asks) = (Vec::new(), 0);
    while !waiting.is_empty() {
        waiting.sort_by_key(|(due, number, _)| (*due, *number));
        let (due, number, ask) = waiting.remove(0);
        rig.at(due.max(rig.now()));
        asks += 1;
        match rig.reserve(&ask).await {
            Decision::Granted => order.push(number),
            Decision::Wait { wait, ticket, .. } => {
                assert_eq!(Some(ticket), ask.ticket, "a turn is kept");
                waiting.push((rig.now() + micros(wait), number, ask));
            }
            other => panic!("{other:?}"),
        }
        assert!(asks < 1_000, "the queue does not move");
    }
    assert_eq!(order, (0..40).collect::<Vec<_>>());
    assert!(asks <= 40 * 4, "{asks} questions for 40 admissions");
}

pub(super) async fn a_newcomer_does_not_overtake<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.advance(Duration::from_secs(30));
    let (large, wait) = waits(rig, rig.ask(995)).await;
    rig.advance(wait);
    let (newcomer, hold, _) = rig.refused(&rig.ask(10)).await;
    assert_eq!(hold, Hold::Turn);
    assert!(newcomer > Duration::ZERO);
    assert_eq!(rig.reserve(&large).await, Decision::Granted);
}

pub(super) async fn of_a_batch_the_first_calls_go_and_the_others_get_turns<S: Store>(rig: &Rig<S>) {
    let mut asks: Vec<Ask> = (0..8).map(|_| rig.ask(200)).collect();
    let all =
        |answers: Vec<_>| answers.into_iter().map(|(decision, _)| decision).collect::<Vec<_>>();
    let answers = all(rig.store.reserve_all(&rig.model, &asks).await.unwrap());
    assert!(answers[..5].iter().all(|decision| *decision == Decision::Granted), "{answers:?}");
    let turns: Vec<_> = answers[5..]
        .iter()
        .map(|decision| match decision {
            Decision::Wait { wait, ticket, .. } => (*wait, ticket.position, *ticket),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(turns.is_sorted_by(|one, next| one.1 < next.1), "{turns:?}");
    // The window is empty again: there is room for all waiting callers.
    rig.advance(Duration::from_secs(75));
    let mut waiting = asks.split_off(5);
    for (ask, (_, _, ticket)) in waiting.iter_mut().zip(turns) {
        ask.ticket = Some(ticket);
    }
    let answers = all(rig.store.reserve_all(&rig.model, &waiting).await.unwrap());
    assert_eq!(answers, [Decision::Granted; 3]);
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.used().combined, seen.lanes[0].waiting), (600, 0));
    assert!(rig.store.reserve_all(&rig.model, &[]).await.unwrap().is_empty());
}

pub(super) async fn a_ticket_of_another_life_comes_first<S: Store>(rig: &Rig<S>) {
    let of_before = Ticket { epoch: 7, position: 9_000_000_000_000_000 };
    let of_before = |tokens| Ask { ticket: Some(of_before), ..rig.ask(tokens) };
    let decision = rig.reserve(&of_before(1_000)).await;
    assert_eq!(decision, Decision::Granted, "no caller waits, so none is made to wait");
    for _ in 0..5 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let (wait, ..) = rig.refused(&of_before(1_000)).await;
    assert_eq!(wait, Duration::from_secs(1), "it has waited");
    assert!(
        rig.refused(&rig.ask(1_000)).await.0 >= Duration::from_secs(6),
        "and a newcomer has not"
    );
}

/// A caller comes back later than its wait, and others went before.
pub(super) async fn a_caller_whose_turn_has_gone_by_comes_first<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str, ask| Ask { tenant: Tenant::new(tenant).unwrap(), ..ask };
    rig.reserve(&rig.ask(1_000)).await;
    let (late, _) = waits(rig, of("late", rig.ask(1_000))).await;
    for _ in 0..30 {
        rig.advance(Duration::from_secs(1));
        let asked = of("others", rig.ask(1_000));
        let _ = rig.reserve(&asked).await;
    }
    let (late, wait) = match rig.reserve(&late).await {
        Decision::Granted => return,
        Decision::Wait { wait, .. } => (late, wait),
        other => panic!("{other:?}"),
    };
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
    let (_, hold, _) = rig.refused(&of("others", rig.ask(500))).await;
    assert_eq!(hold, Hold::Turn, "it is waited for");
    rig.advance(wait);
    assert_eq!(rig.reserve(&late).await, Decision::Granted);
}

pub(super) async fn callers_that_never_come_back_hold_up_no_other<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let (ask, wait) = waits(rig, rig.ask(1_000)).await;
    assert!((90..=102).contains(&wait.as_secs()), "a hundred turns of a second: {wait:?}");
    // No call goes meanwhile: work that no caller came for moves the queue on.
    rig.advance(wait + Duration::from_millis(1));
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    rig.advance(Duration::from_secs(1));
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

pub(super) async fn callers_that_never_come_back_hold_up_no_other_behind_a_closed_gate<S: Store>(
    rig: &Rig<S>,
) {
    let first = rig.ask(900);
    rig.reserve(&first).await;
    refused(rig, &first, ProviderSignal::RateLimited, pause(20)).await;
    for _ in 0..10 {
        let decision = rig.reserve(&rig.ask(900)).await;
        assert!(matches!(decision, Decision::GateClosed { .. }), "{decision:?}");
    }
    rig.advance(Duration::from_secs(10));
    let mut ask = rig.ask(900);
    let (start, mut due) = (rig.now(), rig.now());
    loop {
        rig.at(due);
        match rig.reserve(&ask).await {
            Decision::Granted => break,
            Decision::GateClosed { wait, ticket } | Decision::Wait { wait, ticket, .. } => {
                (ask.ticket, due) = (Some(ticket), due + micros(wait));
            }
            other => panic!("{other:?}"),
        }
    }
    let took = (rig.now() - start) / SECOND;
    assert!(took <= 10 + 12, "the gate, and ten turns of 0.9 s without a caller: {took} s");
}

/// A batch of a hundred seconds is cancelled. The tenant's next call does not wait for its callers,
/// and another tenant's caller keeps its turn.
pub(super) async fn a_tenant_that_leaves_delays_no_other<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str, ask| Ask { tenant: Tenant::new(tenant).unwrap(), ..ask };
    while rig.reserve(&of("cancels", rig.ask(1_000))).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&of("cancels", rig.ask(1_000))).await;
    }
    let (stays, _) = waits(rig, of("stays", rig.ask(1_000))).await;
    let late = rig.refused(&of("cancels", rig.ask(1_000))).await.0;
    assert!(late > Duration::from_secs(60), "{late:?}");
    for _ in 0..2 {
        rig.store.leave(&rig.model, 0, &Tenant::new("cancels").unwrap()).await.unwrap();
    }
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert!(seen.lanes[0].queue < Duration::from_secs(5), "{:?}", seen.lanes);
    let (newcomer, soon) = waits(rig, of("cancels", rig.ask(1_000))).await;
    assert!(soon < Duration::from_secs(3), "{soon:?}");
    rig.advance(Duration::from_secs(4));
    for ask in [stays, newcomer] {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_secs(2));
    }
}

/// A hundred callers wait, and all but one hang up. Neither this one nor the next caller waits for
/// them.
pub(super) async fn a_caller_that_gives_up_delays_no_other<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(waits(rig, rig.ask(1_000)).await.0);
    }
    let stays = waiting.remove(50);
    for ask in &waiting {
        rig.store.give_up(&rig.model, ask).await.unwrap();
    }
    let (newcomer, soon) = waits(rig, rig.ask(1_000)).await;
    assert!(soon < Duration::from_secs(4), "{soon:?}");
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert!(seen.lanes[0].queue < Duration::from_secs(4), "{:?}", seen.lanes);
    rig.advance(Duration::from_secs(2));
    assert_eq!(rig.reserve(&stays).await, Decision::Granted);
    rig.advance(Duration::from_secs(2));
    // Except for rounding.
    if let Decision::Wait { wait, .. } = rig.reserve(&newcomer).await {
        assert!(wait <= Duration::from_millis(1), "{wait:?}");
    }
}

/// One tenant has a thousand waiting documents, another comes later with a few at a time: each gets
/// half.
pub(super) async fn tenants_of_a_lane_get_equal_parts<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(1_000) };
    while rig.reserve(&of("large")).await == Decision::Granted {}
    let mut waiting: Vec<(u64, Ask)> = Vec::new();
    for _ in 0..300 {
        let (ask, wait) = waits(rig, of("large")).await;
        waiting.push((rig.now() + micros(wait), ask));
    }
    let (mut large, mut small, start) = (0, 0, rig.now());
    for _ in 0..5 {
        waiting.push((start, of("small")));
    }
    while rig.now() < start + 59 * SECOND {
        waiting.sort_by_key(|(due, _)| *due);
        let (at, mut ask) = waiting.remove(0);
        rig.at(at.max(rig.now()));
        match rig.reserve(&ask).await {
            Decision::Granted if ask.tenant.as_str() == "small" => {
                small += 1;
                waiting.push((rig.now(), of("small")));
            }
            Decision::Granted => large += 1,
            Decision::Wait { wait, ticket, .. } => {
                ask.ticket = Some(ticket);
                waiting.push((rig.now() + micros(wait), ask));
            }
            other => panic!("{other:?}"),
        }
    }
    let all = large + small;
    assert!(all >= 50, "{all} of 59");
    assert!(small * 100 / all >= 40 && small * 100 / all <= 60, "small {small}, large {large}");
}

/// A tenant that has had much does not wait longer for it later.
pub(super) async fn a_tenant_alone_is_served_as_it_comes<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(500) };
    for _ in 0..20 {
        assert_eq!(rig.reserve(&of("alone")).await, Decision::Granted);
        rig.advance(Duration::from_millis(500));
    }
    assert_eq!(rig.reserve(&of("another")).await, Decision::Granted);
    assert_eq!(rig.reserve(&of("alone")).await, Decision::Granted);
    let (first, _) = waits(rig, of("alone")).await;
    let (second, _) = waits(rig, of("another")).await;
    rig.advance(Duration::from_millis(1_001));
    for ask in [first, second] {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    }
}
