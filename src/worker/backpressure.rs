//! A worker takes no more work than quota × latency × 2 can use, or as much as may wait in place for
//! three quarters of the longest such wait, beside as many calls: the rest of a backlog stays in
//! Temporal, where priority and fairness order it and every other worker can take it. While a burst
//! lets more go at once, it takes twice of what it has under way; and while nobody has to wait for
//! quota, as much as it may.

use std::time::{Duration, Instant};

use tidegate_quota::{
    Quota,
    call_stats::{self, CallStats},
};
use tracing::{debug, info};

use super::{admissible, slots::Pool};

/// The slots follow what the calls are like at this interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// The quota binds while somebody was told to wait so lately.
const BINDS: Duration = Duration::from_secs(10);

/// Never fewer slots, however slow the quota: documents also read, write and wait for their turn.
const FLOOR: usize = 16;

/// Slots that this process's part of the fleet can use now; `most` while that is not known.
#[must_use]
pub fn useful_slots(quota: &Quota, learned: &CallStats, most: usize) -> usize {
    if !quota.made_wait_within(BINDS) {
        return most;
    }
    let waiting = quota.longest_wait_in_place() * 3 / 4;
    let in_flight = learned.in_system(quota.models(), waiting, Instant::now());
    let steady = in_flight.into_iter().map(|(_, calls)| calls);
    call_stats::slots(steady, quota.live_workers(), FLOOR, most)
        .max(quota.permits().saturating_mul(2))
        .min(most)
}

/// Keeps the pool as large as is useful, beside the slots that open polls hold: those of idle lanes
/// do no work. Never ends.
pub(super) async fn keep(
    pool: &Pool,
    polls: usize,
    quota: &Quota,
    learned: &CallStats,
    most: usize,
) {
    let mut advised = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        admissible::tell(pool, quota, learned, most);
        let slots = (useful_slots(quota, learned, most) + polls).min(most);
        if slots == pool.limit() {
            continue;
        }
        if !advised && slots < most {
            advised = true;
            info!(
                slots,
                most,
                "the models' limits can use fewer documents at once than this worker allows; the others stay in Temporal"
            );
        }
        debug!(slots, "slots follow the quota");
        pool.resize(slots);
    }
}
