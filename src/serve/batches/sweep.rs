//! Removes files and batches that have been kept for long enough.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tidegate_activities::storage::Error;

use super::{
    batch::BatchRequest,
    batch_status::{self, Course, check_unused},
    expiry,
    file::{self, File},
    id::{Kind, OutputFile, creation_time},
    key_folder::{self, KeyFolder},
};
use crate::serve::{door::Door, problem::Problem};

/// The mean time between two sweeps of a replica.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Sweeps repeatedly; never returns.
pub(in crate::serve) async fn sweep(door: &Door) {
    let Some(files) = &door.files else { return std::future::pending().await };
    loop {
        for holder in door.keys.all() {
            let place = KeyFolder::new(files, holder);
            if let Err(error) = sweep_old(&place, *door.config.serve.keep_files).await {
                tracing::warn!(%error, key = holder.name, "files that are old enough to go stay");
            }
            if let Err(problem) = sweep_expired(door, &place).await {
                let why = problem.message;
                tracing::warn!(why, key = holder.name, "files that have expired stay");
            }
        }
        // A random delay keeps replicas apart.
        tokio::time::sleep(EVERY.mul_f64(0.5 + rand::random::<f64>())).await;
    }
}

async fn sweep_old(place: &KeyFolder, keep: Duration) -> Result<(), Error> {
    let is_old = |name: &str, keep: Duration| {
        let age = creation_time(name).and_then(|made| SystemTime::now().duration_since(made).ok());
        age.is_some_and(|age| age > keep)
    };
    let files = place.files();
    // This also removes interrupted uploads.
    for name in files.names().await?.iter().filter(|name| is_old(name, keep)) {
        files.child(name).delete().await?;
    }
    let batches: BTreeSet<String> = place
        .batches()
        .names()
        .await?
        .into_iter()
        .filter_map(|name| Some(name.split_once('.')?.0.to_owned()))
        .filter(|id| Kind::Batch.is_id(id) || Kind::MessageBatch.is_id(id))
        .collect();
    for id in batches.iter().filter(|id| is_old(id, keep)) {
        // A batch without a report still runs: it gets twice the time, and expires before that.
        let has_ended = place.report(id).stamp().await?.is_some();
        if has_ended || is_old(id, keep.saturating_mul(2)) {
            place.remove(id).await?;
        }
    }
    Ok(())
}

/// Removes files whose shorter time, set by the client, has passed. A description that cannot be
/// read keeps its own file only.
async fn sweep_expired(door: &Door, place: &KeyFolder) -> Result<(), Problem> {
    for id in KeyFolder::ids(&place.files(), Kind::File).await? {
        warn_if_kept(&id, remove_expired_file(door, place, &id).await);
    }
    for id in KeyFolder::ids(&place.batches(), Kind::Batch).await? {
        warn_if_kept(&id, remove_expired_output(door, place, &id).await);
    }
    Ok(())
}

fn warn_if_kept(id: &str, removed: Result<(), Problem>) {
    if let Err(problem) = removed {
        tracing::warn!(why = problem.message, id, "a file that may have expired stays");
    }
}

/// Removes a file unless a running batch reads it.
async fn remove_expired_file(door: &Door, place: &KeyFolder, id: &str) -> Result<(), Problem> {
    let file = key_folder::read::<File>(&place.file(id)).await?;
    if file.is_some_and(|file| expiry::has_passed(file.expires_at))
        && check_unused(door, place, id).await.is_ok()
    {
        file::remove(place, id).await?;
    }
    Ok(())
}

/// Removes the output files of a batch that has ended.
async fn remove_expired_output(door: &Door, place: &KeyFolder, id: &str) -> Result<(), Problem> {
    let asked = key_folder::read::<BatchRequest>(&place.batch(id)).await?;
    if asked.and_then(|asked| asked.output_seconds).is_none() {
        return Ok(());
    }
    // Stores the end of the batch if that has not happened yet.
    batch_status::find(door, place, id).await?;
    let ended = key_folder::read::<Course>(&place.ended(id)).await?;
    if ended.is_some_and(|ended| expiry::has_passed(ended.output_expires_at)) {
        for put in [OutputFile::Output, OutputFile::Errors] {
            let file = place.output_file(id, put);
            file.delete().await?;
        }
    }
    Ok(())
}
