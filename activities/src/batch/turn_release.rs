//! Releases a cancelled batch's turns in the limiter, because its documents make no more calls.

use tidegate_quota::Quota;
use tracing::warn;

use crate::{
    output::job::{Stored, resolve},
    storage::Storage,
};

/// Releases the turns of the batch that was planned as `job`. A failure costs its tenant only some
/// waiting.
pub async fn release_turns(storage: &Storage, quota: &Quota, job: &str) {
    let Ok(folder) = resolve(storage, "job", job) else { return };
    let Ok(Stored { job, route, .. }) = Stored::read(&folder).await else { return };
    for model in &route.models {
        if let Err(error) = quota.leave(model, &job.lane, &job.tenant).await {
            warn!(%model, %error, "the turns of a cancelled batch stay until their time has passed");
        }
    }
}
