//! Polls the provider's batches, and cancels them.

use chrono::{TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use tidegate_providers::{BatchApi, Kind, batch};
use tidegate_workflows::contract::{BatchState, OpenBatches, ProviderBatch};

use crate::{
    failure::{Failure, MAX_BATCH_CANCELS},
    output::job::Shard,
    provider_batch::{
        choose::batch_api,
        submission::{self, Submission},
        submit::release_holds,
    },
    services::Services,
};

/// Batches that are queried, or answers that are written, at once.
pub(super) const AT_ONCE: usize = 8;

/// Time after its submission from which a batch that cannot be found is gone. Before that, the
/// provider's list may not contain it yet.
const SETTLED: TimeDelta = TimeDelta::minutes(10);

/// The state of each batch. If the state of a batch cannot be read now, the batch counts as running
/// and is checked again.
///
/// # Errors
/// A [`Failure`] with the time of a retry.
pub async fn check(services: &Services, open: &OpenBatches) -> Result<Vec<BatchState>, Failure> {
    let states: Vec<_> = open.batches.iter().map(|batch| state(services, batch)).collect();
    stream::iter(states).buffered(AT_ONCE).try_collect().await
}

async fn state(services: &Services, batch: &ProviderBatch) -> Result<BatchState, Failure> {
    let workflow = &batch.submitted.workflow;
    let shard =
        services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (model, batches) = batch_api(services, &shard)?;
    let (state, why) = match batches.state(&batch.batch).await {
        Ok(batch::State::Running) => return Ok(BatchState::Running),
        Ok(batch::State::Ended) => return Ok(BatchState::Ended),
        Ok(batch::State::Full) => (BatchState::Full, "the account's queue is full".to_owned()),
        Ok(batch::State::Failed(why)) => (BatchState::Failed, why),
        Err(error) if error.kind == Kind::InvalidRequest && is_settled(&shard, batch).await? => {
            (BatchState::Failed, error.message)
        }
        Err(error) => {
            tracing::warn!(%model, batch = batch.batch, %error, "a provider's batch cannot be queried; it counts as under way");
            return Ok(BatchState::Running);
        }
    };
    tracing::warn!(%model, batch = batch.batch, why, "a provider's batch was not done");
    // Nothing was spent.
    let key = submission::key(&batch.submitted);
    if !release_holds(services, (&shard, model), workflow, &key, batch.requests).await {
        // The queue is released at the next check.
        return Ok(BatchState::Running);
    }
    delete_batch(batches, batch).await;
    Ok(state)
}

/// Whether a batch was submitted long ago.
async fn is_settled(shard: &Shard, batch: &ProviderBatch) -> Result<bool, Failure> {
    Ok(Submission::read(&shard.folder, &batch.submitted)
        .await?
        .is_none_or(|submission| Utc::now() - submission.at > SETTLED))
}

/// Deletes the provider's files of a batch. Remaining files cost nothing, but are not private.
pub(super) async fn delete_batch(batches: &dyn BatchApi, batch: &ProviderBatch) {
    if let Err(error) = batches.forget(&batch.batch).await {
        tracing::info!(batch = batch.batch, %error, "the requests of a batch stay in the provider's store");
    }
}

/// Asks the provider to stop; answers that exist by then are collected.
///
/// # Errors
/// A [`Failure`] with the time of a retry.
pub async fn cancel(
    services: &Services,
    batch: &ProviderBatch,
    attempt: u32,
) -> Result<(), Failure> {
    let shard =
        services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (_, batches) = batch_api(services, &shard)?;
    if Submission::read(&shard.folder, &batch.submitted)
        .await?
        .is_some_and(|submission| submission.guessed)
    {
        // The batch may belong to another program with this account.
        return Ok(());
    }
    match batches.cancel(&batch.batch).await {
        Err(error)
            if error.kind.is_retryable()
                && error.status != Some(409)
                && attempt < MAX_BATCH_CANCELS =>
        {
            Err(Failure::from_batch_api(&error, attempt))
        }
        // The batch ended, or it continues: it is still waited for.
        _ => Ok(()),
    }
}
