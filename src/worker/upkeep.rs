//! Background tasks of each process of a fleet, worker or door.

use std::{future::Future, time::Duration};

use tidegate_activities::Services;
use tidegate_calls::{guard::Guard, status_beat::keep_status, worker_status::WorkerFacts};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::settings;
use crate::config::Config;

/// Time that settlements of answered calls get when the process stops.
const SETTLE: Duration = Duration::from_secs(5);

/// Keeps a process's part in its fleet up to date until `ended`: its share of the limits, its entry
/// in the registry of `queue`, its spending of budgets, and the copy of operators' settings.
/// Notifies `outdated` if a newer program has taken over the quota.
///
/// # Errors
/// The configuration cannot be used. The future's error: a newer program has taken over the quota.
pub(crate) fn upkeep<'a>(
    config: &Config,
    services: &'a Services,
    (identity, queue): (&'a str, &'a str),
    about: WorkerFacts,
    (ended, outdated): (&'a CancellationToken, &'a Notify),
) -> anyhow::Result<impl Future<Output = Result<(), tidegate_quota::Error>> + 'a> {
    let (state, configuration) = (config.state()?, config.shared_settings());
    Ok(async move {
        let Services { guard, providers, budgets, .. } = services;
        let quota = &guard.quota;
        let alive = async {
            quota.keep_alive(identity, ended.cancelled()).await.inspect_err(|error| {
                error!(%error, "this process stops");
                outdated.notify_one();
            })
        };
        let status = keep_status(
            (&guard.gates.keys, providers, quota, &guard.gates.health),
            (identity, queue),
            (about, &configuration),
            ended.cancelled(),
        );
        let money = budgets.keep(ended.cancelled());
        let settings = settings::run(quota, state.as_ref(), ended.cancelled());
        let (alive, (), (), ()) = tokio::join!(alive, status, money, settings);
        alive
    })
}

/// Waits for the settlements of calls that were answered.
pub(crate) async fn settle(guard: &Guard) {
    guard.settling.close();
    // If Redis is away, unsettled reservations stay charged until they expire.
    let _ = tokio::time::timeout(SETTLE, guard.settling.wait()).await;
}
