//! What an operator does to models. The commands, the page and `tidegate top` read the input and show the
//! outcome.

use std::time::Duration;

use anyhow::Context;
use tidegate_quota::{Change, EXACT, Limited, PerLimit, Quota};
use tidegate_types::ModelId;

use crate::config::Config;

use super::{exit::usage, quota};

/// Closes a model's gate for the whole fleet, for `length` or until it is resumed. Returns the time for
/// which it is closed, if that is known.
///
/// # Errors
/// The model is unknown, the pause would be empty or longer than gate.pause-ttl, or Redis is away.
pub(super) async fn pause(
    config: &Config,
    limiter: &Quota,
    model: &str,
    length: Option<Duration>,
    reason: &str,
) -> anyhow::Result<(ModelId, Option<Duration>)> {
    check_length(length)?;
    let longest = config.gate.pause_ttl;
    if length.is_some_and(|length| length > *longest) {
        return Err(usage(format!(
            "a pause for a time is at most {longest} (gate.pause-ttl); leave the time out to pause until `tidegate resume {model}`"
        )));
    }
    let model = quota::known(limiter, model)?;
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let failed = || format!("{model} could not be paused; run `tidegate doctor`");
    let closed = match length {
        Some(length) => Some(limiter.pause(&model, length, &reason).await.with_context(failed)?),
        None => {
            limiter.hold_model(&model, &reason).await.with_context(failed)?;
            None
        }
    };
    Ok((model, closed))
}

/// Opens a model's gate for the whole fleet.
///
/// # Errors
/// The model is unknown, or Redis is away.
pub(super) async fn resume(limiter: &Quota, model: &str) -> anyhow::Result<ModelId> {
    let model = quota::known(limiter, model)?;
    let failed = || format!("{model} could not be resumed; run `tidegate doctor`");
    limiter.resume(&model).await.with_context(failed)?;
    Ok(model)
}

/// Sets the given limits of a model for the whole fleet, for `length` or until they are cleared.
///
/// # Errors
/// The model is unknown, a limit or the time is 0, a limit is too large, or Redis is away.
pub(super) async fn set_limits(
    limiter: &Quota,
    model: &str,
    limits: PerLimit<Option<u64>>,
    length: Option<Duration>,
) -> anyhow::Result<ModelId> {
    if let Some((limited, _)) = limits.iter().find(|(_, limit)| **limit == Some(0)) {
        return Err(usage(format!(
            "{} is 0, which would admit nothing; use `tidegate pause {model}` to stop the calls",
            limited.key()
        )));
    }
    if let Some((limited, _)) = limits.iter().find(|(_, limit)| **limit > Some(EXACT)) {
        let key = limited.key();
        return Err(usage(format!("{key} is above 2^53; leave it out to keep the limit in force")));
    }
    check_length(length)?;
    let model = quota::known(limiter, model)?;
    require_one_end(limiter, &model, &limits, length).await?;
    let changes = limits.map(|limit| limit.map_or(Change::Keep, Change::Set));
    let failed = || not_set(&model);
    // Set the end first: otherwise a failure in between would leave a limit without an end.
    limiter.set_limits_expiry(&model, length).await.with_context(failed)?;
    limiter.set_limits(&model, &changes).await.with_context(failed)?;
    Ok(model)
}

/// Checks that limits which were set before, and stay, have no end and get none: the set limits of
/// a model end together.
async fn require_one_end(
    limiter: &Quota,
    model: &ModelId,
    limits: &PerLimit<Option<u64>>,
    length: Option<Duration>,
) -> anyhow::Result<()> {
    let snapshot = limiter.inspect(model).await.with_context(|| not_set(model))?;
    let holds = limiter.operator_holds().await.with_context(|| not_set(model))?;
    let stays = |limited: &Limited| {
        limits[*limited].is_none() && snapshot.for_limit(*limited).set.is_some()
    };
    match Limited::ALL.into_iter().find(stays) {
        Some(other) if length.is_some() || holds.limit_left(model).is_some() => {
            Err(usage(format!(
                "the set limits of a model end together, and {} of {model} is set too: set both in one command, or run `tidegate limits clear {model}` first",
                other.key()
            )))
        }
        _ => Ok(()),
    }
}

