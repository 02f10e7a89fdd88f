//! Submits a shard's documents as a batch of the provider's.

use std::{
    collections::BTreeMap,
    time::{Instant, SystemTime},
};

use chrono::Utc;
use tidegate_calls::keys::KeyNow;
use tidegate_providers::{BatchApi, Charged, Error, Key, Kind};
use tidegate_types::{ModelId, seconds_since_1970};
use tidegate_workflows::contract::{FailureType, Mode, SubmitBatch, SubmittedBatch};

use crate::{
    attempt::Attempt,
    document::read::content::Care,
    failure::{Failure, MAX_BATCH_SUBMITS},
    output::{
        forecast,
        job::{Shard, payers, resolve},
    },
    provider_batch::{
        choose::{batch_api, operation},
        queue,
        requests::{BatchRequest, gather},
        submission::{self, Sent, Submission},
    },
    services::Services,
    storage::Location,
};

/// Submits as many documents as fit into one batch, once. Documents that cannot be submitted are
/// left out: they take the direct path, which reports the reason. `carried` is the state of earlier
/// attempts, which a document may have killed while it was read.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub async fn submit(
    services: &Services,
    carried: Option<&Attempt>,
    task: &SubmitBatch,
    attempt: u32,
) -> Result<SubmittedBatch, Failure> {
    let care = Care::of_several(carried);
    match try_to_submit(services, task, attempt, care).await {
        // The workflow waits better than an activity: it handles pauses, deadlines and
        // cancellation.
        Err(failure) if failure.is_retried() && attempt >= MAX_BATCH_SUBMITS => {
            tracing::warn!(%failure, "a batch cannot be submitted now");
            let folder = resolve(&services.storage, "job", &task.job)?;
            // If the record cannot be read, a batch may exist.
            let unsure = !matches!(Submission::read(&folder, task).await, Ok(None));
            if !unsure {
                release_queue(services, task).await;
            }
            Ok(SubmittedBatch { later: true, unsure, ..nothing(task.from) })
        }
        ended => ended,
    }
}

/// Releases the queue's tokens, which an attempt that died may have counted.
async fn release_queue(services: &Services, task: &SubmitBatch) {
    if let Ok(shard) = services.shards.get(&services.storage, &task.job, task.shard).await
        && let Ok((model, _)) = batch_api(services, &shard)
    {
        queue::dequeue(services, model, &submission::key(task)).await;
    }
}

async fn try_to_submit(
    services: &Services,
    task: &SubmitBatch,
    attempt: u32,
    care: Care<'_>,
) -> Result<SubmittedBatch, Failure> {
    let workflow = &task.workflow;
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let (folder, key) = (&shard.folder, submission::key(task));
    let (model, batches) = batch_api(services, &shard)?;
    let recorded = Submission::read(folder, task).await?;
    if let Some(submission) = recorded.clone()
        && let Some(submission) = find_submitted(batches, folder, submission, &key, attempt).await?
    {
        // The attempt that submitted it may have released the money by mistake.
        let hold = submission::hold(&key, submission.requests);
        let held =
            services.budgets.hold_batch(&payers(&shard.job, workflow), &hold, submission.usd).await;
        if let Err(failure) = held {
            tracing::warn!(%failure, "a batch that was submitted is not held in its budget");
        }
        return Ok(submitted(&submission, folder, task).await);
    }
    if task.only_find {
        if let Some(submission) = recorded {
            release_holds(services, (&shard, model), workflow, &key, submission.requests).await;
        } else {
            // An attempt that died before it wrote the record may have counted its tokens.
            queue::dequeue(services, model, &key).await;
        }
        return Ok(nothing(task.to));
    }
    let now = seconds_since_1970(SystemTime::now());
    if task.until.is_some_and(|until| now >= until) {
        // The workers were away until its time had passed: the direct path is faster now.
        queue::dequeue(services, model, &key).await;
        return Ok(nothing(task.to));
    }
    // A full queue is asked again every few minutes, for hours.
    if !queue::has_room(services, model, &key).await {
        return Ok(SubmittedBatch { later: true, ..nothing(task.from) });
    }
    let (mut lines, mut next) =
        gather(services, &shard, model, batches, task, &key, (attempt, care)).await?;
    if lines.is_empty() {
        queue::dequeue(services, model, &key).await;
        return Ok(nothing(next));
    }
    let usd = loop {
        let tokens: Vec<u64> = lines.iter().map(|line| line.tokens).collect();
        let fitting = queue::enqueue(services, model, &key, &tokens).await;
        if fitting == 0 {
            queue::dequeue(services, model, &key).await;
            return Ok(SubmittedBatch { later: true, ..nothing(task.from) });
        }
        next = lines.split_off(fitting).first().map_or(next, |line| line.index);
        let usd = lines.iter().map(|line| line.usd).sum();
        let hold = submission::hold(&key, count(&lines));
        match services.budgets.hold_batch(&payers(&shard.job, workflow), &hold, usd).await {
            Ok(()) => break usd,
            // Where the budget does not cover one document, the direct path reports that for each.
            Err(failure) if failure.kind == FailureType::BudgetExceeded && lines.len() == 1 => {
                queue::dequeue(services, model, &key).await;
                return Ok(nothing(task.to));
            }
            Err(failure) if lines.len() > 1 && failure.waits_for_budget() => {
                next = lines.split_off(lines.len() / 2).first().map_or(next, |line| line.index);
            }
            Err(failure) => {
                queue::dequeue(services, model, &key).await;
                return Err(failure);
            }
        }
    };
    match services.guard.gates.keys.enter(model, &task.job, Instant::now()) {
        Ok(probe) => probe.use_up(),
        Err(failure) => {
            release_holds(services, (&shard, model), workflow, &key, count(&lines)).await;
            // A final failure: the direct path reports it for each document.
            return if failure.is_retried() { Err(failure) } else { Ok(nothing(task.to)) };
        }
    }
    let version = services.providers.key(model.provider()).map(Key::version);
    let requests = count(&lines);
    let (sent, lines): (BTreeMap<u32, Sent>, Vec<Vec<u8>>) =
        lines.into_iter().map(|line| ((line.index, line.sent), line.json)).unzip();
    let at = Utc::now();
    let submission = Submission { at, requests, next, usd, guessed: false, sent, batch: None };
    if let Err(failure) = submission.write(folder, task).await {
        release_holds(services, (&shard, model), workflow, &key, requests).await;
        return Err(failure);
    }
    match batches.submit(&key, operation(&shard.job), &lines).await {
        Ok(id) => {
            tracing::info!(%model, batch = id, requests, "documents were submitted to the provider's batch API");
            Ok(submitted(&Submission { batch: Some(id), ..submission }, folder, task).await)
        }
        Err(error) => {
            if error.charged == Charged::No {
                // There is no such batch, and no candidate for it.
                Submission::remove(folder, task).await;
                release_holds(services, (&shard, model), workflow, &key, requests).await;
            }
            if error.kind == Kind::Unauthorized {
                let (keys, provider) = (&services.guard.gates.keys, model.provider());
                let key = services.providers.key(provider).zip(version);
                let renewed = key.is_some_and(|(key, of)| keys.read_again(provider, key, of));
                let now = if renewed {
                    KeyNow::Replaced
                } else {
                    KeyNow::TheSame(services.providers.key(provider))
                };
                let failure = keys.refused(model, &task.job, &error, now, Instant::now());
                return if failure.is_retried() { Err(failure) } else { Ok(nothing(task.to)) };
            }
            let meant = handle_refusal(&shard, model, task, &error, attempt)?;
            if !meant.later {
                forecast::record_refusal(folder, model, &error).await;
            }
            Ok(meant)
        }
    }
}

