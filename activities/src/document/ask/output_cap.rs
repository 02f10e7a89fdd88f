//! The default cap on output, for batches whose author states none.
//!
//! The cap stops an endless answer; it does not estimate the length. It is the least of:
//!
//! | bound | because |
//! |---|---|
//! | the model's own cap | a larger one is refused |
//! | the output that it can write within `request-timeout`, [`UNKNOWN_SPEED`] while its speed is not known | a longer answer is paid for and lost |
//! | a tenth of the limit of output tokens a minute | one answer must not hold up the others |
//! | [`HELD`] and the thinking tokens, where the vendor charges the cap against the limit | each call
//! would take that much of the limit |

use tidegate_calls::{guard::Guard, route::Route};
use tidegate_providers::{Bounds, Providers};
use tidegate_quota::{Dimension, ModelQuota};
use tidegate_types::{ModelId, OutputHold};

/// Ten minutes, the usual time-out of a call, at 27 tokens a second: slower than any hosted model of
/// today.
const UNKNOWN_SPEED: u32 = 16_384;

/// For OpenAI, Bedrock, and endpoints whose rules are not known.
const HELD: u32 = 4_096;

/// Half of the answers take longer than the mean.
const SAFE_SPEED: f64 = 0.75;

/// Some APIs refuse a lower cap.
const LEAST: u32 = 16;

/// The lowest cap of the models of a route. `thinking` is the number of tokens of it that are spent
/// before the answer.
pub(crate) fn of_route(guard: &Guard, providers: &Providers, route: &Route, thinking: u32) -> u32 {
    let of_model = |model: &ModelId| {
        let bounds = providers.get(model).map(|provider| provider.bounds(model.model()));
        let quota = guard.quota.models().find(|quota| quota.id == *model);
        cap(bounds.unwrap_or_default(), quota, guard.call_stats.output_speed(model), thinking)
    };
    let held = HELD.saturating_add(thinking);
    route.models.iter().map(of_model).min().unwrap_or(held)
}

/// The cap of one model, in tokens; `speed` is its tokens a second.
fn cap(bounds: Bounds, quota: Option<&ModelQuota>, speed: Option<f64>, thinking: u32) -> u32 {
    let in_time = match (bounds.time, speed) {
        (Some(time), Some(speed)) => tokens(time.as_secs_f64() * speed * SAFE_SPEED),
        _ => UNKNOWN_SPEED.saturating_add(thinking),
    };
    let held = HELD.saturating_add(thinking);
    let of_limit = quota.and_then(output_limit).map(|limit| saturated(limit / 10));
    let is_held = quota.is_none_or(|quota| quota.charge.hold == OutputHold::Maximum);
    [Some(in_time), bounds.output_tokens, of_limit, is_held.then_some(held)]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(held)
        .max(LEAST)
}

/// The tightest limit per minute that output counts towards.
fn output_limit(quota: &ModelQuota) -> Option<u64> {
    let combined = quota.limits.per_minute[Dimension::Combined];
    let combined = combined.filter(|_| quota.charge.output_weight > 0.0);
    quota.limits.per_minute[Dimension::Output].into_iter().chain(combined).min()
}

fn saturated(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

// Tokens are not negative, and a cast of a float saturates.
fn tokens(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tidegate_quota::{Charge, Lanes, Limits};

    use super::*;

    fn quota(limit: Dimension, tokens: u64, charge: Charge) -> ModelQuota {
        let limits = Limits::default().with(limit, tokens);
        let lanes = Arc::new(Lanes::single());
        ModelQuota::new("a:b".parse().unwrap(), limits, charge, lanes).unwrap()
    }

    #[test]
    fn the_least_bound_decides() {
        let expected = Charge::default();
        let input_only = Charge { output_weight: 0.0, ..expected };
        let bounds = |cap, seconds| Bounds {
            output_tokens: cap,
            time: Some(Duration::from_secs(seconds)),
            ..Bounds::default()
        };
        let roomy = quota(Dimension::Output, 10_000_000, expected);
        for (what, bounds, quota, speed, least) in [
            ("nothing else is known", Bounds::default(), &roomy, None, 16_384),
            ("the speed is not", bounds(Some(64_000), 60), &roomy, None, 16_384),
            ("the model", bounds(Some(8_192), 600), &roomy, None, 8_192),
            ("the model again", bounds(Some(64_000), 3_600), &roomy, Some(100.0), 64_000),
            ("time", bounds(Some(64_000), 60), &roomy, Some(40.0), 1_800),
            (
                "otpm",
                bounds(Some(64_000), 600),
                &quota(Dimension::Output, 8_000, expected),
                Some(100.0),
                800,
            ),
            ("tpm", Bounds::default(), &quota(Dimension::Combined, 30_000, expected), None, 3_000),
            (
                "output does not count",
                Bounds::default(),
                &quota(Dimension::Combined, 30_000, input_only),
                None,
                16_384,
            ),
            (
                "what is allowed is held",
                bounds(Some(128_000), 600),
                &quota(Dimension::Combined, 10_000_000, Charge::CAUTIOUS),
                Some(100.0),
                4_096,
            ),
            (
                "no limit is too tight",
                Bounds::default(),
                &quota(Dimension::Output, 9, expected),
                None,
                16,
            ),
        ] {
            assert_eq!(cap(bounds, Some(quota), speed, 0), least, "{what}");
        }
        assert_eq!(cap(Bounds::default(), None, None, 0), HELD);
        assert_eq!(cap(Bounds::default(), None, None, 8_192), HELD + 8_192, "room to think");
        assert_eq!(
            cap(bounds(Some(9_000), 600), None, None, 8_192),
            9_000,
            "the model's cap holds"
        );
    }
}
