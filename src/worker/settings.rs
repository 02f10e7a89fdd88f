//! What operators have set for the running fleet (`tidegate limits set`), beside Redis: `[storage]
//! state`. It is written there every few seconds, and set again when Redis has come back empty.
//!
//! Redis holds a mark that nothing else explains: where it is missing, everything is. It is another
//! one whenever limits were set, so that the models need not be asked while nobody sets any. Pauses
//! end within minutes by themselves, and are not kept.

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

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(10);

/// How often each model is asked although the mark is the same: limits that
/// nobody uses end.
const ASK_ALL: Duration = Duration::from_secs(600);

/// The limits that are set, by their key, of each model that has some.
type Settings = BTreeMap<ModelId, BTreeMap<String, u64>>;

/// Keeps what operators set, until `stop` resolves.
pub async fn keep(quota: &Quota, state: Option<&Location>, stop: impl Future<Output = ()>) {
    let Some(state) = state else { return stop.await };
    let mut stop = std::pin::pin!(stop);
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept = Kept::new(state.child("limits.json"));
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
        }
        // While Redis is away there is nothing to keep.
        if let Err(error) = kept.look(quota).await
            && !quota.is_degraded()
        {
            warn!("what operators have set is not kept: {error:#}");
        }
    }
}

/// What is kept of it.
struct Kept {
    object: Location,
    /// What lies there, if that is known.
    written: Option<Settings>,
    /// The mark when the models were asked, and when that was.
    asked: Option<(String, Instant)>,
}

impl Kept {
    fn new(object: Location) -> Self {
        Self { object, written: None, asked: None }
    }

    /// Writes what is set, or sets what was written.
    async fn look(&mut self, quota: &Quota) -> anyhow::Result<()> {
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
        let settings = set(quota).await?;
        // A loss in between would look like limits that were cleared.
        if quota.mark().await?.as_ref() != Some(&mark) {
            return Ok(());
        }
        if self.written.is_none() {
            // Another worker has written the same, as a rule.
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

async fn set(quota: &Quota) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    let held = quota.operator_holds().await?;
    // Those that end by themselves are not kept: nobody would know when.
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
        let (first, mut kept) = (quota(), Kept::new(object.clone()));
        kept.look(&first).await.unwrap();
        kept.look(&first).await.unwrap();
        assert!(kept.asked.is_some(), "nothing is set, which is known");
        let changes = PerLimit::from_fn(|limited| match limited {
            Limited::Window(Dimension::Combined) => Change::Set(777),
            Limited::InFlight => Change::Set(9),
            Limited::Window(_) => Change::Keep,
        });
        first.set_limits(&id, &changes).await.unwrap();
        let before = in_force(&first).await;
        kept.look(&first).await.unwrap();

        redis.kill();
        redis.restart();
        let second = Quota::with_redis(&redis.url, [model.clone()], patient()).unwrap();
        let mut kept = Kept::new(object.clone());
        assert_eq!(in_force(&second).await, [None, None], "Redis has lost it");
        kept.look(&second).await.unwrap();
        assert_eq!(in_force(&second).await, before);
        // What is cleared stays cleared.
        let clear = PerLimit::from_fn(|_| Change::Clear);
        second.set_limits(&id, &clear).await.unwrap();
        kept.look(&second).await.unwrap();
        kept.look(&second).await.unwrap();
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
        let mut kept = Kept::new(object);
        kept.look(&quota).await.unwrap();
        kept.look(&quota).await.unwrap();
        let before = asked();
        for _ in 0..40 {
            kept.look(&quota).await.unwrap();
        }
        assert_eq!(asked(), before);
        // What is set is seen by the next look.
        let id: ModelId = "a:7".parse().unwrap();
        let changes = PerLimit::from_fn(|_| Change::Set(500));
        quota.set_limits(&id, &changes).await.unwrap();
        kept.look(&quota).await.unwrap();
        assert!(kept.written.as_ref().unwrap().contains_key(&id));
        // So is that it will end by itself.
        quota.set_limits_expiry(&id, Some(Duration::from_secs(60))).await.unwrap();
        kept.look(&quota).await.unwrap();
        assert!(kept.written.as_ref().unwrap().is_empty());
    }
}
