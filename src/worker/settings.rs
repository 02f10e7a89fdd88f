//! Keeps a copy of operators' settings for the running fleet (`tidegate limits set`) in `[storage]
//! state`: written every few seconds, and restored when Redis has come back empty.
//!
//! Redis holds a mark. If the mark is missing, Redis has lost everything. The mark changes whenever
//! limits are set, so that the models are asked only then. Pauses end within minutes and are not
//! copied.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use tidegate_activities::storage::Location;
use tidegate_quota::{Change, Limited, PerLimit, Quota, store::LimitChanges};
use tidegate_types::ModelId;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

/// How often the mark is checked.
const EVERY: Duration = Duration::from_secs(10);

/// Interval after which each model is asked even if the mark has not changed: unused limits end by
/// themselves.
const ASK_ALL: Duration = Duration::from_secs(600);

/// The limits that were set, by key, for each model that has any.
type Settings = BTreeMap<ModelId, BTreeMap<String, u64>>;

/// Copies operators' settings until `stop` resolves.
pub async fn run(quota: &Quota, state: Option<&Location>, stop: impl Future<Output = ()>) {
    let Some(state) = state else { return stop.await };
    let mut stop = std::pin::pin!(stop);
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut copy = SettingsCopy::new(state.child("limits.json"));
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
        }
        // While Redis is away, there is nothing to copy.
        if let Err(error) = copy.sync(quota).await
            && !quota.is_degraded()
        {
            warn!(
                "limits set by operators could not be copied to {} (storage.state): {error:#}",
                copy.object
            );
        }
    }
}

/// The copy of the settings.
struct SettingsCopy {
    object: Location,
    /// The stored content, if known.
    written: Option<Settings>,
    /// The mark at the last time that the models were asked, and that time.
    asked: Option<(String, Instant)>,
}

impl SettingsCopy {
    fn new(object: Location) -> Self {
        Self { object, written: None, asked: None }
    }

    /// Writes the current settings, or restores the stored ones.
    async fn sync(&mut self, quota: &Quota) -> anyhow::Result<()> {
        let Some(mark) = quota.mark().await? else {
            self.asked = None;
            if let Some(bytes) = self.object.read_if_there().await? {
                let kept: Settings = serde_json::from_slice(&bytes)
                    .with_context(|| format!("{} is damaged; remove it", self.object))?;
                restore(quota, &kept).await?;
            }
            quota.make_mark().await?;
            return Ok(());
        };
        let is_known = |(known, at): &(String, Instant)| *known == mark && at.elapsed() < ASK_ALL;
        if self.asked.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let settings = read_settings(quota).await?;
        // A loss of Redis in between would look like limits that were cleared.
        if quota.mark().await?.as_ref() != Some(&mark) {
            return Ok(());
        }
        if self.written.is_none() {
            // Usually another worker has written an equal copy.
            let there = self.object.read_if_there().await?;
            self.written = there.and_then(|there| serde_json::from_slice(&there).ok());
        }
        if self.written.as_ref() != Some(&settings) {
            self.object.write(serde_json::to_vec_pretty(&settings)?).await?;
            self.written = Some(settings);
        }
        quota.keep_mark().await?;
        self.asked = Some((mark, Instant::now()));
        Ok(())
    }
}

async fn read_settings(quota: &Quota) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    let held = quota.operator_holds().await?;
    // Limits with an end of their own are not copied: the copy does not know their end.
    for model in quota.models().filter(|model| !held.limits.contains_key(&model.id)) {
        let seen = quota.inspect(&model.id).await?;
        let set = Limited::ALL
            .into_iter()
            .filter_map(|limited| Some((limited.key().to_owned(), seen.for_limit(limited).set?)));
        let set: BTreeMap<String, u64> = set.collect();
        if !set.is_empty() {
            settings.insert(model.id.clone(), set);
        }
    }
    Ok(settings)
}

