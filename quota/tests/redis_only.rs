//! What only a real Redis can show: that the scripts are the mechanism in memory, the ledger behind the
//! totals, plans that many programs write, lost state, lost scripts, bad calls, keys.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::time::Duration;

use common::{
    Freezes, PATIENCE, PAUSE_TTL, Rig, SECOND, START, ask, in_memory, in_redis, lanes, limits,
    model_with_lanes,
};
use proptest::{prelude::*, test_runner::TestCaseError};
use tidegate_quota::{
    Amounts, Change, Charge, Decision, Dimension, Limits, ModelQuota, PerDimension, PerLimit,
    Quota, Request, Store, Ticket, memory, redis_store,
    store::{Ask, Meter, Pause, ProviderSignal, Settlement, UsageSample},
};
use tidegate_testkit::{Redis, unique};
use tidegate_types::Tenant;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Reserve {
        id: u8,
        lane: usize,
        input: u64,
        output: u64,
        with_ticket: bool,
    },
    ReserveAll {
        id: u8,
        count: u8,
        lane: usize,
        input: u64,
    },
    Settle {
        id: u8,
        input: u64,
        output: u64,
    },
    Release {
        id: u8,
    },
    Fail {
        id: u8,
        signal: ProviderSignal,
        seconds: u64,
    },
    Meter {
        id: u8,
        used: u64,
        limit: u64,
    },
    Charge {
        id: u8,
        tokens: u64,
    },
    Renew {
        id: u8,
    },
    Limit {
        combined: Option<u64>,
        concurrent: Option<u64>,
    },
    Pause {
        seconds: u64,
    },
    Resume,
    Leave {
        lane: usize,
        tenant: bool,
    },
    GiveUp {
        id: u8,
        lane: usize,
        input: u64,
    },
    Advance {
        millis: i64,
    },
    /// Programs that run the policy are frozen from now on, or no longer.
    Freeze {
        frozen: bool,
    },
    /// What frozen ones were about to do is done, or they are killed.
    Thaw {
        killed: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..40, 0_usize..3, 0_u64..400, 0_u64..200, any::<bool>())
            .prop_map(|(id, lane, input, output, with_ticket)| Step::Reserve { id, lane, input, output, with_ticket }),
        2 => (0_u8..40, 1_u8..8, 0_usize..3, 0_u64..400)
            .prop_map(|(id, count, lane, input)| Step::ReserveAll { id, count, lane, input }),
        4 => (0_u8..40, 0_u64..500, 0_u64..300).prop_map(|(id, input, output)| Step::Settle { id, input, output }),
        2 => (0_u8..40).prop_map(|id| Step::Release { id }),
        2 => (0_u8..40, 0_usize..7, 0_u64..20).prop_map(|(id, signal, seconds)| {
            use ProviderSignal::{Exhausted, Lost, Overloaded, Refused};
            let signal = [Refused, Refused, Refused, Overloaded, Overloaded, Exhausted, Lost][signal];
            Step::Fail { id, signal, seconds }
        }),
        3 => (0_u8..40, 0_u64..3_000, 1_000_u64..4_000).prop_map(|(id, used, limit)| Step::Meter { id, used, limit }),
        1 => (0_u8..40, 0_u64..300).prop_map(|(id, tokens)| Step::Charge { id, tokens }),
        1 => (0_u8..40).prop_map(|id| Step::Renew { id }),
        1 => (proptest::option::of(500_u64..5_000), proptest::option::of(1_u64..12))
            .prop_map(|(combined, concurrent)| Step::Limit { combined, concurrent }),
        1 => (1_u64..20).prop_map(|seconds| Step::Pause { seconds }),
        1 => Just(Step::Resume),
        1 => (0_usize..3, any::<bool>()).prop_map(|(lane, tenant)| Step::Leave { lane, tenant }),
        2 => (0_u8..40, 0_usize..3, 0_u64..400).prop_map(|(id, lane, input)| Step::GiveUp { id, lane, input }),
        2 => any::<bool>().prop_map(|frozen| Step::Freeze { frozen }),
        2 => any::<bool>().prop_map(|killed| Step::Thaw { killed }),
        6 => prop_oneof![8 => 0_i64..500, 8 => 0_i64..20_000, 8 => -2_000_i64..0, 1 => -200_000_i64..0].prop_map(|millis| Step::Advance { millis }),
    ]
}

fn lanes_and_dimensions() -> ModelQuota {
    let limits = Limits {
        burst: Duration::from_secs(2),
        ..limits(2_500)
            .with(Dimension::Requests, 30)
            .with(Dimension::Input, 2_000)
            .with(Dimension::Output, 900)
    };
    model_with_lanes(
        limits,
        lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 0.9), ("standard", 0.3, 1.0)]),
    )
}

