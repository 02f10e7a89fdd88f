//! Keys: their times to live, their layout.

use super::*;

#[tokio::test]
async fn every_key_has_a_time_to_live_and_the_model_s_hash_tag() {
    let prefix = unique("test");
    let mut model = simple(2_000);
    model.limits.requests_per_day = Some(1_000);
    let Some(rig) = in_redis(model, &prefix) else { return };
    rig.settled_down().await;
    // One call outlives the window and holds a lease; another leaves a queue, a learned template, a
    // pause and a line in the log.
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
                signal: ProviderSignal::RateLimited,
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
        // The numbers of lanes are shared by all models.
        let tagged = key.starts_with(&format!("{prefix}:v1:{{test:model}}:"));
        assert!(tagged || key == format!("{prefix}:v1:lanes"), "{key}");
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(ttl > 0, "{key} lives for ever");
    }
}

/// A worker of this version beside one of a later version with another layout.
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
    assert!(error.contains("layout 4") && error.contains("update this program"), "{error}");
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
