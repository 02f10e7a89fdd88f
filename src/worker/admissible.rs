//! A metric for autoscalers: the number of documents that the limits and the backlog allow at once.
//! The length of the backlog is not enough: when the quota binds, more workers finish no document
//! earlier.

use std::time::{Duration, Instant};

use tidegate_quota::{Quota, call_stats::CallStats};

use super::slots::Pool;

/// How often the metric is set.
const INTERVAL: Duration = Duration::from_secs(1);

/// Sets the metric at each interval. Never returns.
pub(super) async fn report(pool: &Pool, quota: &Quota, learned: &CallStats, most: usize) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        record(pool, quota, learned, most);
    }
}

/// Sets this worker's part. The sum over the fleet, divided by `worker.max-concurrent-documents`, is the
/// useful number of workers.
fn record(pool: &Pool, quota: &Quota, learned: &CallStats, most: usize) {
    let in_flight = learned.in_flight(quota.models(), Instant::now());
    let useful = in_flight.into_iter().map(|(_, calls)| calls).sum();
    let (held, wanted) = pool.demand();
    tidegate_quota::metrics::set_admissible(documents(
        useful,
        quota.live_workers(),
        held,
        wanted,
        most,
    ));
}

/// Documents at once, of this worker. `useful` is the number of calls that use the whole fleet's limits
/// fully, if known. If no slot is waited for (`wanted` is false), the worker's current documents count.
pub fn documents(useful: Option<f64>, workers: u64, held: usize, wanted: bool, most: usize) -> f64 {
    if !wanted {
        return held as f64;
    }
    // Unknown: no reason to add or remove a worker.
    useful
        .filter(|useful| *useful > 0.0)
        .map_or(most as f64, |useful| useful / workers.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use tidegate_quota::Share;

    use super::*;

    /// The useful number of workers that a fleet of `workers` with 200 slots reports.
    fn workers_of_use(useful: Option<f64>, workers: u64, held: usize, wanted: bool) -> f64 {
        let each = documents(useful, workers, held, wanted, 200);
        (each * workers as f64 / 200.0).ceil()
    }

    #[test]
    fn workers_are_added_as_far_as_the_limits_can_use_them() {
        assert_eq!(workers_of_use(Some(1_900.0), 2, 200, true), 10.0, "the limits admit more");
        assert_eq!(workers_of_use(Some(1_900.0), 10, 190, true), 10.0, "and there they stay");
        assert_eq!(workers_of_use(Some(90.0), 4, 23, true), 1.0, "one can do it, whatever waits");
        assert_eq!(workers_of_use(Some(1_900.0), 4, 20, false), 1.0, "there is no more to do");
        assert_eq!(workers_of_use(Some(1_900.0), 4, 0, false), 0.0, "there is nothing to do");
        assert_eq!(workers_of_use(None, 3, 200, true), 3.0, "not known: as many as there are");
    }

    #[tokio::test]
    async fn a_full_pool_wants_more_when_a_task_waits() {
        let pool = Pool::new(vec![Share { guaranteed: 1.0, ceiling: 1.0 }], 2);
        assert!(pool.try_take(0) && pool.try_take(0));
        assert_eq!(pool.demand(), (2, false));
        let mut third = std::pin::pin!(pool.take(0));
        assert!(futures::poll!(&mut third).is_pending());
        assert_eq!(pool.demand(), (2, true));
        pool.give_back(0);
        third.await;
        assert_eq!(pool.demand(), (2, false));
    }
}
