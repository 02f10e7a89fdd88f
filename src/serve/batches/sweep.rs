//! Removes files and batches that have been kept for long enough.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use axum::http::StatusCode;
use tidegate_activities::storage::{Error, Location};

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
            for swept in [sweep_old(door, &place).await, sweep_expired(door, &place).await] {
                let Err(problem) = swept else { continue };
                let why = problem.message;
                tracing::warn!(why, key = holder.name, "files that are old enough to go stay");
            }
        }
        // A random delay keeps replicas apart.
        tokio::time::sleep(EVERY.mul_f64(0.5 + rand::random::<f64>())).await;
    }
}

/// Removes files whose shorter time, set by the client, has passed.
async fn sweep_expired(door: &Door, place: &KeyFolder) -> Result<(), Problem> {
    // A description that cannot be read keeps its own file only.
    for id in KeyFolder::ids(&place.files(), Kind::File).await? {
        warn_if_kept(&id, remove_expired_file(door, place, &id).await);
    }
    for id in KeyFolder::ids(&place.batches(), Kind::Batch).await? {
        warn_if_kept(&id, remove_expired_output(door, place, &id).await);
    }
    Ok(())
}

/// Removes what has been kept for `serve.keep-files`.
async fn sweep_old(door: &Door, place: &KeyFolder) -> Result<(), Problem> {
    let keep = *door.config.serve.keep_files;
    let is_old = |name: &str, keep: Duration| {
        let age = creation_time(name).and_then(|made| SystemTime::now().duration_since(made).ok());
        age.is_some_and(|age| age > keep)
    };
    let old_ids = async |folder: Location| {
        folder.remove_unfinished(|name| is_old(name, keep)).await?;
        let names = folder.names().await?.into_iter().filter(|name| is_old(name, keep));
        let ids = names.filter_map(|name| Some(name.split_once('.')?.0.to_owned()));
        Ok::<BTreeSet<String>, Error>(ids.collect())
    };
    // This also removes the contents of interrupted uploads, which have no description.
    for id in old_ids(place.files()).await? {
        warn_if_kept(&id, remove_unused_file(door, place, &id).await);
    }
    for id in old_ids(place.batches()).await? {
        if !Kind::Batch.is_id(&id) && !Kind::MessageBatch.is_id(&id) {
            continue;
        }
        // A batch without a report still runs: it gets twice the time, and expires before that.
        let has_ended = place.report(&id).stamp().await?.is_some();
        if has_ended || is_old(&id, keep.saturating_mul(2)) {
            place.remove(&id).await?;
        }
    }
    Ok(())
}

fn warn_if_kept(id: &str, removed: Result<(), Problem>) {
    if let Err(problem) = removed {
        tracing::warn!(why = problem.message, id, "a file that may have expired stays");
    }
}

/// Removes a file whose shorter time, set by the client, has passed.
async fn remove_expired_file(door: &Door, place: &KeyFolder, id: &str) -> Result<(), Problem> {
    let file = key_folder::read::<File>(&place.file(id)).await?;
    match file.is_some_and(|file| expiry::has_passed(file.expires_at)) {
        true => remove_unused_file(door, place, id).await,
        false => Ok(()),
    }
}

/// Removes a file unless a running batch reads it.
async fn remove_unused_file(door: &Door, place: &KeyFolder, id: &str) -> Result<(), Problem> {
    match check_unused(door, place, id).await {
        Ok(()) => file::remove(place, id).await,
        Err(problem) if problem.status == StatusCode::CONFLICT => Ok(()),
        Err(problem) => Err(problem),
    }
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