/// The same with a burst that is learned.
fn learning(token_bucket: bool) -> ModelQuota {
    let fixed = lanes_and_dimensions();
    let limits = Limits {
        burst: Duration::from_secs(1),
        burst_max: Some(Duration::from_secs(60)),
        token_bucket,
        ..fixed.limits
    };
    // What such a provider counts in the end is learned, too.
    ModelQuota {
        limits,
        charge: if token_bucket { Charge::CAUTIOUS } else { fixed.charge },
        ..fixed
    }
}

/// Carries one step out and returns what the store said.
async fn carry_out<S: Store + Freezes>(
    rig: &Rig<S>,
    tickets: &mut [Option<Ticket>],
    step: &Step,
) -> String {
    let settle = |id: u8, used, sample| Settlement {
        used,
        sample,
        template: u64::from(id % 3),
        cached: (!id.is_multiple_of(4)).then(|| u64::from(id % 5) * 30),
        ..Settlement::released(format!("r{id}"))
    };
    match step {
        Step::Reserve { id, lane, input, output, with_ticket } => {
            let slot = usize::from(*id) * 3 + lane;
            let ask = Ask {
                lane: *lane,
                ticket: tickets[slot].filter(|_| *with_ticket),
                template: u64::from(id % 3),
                curious: *with_ticket,
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::call(*input, *output))
            };
            let (decision, expectation) = rig.store.reserve(&rig.model, &ask).await.unwrap();
            if let Decision::Wait { ticket, .. } = decision {
                tickets[slot] = Some(ticket);
            }
            format!("{decision:?} {expectation:?}")
        }
        Step::ReserveAll { id, count, lane, input } => {
            // Of one tenant and template; the last is the first once more.
            let ids: Vec<u8> = (0..*count).map(|more| (id + more % 6 * 6) % 36).collect();
            let slot = |id: u8| usize::from(id) * 3 + lane;
            let each = ids.iter().map(|id| Ask {
                lane: *lane,
                ticket: tickets[slot(*id)],
                template: u64::from(id % 3),
                curious: id % 4 == 0,
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::call(input / u64::from(id % 7 + 1), 20))
            });
            let asks: Vec<Ask> = each.collect();
            let answers = rig.store.reserve_all(&rig.model, &asks).await.unwrap();
            for (id, (decision, _)) in ids.iter().zip(&answers) {
                if let Decision::Wait { ticket, .. } = decision {
                    tickets[slot(*id)] = Some(*ticket);
                }
            }
            format!("{answers:?}")
        }
        Step::Settle { id, input, output } => {
            let sample = UsageSample { estimated_input: 100, input: *input, output: *output };
            let used = Some(Amounts::call(*input, *output));
            format!(
                "{:?}",
                rig.store.settle(&rig.model, &settle(*id, used, Some(sample))).await.unwrap()
            )
        }
        Step::Release { id } => {
            format!("{:?}", rig.store.settle(&rig.model, &settle(*id, None, None)).await.unwrap())
        }
        Step::Fail { id, signal, seconds } => {
            let pause =
                Pause { length: Duration::from_secs(*seconds), reason: "refused".to_owned() };
            let settlement = Settlement {
                signal: *signal,
                pause: Some(pause),
                ..settle(*id, Some(Amounts::call(0, 0)), None)
            };
            format!("{:?}", rig.store.settle(&rig.model, &settlement).await.unwrap())
        }
        Step::Meter { id, used, limit } => {
            let meter = Meter {
                // What a burst may be is learned only where every limit is told.
                used: if id % 2 == 0 {
                    PerDimension::from_fn(|it| Some(used / [100, 1, 2, 1][it as usize - 1]))
                } else {
                    PerDimension { combined: Some(*used), ..PerDimension::default() }
                },
                limits: PerDimension { combined: Some(*limit), ..PerDimension::default() },
                // Mostly a token bucket's.
                resets: PerDimension {
                    combined: (id % 3 > 0).then(|| {
                        Duration::from_millis(if id % 11 == 0 { 1 } else { used * 60_000 / limit })
                    }),
                    ..PerDimension::default()
                },
            };
            let sample = UsageSample { estimated_input: 100, input: 10, output: 5 };
            let used = Some(Amounts::call(10, 5));
            let settlement = Settlement { meter, ..settle(*id, used, Some(sample)) };
            format!("{:?}", rig.store.settle(&rig.model, &settlement).await.unwrap())
        }
        Step::Charge { id, tokens } => {
            let (used, drawn) = (Amounts::call(*tokens, 0), Amounts::call(tokens / 2, 0));
            format!(
                "{:?}",
                rig.store
                    .charge(&rig.model, &format!("away{id}"), usize::from(id % 3), used, drawn)
                    .await
                    .unwrap()
            )
        }
        Step::Renew { id } => {
            format!("{:?}", rig.store.renew(&rig.model, &format!("r{id}")).await.unwrap())
        }
        Step::Limit { combined, concurrent } => {
            let change = |limit: Option<u64>| limit.map_or(Change::Clear, Change::Set);
            let changes = PerLimit {
                window: PerDimension { combined: change(*combined), ..PerDimension::default() },
                in_flight: change(*concurrent),
            };
            format!("{:?}", rig.store.set_limits(&rig.model, &changes).await.unwrap())
        }
        Step::Pause { seconds } => {
            let pause = Pause { length: Duration::from_secs(*seconds), reason: "test".to_owned() };
            format!("{:?}", rig.store.pause(&rig.model, &pause).await.unwrap())
        }
        Step::Leave { lane, tenant } => {
            let tenant = Tenant::new(if *tenant { "even" } else { "odd" }).unwrap();
            format!("{:?}", rig.store.leave(&rig.model, *lane, &tenant).await.unwrap())
        }
        Step::GiveUp { id, lane, input } => {
            let ask = Ask {
                lane: *lane,
                amounts: Amounts::call(*input, 10),
                ticket: tickets[usize::from(*id) * 3 + lane],
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::default())
            };
            format!("{:?}", rig.store.give_up(&rig.model, &ask).await.unwrap())
        }
        Step::Resume => format!("{:?}", rig.store.resume(&rig.model).await.unwrap()),
        Step::Freeze { frozen } => {
            rig.store.freeze(*frozen);
            String::new()
        }
        Step::Thaw { killed } => format!("{:?}", rig.store.thaw(&rig.model, *killed).await),
        Step::Advance { millis } => {
            rig.at(rig.now().saturating_add_signed(millis * 1_000).max(START));
            String::new()
        }
    }
}

