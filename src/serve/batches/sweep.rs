//! What has been kept for long enough goes.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tidegate_activities::storage::Error;

use super::{
    batch::Asked,
    check_unused, expiry,
    file::{self, Ended, File},
    id::{Kind, Put, made_at},
    place::{self, Place, away},
    standing,
};
use crate::serve::{door::Door, problem::Problem};

/// Between two sweeps of a replica.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Sweeps now and then, as long as the door is there.
pub(in crate::serve) async fn sweep(door: &Door) {
    let Some(files) = &door.files else { return std::future::pending().await };
    loop {
        for holder in door.keys.all() {
            let place = Place::of(files, holder);
            if let Err(error) = sweep_place(&place, door.keep_files).await {
                tracing::warn!(%error, key = holder.name, "files that are old enough to go stay");
            }
            if let Err(problem) = sweep_expired(door, &place).await {
                let why = problem.message;
                tracing::warn!(why, key = holder.name, "files that have expired stay");
            }
        }
        // Replicas take turns.
        tokio::time::sleep(EVERY.mul_f64(0.5 + rand::random::<f64>())).await;
    }
}

async fn sweep_place(place: &Place, keep: Duration) -> Result<(), Error> {
    let is_old = |name: &str, keep: Duration| {
        let age = made_at(name).and_then(|made| SystemTime::now().duration_since(made).ok());
        age.is_some_and(|age| age > keep)
    };
    let files = place.files();
    // What broke off goes, too.
    for name in names(&files).await?.iter().filter(|name| is_old(name, keep)) {
        files.child(name).delete().await?;
    }
    let batches: BTreeSet<String> = names(&place.batches())
        .await?
        .into_iter()
        .filter_map(|name| Some(name.split_once('.')?.0.to_owned()))
        .filter(|id| Kind::Batch.is_id(id) || Kind::MessageBatch.is_id(id))
        .collect();
    for id in batches.iter().filter(|id| is_old(id, keep)) {
        // One that goes on will have expired soon.
        let has_ended = place.report(id).stamp().await?.is_some();
        if has_ended || is_old(id, keep.saturating_mul(2)) {
            place.remove(id).await?;
        }
    }
    Ok(())
}

/// What its author wants kept for a shorter time. A file that a batch reads stays until that has ended.
async fn sweep_expired(door: &Door, place: &Place) -> Result<(), Problem> {
    for id in Place::ids(&place.files(), Kind::File).await? {
        let file = place::read::<File>(&place.file(&id)).await?;
        if file.is_some_and(|file| expiry::has_passed(file.expires_at))
            && check_unused(door, place, &id).await.is_ok()
        {
            file::remove(place, &id).await?;
        }
    }
    for id in Place::ids(&place.batches(), Kind::Batch).await? {
        let asked = place::read::<Asked>(&place.batch(&id)).await?;
        if asked.and_then(|asked| asked.output_seconds).is_none() {
            continue;
        }
        // Nobody may have asked since it has ended.
        standing::find(door, place, &id).await?;
        let ended = place::read::<Ended>(&place.ended(&id)).await?;
        if ended.is_some_and(|ended| expiry::has_passed(ended.output_expires_at)) {
            for put in [Put::Output, Put::Errors] {
                place.put(&id, put).delete().await.map_err(|error| away(&error))?;
            }
        }
    }
    Ok(())
}

async fn names(folder: &tidegate_activities::storage::Location) -> Result<Vec<String>, Error> {
    match folder.names().await {
        Err(Error::Missing(_)) => Ok(Vec::new()),
        names => names,
    }
}
