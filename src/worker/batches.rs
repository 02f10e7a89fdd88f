//! How many batches there are, as a metric: from Temporal's list, so that each worker tells the same.
//! Whether Temporal answers at all is seen here, too.

use std::{collections::BTreeMap, time::Duration};

use tidegate_quota::Quota;
use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;

use crate::{
    metrics,
    telemetry::Telemetry,
    temporal::{Away, Status, Temporal},
};

/// How often they are counted.
const EVERY: Duration = Duration::from_secs(15);

/// A batch that is paused runs, for Temporal.
const PAUSED: &str = "paused";

/// All that a batch can be; each is told, so that none is missing from a sum.
const STATES: [Status; 6] = [
    Status::Running,
    Status::Completed,
    Status::Failed,
    Status::Canceled,
    Status::Terminated,
    Status::TimedOut,
];

/// Counts them until `stop` resolves.
pub(super) async fn keep(
    temporal: &Temporal,
    quota: &Quota,
    telemetry: &Telemetry,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
        }
        let seen = counted(temporal, quota).await;
        telemetry.set_cut_off(seen.as_ref().is_err_and(|error| error.is::<Away>()));
        match seen {
            Ok(counts) => {
                for (state, batches) in counts {
                    metrics::batches(state, batches);
                }
            }
            // What is known stays; the server's absence has lines and metrics of its own.
            Err(error) => debug!("batches are not counted: {error:#}"),
        }
    }
}

async fn counted(
    temporal: &Temporal,
    quota: &Quota,
) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let seen = temporal.count().await?;
    let of = |status: Status| seen.get(&status).copied().unwrap_or_default();
    let mut counts: BTreeMap<_, _> =
        STATES.into_iter().map(|status| (status.as_str(), float(of(status)))).collect();
    // An idle fleet asks for nothing more.
    let mut paused = 0;
    if of(Status::Running) > 0 {
        let held = quota.operator_holds().await?.batches;
        if !held.is_empty() {
            let running = temporal.running().await?;
            let is_held = |id: &&String| held.values().any(|held| held.batch == **id);
            paused = running.iter().filter(is_held).count();
        }
    }
    let paused = float(paused);
    counts.insert(PAUSED, paused);
    counts.entry(Status::Running.as_str()).and_modify(|all| *all = (*all - paused).max(0.0));
    Ok(counts)
}

fn float(count: usize) -> f64 {
    count as f64
}