/// The same, but for a microsecond in times, the last places of fractions and one of those who wait,
/// about: sums are made in another order.
fn alike(one: &str, other: &str) -> bool {
    let (mut one, mut other, mut before) = (one, other, "");
    while !one.is_empty() && !other.is_empty() {
        let ((first, rest), (second, other_rest)) = (piece(one), piece(other));
        let is_alike = match (number(first), number(second)) {
            (Some((first, is_time)), Some((second, _))) if is_time => {
                (first - second).abs() < 1.001
            }
            (Some((first, _)), Some((second, _))) => (first - second).abs() <= 1e-9 * first.abs(),
            _ if before.ends_with("waiting: ") => {
                let count = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
                count(first).abs_diff(count(second)) <= 1
            }
            _ => first == second,
        };
        if !is_alike {
            return false;
        }
        (one, other, before) = (rest, other_rest, first);
    }
    one.is_empty() && other.is_empty()
}

/// A number with its unit, or what is before the next.
fn piece(text: &str) -> (&str, &str) {
    let is_number = |c: char| c.is_ascii_digit();
    let end = if text.starts_with(is_number) {
        text.find(|c: char| !c.is_ascii_digit() && !".e-nµms".contains(c))
    } else {
        text.find(is_number)
    };
    text.split_at(end.unwrap_or(text.len()))
}

/// A number that is no count: a time in microseconds, or a fraction.
fn number(text: &str) -> Option<(f64, bool)> {
    for (unit, micros) in [("ns", 1e-3), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Some((number.parse::<f64>().ok()? * micros, true));
        }
    }
    text.contains('.').then(|| text.parse().ok()).flatten().map(|number| (number, false))
}

#[test]
fn what_differs_is_seen() {
    assert!(alike("a 41.0738s, 3µs, 1.0, 5", "a 41.073801s, 3µs, 1.0000000000000002, 5"));
    for other in [
        "a 41.073802s, 3µs, 1.0, 5",
        "a 41.0738s, 3ms, 1.0, 5",
        "a 41.0738s, 3µs, 1.1, 5",
        "a 41.0738s, 3µs, 1.0, 6",
        "a 41.0738s, 3µs, 1.0",
    ] {
        assert!(!alike("a 41.0738s, 3µs, 1.0, 5", other), "{other}");
    }
}

