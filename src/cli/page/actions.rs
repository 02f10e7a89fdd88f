//! The actions of the page: those of `tidegate pause`, `resume` and `limits set`, and signals to a batch
//! and its cancellation.

use std::{fmt, time::Duration};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tidegate_quota::{Limited, PerLimit, Quota};
use tidegate_workflows::input;

use crate::{
    cli::{actions, format, snapshot::SnapshotCache},
    config::Config,
};

/// The longest duration of an override.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// One action.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) struct Action {
    action: What,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    batch: Option<String>,
    /// The reason: it is logged, and shown with a model's pause.
    #[serde(default)]
    why: String,
    /// The duration of a pause or a limit; without it, the pause or limit stays until it is
    /// cleared.
    #[serde(default)]
    seconds: Option<u64>,
    /// The key of the limit to set: `rpm`, `tpm` and so on.
    #[serde(default)]
    limit: Option<String>,
    /// The limit's new value.
    #[serde(default)]
    value: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Pause,
    Resume,
    Cancel,
    /// Starts an ended batch again: only failed documents are asked again.
    Retry,
    SetLimit,
    ClearLimits,
}

/// For the log: `set_limit openai:m tpm=500 for 1h 0m: why`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.serialize(&mut *f)?;
        let what = self.model.iter().chain(&self.batch);
        what.into_iter().try_for_each(|what| write!(f, " {}", what.escape_debug()))?;
        if let (Some(limit), Some(value)) = (&self.limit, self.value) {
            write!(f, " {}={value}", limit.escape_debug())?;
        }
        if let Some(seconds) = self.seconds {
            write!(f, " for {}", format::duration(Duration::from_secs(seconds)))?;
        }
        if !self.why.is_empty() {
            write!(f, ": {}", self.why.escape_debug())?;
        }
        Ok(())
    }
}

impl Action {
    /// Carries the action out.
    ///
    /// # Errors
    /// A sentence for the user: what is unknown or does not answer.
    pub(super) async fn carry_out(&self, cache: &SnapshotCache) -> anyhow::Result<()> {
        match (&self.model, &self.batch) {
            (Some(model), None) => self.on_model(&cache.config, &cache.quota, model).await,
            (None, Some(batch)) => self.on_batch(cache, batch).await,
            _ => bail!("name a model or a batch, and one of them"),
        }
    }

    async fn on_model(&self, config: &Config, limiter: &Quota, model: &str) -> anyhow::Result<()> {
        let length = self.length()?;
        match self.action {
            What::Pause => {
                let why = Some(self.why.as_str()).filter(|why| !why.trim().is_empty());
                let why = why.unwrap_or("paused from the page");
                actions::pause(config, limiter, model, length, why).await.map(drop)
            }
            What::Resume => actions::resume(limiter, model).await.map(drop),
            What::SetLimit => {
                let (wanted, value) = self.limit()?;
                let limits = PerLimit::from_fn(|limited| (limited == wanted).then_some(value));
                actions::set_limits(limiter, model, limits, length).await.map(drop)
            }
            What::ClearLimits => actions::clear_limits(limiter, model).await.map(drop),
            What::Cancel | What::Retry => bail!("that is done to batches"),
        }
    }

    async fn on_batch(&self, cache: &SnapshotCache, batch: &str) -> anyhow::Result<()> {
        let temporal = cache.temporal().await?;
        match self.action {
            What::Pause => temporal.signal(batch, "pause").await,
            What::Resume => temporal.signal(batch, "resume").await,
            // The server silently accepts the cancellation of an ended batch.
            What::Cancel if !temporal.describe(batch).await?.is_running() => {
                bail!("{batch} has ended")
            }
            What::Cancel => temporal.cancel(batch).await,
            What::Retry => {
                let input = temporal.first_input(batch).await?;
                let input = input::read(input).map_err(anyhow::Error::msg)?;
                match temporal.start(batch, &input).await? {
                    true => Ok(()),
                    false => bail!("{batch} runs; what fails is asked again when it has ended"),
                }
            }
            What::SetLimit | What::ClearLimits => bail!("that is done to models"),
        }
    }

