//! A worker's beat: reads its key files again, publishes its status for the other workers, and
//! reads theirs.

use std::{collections::BTreeSet, time::Duration};

use tidegate_providers::Providers;
use tidegate_quota::Quota;
use tracing::{info, warn};

use crate::{
    health::Health,
    keys::Keys,
    metrics,
    worker_status::{
        Configuration, Difference, WorkerFacts, WorkerStatus, differences, load_differing, read,
        stored_configuration,
    },
};

/// Interval in beats between reads of the others' configurations: in a large fleet they are much
/// data.
const LISTENS_EVERY: u64 = 12;

/// How often a worker publishes its status.
const EVERY: Duration = Duration::from_secs(5);

/// Reads the key files and publishes the state of this worker's keys and its recent calls, until
/// `stop` resolves: every few seconds, and when a key is refused or accepted again.
pub async fn keep_status(
    (keys, providers, quota, health): (&Keys, &Providers, &Quota, &Health),
    (worker, queue): (&str, &str),
    (about, configuration): (WorkerFacts, &Configuration),
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut beat = tokio::time::interval(EVERY);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut unreadable, mut differs, mut beats) = (BTreeSet::new(), Vec::new(), 0_u64);
    let (configured, configuration) = stored_configuration(configuration);
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = beat.tick() => {}
            () = keys.changed() => {}
        }
        keys.read_files(providers, &mut unreadable);
        let status = WorkerStatus {
            queue: queue.to_owned(),
            providers: providers.names().map(str::to_owned).collect(),
            refused: keys.refused_keys(),
            calls: health.recent(),
            configured: configured.clone(),
            about: about.clone(),
            ..WorkerStatus::default()
        };
        let text = serde_json::to_string(&status).unwrap_or_default();
        // Redis errors surface when a call asks for admission; here the last known state stays.
        if beats.is_multiple_of(LISTENS_EVERY) {
            let _ = quota.keep_fleet_text(&status.configured, &configuration).await;
        }
        let (compares, asks) = listens(beats, quota.beats_between_reads());
        beats = beats.wrapping_add(1);
        let is_refused = !status.refused.is_empty();
        let knows_nobody = !keys.knows_others();
        let hears = compares || (is_refused && (asks || knows_nobody));
        if let Ok(Some(statuses)) = quota.publish_status(worker, &text, hears).await {
            let mut statuses = read(statuses);
            if compares && load_differing(quota, &mut statuses).await.is_ok() {
                report_differences(&statuses, &mut differs);
            }
            if knows_nobody || (hears && is_refused) {
                keys.set_others(worker, queue, statuses);
            }
        }
    }
    let _ = quota.publish_status(worker, "", false).await;
}

/// Whether a worker reads at this beat: the others' configurations, and the others' refused keys if
/// one of its own is refused. `every`: [`Quota::beats_between_reads`], because each status grows the
/// data.
fn listens(beat: u64, every: u64) -> (bool, bool) {
    (beat % (LISTENS_EVERY * every) == 1, beat.is_multiple_of(every))
}

/// Logs the differences between workers' configurations when they change.
fn report_differences(statuses: &[(String, WorkerStatus)], known: &mut Vec<Difference>) {
    let found = differences(statuses);
    if found == *known {
        return;
    }
    for difference in found.iter().filter(|it| !known.contains(it)) {
        warn!(
            "workers are configured differently: {difference}; give all of them one configuration"
        );
    }
    if found.is_empty() {
        info!("all workers are configured alike again");
    }
    metrics::configurations_differ(found.len());
    *known = found;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_a_large_fleet_reads_less_often() {
        // Reads in an hour: of configurations, and of keys.
        let reads = |every| {
            let beats = (0..720).map(|beat| listens(beat, every));
            beats.fold((0, 0), |(all, keys), (compares, asks)| {
                (all + u64::from(compares), keys + u64::from(asks))
            })
        };
        assert_eq!(reads(1), (60, 720));
        assert_eq!(reads(21), (3, 35));
        assert_eq!(listens(1, 21), (true, false), "each compares when it begins");
    }
}