/// Totals must be what the ledger holds, and every lane's what its entries hold.
fn totals_equal_the_ledger(
    connection: &mut redis::Connection,
    prefix: &str,
    used: Amounts,
) -> Result<(), TestCaseError> {
    let key = |what: &str| format!("{prefix}:v1:{{test:model}}:{what}");
    let ids: Vec<String> =
        redis::cmd("ZRANGE").arg(key("ledger")).arg(0).arg(-1).query(connection).unwrap();
    let mut sum = PerDimension::<f64>::default();
    for id in &ids {
        let entry: Vec<u8> =
            redis::cmd("HGET").arg(key("entries")).arg(id).query(connection).unwrap();
        for (dimension, bytes) in Dimension::ALL.into_iter().zip(entry[19..].chunks(8)) {
            sum[dimension] += f64::from_le_bytes(bytes.try_into().unwrap());
        }
    }
    let entries: usize = redis::cmd("HLEN").arg(key("entries")).query(connection).unwrap();
    let leases: usize = redis::cmd("ZCARD").arg(key("leases")).query(connection).unwrap();
    prop_assert_eq!(
        entries,
        ids.len() + leases,
        "an entry without a place in the ledger or a lease"
    );
    for (dimension, sum) in sum.iter() {
        prop_assert!(
            (sum - used[dimension] as f64).abs() < 0.5,
            "ledger {} total {}",
            sum,
            used[dimension]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// The mechanism in memory and the scripts say the same to any history, to the microsecond; totals
    /// equal the ledger; what is admitted keeps within every window at the moment of admission.
    #[test]
    fn scripts_and_twin_agree(kind in 0_u8..3, settled in any::<bool>(), steps in proptest::collection::vec(step(), 1..120)) {
        let model = || match kind {
            0 => lanes_and_dimensions(),
            kind => learning(kind == 2),
        };
        let prefix = unique("test");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let Some(shared) = in_redis(model(), &prefix) else { return Ok(()) };
        let local = in_memory(model());
        let mut connection = Redis::shared().unwrap().connection();
        runtime.block_on(async {
            if settled {
                shared.settled_down().await;
                local.settled_down().await;
            } else {
                assert_eq!(shared.reserve(&shared.ask(1)).await, local.reserve(&local.ask(1)).await);
            }
        });
        let (mut shared_tickets, mut local_tickets) = (vec![None; 120], vec![None; 120]);
        runtime.block_on(async {
            for (number, step) in steps.iter().enumerate() {
                let before = local.store.inspect(&local.model).await.unwrap();
                shared.store.inspect(&shared.model).await.unwrap();
                let said = carry_out(&shared, &mut shared_tickets, step).await;
                let twin_said = carry_out(&local, &mut local_tickets, step).await;
                prop_assert!(alike(&said, &twin_said), "step {number} {step:?}: {said}, and the twin {twin_said}");
                let (left, right) = (shared.store.inspect(&shared.model).await.unwrap(), local.store.inspect(&local.model).await.unwrap());
                let (scripts, twin) = (format!("{left:?}"), format!("{right:?}"));
                prop_assert!(alike(&scripts, &twin), "after step {number} {step:?}: {scripts}, and the twin {twin}");
                if said.starts_with("Granted") && left.reservations > before.reservations {
                    for dimension in Dimension::ALL {
                        let (now, before) = (left.get(dimension), before.get(dimension));
                        let window = now.plan.map_or(f64::INFINITY, |plan| plan.window.value);
                        let within = now.used <= before.used || now.used as f64 <= window + 1.0;
                        prop_assert!(within, "{} over its window", dimension);
                    }
                    prop_assert!(left.in_flight.limit == 0 || left.in_flight.used <= left.in_flight.limit, "too many at once");
                    let lanes: u64 = left.lanes.iter().map(|lane| lane.used.combined).sum();
                    prop_assert_eq!(lanes, left.get(Dimension::Combined).used, "lanes add up");
                }
            }
            let used = shared.store.inspect(&shared.model).await.unwrap().used();
            totals_equal_the_ledger(&mut connection, &prefix, used)
        })?;
    }
}

#[tokio::test]
async fn every_key_has_a_time_to_live_and_the_model_s_hash_tag() {
    let prefix = unique("test");
    let mut model = simple(2_000);
    model.limits.requests_per_day = Some(1_000);
    let Some(rig) = in_redis(model, &prefix) else { return };
    rig.settled_down().await;
    // One call outlives the window and holds a lease; another leaves a queue, a lesson, a pause and a
    // line in the log.
    rig.reserve(&rig.ask(10)).await;
    rig.advance(Duration::from_secs(61));
    let (ask, other) = (rig.ask(50), rig.ask(10));
    rig.reserve(&other).await;
    rig.reserve(&ask).await;
    rig.refused(&rig.ask(2_000)).await;
    let sample = UsageSample { estimated_input: 10, input: 9, output: 3 };
    let pause = Pause { length: Duration::from_secs(9), reason: "429".to_owned() };
    let taught = Settlement {
        sample: Some(sample),
        template: 5,
        ..Settlement::used(&ask.reservation, Amounts::call(5, 5))
    };
    rig.store.settle(&rig.model, &taught).await.unwrap();
    rig.store.keep_tasks(true);
    rig.store
        .settle(
            &rig.model,
            &Settlement {
                signal: ProviderSignal::Refused,
                pause: Some(pause),
                ..Settlement::released(&other.reservation)
            },
        )
        .await
        .unwrap();
    let mut connection = Redis::shared().unwrap().connection();
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut connection).unwrap();
    // Ledger, entries, state, leases, day, learned, tenants, gate, log, known, and the numbers of lanes.
    assert_eq!(keys.len(), 11, "{keys:?}");
    for key in keys {
        // The numbers of lanes are those of all models.
        let tagged = key.starts_with(&format!("{prefix}:v1:{{test:model}}:"));
        assert!(tagged || key == format!("{prefix}:v1:lanes"), "{key}");
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(ttl > 0, "{key} lives for ever");
    }
}

/// What a worker of this version does beside one of a later version, which keeps another layout.
#[tokio::test]
async fn a_newer_layout_is_left_alone_and_said_so() {
    let prefix = unique("test");
    let Some(rig) = in_redis(lanes_and_dimensions(), &prefix) else { return };
    rig.reserve(&rig.ask(100)).await;
    let mut connection = Redis::shared().unwrap().connection();
    let state = format!("{prefix}:v1:{{test:model}}:state");
    redis::cmd("SETRANGE")
        .arg(&state)
        .arg(0)
        .arg(&4.0_f64.to_le_bytes())
        .exec(&mut connection)
        .unwrap();
    let before: Vec<u8> = redis::cmd("GET").arg(&state).query(&mut connection).unwrap();
    let error = rig.store.reserve(&rig.model, &rig.ask(100)).await.unwrap_err().to_string();
    assert!(error.contains("layout 4") && error.contains("update it"), "{error}");
    assert!(matches!(rig.store.inspect(&rig.model).await, Err(tidegate_quota::Error::Outdated(_))));
    let after: Vec<u8> = redis::cmd("GET").arg(&state).query(&mut connection).unwrap();
    assert_eq!(before, after, "nothing was written");
    let url = &Redis::shared().unwrap().url;
    let options = tidegate_quota::Options {
        key_prefix: prefix,
        answer_within: PATIENCE,
        ..Default::default()
    };
    let quota = Quota::with_redis(url, [rig.model.clone()], options).unwrap();
    let request = Request::new(rig.model.id.clone(), "a").tokens(1, 1);
    assert!(matches!(quota.admit(&request).await, Err(tidegate_quota::Refused::Outdated(_))));
    let ended = quota.keep_alive("worker", std::future::pending()).await;
    assert!(matches!(ended, Err(tidegate_quota::Error::Outdated(_))), "{ended:?}");
}

/// A spent day closes the gate for longer than a silent model's state lives otherwise.
#[tokio::test]
async fn a_gate_outlives_no_pause_and_no_pause_its_gate() {
    let prefix = unique("test");
    let Some(rig) = in_redis(lanes_and_dimensions(), &prefix) else { return };
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    let day = Duration::from_secs(86_400);
    let spent = Settlement {
        signal: ProviderSignal::Exhausted,
        pause: Some(Pause { length: day, reason: "spent".to_owned() }),
        ..Settlement::used(&ask.reservation, Amounts::call(1, 0))
    };
    rig.store.settle(&rig.model, &spent).await.unwrap();
    let mut connection = Redis::shared().unwrap().connection();
    for what in ["state", "gate"] {
        let key = format!("{prefix}:v1:{{test:model}}:{what}");
        let left: u64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left + 10_000 >= 86_400_000, "{what} lives for {left} ms");
    }
}

