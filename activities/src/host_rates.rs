//! Rates of reads from each host of HTTP sources: one rate for the whole fleet.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tidegate_quota::{Bucket, BucketLimit, Quota, bucket::BucketRefused};
use tracing::debug;

/// Longest wait of a read for its turn; after that the document is retried later.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The rate of each host that has one. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct HostRates {
    hosts: Arc<HashMap<String, Rate>>,
}

#[derive(Debug)]
struct Rate {
    fleet: Bucket,
    /// Used while Redis is away, so that a read does not fail: each worker then applies the rate
    /// alone.
    own: Bucket,
}

/// A host's turn is too far away; the read may work later.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host} is read as often as [storage.hosts.\"{host}\"] allows; the next turn is in {wait:?}"
)]
pub struct Busy {
    host: String,
    wait: Duration,
}

impl HostRates {
    /// The rates of these hosts, shared by every worker of this limiter.
    pub fn new(quota: &Quota, hosts: impl IntoIterator<Item = (String, BucketLimit)>) -> Self {
        let rate = |(host, limit): (String, BucketLimit)| {
            let fleet = quota.bucket(&format!("host:{host}"), limit);
            (host, Rate { fleet, own: Bucket::in_memory(limit) })
        };
        Self { hosts: Arc::new(hosts.into_iter().map(rate).collect()) }
    }

    /// Waits in place for the next turn of a host, if it has a rate.
    ///
    /// # Errors
    /// [`Busy`] when the turn is more than a minute away.
    pub(crate) async fn wait(&self, host: &str) -> Result<(), Busy> {
        let Some(rate) = self.hosts.get(host) else { return Ok(()) };
        let taken = match rate.fleet.take(1, MAX_WAIT).await {
            Err(BucketRefused::Unknown(error)) => {
                debug!(%error, host, "this worker keeps to the host's rate by itself");
                rate.own.take(1, MAX_WAIT).await
            }
            taken => taken,
        };
        match taken {
            Err(BucketRefused::Wait { wait, .. }) => Err(Busy { host: host.to_owned(), wait }),
            // One read always fits into a bucket, and this worker's own bucket needs no reply from
            // Redis.
            Ok(()) | Err(BucketRefused::Never { .. } | BucketRefused::Unknown(_)) => Ok(()),
        }
    }
}
