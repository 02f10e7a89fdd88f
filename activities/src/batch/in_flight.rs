//! How many documents a batch keeps in flight where its author does not say: as many as the limits
//! can use.

use tidegate_calls::route::Route;
use tidegate_quota::{
    ModelQuota,
    call_stats::{self, HEADROOM, Typical},
};
use tidegate_workflows::contract::{Job, SHARD_WINDOW};

use crate::{batch::forecast::Forecast, services::Services};

/// Output tokens a second, and seconds before the first of them, of a model that this worker has
/// not called yet: slow ones.
const SLOW: f64 = 40.0;
const FIRST_TOKEN: f64 = 4.0;

/// Seconds whose admissions a window holds at least.
const SPAN: f64 = 60.0;

/// However tight the limits: the guess of what a call takes may be wrong.
const LEAST: f64 = 100.0;

/// Some forty shards at once. What would need more has calls of minutes or limits that no vendor
/// gives today, and its author can say so.
const MOST: f64 = 20_000.0;

/// Documents that the limits of the route's models admit together within a minute, or within two calls
/// where these are longer, and as many more as a burst may take at once. What waits in Temporal costs
/// nothing; a window that is too small leaves quota unused. What this worker has learned of the models'
/// calls comes before what the forecast expects.
pub(super) fn of(services: &Services, job: &Job, route: &Route, forecast: &Forecast) -> u32 {
    let models = route.models.iter().map(|id| {
        let model = services.guard.quota.models().find(|model| model.id == *id)?;
        let speed = services.guard.call_stats.output_speed(id);
        let typical = services.guard.call_stats.typical(id);
        let typical = typical.unwrap_or_else(|| expected(model, job, forecast, speed));
        let limits = &model.limits;
        let span = SPAN.max(HEADROOM * typical.seconds)
            + limits.burst_max.unwrap_or_default().as_secs_f64();
        let rate = call_stats::admission_rate(limits, &typical.used);
        let at_once = limits.concurrent.map(|calls| HEADROOM * calls as f64);
        let admitted = rate.map(|rate| call_stats::in_flight(rate, span));
        [admitted, at_once].into_iter().flatten().min_by(f64::total_cmp)
    });
    let calls: Option<f64> = models.sum();
    let documents = calls.map(|calls| calls * f64::from(forecast.pack.max(1)));
    documents.map_or(SHARD_WINDOW, |documents| whole(documents.clamp(LEAST, MOST)))
}

/// Seconds that a call of the route's first model takes, as far as that is known.
pub(super) fn seconds_of_a_call(
    services: &Services,
    job: &Job,
    route: &Route,
    forecast: &Forecast,
) -> f64 {
    let first = route.models.first();
    let model = services.guard.quota.models().find(|model| Some(&model.id) == first);
    let Some(model) = model else { return FIRST_TOKEN };
    let typical = services.guard.call_stats.typical(&model.id);
    let speed = services.guard.call_stats.output_speed(&model.id);
    typical.unwrap_or_else(|| expected(model, job, forecast, speed)).seconds
}

/// What a call is like, as far as the forecast tells.
fn expected(model: &ModelQuota, job: &Job, forecast: &Forecast, speed: Option<f64>) -> Typical {
    let documents = f64::from(u32::try_from(forecast.documents).unwrap_or(u32::MAX)).max(1.0);
    let each = |from: f64, to: f64| f64::from(whole(f64::midpoint(from, to) / documents));
    let (input, output) = (
        each(forecast.input_tokens.from, forecast.input_tokens.to),
        each(forecast.output_tokens.from, forecast.output_tokens.to),
    );
    let amounts = model.amounts(whole(input).into(), whole(output).into());
    let written = f64::from(job.likely_output_tokens()) / speed.unwrap_or(SLOW);
    Typical {
        seconds: FIRST_TOKEN + written,
        used: amounts.map(|amount| f64::from(u32::try_from(amount).unwrap_or(u32::MAX))),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and a cast of a float saturates"
)]
fn whole(number: f64) -> u32 {
    number.round() as u32
}