/// What has left the window never keeps a call out, however much it is.
#[tokio::test]
async fn after_a_silence_the_first_call_finds_the_window_empty() {
    let roomy = model_with_lanes(limits(5_000), tidegate_quota::Lanes::single());
    let Some(rig) = in_redis(roomy, &unique("test")) else { return };
    rig.settled_down().await;
    for _ in 0..1_000 {
        assert_eq!(rig.reserve(&rig.ask(5)).await, Decision::Granted);
    }
    rig.refused(&rig.ask(5)).await;
    rig.advance(Duration::from_secs(130));
    assert_eq!(rig.reserve(&rig.ask(5_000)).await, Decision::Granted);
}

#[tokio::test]
async fn a_flushed_server_lets_no_burst_through() {
    let prefix = unique("test");
    let model = model_with_lanes(
        Limits { burst: Duration::from_secs(1), ..limits(60_000) },
        tidegate_quota::Lanes::single(),
    );
    let Some(rig) = in_redis(model, &prefix) else { return };
    let mut connection = Redis::shared().unwrap().connection();
    let (mut admitted, mut turn) = (0, None);
    for millis in 0..20_000_u64 {
        rig.at(START + millis * 1_000);
        if millis == 10_000 {
            let keys: Vec<String> =
                redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut connection).unwrap();
            redis::cmd("DEL").arg(keys).exec(&mut connection).unwrap();
        }
        if millis % 500 == 0 {
            // As a worker does.
            rig.store.inspect(&rig.model).await.unwrap();
        }
        match rig.reserve(&Ask { ticket: turn, ..rig.ask(100) }).await {
            Decision::Granted => (admitted, turn) = (admitted + 100, None),
            Decision::Wait { ticket, .. } => turn = Some(ticket),
            other => panic!("{other:?}"),
        }
    }
    // 1,000 tokens a second for 20 s and a second ahead: what was drawn is remembered.
    assert!((19_500..=21_500).contains(&admitted), "{admitted} tokens in 20 s");
}