/// Restores the copy; settings made since the loss take precedence.
async fn restore(quota: &Quota, kept: &Settings) -> anyhow::Result<()> {
    let since = read_settings(quota).await?;
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
    use tidegate_testkit::{PATIENCE, Redis};

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
        let quota = || Quota::with_redis(&redis.url, [model.clone()], patient()).unwrap();
        let in_force = async |quota: &Quota| {
            let seen = quota.inspect(&id).await.unwrap();
            [Limited::Window(Dimension::Combined), Limited::InFlight]
                .map(|it| seen.for_limit(it).set)
        };
        let (first, mut copy) = (quota(), SettingsCopy::new(object.clone()));
        copy.sync(&first).await.unwrap();
        copy.sync(&first).await.unwrap();
        assert!(copy.asked.is_some(), "nothing is set, which is known");
        let changes = PerLimit::from_fn(|limited| match limited {
            Limited::Window(Dimension::Combined) => Change::Set(777),
            Limited::InFlight => Change::Set(9),
            Limited::Window(_) => Change::Keep,
        });
        first.set_limits(&id, &changes).await.unwrap();
        let before = in_force(&first).await;
        copy.sync(&first).await.unwrap();

        redis.kill();
        redis.restart();
        let second = Quota::with_redis(&redis.url, [model.clone()], patient()).unwrap();
        let mut copy = SettingsCopy::new(object.clone());
        assert_eq!(in_force(&second).await, [None, None], "Redis has lost it");
        copy.sync(&second).await.unwrap();
        assert_eq!(in_force(&second).await, before);
        // Limits that were cleared stay cleared.
        let clear = PerLimit::from_fn(|_| Change::Clear);
        second.set_limits(&id, &clear).await.unwrap();
        copy.sync(&second).await.unwrap();
        copy.sync(&second).await.unwrap();
        assert_eq!(in_force(&second).await, [None, None]);
    }

    fn patient() -> Options {
        Options { answer_within: PATIENCE, ..Options::default() }
    }

    #[tokio::test]
    async fn models_are_asked_when_limits_were_set_and_not_each_time() {
        let Some(redis) = Redis::start() else { return };
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}", folder.path().canonicalize().unwrap().display());
        let object = Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        let object = object.child("limits.json");
        let lanes = Arc::new(Lanes::single());
        let models = (0..50).map(|number| {
            let limits = Limits::default().with(Dimension::Combined, 1_000);
            let id = format!("a:{number}").parse().unwrap();
            ModelQuota::new(id, limits, Charge::default(), Arc::clone(&lanes)).unwrap()
        });
        let quota = Quota::with_redis(&redis.url, models, patient()).unwrap();
        let asked = || {
            let mut connection = redis.connection();
            let stats: String =
                redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
            let scripts = stats.lines().filter(|line| line.starts_with("cmdstat_evalsha:"));
            let calls = |line: &str| line.split(['=', ',']).nth(1)?.parse::<u64>().ok();
            scripts.filter_map(calls).sum::<u64>()
        };
        let mut copy = SettingsCopy::new(object);
        copy.sync(&quota).await.unwrap();
        copy.sync(&quota).await.unwrap();
        let before = asked();
        for _ in 0..40 {
            copy.sync(&quota).await.unwrap();
        }
        assert_eq!(asked(), before);
        // The next run sees new limits.
        let id: ModelId = "a:7".parse().unwrap();
        let changes = PerLimit::from_fn(|_| Change::Set(500));
        quota.set_limits(&id, &changes).await.unwrap();
        copy.sync(&quota).await.unwrap();
        assert!(copy.written.as_ref().unwrap().contains_key(&id));
        // It also sees that a limit will end by itself.
        quota.set_limits_expiry(&id, Some(Duration::from_secs(60))).await.unwrap();
        copy.sync(&quota).await.unwrap();
        assert!(copy.written.as_ref().unwrap().is_empty());
    }
}
