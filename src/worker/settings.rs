//! What operators have set for the running fleet (`tidegate limits set`), beside Redis: `[storage]
//! state`. It is written there every few seconds, and set again when Redis has come back empty.
//!
//! Redis holds a mark that nothing else explains: where it is missing, everything is. Pauses end
//! within minutes by themselves, and are not kept.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use tidegate_activities::storage::Location;
use tidegate_quota::{Change, Limited, PerLimit, Quota, store::LimitChanges};
use tidegate_types::ModelId;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(10);

/// The limits that are set, by their key, of each model that has some.
type Settings = BTreeMap<ModelId, BTreeMap<String, u64>>;

/// Keeps what operators set, until `stop` resolves.
pub async fn keep(quota: &Quota, state: Option<&Location>, stop: impl Future<Output = ()>) {
    let Some(state) = state else { return stop.await };
    let mut stop = std::pin::pin!(stop);
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (object, mut written) = (state.child("limits.json"), None);
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
        }
        // While Redis is away there is nothing to keep.
        if let Err(error) = look(quota, &object, &mut written).await
            && !quota.is_degraded()
        {
            warn!("what operators have set is not kept: {error:#}");
        }
    }
}

/// Writes what is set, or sets what was written. `written` is what lies in the store, if that is
/// known.
async fn look(
    quota: &Quota,
    object: &Location,
    written: &mut Option<Settings>,
) -> anyhow::Result<()> {
    let Some(mark) = quota.mark().await? else {
        if let Some(bytes) = object.read_if_there().await? {
            let kept: Settings = serde_json::from_slice(&bytes)
                .with_context(|| format!("{object} is damaged; remove it"))?;
            restore(quota, &kept).await?;
        }
        quota.make_mark().await?;
        return Ok(());
    };
    let settings = set(quota).await?;
    // A loss in between would look like limits that were cleared.
    let is_same = quota.mark().await?.as_ref() == Some(&mark);
    if is_same && written.as_ref() != Some(&settings) {
        object.write(serde_json::to_vec_pretty(&settings)?).await?;
        *written = Some(settings);
    }
    Ok(())
}

async fn set(quota: &Quota) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    let held = quota.held().await?;
    // Those that end by themselves are not kept: nobody would know when.
    for model in quota.models().filter(|model| !held.limits.contains_key(&model.id)) {
        let seen = quota.inspect(&model.id).await?;
        let set = Limited::ALL
            .into_iter()
            .filter_map(|limited| Some((limited.key().to_owned(), seen.of(limited).set?)));
        let set: BTreeMap<String, u64> = set.collect();
        if !set.is_empty() {
            settings.insert(model.id.clone(), set);
        }
    }
    Ok(settings)
}

/// What has been set since the loss stays.
async fn restore(quota: &Quota, kept: &Settings) -> anyhow::Result<()> {
    let since = set(quota).await?;
    let known: Vec<ModelId> = quota.models().map(|model| model.id.clone()).collect();
    for (model, limits) in kept.iter().filter(|(model, _)| known.contains(model)) {
        let newer = |key: &str| since.get(model).is_some_and(|limits| limits.contains_key(key));
        let changes: LimitChanges =
            PerLimit::from_fn(|limited: Limited| match limits.get(limited.key()) {
                Some(limit) if !newer(limited.key()) => Change::Set(*limit),
                _ => Change::Keep,
            });
        quota.set_limits(model, &changes).await?;
        info!(%model, ?limits, "Redis had lost the limits that were set; they are set again");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_activities::Storage;
    use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options};
    use tidegate_testkit::Redis;

    use super::*;

    #[tokio::test]
    async fn what_was_set_survives_a_redis_that_comes_back_empty() {
        let Some(mut redis) = Redis::start() else { return };
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}", folder.path().canonicalize().unwrap().display());
        let object = Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        let object = object.child("limits.json");
        let limits = Limits::default().with(Dimension::Combined, 1_000);
        let lanes = Arc::new(Lanes::single());
        let id: ModelId = "a:b".parse().unwrap();
        let model = ModelQuota::new(id.clone(), limits, Charge::default(), lanes).unwrap();
        let quota = || Quota::with_redis(&redis.url, [model.clone()], Options::default()).unwrap();
        let in_force = async |quota: &Quota| {
            let seen = quota.inspect(&id).await.unwrap();
            [Limited::Window(Dimension::Combined), Limited::InFlight].map(|it| seen.of(it).set)
        };
        let (first, mut written) = (quota(), None);
        look(&first, &object, &mut written).await.unwrap();
        let changes = PerLimit::from_fn(|limited| match limited {
            Limited::Window(Dimension::Combined) => Change::Set(777),
            Limited::InFlight => Change::Set(9),
            Limited::Window(_) => Change::Keep,
        });
        first.set_limits(&id, &changes).await.unwrap();
        let before = in_force(&first).await;
        look(&first, &object, &mut written).await.unwrap();

        redis.kill();
        redis.restart();
        let second = Quota::with_redis(&redis.url, [model.clone()], Options::default()).unwrap();
        let mut written = None;
        assert_eq!(in_force(&second).await, [None, None], "Redis has lost it");
        look(&second, &object, &mut written).await.unwrap();
        assert_eq!(in_force(&second).await, before);
        // What is cleared stays cleared.
        let clear = PerLimit::from_fn(|_| Change::Clear);
        second.set_limits(&id, &clear).await.unwrap();
        look(&second, &object, &mut written).await.unwrap();
        look(&second, &object, &mut written).await.unwrap();
        assert_eq!(in_force(&second).await, [None, None]);
    }
}
