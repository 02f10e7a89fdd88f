//! Losses: after a silence, a flushed server, lost scripts, single keys.

use super::*;

/// Entries that have left the window never keep a call out, however many they are.
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

/// Eight thousand tenants have left a lane.
#[tokio::test]
async fn tenants_that_left_are_forgotten_however_many_they_are() {
    let prefix = unique("test");
    let Some(rig) = in_redis(simple(1_000), &prefix) else { return };
    rig.settled_down().await;
    let mut connection = Redis::shared().unwrap().connection();
    let key = format!("{prefix}:v1:{{test:model}}:tenants:1");
    let line = [1e6_f64.to_le_bytes(), 1e6_f64.to_le_bytes()].concat();
    let mut lines = redis::cmd("HSET");
    lines.arg(&key);
    for tenant in 0..8_200 {
        lines.arg(tenant).arg(&line[..]);
    }
    lines.exec(&mut connection).unwrap();
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
    let left: usize = redis::cmd("HLEN").arg(&key).query(&mut connection).unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_flushed_server_lets_no_burst_through() {
    let prefix = unique("test");
    let model = model_with_lanes(
        Limits { burst: Some(Duration::from_secs(1)), ..limits(60_000) },
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
            // As a worker would.
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

#[tokio::test]
async fn a_program_that_remembers_restores_a_flushed_server() {
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
    // A process that remembers nothing begins as on the first day.
    flush();
    assert_eq!(decide(&other, "a", 15_000).await, Decision::Granted, "a quarter");
    let wait = waits(decide(&other, "b", 15_000).await);
    assert!(!wait.is_zero(), "{wait:?}");
}

/// A server that is short of memory evicts any key: the totals are rebuilt from what is left.
#[tokio::test]
async fn after_an_eviction_the_rest_is_consistent() {
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
