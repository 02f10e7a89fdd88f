//! Learned use of calls, and models that share a quota.

use super::*;

pub(super) async fn expectations_are_learned<S: Store>(rig: &Rig<S>) {
    // Calls are weighted by latency: (100 × 1 s + 400 × 9 s) / 10 s = 370 tokens, where a plain
    // mean gives 250.
    let mut last = None;
    for round in 0..20_u64 {
        let ask = rig.ask(100);
        rig.reserve(&ask).await;
        let (latency, output) = if round % 2 == 0 { (1, 100) } else { (9, 400) };
        rig.advance(Duration::from_secs(latency));
        let sample = UsageSample { estimated_input: 1_000, input: 1_250, output };
        let settlement = Settlement { sample: Some(sample), ..settled_as(&ask, 100) };
        last = rig.store.settle(&rig.model, &settlement).await.unwrap().1;
        assert!(last.is_some(), "one call teaches");
    }
    let learned = last.unwrap();
    assert!((learned.input_ratio - 1.25).abs() < 1e-6, "{learned:?}");
    // The first call, a short one, has counted twice.
    assert!((367..=374).contains(&learned.output), "{learned:?}");
}

/// Cached input is learned from hits, and falls at the first miss.
pub(super) async fn cached_input_is_learned<S: Store>(rig: &Rig<S>) {
    let call = async |cached| {
        let ask = rig.ask(100);
        rig.reserve(&ask).await;
        rig.advance(Duration::from_secs(1));
        let sample = UsageSample { estimated_input: 1_000, input: 1_000, output: 10 };
        let settlement = Settlement { sample: Some(sample), cached, ..settled_as(&ask, 100) };
        let known = rig.store.settle(&rig.model, &settlement).await.unwrap().1;
        known.map_or(0, |known| known.cached)
    };
    for _ in 0..10 {
        call(Some(800)).await;
    }
    let learned = call(Some(800)).await;
    assert!((790..=800).contains(&learned), "{learned}");
    assert_eq!(call(None).await, learned, "what is not known teaches nothing");
    assert_eq!(call(Some(0)).await, 0, "a miss");
    assert_eq!(call(Some(800)).await, 400, "and the first hit after it");
}

/// Two models share one quota, and learn the use of their calls separately.
pub(super) async fn models_of_a_group_share_one_quota<S: Store>(rig: &Rig<S>) {
    let other = ModelQuota { id: "test:other".parse().unwrap(), ..rig.model.clone() };
    for _ in 0..3 {
        let ask = rig.ask(1);
        rig.store.reserve(&rig.model, &ask).await.unwrap();
        let sample = UsageSample { estimated_input: 1, input: 1, output: 7 };
        let used = Settlement::used(&ask.reservation, ask.amounts);
        let settlement = Settlement { sample: Some(sample), ..used };
        rig.store.settle(&rig.model, &settlement).await.unwrap();
    }
    let known = async |model: &ModelQuota| {
        let ask = Ask { curious: true, ..rig.ask(1) };
        rig.store.reserve(model, &ask).await.unwrap().1.is_some()
    };
    assert_eq!((known(&rig.model).await, known(&other).await), (true, false));
    assert_eq!(rig.reserve(&rig.ask(600)).await, Decision::Granted);
    let (decision, _) = rig.store.reserve(&other, &rig.ask(600)).await.unwrap();
    assert!(matches!(decision, Decision::Wait { .. }), "{decision:?}");
    rig.store.pause(&other, &pause(9).unwrap()).await.unwrap();
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().pause, Duration::from_secs(9));
}