/// Releases the budget and the queue of a batch that was not created, or of which no request was
/// processed. Returns whether the queue has released it.
pub(super) async fn release_holds(
    services: &Services,
    (shard, model): (&Shard, &ModelId),
    workflow: &str,
    key: &str,
    requests: u32,
) -> bool {
    let hold = submission::hold(key, requests);
    services.budgets.settle_batch(&payers(&shard.job, workflow), &hold, 0.0).await;
    queue::dequeue(services, model, key).await
}

/// Decides what follows a refusal: a retry, a failure, or the direct path.
fn handle_refusal(
    shard: &Shard,
    model: &ModelId,
    task: &SubmitBatch,
    error: &Error,
    attempt: u32,
) -> Result<SubmittedBatch, Failure> {
    tracing::warn!(%model, %error, "a batch was not taken");
    if error.kind == Kind::RateLimited {
        return Ok(SubmittedBatch { later: true, ..nothing(task.from) });
    }
    if error.kind.is_retryable() {
        return Err(Failure::from_batch_api(error, attempt));
    }
    let takes_none = matches!(error.kind, Kind::InvalidRequest | Kind::Unsupported);
    if takes_none && shard.job.mode == Some(Mode::Economy) {
        return Err(Failure::invalid_input(format!(
            "{} takes no batches ({}); leave out mode \"economy\", or correct base-url",
            model.provider(),
            error.message
        )));
    }
    Ok(nothing(task.to))
}

fn count(lines: &[BatchRequest]) -> u32 {
    u32::try_from(lines.len()).unwrap_or(u32::MAX)
}

fn nothing(next: u32) -> SubmittedBatch {
    SubmittedBatch { batch: None, requests: 0, next, later: false, unsure: false }
}

/// Records the provider's id. Temporal's history has the id once this attempt has ended; before
/// that, the next attempt reads the record.
async fn submitted(
    submission: &Submission,
    folder: &Location,
    task: &SubmitBatch,
) -> SubmittedBatch {
    if let Err(failure) = submission.write(folder, task).await {
        tracing::warn!(%failure, "the id of a batch could not be recorded");
    }
    SubmittedBatch {
        batch: submission.batch.clone(),
        requests: submission.requests,
        next: submission.next,
        later: false,
        unsure: false,
    }
}

/// Finds the batch that an earlier attempt submitted, even if that attempt did not learn the id.
async fn find_submitted(
    batches: &dyn BatchApi,
    folder: &Location,
    submission: Submission,
    key: &str,
    attempt: u32,
) -> Result<Option<Submission>, Failure> {
    if submission.batch.is_some() {
        return Ok(Some(submission));
    }
    let mut found = match batches.find(key, submission.requests as usize, submission.at).await {
        Ok(found) => found,
        // Some compatible servers have no list.
        Err(error) if matches!(error.kind, Kind::InvalidRequest | Kind::Unsupported) => Vec::new(),
        Err(error) => return Err(Failure::from_batch_api(&error, attempt)),
    };
    if !batches.takes_notes() && !found.is_empty() {
        let taken = submission::known_batch_ids(folder).await?;
        found.retain(|batch| !taken.contains(batch));
    }
    // Without metadata, several candidates cannot be told apart. With metadata, each of them holds
    // these requests.
    let batch = if found.len() == 1 || batches.takes_notes() { found.pop() } else { None };
    Ok(batch.map(|batch| Submission {
        batch: Some(batch),
        guessed: !batches.takes_notes(),
        ..submission
    }))
}