/// Returns a model to its configured limits.
///
/// # Errors
/// The model is unknown, or Redis is away.
pub(super) async fn clear_limits(limiter: &Quota, model: &str) -> anyhow::Result<ModelId> {
    let model = quota::known(limiter, model)?;
    let (changes, failed) = (PerLimit::from_fn(|_| Change::Clear), || not_set(&model));
    limiter.set_limits(&model, &changes).await.with_context(failed)?;
    limiter.set_limits_expiry(&model, None).await.with_context(failed)?;
    Ok(model)
}

fn check_length(length: Option<Duration>) -> anyhow::Result<()> {
    if length.is_some_and(|length| length.is_zero()) {
        return Err(usage("the time is 0; write a length of time such as 1h"));
    }
    Ok(())
}

fn not_set(model: &ModelId) -> String {
    format!("the limits of {model} could not be set; run `tidegate doctor`")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options};

    use super::*;

    const TOKENS: Limited = Limited::Window(Dimension::Combined);

    fn limiter() -> (Quota, ModelId) {
        let limits = Limits::default().with(Dimension::Combined, 1_000);
        let lanes = Arc::new(Lanes::single());
        let id: ModelId = "a:b".parse().unwrap();
        let model = ModelQuota::new(id.clone(), limits, Charge::default(), lanes).unwrap();
        (Quota::in_memory([model], Options::default()), id)
    }

    #[tokio::test]
    async fn a_pause_is_as_long_as_it_may_be_or_until_it_is_resumed() {
        let ((limiter, id), config) = (limiter(), Config::default());
        let pause = async |seconds: Option<u64>| {
            let length = seconds.map(Duration::from_secs);
            pause(&config, &limiter, "a:b", length, "a \n holiday").await
        };
        let is_held = async || limiter.operator_holds().await.unwrap().models.contains_key(&id);
        for (seconds, why) in [(0, "the time is 0"), (301, "at most 5m (gate.pause-ttl)")] {
            let refused = pause(Some(seconds)).await.unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(limiter.inspect(&id).await.unwrap().pause.is_zero(), "nothing is done by halves");
        assert!(pause(Some(300)).await.unwrap().1.is_some() && !is_held().await);
        assert_eq!(pause(None).await.unwrap(), (id.clone(), None));
        assert!(is_held().await);
        assert_eq!(limiter.inspect(&id).await.unwrap().reason, "a holiday");
        resume(&limiter, "a:b").await.unwrap();
        assert!(limiter.inspect(&id).await.unwrap().pause.is_zero());
    }

    #[tokio::test]
    async fn limits_are_set_for_a_time_and_cleared() {
        let (limiter, id) = limiter();
        let set = async |value, seconds| {
            let limits = PerLimit::from_fn(|limited| (limited == TOKENS).then_some(value));
            let length = Some(Duration::from_secs(seconds));
            set_limits(&limiter, "a:b", limits, length).await.map_err(|error| error.to_string())
        };
        let is_set = async || limiter.inspect(&id).await.unwrap().for_limit(TOKENS).set;
        let left = async || limiter.operator_holds().await.unwrap().limit_left(&id);
        let nothing = set(0, 3_600).await.unwrap_err();
        assert!(nothing.starts_with("tpm is 0, which would admit nothing"), "{nothing}");
        let many = set(EXACT + 1, 3_600).await.unwrap_err();
        assert!(many.starts_with("tpm is above 2^53"), "{many}");
        assert!(set(500, 0).await.unwrap_err().contains("the time is 0"));
        assert_eq!((is_set().await, left().await), (None, None));
        set(500, 3_600).await.unwrap();
        assert!(is_set().await == Some(500) && left().await.unwrap().as_secs() > 3_500);
        let calls = PerLimit::from_fn(|limited| (limited == Limited::InFlight).then_some(2));
        for length in [None, Some(Duration::from_secs(60))] {
            let both = set_limits(&limiter, "a:b", calls, length).await.unwrap_err().to_string();
            assert!(both.contains("tpm of a:b is set too"), "{both}");
        }
        set(600, 60).await.unwrap();
        assert!(is_set().await == Some(600) && left().await.unwrap().as_secs() <= 60);
        clear_limits(&limiter, "a:b").await.unwrap();
        assert_eq!((is_set().await, left().await), (None, None));
    }
}