#[tokio::test]
async fn lost_scripts_are_sent_again() {
    let Some(rig) = in_redis(lanes_and_dimensions(), &unique("test")) else { return };
    let mut connection = Redis::shared().unwrap().connection();
    for _ in 0..3 {
        redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
        assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
        rig.advance(Duration::from_secs(5));
    }
}

/// One round trip to admit and one to settle, counted by the server.
#[tokio::test]
async fn one_round_trip_each() {
    let Some(server) = Redis::start() else { return };
    let model = simple(100_000);
    let quota = Quota::with_redis(
        &server.url,
        [model.clone()],
        tidegate_quota::Options { answer_within: PATIENCE, ..Default::default() },
    )
    .unwrap();
    let scripts_run = || {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query(&mut server.connection()).unwrap();
        let calls = |command: &str| {
            let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
            line.map_or(0, |line| line.split(['=', ',']).nth(1).unwrap().parse::<u64>().unwrap())
        };
        calls("evalsha") + calls("eval")
    };
    let request = |number: u32| Request::new(model.id.clone(), format!("a{number}")).tokens(10, 10);
    quota.admit(&request(0)).await.unwrap().settle(&tidegate_types::Usage::default()).await;
    let before = scripts_run();
    let permit = quota.admit(&request(1)).await.unwrap();
    assert_eq!(scripts_run() - before, 1);
    permit.settle(&tidegate_types::Usage::default()).await;
    // One that is handed the policy's task writes a plan.
    assert!((2..=3).contains(&(scripts_run() - before)));
}

#[test]
fn a_bad_call_answers_an_error_and_changes_nothing() {
    let Some(server) = Redis::shared() else { return };
    let mut connection = server.connection();
    let prefix = unique("test");
    let call = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
    let model = [6e7, 9e7, 0.0, 0.0, 0.0, 7.0, 1.0, 1.0, 1.0];
    let text = common::joined("reserve-7");
    let pack = |numbers: &[f64]| {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
    };
    let mut reserve = |id: &str, call: &[u8], model: &[u8]| {
        let keys = ["ledger", "entries", "state", "leases", "day", "learned", "tenants"]
            .map(|what| format!("{prefix}:v1:{{a:b}}:{what}"));
        redis::cmd("EVAL")
            .arg(&text)
            .arg(7)
            .arg(&keys)
            .arg(id)
            .arg(call)
            .arg(model)
            .arg("tenant")
            .query::<Vec<i64>>(&mut connection)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        for index in 0..call.len() {
            let mut call = call;
            call[index] = bad;
            let error = reserve("id", &pack(&call), &pack(&model)).unwrap_err().to_string();
            assert!(
                error.contains("argument 2") && error.contains(&format!("number {}", index + 1)),
                "{bad}: {error}"
            );
        }
        for index in 0..model.len() {
            let mut model = model;
            model[index] = bad;
            let error = reserve("id", &pack(&call), &pack(&model)).unwrap_err().to_string();
            assert!(
                error.contains("argument 3") && error.contains(&format!("number {}", index + 1)),
                "{bad}: {error}"
            );
        }
    }
    let mut other_lane = call;
    other_lane[0] = 2.0;
    for (error, says) in [
        (reserve("", &pack(&call), &pack(&model)), "argument 1"),
        (reserve("id", &pack(&other_lane), &pack(&model)), "a call in a lane of the quota"),
        (reserve("id", b"text", &pack(&model)), "argument 2"),
        (reserve("id", &pack(&call[..8]), &pack(&model)), "at least 9"),
        (reserve("id", &pack(&call), &pack(&model[..8])), "at least 9"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("TIDEGATE") && error.contains(says), "{says}: {error}");
    }
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut server.connection()).unwrap();
    assert!(keys.is_empty(), "{keys:?}");
    assert_eq!(reserve("id", &pack(&call), &pack(&model)).unwrap()[0], 6, "there is no plan");
}