    fn length(&self) -> anyhow::Result<Option<Duration>> {
        match self.seconds.map(Duration::from_secs) {
            Some(length) if length.is_zero() || length > LONGEST => {
                bail!("seconds must be from 1 to {}", LONGEST.as_secs())
            }
            length => Ok(length),
        }
    }

    fn limit(&self) -> anyhow::Result<(Limited, u64)> {
        let name = self.limit.as_deref().unwrap_or_default();
        let limited = Limited::ALL.into_iter().find(|limited| limited.key() == name);
        let keys = Limited::ALL.map(Limited::key).join(", ");
        let limited = limited.with_context(|| format!("limit must be one of {keys}"))?;
        let value = self.value.with_context(|| format!("value is missing: what {name} is to be"));
        Ok((limited, value?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options};
    use tidegate_types::ModelId;

    use super::*;

    #[tokio::test]
    async fn models_are_paused_and_their_limits_set_for_some_time() {
        let limits = Limits::default().with(Dimension::Combined, 1_000);
        let lanes = Arc::new(Lanes::single());
        let id: ModelId = "a:b".parse().unwrap();
        let model = ModelQuota::new(id.clone(), limits, Charge::default(), lanes).unwrap();
        let quota = Quota::in_memory([model], Options::default());
        let act = async |action: serde_json::Value| {
            let action: Action = serde_json::from_value(action).unwrap();
            let done = action.on_model(&Config::default(), &quota, "a:b").await;
            done.map_err(|error| error.to_string())
        };
        act(json!({"action": "pause", "why": "a \n holiday"})).await.unwrap();
        let seen = quota.inspect(&id).await.unwrap();
        assert_eq!((seen.reason.as_str(), seen.pause.is_zero()), ("a holiday", false));
        assert!(
            quota.operator_holds().await.unwrap().models.contains_key(&id),
            "until it is resumed"
        );
        act(json!({"action": "resume"})).await.unwrap();
        assert!(quota.inspect(&id).await.unwrap().pause.is_zero());
        act(json!({"action": "pause", "seconds": 60})).await.unwrap();
        assert!(!quota.operator_holds().await.unwrap().models.contains_key(&id), "for a minute");

        let set = json!({"action": "set_limit", "limit": "tpm", "value": 500, "seconds": 3600});
        act(set).await.unwrap();
        let tokens = Limited::Window(Dimension::Combined);
        assert_eq!(quota.inspect(&id).await.unwrap().for_limit(tokens).set, Some(500));
        assert!(quota.operator_holds().await.unwrap().limit_left(&id).unwrap().as_secs() > 3_500);
        act(json!({"action": "clear_limits"})).await.unwrap();
        assert_eq!(quota.inspect(&id).await.unwrap().for_limit(tokens).set, None);
        assert_eq!(quota.operator_holds().await.unwrap().limit_left(&id), None);

        for (bad, why) in [
            (
                json!({"action": "set_limit", "limit": "tpx", "value": 5}),
                "limit must be one of rpm",
            ),
            (json!({"action": "set_limit", "limit": "tpm"}), "value is missing"),
            (json!({"action": "set_limit", "limit": "tpm", "value": 0}), "would admit nothing"),
            (json!({"action": "pause", "seconds": 0}), "from 1 to"),
            (json!({"action": "pause", "seconds": 600}), "at most 5m (gate.pause-ttl)"),
            (json!({"action": "cancel"}), "done to batches"),
        ] {
            let error = act(bad).await.unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(serde_json::from_value::<Action>(json!({"action": "sink"})).is_err());
    }

    #[test]
    fn an_action_is_one_line_of_the_log() {
        let shown = |action| serde_json::from_value::<Action>(action).unwrap().to_string();
        assert_eq!(
            shown(json!({"action": "set_limit", "model": "a:b", "limit": "tpm", "value": 500,
                "seconds": 3600, "why": "too\nmuch"})),
            "set_limit a:b tpm=500 for 1h 0m: too\\nmuch"
        );
        assert_eq!(shown(json!({"action": "cancel", "batch": "x"})), "cancel x");
    }
}
