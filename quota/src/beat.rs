//! The beat of a live worker: it reports itself, and reads shared data of the fleet.

use std::time::Instant;

use tracing::warn;

use crate::{error::Error, fleet, metrics, quota::Quota, redis_store, store::Store as _};

/// Lanes are named again at each such beat, in case Redis has lost their numbers.
const LANES_EVERY: u64 = 12;

impl Quota {
    /// Reports this worker as live and refreshes the gauges of the models, until it is dropped or
    /// `stop` resolves. Models in use are refreshed every five seconds, in a large fleet less often
    /// by each worker; the others after a change by an operator. Run one for each process that
    /// admits calls.
    ///
    /// # Errors
    /// [`Error::Outdated`] once a newer program has taken over a quota: this program must end.
    pub async fn keep_alive(
        &self,
        worker: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let Some(redis) = &self.shared.redis else {
            stop.await;
            return Ok(());
        };
        tokio::pin!(stop);
        let mut beat = tokio::time::interval(fleet::BEAT);
        let mut beats = 0_u64;
        let ended = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                _ = beat.tick() => {
                    if beats.is_multiple_of(LANES_EVERY)
                        && let Some(model) = self.models().next()
                    {
                        // If this fails, a later beat repeats it.
                        let _ = redis.name_lanes(&model.lanes).await;
                    }
                    let rests = self.shared.poll_schedule.is_idle() && !beats.is_multiple_of(2);
                    let reads = beats.is_multiple_of(self.beats_between_reads());
                    beats += 1;
                    if rests {
                        continue;
                    }
                    if let Err(error) = self.beat(redis, worker, reads).await {
                        break Err(error);
                    }
                }
            }
        };
        if let Err(error) = self.shared.fleet.leave(redis, worker).await {
            warn!(%error, "could not leave the fleet; the others count this worker for 15 s more");
        }
        ended
    }

    /// One beat, which refreshes the models in use if it `reads`. Failures other than
    /// [`Error::Outdated`] show in the breaker when a call asks to be admitted.
    async fn beat(
        &self,
        redis: &redis_store::Store,
        worker: &str,
        reads: bool,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        if shared.fleet.beat(redis, worker).await.is_err() {
            return Ok(());
        }
        shared.record_answer();
        metrics::set_workers(self.live_workers());
        for model in shared.poll_schedule.take_due(shared.models.keys(), reads) {
            let Some(model) = shared.models.get(&model) else { continue };
            let asked = Instant::now();
            match redis.inspect(model).await {
                Ok(snapshot) => {
                    metrics::record_snapshot(model, &snapshot);
                    let held = shared.holds.held.lock().models.contains_key(&model.id);
                    shared.state_changes.record_snapshot(&model.id, &snapshot, asked, held);
                    shared.usage_history.record_snapshot(&model.id, &snapshot);
                    shared.usage_history.flush(redis, model).await;
                    shared.poll_schedule.record_snapshot(&model.id, &snapshot);
                }
                Err(error @ Error::Outdated(_)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Publishes `words` as the status of `worker` for 15 s. If it `listens`, returns the statuses
    /// of all live workers, this one included. `None` without a Redis. The words must not contain a
    /// credential.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn publish_status(
        &self,
        worker: &str,
        words: &str,
        listens: bool,
    ) -> Result<Option<Vec<(String, String)>>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(None) };
        fleet::Fleet::publish_status(redis, worker, words, listens).await.map(Some)
    }

    /// The statuses of all live workers; empty without a Redis.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn worker_statuses(&self) -> Result<Vec<(String, String)>, Error> {
        self.publish_status("", "", true).await.map(Option::unwrap_or_default)
    }

    /// Live workers of the fleet at the last beat, this one included.
    pub fn live_workers(&self) -> u64 {
        self.shared.fleet.size()
    }

    /// Interval in beats between this worker's reads of data that all workers read: 1 in a fleet of
    /// less than fifty workers; in a larger one all together read about as often as fifty.
    pub fn beats_between_reads(&self) -> u64 {
        self.shared.fleet.reads_every()
    }
}