/// Many tasks race for a small limit on the server's own clock; no window ever holds more than the
/// limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_never_exceeds_the_limit() {
    let Some(server) = Redis::shared() else { return };
    let limits = Limits {
        margin: 1.0,
        window: Duration::from_secs(1),
        burst: Duration::from_millis(50),
        ..Limits::default().with(Dimension::Combined, 5_000)
    };
    let model = model_with_lanes(limits, tidegate_quota::Lanes::single());
    let store =
        redis_store::Store::open_within(&server.url, &unique("test"), PAUSE_TTL, PATIENCE).unwrap();
    let started = std::time::Instant::now();
    let admissions = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (store, model, admissions) =
                (store.clone(), model.clone(), std::sync::Arc::clone(&admissions));
            tokio::spawn(async move {
                let mut turn = None;
                for number in 0..u32::MAX {
                    if started.elapsed() > Duration::from_secs(4) {
                        break;
                    }
                    let ask = Ask {
                        ticket: turn,
                        ..ask(format!("{task}-{number}"), Amounts::call(100, 0))
                    };
                    match store.reserve(&model, &ask).await.unwrap().0 {
                        Decision::Granted => {
                            turn = None;
                            admissions.lock().unwrap().push(100);
                        }
                        Decision::Wait { wait, ticket, .. } => {
                            turn = Some(ticket);
                            tokio::time::sleep(wait).await;
                        }
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let total: u64 = admissions.lock().unwrap().iter().sum();
    // In T seconds at most T + 1 windows; a generous lower bound shows that the race does not
    // starve itself.
    assert!(total <= 5 * 5_000, "{total}");
    assert!(total >= 2 * 5_000, "{total}");
}

/// The reference model must itself be right about time: it is what a worker falls back to.
#[tokio::test]
async fn the_model_in_memory_runs_on_a_clock_of_its_own() {
    let store = memory::Store::new(Duration::from_secs(300));
    let model = model_with_lanes(
        Limits { window: Duration::from_millis(50), ..limits(100) },
        tidegate_quota::Lanes::single(),
    );
    let ask = |id: &str, ticket| Ask { ticket, ..ask(id, Amounts::call(100, 0)) };
    assert_eq!(store.reserve(&model, &ask("a", None)).await.unwrap().0, Decision::Granted);
    let Decision::Wait { wait, ticket, .. } =
        store.reserve(&model, &ask("b", None)).await.unwrap().0
    else {
        panic!("full")
    };
    assert!(wait <= Duration::from_millis(50));
    tokio::time::sleep(wait + Duration::from_millis(1)).await;
    assert_eq!(store.reserve(&model, &ask("b", Some(ticket))).await.unwrap().0, Decision::Granted);
    assert_eq!(START % SECOND, 0);
}

/// How much may go, as the time that it takes at an even pace.
async fn room(rig: &Rig<redis_store::Store>) -> Duration {
    let settlement = Settlement::released("nothing");
    rig.store.settle(&rig.model, &settlement).await.unwrap().2
}

/// Ends a call; the provider's meter says that so much is used.
async fn told(rig: &Rig<redis_store::Store>, ask: &Ask, used: u64) {
    let used = PerDimension { combined: Some(used), ..PerDimension::default() };
    let meter = Meter { used, ..Meter::default() };
    let settlement = Settlement { meter, ..Settlement::used(&ask.reservation, ask.amounts) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

fn simple(limit: u64) -> ModelQuota {
    model_with_lanes(limits(limit), tidegate_quota::Lanes::single())
}

#[tokio::test]
async fn what_is_admitted_while_the_policy_runs_counts() {
    let Some(rig) = in_redis(simple(6_000), &unique("test")) else { return };
    rig.settled_down().await;
    rig.advance(Duration::from_secs(1));
    rig.store.keep_tasks(true);
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    told(&rig, &ask, 600).await;
    for _ in 0..1_000 {
        assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    }
    assert_eq!(room(&rig).await, Duration::from_secs(49), "100 and 1,000 of 100 a second");
    assert_eq!(rig.store.end_tasks(&rig.model, false).await.unwrap(), [true]);
    assert_eq!(room(&rig).await, Duration::from_secs(44), "and 500 that others use");
}

#[tokio::test]
async fn the_newer_program_s_plan_is_in_force() {
    let prefix = unique("test");
    let program = |limit, began| {
        let rig = in_redis(simple(limit), &prefix)?;
        Some(Rig { store: rig.store.clone().begun_at(began), ..rig })
    };
    let (Some(old), Some(new), Some(newest)) =
        (program(1_000, 1), program(2_000, 2), program(3_000, 3))
    else {
        return;
    };
    let at = |second: u64| [&old, &new, &newest].map(|rig| rig.at(START + second * SECOND));
    let limit = async |rig: &Rig<redis_store::Store>| {
        let (ask, said) = (rig.ask(1), unique("id"));
        let ask = Ask { reservation: said.clone(), ..ask };
        let _ = rig.reserve(&ask).await;
        rig.store.settle(&rig.model, &Settlement::released(&said)).await.unwrap();
        rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).limit
    };
    at(0);
    assert_eq!(limit(&old).await, 1_000);
    at(59);
    assert_eq!(limit(&new).await, 1_000, "at most once a minute");
    at(60);
    assert_eq!(limit(&new).await, 2_000);
    at(61);
    assert_eq!((limit(&old).await, limit(&newest).await), (2_000, 2_000));
    at(3_600);
    assert_eq!(limit(&old).await, 2_000, "an older program never takes it back");
    assert_eq!(limit(&newest).await, 3_000);
    assert_eq!((limit(&new).await, limit(&old).await), (3_000, 3_000));
}

#[tokio::test]
async fn a_server_that_has_forgotten_all_is_told_by_a_program_that_remembers() {
    let Some(server) = Redis::start() else { return };
    let rig = |model| {
        let store = redis_store::Store::open_within(&server.url, "test", PAUSE_TTL, PATIENCE);
        let store = store.unwrap();
        store.set_test_clock(START);
        (store, model)
    };
    let flush = || redis::cmd("FLUSHALL").exec(&mut server.connection()).unwrap();
    let decide = async |(store, model): &(redis_store::Store, ModelQuota), id: &str, tokens| {
        store.reserve(model, &ask(id, Amounts::call(tokens, 0))).await.unwrap().0
    };
    let waits = |decision: Decision| match decision {
        Decision::Wait { wait, .. } => wait,
        other => panic!("{other:?}"),
    };
    let ended = async |(store, model): &(redis_store::Store, ModelQuota), id: &str| {
        store.settle(model, &Settlement::used(id, Amounts::default())).await.unwrap();
    };
    let (one, other) = (rig(simple(60_000)), rig(simple(60_000)));
    assert_eq!(decide(&one, "first", 0).await, Decision::Granted);
    ended(&one, "first").await;
    assert_eq!(decide(&one, "large", 40_000).await, Decision::Granted);
    let seen = one.0.inspect(&one.1).await.unwrap();
    flush();
    let wait = waits(decide(&one, "next", 30_000).await);
    assert!(wait <= Duration::from_secs(10) && !wait.is_zero(), "40,000 are drawn: {wait:?}");
    let again = one.0.inspect(&one.1).await.unwrap();
    assert_eq!(seen.get(Dimension::Combined).plan, again.get(Dimension::Combined).plan);
    // One that remembers nothing begins as on the first day.
    flush();
    assert_eq!(decide(&other, "a", 15_000).await, Decision::Granted, "a quarter");
    let wait = waits(decide(&other, "b", 15_000).await);
    assert!(!wait.is_zero(), "{wait:?}");
}

/// A server that is short of memory evicts any key: what is left is counted anew.
#[tokio::test]
async fn what_an_eviction_leaves_belongs_together() {
    let keys = ["ledger", "entries", "state", "leases", "tenants:1", "known", "log", "learned:0"];
    for evicted in keys {
        let prefix = unique("test");
        let Some(rig) = in_redis(lanes_and_dimensions(), &prefix) else { return };
        rig.settled_down().await;
        let mut connection = Redis::shared().unwrap().connection();
        let mut asks = Vec::new();
        for _ in 0..3 {
            asks.push(rig.ask(50));
            rig.reserve(asks.last().unwrap()).await;
            rig.advance(Duration::from_secs(25));
        }
        let sample = Some(UsageSample { estimated_input: 10, input: 9, output: 3 });
        let used = Settlement { sample, ..Settlement::used("r1", Amounts::call(60, 0)) };
        rig.store.settle(&rig.model, &used).await.unwrap();
        let key = format!("{prefix}:v1:{{test:model}}:{evicted}");
        redis::cmd("DEL").arg(&key).exec(&mut connection).unwrap();
        for _ in 0..4 {
            rig.advance(Duration::from_secs(31));
            let decision = rig.reserve(&rig.ask(10)).await;
            assert_eq!(decision, Decision::Granted, "without {evicted}");
            let seen = rig.store.inspect(&rig.model).await.unwrap();
            totals_equal_the_ledger(&mut connection, &prefix, seen.used()).unwrap();
            let lanes: u64 = seen.lanes.iter().map(|lane| lane.in_flight).sum();
            assert_eq!(seen.in_flight.used, lanes, "without {evicted}");
        }
    }
}
