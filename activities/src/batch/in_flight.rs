//! Number of documents that a batch keeps in flight if its author states none: as many as the
//! limits can use.

use tidegate_calls::route::Route;
use tidegate_quota::{
    ModelQuota,
    call_stats::{self, Typical},
};
use tidegate_workflows::contract::{Job, SHARD_WINDOW};

use crate::{
    output::forecast::{Forecast, Range},
    services::Services,
};

/// Assumed speed of a model that this worker has not called yet, in output tokens a second and in
/// seconds to the first token. The values are slow ones: surplus documents in flight wait in
/// Temporal's queue at little cost, but too few leave part of the limits unused.
const SLOW: f64 = 40.0;
const FIRST_TOKEN: f64 = 4.0;

/// Assumed longest call in seconds, since a model may think long before a short answer. The window
/// has room for twice the documents that such calls need. Shards open it while no call has ended,
/// and afterwards while the queue for quota stays empty.
const UNSEEN: f64 = 30.0;

/// Smallest window, for tight limits: the estimate of a call's time may be wrong.
const LEAST: f64 = 100.0;

/// Largest window: some forty shards at once. Only calls of minutes, or limits above those of
/// today's vendors, need more; the author can state it.
const MOST: f64 = 20_000.0;

/// Initial documents in flight for each slot of the fleet: one in the slot, and one ready behind
/// it. Each round of calls doubles them if there is room. A longer queue in Temporal costs memory
/// in the server and worker, and speeds up nothing.
const FOR_EACH_SLOT: u64 = 2;

/// A batch's window, in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InFlight {
    /// The maximum.
    pub(super) most: u32,
    /// [`Plan::ready`](tidegate_workflows::contract::Plan::ready).
    pub(super) ready: u32,
    /// The initial number, if it is smaller.
    pub(super) first: Option<u32>,
    /// The assumed seconds of a call; 0 where all documents may be in flight at first.
    pub(super) call_seconds: u32,
}

/// Chooses the documents in flight by Little's law from the limits of the route's models, with
/// headroom and at most as many more for a burst. Statistics of this worker's calls take precedence
/// over the forecast.
pub(super) fn choose_window(
    services: &Services,
    job: &Job,
    route: &Route,
    forecast: &Forecast,
) -> InFlight {
    let documents = |at_most: bool| {
        let models = route.models.iter().map(|id| {
            let model = services.guard.quota.models().find(|model| model.id == *id)?;
            let typical = services.guard.call_stats.typical(id).unwrap_or_else(|| {
                let speed = services.guard.call_stats.output_speed(id);
                let expected = expected(model, job, forecast, speed);
                let at_least = if at_most { UNSEEN } else { 0.0 };
                Typical { seconds: expected.seconds.max(at_least), ..expected }
            });
            let steady = call_stats::max_in_flight(&model.limits, &typical)?;
            let learns = at_most && model.limits.burst.is_none();
            let burst = if learns { model.limits.window.as_secs_f64() } else { 0.0 };
            let rate = call_stats::admission_rate(&model.limits, &typical.used).unwrap_or_default();
            let at_once = call_stats::in_flight(rate, burst);
            let calls = model.limits.concurrent.map_or(f64::INFINITY, |calls| calls as f64);
            Some(steady + at_once.min(calls))
        });
        let calls: Option<f64> = models.sum();
        let documents = calls.map(|calls| calls * f64::from(forecast.pack.max(1)));
        documents.map_or(SHARD_WINDOW, |documents| whole(documents.clamp(LEAST, MOST)))
    };
    let slots = services.slots as u64 * services.guard.quota.live_workers().max(1);
    let ready = (FOR_EACH_SLOT * slots).saturating_mul(forecast.pack.max(1).into());
    let ready = u32::try_from(ready).unwrap_or(u32::MAX);
    let (first, most) = (documents(false).min(ready), documents(true));
    if first == most {
        return InFlight { most, ready, first: None, call_seconds: 0 };
    }
    let call = seconds_of_a_call(services, job, route, forecast);
    InFlight { most, ready, first: Some(first), call_seconds: whole(call.ceil()) }
}

/// Seconds of a call of the route's first model, if known.
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

/// Predicts a typical call from the forecast.
fn expected(model: &ModelQuota, job: &Job, forecast: &Forecast, speed: Option<f64>) -> Typical {
    let documents = f64::from(u32::try_from(forecast.documents).unwrap_or(u32::MAX)).max(1.0);
    let calls = forecast.calls.unwrap_or(Range { from: 1.0, to: 1.0 });
    let each = |from: f64, to: f64| {
        f64::from(whole(f64::midpoint(from / calls.from, to / calls.to) / documents))
    };
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

// Never negative, and a cast of a float saturates.
fn whole(number: f64) -> u32 {
    number.round() as u32
}
