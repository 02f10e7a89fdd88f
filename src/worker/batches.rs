//! Counts batches as a metric, from Temporal's list, so that each worker reports the same. It also
//! notices whether Temporal answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use tidegate_quota::Quota;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use crate::{
    metrics,
    telemetry::Telemetry,
    temporal::{Away, Batch, Status, Temporal, status_name},
};

/// How often batches are counted.
const EVERY: Duration = Duration::from_secs(15);

/// The state of a paused batch; Temporal counts it as running.
const PAUSED: &str = "paused";

/// All states of a batch. Each is reported, so that no sum misses one.
const STATES: [Status; 6] = [
    Status::Running,
    Status::Completed,
    Status::Failed,
    Status::Canceled,
    Status::Terminated,
    Status::TimedOut,
];

/// Counts batches until `stop` resolves.
pub(super) async fn report(
    temporal: &Temporal,
    quota: &Quota,
    telemetry: &Telemetry,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut away_since = None;
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
        }
        let seen = count_batches(temporal, quota).await;
        let is_away = seen.as_ref().is_err_and(|error| error.is::<Away>());
        telemetry.set_cut_off(is_away);
        metrics::temporal_away(is_away);
        log_change(&mut away_since, is_away, temporal.address());
        match seen {
            Ok(counts) => {
                for (state, batches) in counts {
                    metrics::batches(state, batches);
                }
            }
            // The last counts stay.
            Err(error) => debug!("batches are not counted: {error:#}"),
        }
    }
}

/// Logs once that Temporal does not answer, and once that it is back.
fn log_change(away_since: &mut Option<Instant>, is_away: bool, address: &str) {
    if !is_away {
        if let Some(since) = away_since.take() {
            info!("Temporal at {address} is back after {:.0?}", since.elapsed());
        }
    } else if away_since.is_none() {
        *away_since = Some(Instant::now());
        warn!(
            "Temporal at {address} does not answer; calls under way end, and nothing new begins until it is back"
        );
    }
}

async fn count_batches(
    temporal: &Temporal,
    quota: &Quota,
) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let seen = temporal.count().await?;
    let of = |status: Status| seen.get(&status).copied().unwrap_or_default();
    let mut counts: BTreeMap<_, _> =
        STATES.into_iter().map(|status| (status_name(status), of(status) as f64)).collect();
    // An idle fleet needs no further requests.
    let mut paused = 0;
    if of(Status::Running) > 0 {
        let held = quota.operator_holds().await?.batches;
        let ids: BTreeSet<&str> = held.values().map(|held| held.batch.as_str()).collect();
        let found = try_join_all(ids.into_iter().map(|id| temporal.find(id))).await?;
        let is_running = |batch: &Batch| batch.status == Status::Running;
        paused = found.iter().flatten().filter(|batch| is_running(batch)).count();
    }
    let paused = paused as f64;
    counts.insert(PAUSED, paused);
    counts.entry(status_name(Status::Running)).and_modify(|all| *all = (*all - paused).max(0.0));
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_of_temporal_lasts_until_it_answers() {
        let mut away_since = None;
        log_change(&mut away_since, false, "http://t:7233");
        assert_eq!(away_since, None);
        log_change(&mut away_since, true, "http://t:7233");
        let first = away_since;
        assert!(first.is_some());
        log_change(&mut away_since, true, "http://t:7233");
        assert_eq!(away_since, first);
        log_change(&mut away_since, false, "http://t:7233");
        assert_eq!(away_since, None);
    }
}
