//! What has been kept for long enough goes.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tidegate_activities::storage::Error;

use super::{
    id::{Kind, made_at},
    place::Place,
};
use crate::serve::door::Door;

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

async fn names(folder: &tidegate_activities::storage::Location) -> Result<Vec<String>, Error> {
    match folder.names().await {
        Err(Error::Missing(_)) => Ok(Vec::new()),
        names => names,
    }
}
