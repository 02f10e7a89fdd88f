//! Answers that cannot be written: they are kept and tried again, and nothing more is bought for
//! their batch until one is written.
//!
//! An answer is held by the attempt that bought it, under its heartbeat, for as long as Temporal
//! gives the attempt. Where no attempt of a batch holds one any more (cancelled, or out of time),
//! one call after a while finds out whether its results can be written again.

use std::{collections::HashMap, sync::Arc, time::Instant};

use parking_lot::Mutex;
use tracing::{info, warn};

use crate::{
    call::attempt::Attempt,
    failure::{Failure, PROBE_UNWRITTEN, Retry, WRITE_AGAIN},
    metrics,
};

/// What cannot be written in this worker, by batch.
#[derive(Debug, Default)]
pub struct Unwritten(Mutex<HashMap<String, Batch>>);

#[derive(Debug)]
struct Batch {
    /// Attempts that hold an answer.
    held: usize,
    /// Why the last of its writes failed; `None` once one has succeeded since.
    fault: Option<String>,
    /// When the next call finds out, if no attempt holds an answer.
    probe_at: Instant,
}

impl Batch {
    fn check(&self, now: Instant) -> Result<(), Failure> {
        match &self.fault {
            Some(fault) if self.held > 0 || now < self.probe_at => Err(Failure::unwritable(fault)),
            _ => Ok(()),
        }
    }
}

impl Unwritten {
    /// Whether an answer could be kept, as far as is known.
    ///
    /// # Errors
    /// A failure that comes back soon, while the batch's results cannot be written.
    pub fn check(&self, attempt: &Attempt, now: Instant) -> Result<(), Failure> {
        self.0.lock().get(&attempt.batch).map_or(Ok(()), |batch| batch.check(now))
    }

    /// The same for a call that leaves now: where it is to find out, the next waits for its turn.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn enter(&self, attempt: &Attempt, now: Instant) -> Result<(), Failure> {
        let mut batches = self.0.lock();
        let Some(batch) = batches.get_mut(&attempt.batch) else { return Ok(()) };
        batch.check(now)?;
        batch.probe_at = now + PROBE_UNWRITTEN;
        Ok(())
    }

    /// Writes what an attempt has bought, and tries again for as long as its store fails.
    ///
    /// # Errors
    /// What is no fault of a store.
    pub async fn keep<T, W: Future<Output = Result<T, Failure>>>(
        self: &Arc<Self>,
        attempt: &Attempt,
        mut write: impl FnMut() -> W,
    ) -> Result<T, Failure> {
        let mut held = None;
        for before in 0.. {
            let failure = match write().await {
                Ok(written) => {
                    self.works(&attempt.batch);
                    return Ok(written);
                }
                Err(failure) if matches!(failure.retry, Retry::ByStore { .. }) => failure,
                Err(failure) => return Err(failure),
            };
            held.get_or_insert_with(|| Held::new(self, &attempt.batch));
            self.fails(&attempt.batch, &failure);
            let again = Retry::ByFaults { before, at_least: WRITE_AGAIN.base / 2 };
            tokio::time::sleep(again.delay(WRITE_AGAIN, 1).unwrap_or(WRITE_AGAIN.max)).await;
        }
        Err(Failure::transient("it was tried to write more often than can be counted"))
    }

    fn fails(&self, batch: &str, failure: &Failure) {
        let mut batches = self.0.lock();
        let Some(state) = batches.get_mut(batch) else { return };
        state.probe_at = Instant::now() + PROBE_UNWRITTEN;
        if state.fault.replace(failure.message.clone()).is_none() {
            warn!(
                batch,
                %failure,
                "results cannot be written: answers are kept and tried again, and nothing more is asked for this batch"
            );
        }
    }

    fn works(&self, batch: &str) {
        let mut batches = self.0.lock();
        let Some(state) = batches.get_mut(batch) else { return };
        if state.fault.take().is_some() {
            info!(batch, "results are written again");
        }
        if state.held == 0 {
            batches.remove(batch);
        }
    }
}

/// An answer that is held until this is dropped.
struct Held {
    all: Arc<Unwritten>,
    batch: String,
}

impl Held {
    fn new(all: &Arc<Unwritten>, batch: &str) -> Self {
        let fresh = || Batch { held: 0, fault: None, probe_at: Instant::now() };
        all.0.lock().entry(batch.to_owned()).or_insert_with(fresh).held += 1;
        metrics::answers_held(1.0);
        Self { all: Arc::clone(all), batch: batch.to_owned() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        metrics::answers_held(-1.0);
        let mut batches = self.all.0.lock();
        if let Some(state) = batches.get_mut(&self.batch) {
            state.held = state.held.saturating_sub(1);
            if state.held == 0 && state.fault.is_none() {
                batches.remove(&self.batch);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicU32, Ordering},
        time::Duration,
    };

    use super::*;
    use crate::{call::attempt::AttemptState, storage::Error};

    fn attempt(batch: &str) -> Attempt {
        Attempt::new("r".to_owned(), batch.to_owned(), 0, AttemptState::default())
    }

    fn full() -> Failure {
        Error::Failed("no space left".to_owned()).into()
    }

    #[tokio::test]
    async fn an_answer_is_kept_until_it_is_written_and_nothing_is_bought_meanwhile() {
        let (all, full_disk, tries) =
            (Arc::new(Unwritten::default()), AtomicBool::new(true), AtomicU32::new(0));
        let (mine, other) = (attempt("mine"), attempt("other"));
        let write = || async {
            tries.fetch_add(1, Ordering::SeqCst);
            if full_disk.load(Ordering::SeqCst) { Err(full()) } else { Ok(()) }
        };
        let (one, two) = (all.keep(&mine, write), all.keep(&mine, write));
        let disturbance = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let refused = all.check(&mine, Instant::now()).unwrap_err();
            assert!(refused.is_retried() && refused.message.contains("no space left"), "{refused}");
            all.check(&other, Instant::now()).unwrap();
            full_disk.store(false, Ordering::SeqCst);
        };
        let (one, two, ()) = tokio::join!(one, two, disturbance);
        one.unwrap();
        two.unwrap();
        let tries = tries.load(Ordering::SeqCst);
        assert!((4..=6).contains(&tries), "{tries} tries of two answers, ever later");
        all.check(&mine, Instant::now()).unwrap();
        assert!(all.0.lock().is_empty());
    }

    #[tokio::test]
    async fn when_no_answer_is_held_any_more_one_call_at_a_time_finds_out() {
        let (all, mine) = (Arc::new(Unwritten::default()), attempt("mine"));
        let kept = all.keep(&mine, || async { Err::<(), _>(full()) });
        // As when the batch is cancelled.
        assert!(tokio::time::timeout(Duration::from_millis(50), kept).await.is_err());
        let now = Instant::now();
        all.check(&mine, now).unwrap_err();
        let later = now + PROBE_UNWRITTEN;
        all.check(&mine, later).unwrap();
        all.enter(&mine, later).unwrap();
        all.check(&mine, later).unwrap_err();
        all.enter(&mine, later).unwrap_err();
        all.keep(&mine, || async { Ok(()) }).await.unwrap();
        all.check(&mine, later).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_fault_of_a_store_ends_at_once() {
        let (all, mine) = (Arc::new(Unwritten::default()), attempt("mine"));
        let failure =
            all.keep(&mine, || async { Err::<(), _>(Failure::invalid_input("no")) }).await;
        assert!(!failure.unwrap_err().is_retried());
        all.check(&mine, Instant::now()).unwrap();
    }
}
