//! Answers that cannot be written. They are kept and retried, and nothing more is bought for their
//! batch until one is written.
//!
//! The attempt that bought an answer holds it, under its heartbeat, for as long as Temporal lets the
//! attempt run; with a [`Spool`], the answer is also in a file from the first failure on. If no attempt
//! of a batch holds an answer any more (it was cancelled, or timed out), one call after a while tests
//! whether results can be written again.
//! ```text
//! answer ── written ─────────────────────────────────────────► store
//!   └ fails ─► held, and in the spool ── written later ──────► store
//!                └ attempt or worker ends ─► in the spool alone
//!                      ├ any worker with that folder writes it, every 15 s ──► store
//!                      ├ the next attempt, at such a worker, writes it ──────► store
//!                      └ the next attempt, elsewhere: comes back, for an hour; then it is bought again
//! ```

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Instant, SystemTime},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_calls::{
    doubts::Probe,
    gates::{About, Check, CheckedCall, Taken},
};
use tracing::{Instrument, info, warn};

use crate::{
    attempt::Attempt,
    failure::{self, DRAIN_SPOOL, Failure, PROBE_UNWRITTEN, Retry, SPOOL_PATIENCE, WRITE_AGAIN},
    fingerprint::Fingerprint,
    metrics,
    output::spool::{Entry, Header, Overwrite, Spool, SpoolLookup},
    spans,
    storage::{Error, Location},
};

/// The answers that this worker cannot write.
#[derive(Debug, Default)]
pub struct PendingWrites {
    /// By the batch's workflow id.
    batches: Mutex<HashMap<String, Batch>>,
    spool: Option<Spool>,
    /// Files of the spool that this worker cannot write to their store. Each is logged once.
    stuck: Mutex<HashSet<PathBuf>>,
}

/// An object with an answer that was bought.
#[derive(Debug)]
pub struct Bought {
    location: Location,
    bytes: Bytes,
    over: Overwrite,
    needs: Option<String>,
}

impl Bought {
    /// Creates an object that is written only where none exists.
    pub fn new(location: &Location, bytes: impl Into<Bytes>) -> Self {
        Self {
            location: location.clone(),
            bytes: bytes.into(),
            over: Overwrite::default(),
            needs: None,
        }
    }

    /// Allows it to replace any object.
    pub fn replacing(self) -> Self {
        Self { over: Overwrite { anything: true, ..self.over }, ..self }
    }

    /// Allows it to replace the object with this fingerprint. If another object is at the location,
    /// that one stays.
    pub fn instead_of(self, object: Option<Fingerprint>) -> Self {
        Self { over: Overwrite { object, ..self.over }, ..self }
    }

    /// Makes it obsolete once this object is gone: it is then no longer written from the spool.
    pub fn needing(self, object: &Location) -> Self {
        Self { needs: Some(object.uri()), ..self }
    }

    /// Writes the object, once. Returns whether it is stored now; it is not if another object must
    /// stay.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn write(&self) -> Result<bool, Failure> {
        let bytes = self.bytes.clone();
        if self.over.anything {
            self.location.write(bytes).await?;
            return Ok(true);
        }
        match self.location.create(bytes.clone()).await {
            Ok(()) => return Ok(true),
            Err(Error::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(object) = self.over.object else { return Ok(false) };
        let there = self.location.read_if_there().await?;
        // On an overlap of two attempts, the result of the faster one stays: it is as good as this
        // one.
        let takes_its_place = there.is_none_or(|there| Fingerprint::of_bytes(&there) == object);
        if takes_its_place {
            self.location.write(bytes).await?;
        }
        Ok(takes_its_place)
    }

    /// Writes it, unless `needs` no longer exists. Returns whether it is needed.
    async fn write_if_needed(&self, needs: Option<Location>) -> Result<bool, Failure> {
        let is_needed = match needs {
            Some(object) => object.stamp().await?.is_some(),
            None => true,
        };
        if is_needed {
            self.write().await?;
        }
        Ok(is_needed)
    }

    fn header(&self) -> Header {
        Header { uri: self.location.uri(), over: self.over, needs: self.needs.clone() }
    }
}

#[derive(Debug)]
struct Batch {
    /// Attempts that hold an answer.
    held: usize,
    /// The reason why the last write failed; `None` after a success.
    fault: Option<String>,
    /// When the next call tests the store, if no attempt holds an answer.
    probe_at: Instant,
}

impl Batch {
    fn check(&self, now: Instant) -> Result<(), Failure> {
        match &self.fault {
            Some(fault) if self.held > 0 || now < self.probe_at => Err(failure::unwritable(fault)),
            _ => Ok(()),
        }
    }
}

impl PendingWrites {
    /// Adds a folder for answers that are still unwritten when their attempt or worker ends.
    pub fn with_spool(spool: Spool) -> Self {
        Self { spool: Some(spool), ..Self::default() }
    }

    /// Checks whether the batch's answers can be written, as far as known.
    ///
    /// # Errors
    /// A failure that is retried soon, while the batch's results cannot be written.
    pub fn check(&self, batch: &str, now: Instant) -> Result<(), Failure> {
        self.batches.lock().get(batch).map_or(Ok(()), |batch| batch.check(now))
    }

    /// Like [`Self::check`], for a call that is about to be sent: if this call tests the store,
    /// other calls wait.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn enter(self: &Arc<Self>, batch: &str, now: Instant) -> Result<Probe, Failure> {
        let mut batches = self.batches.lock();
        let Some(state) = batches.get_mut(batch) else { return Ok(Probe::default()) };
        state.check(now)?;
        let mine = now + PROBE_UNWRITTEN;
        let before = std::mem::replace(&mut state.probe_at, mine);
        let (all, batch) = (Arc::clone(self), batch.to_owned());
        Ok(Probe::new(move || {
            if let Some(state) = all.batches.lock().get_mut(&batch)
                && state.probe_at == mine
            {
                state.probe_at = before;
            }
        }))
    }

    /// Writes the answer that an attempt has bought, and retries as long as its store fails.
    /// Returns whether this answer is stored, rather than that of a faster attempt.
    ///
    /// # Errors
    /// Failures other than a store's.
    pub async fn write(
        self: &Arc<Self>,
        attempt: &Attempt,
        bought: &Bought,
    ) -> Result<bool, Failure> {
        let spool = || self.put(attempt, bought);
        self.hold(attempt, None, spool, || bought.write()).instrument(spans::writing()).await
    }

    /// Writes the answer that an earlier attempt has bought and could not write, if it is in this
    /// spool.
    ///
    /// # Errors
    /// A retried failure, while the answer is elsewhere and its worker may still write it.
    pub async fn recover(
        self: &Arc<Self>,
        attempt: &Attempt,
        location: &Location,
    ) -> Result<(), Failure> {
        let Some(spool) = &self.spool else { return Ok(()) };
        let (entry, header, bytes) = match spool.find(&location.uri()) {
            Ok(SpoolLookup::Answer(entry, header, bytes)) => (entry, header, bytes),
            Ok(SpoolLookup::Nothing) => return Ok(()),
            Ok(SpoolLookup::Held) => return Err(failure::spooled()),
            Err(error) => {
                warn!(%location, %error, "the spool cannot be read");
                return Ok(());
            }
        };
        let Header { over, needs, .. } = header;
        let bought = Bought { location: location.clone(), bytes, over, needs };
        self.hold(attempt, Some(entry), || None, || bought.write()).await.map(drop)
    }

    /// Checks that the answer may be bought: it is not known to be in the spool of another worker,
    /// which may return.
    ///
    /// # Errors
    /// A retried failure, until the wait has lasted too long.
    pub fn check_spooled(&self, attempt: &Attempt) -> Result<(), Failure> {
        match attempt.spooled_duration(SystemTime::now()) {
            Some(lasting) if lasting < SPOOL_PATIENCE => Err(failure::spooled()),
            Some(lasting) => {
                warn!(
                    document = attempt.call.document(),
                    ?lasting,
                    "an answer lies in the spool of a worker that did not come back; it is bought again"
                );
                attempt.set_spooled(false);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Writes the answers in the spool that no attempt holds, every [`DRAIN_SPOOL`], until it is
    /// dropped. `resolve` turns a URI into a location.
    pub async fn drain(&self, resolve: impl Fn(&str) -> Result<Location, Error>) {
        let Some(spool) = &self.spool else { return };
        loop {
            if let Err(error) = self.drain_once(spool, &resolve).await {
                warn!(%error, "answers stay in the spool for now");
            }
            tokio::time::sleep(DRAIN_SPOOL).await;
        }
    }

    async fn drain_once(
        &self,
        spool: &Spool,
        resolve: &impl Fn(&str) -> Result<Location, Error>,
    ) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| {
            Failure::transient(format!("the spool cannot be read: {error}"))
        };
        let files = spool.files().map_err(cannot)?;
        let mut left = files.len();
        metrics::set_spooled_answers(left);
        for file in files {
            let (entry, header, bytes) = match spool.take(&file) {
                Ok(SpoolLookup::Answer(entry, header, bytes)) => (entry, header, bytes),
                Ok(SpoolLookup::Nothing | SpoolLookup::Held) => continue,
                Err(error) => {
                    self.log_stuck(file, &error);
                    continue;
                }
            };
            let location = match resolve(&header.uri) {
                Ok(location) => location,
                Err(error) => {
                    self.log_stuck(file, &error);
                    continue;
                }
            };
            let needs = header.needs.as_ref().and_then(|needs| resolve(needs).ok());
            let bought = Bought { location, bytes, over: header.over, needs: None };
            let is_needed = match bought.write_if_needed(needs).await {
                Ok(is_needed) => is_needed,
                Err(failure) => {
                    self.log_stuck(file, &failure);
                    continue;
                }
            };
            entry.remove();
            left -= 1;
            metrics::set_spooled_answers(left);
            info!(place = header.uri, is_needed, "an answer leaves the spool");
        }
        Ok(())
    }

    /// Logs a file once.
    fn log_stuck(&self, file: PathBuf, error: &dyn std::fmt::Display) {
        let mut stuck = self.stuck.lock();
        if !stuck.contains(&file) {
            warn!(file = %file.display(), %error, "this worker cannot write an answer of the spool to its store; it stays in the spool");
            stuck.insert(file);
        }
    }

    fn put(&self, attempt: &Attempt, bought: &Bought) -> Option<Entry> {
        let put = self.spool.as_ref()?.put(&bought.header(), &bought.bytes);
        let put = put.inspect_err(|error| {
            warn!(%error, place = %bought.location, "an answer cannot be put into the spool either");
        });
        attempt.set_spooled(put.is_ok());
        put.ok()
    }

    /// Holds an answer until it is written; from the first failure on it is also in the spool.
    async fn hold<T, W: Future<Output = Result<T, Failure>>>(
        self: &Arc<Self>,
        attempt: &Attempt,
        mut entry: Option<Entry>,
        spool: impl Fn() -> Option<Entry>,
        mut write: impl FnMut() -> W,
    ) -> Result<T, Failure> {
        let mut held: Option<HeldAnswer> = None;
        for before in 0.. {
            let failure = match write().await {
                Ok(value) => {
                    if let Some(entry) = entry {
                        entry.remove();
                    }
                    if let Some(held) = &mut held {
                        held.left = Left::Written;
                    }
                    attempt.set_spooled(false);
                    attempt.set_unwritten(false);
                    self.record_success(&attempt.call.batch);
                    return Ok(value);
                }
                Err(failure) if matches!(failure.retry, Retry::ByStore { .. }) => failure,
                Err(failure) => return Err(failure),
            };
            let held = held.get_or_insert_with(|| HeldAnswer::new(self, &attempt.call.batch));
            attempt.set_unwritten(true);
            if entry.is_none() && before == 0 {
                entry = spool();
            }
            held.left = if entry.is_some() { Left::InSpool } else { Left::Nowhere };
            self.record_failure(&attempt.call.batch, &failure);
            let again = Retry::ByFaults { before, at_least: WRITE_AGAIN.base / 2 };
            tokio::time::sleep(again.delay(WRITE_AGAIN, 1).unwrap_or(WRITE_AGAIN.max)).await;
        }
        Err(Failure::transient("it was tried to write more often than can be counted"))
    }

    fn record_failure(&self, batch: &str, failure: &Failure) {
        let mut batches = self.batches.lock();
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

    fn record_success(&self, batch: &str) {
        let mut batches = self.batches.lock();
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
struct HeldAnswer {
    all: Arc<PendingWrites>,
    batch: String,
    /// State of the answer when this is dropped.
    left: Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Written,
    InSpool,
    Nowhere,
}

impl HeldAnswer {
    fn new(all: &Arc<PendingWrites>, batch: &str) -> Self {
        let fresh = || Batch { held: 0, fault: None, probe_at: Instant::now() };
        all.batches.lock().entry(batch.to_owned()).or_insert_with(fresh).held += 1;
        metrics::change_held_answers(1.0);
        Self { all: Arc::clone(all), batch: batch.to_owned(), left: Left::Nowhere }
    }
}

impl Drop for HeldAnswer {
    fn drop(&mut self) {
        metrics::change_held_answers(-1.0);
        match self.left {
            Left::Written => {}
            Left::InSpool => {
                info!(batch = self.batch, "an answer that could not be written stays in the spool")
            }
            Left::Nowhere => warn!(
                batch = self.batch,
                "an answer that could not be written is lost; worker.spool would keep such answers"
            ),
        }
        let mut batches = self.all.batches.lock();
        if let Some(state) = batches.get_mut(&self.batch) {
            state.held = state.held.saturating_sub(1);
            if state.held == 0 && state.fault.is_none() {
                batches.remove(&self.batch);
            }
        }
    }
}

/// The guard's gate that holds calls while results cannot be written.
#[derive(Debug)]
pub struct Results(pub Arc<PendingWrites>);

impl Check for Results {
    fn name(&self) -> &'static str {
        "results"
    }

    fn about(&self) -> About {
        About::Batch
    }

    fn check(&self, call: CheckedCall<'_>) -> Result<(), Failure> {
        self.0.check(&call.attempt.batch, call.now)
    }

    fn enter(&self, call: CheckedCall<'_>) -> Result<Taken, Failure> {
        self.0.enter(&call.attempt.batch, call.now).map(Taken::Probe)
    }

    fn defers(&self) -> bool {
        false
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
    use crate::{
        attempt::AttemptState,
        storage::{Error, Storage},
    };

    fn attempt(batch: &str) -> Attempt {
        Attempt::new("r".to_owned(), batch.to_owned(), 0, AttemptState::default())
    }

    fn full() -> Failure {
        Error::Failed("no space left".to_owned()).into()
    }

    #[tokio::test]
    async fn an_answer_is_kept_until_it_is_written_and_nothing_is_bought_meanwhile() {
        let (all, full_disk, tries) =
            (Arc::new(PendingWrites::default()), AtomicBool::new(true), AtomicU32::new(0));
        let mine = attempt("mine");
        let write = || async {
            tries.fetch_add(1, Ordering::SeqCst);
            if full_disk.load(Ordering::SeqCst) { Err(full()) } else { Ok(()) }
        };
        let (one, two) =
            (all.hold(&mine, None, || None, write), all.hold(&mine, None, || None, write));
        let disturbance = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let refused = all.check("mine", Instant::now()).unwrap_err();
            assert!(refused.is_retried() && refused.message.contains("no space left"), "{refused}");
            assert!(mine.state().document.unwritten, "its heartbeat tells");
            all.check("other", Instant::now()).unwrap();
            full_disk.store(false, Ordering::SeqCst);
        };
        let (one, two, ()) = tokio::join!(one, two, disturbance);
        one.unwrap();
        two.unwrap();
        assert!(!mine.state().document.unwritten);
        let tries = tries.load(Ordering::SeqCst);
        assert!((4..=6).contains(&tries), "{tries} tries of two answers, ever later");
        all.check("mine", Instant::now()).unwrap();
        assert!(all.batches.lock().is_empty());
    }

    #[tokio::test]
    async fn when_no_answer_is_held_any_more_one_call_at_a_time_finds_out() {
        let (all, mine) = (Arc::new(PendingWrites::default()), attempt("mine"));
        let kept = all.hold(&mine, None, || None, || async { Err::<(), _>(full()) });
        // This happens when the batch is cancelled.
        assert!(tokio::time::timeout(Duration::from_millis(50), kept).await.is_err());
        let now = Instant::now();
        all.check("mine", now).unwrap_err();
        let later = now + PROBE_UNWRITTEN;
        all.check("mine", later).unwrap();
        all.enter("mine", later).unwrap().use_up();
        all.check("mine", later).unwrap_err();
        all.enter("mine", later).unwrap_err();
        all.hold(&mine, None, || None, || async { Ok(()) }).await.unwrap();
        all.check("mine", later).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_fault_of_a_store_ends_at_once() {
        let (all, mine) = (Arc::new(PendingWrites::default()), attempt("mine"));
        let failure = all
            .hold(&mine, None, || None, || async { Err::<(), _>(Failure::invalid_input("no")) })
            .await;
        assert!(!failure.unwrap_err().is_retried());
        all.check("mine", Instant::now()).unwrap();
    }

    /// A worker's storage, and its spool.
    fn worker(folder: &std::path::Path) -> (Arc<PendingWrites>, Storage) {
        let spool = Spool::open(&folder.join("spool")).unwrap();
        let root = format!("file://{}", folder.canonicalize().unwrap().display());
        (Arc::new(PendingWrites::with_spool(spool)), Storage::new([root.as_str()]).unwrap())
    }

    #[tokio::test]
    async fn what_outlives_its_attempt_is_written_by_the_next_or_by_whoever_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (nowhere, out) = (folder.path().join("nowhere"), folder.path().join("out"));
        // A dangling link: a write to it fails.
        std::os::unix::fs::symlink(&nowhere, &out).unwrap();
        let (one, storage) = worker(folder.path());
        let uri = |name: &str| {
            format!("file://{}/out/{name}.json", folder.path().canonicalize().unwrap().display())
        };
        for name in ["a", "b"] {
            let location = Storage::resolve(&storage, &uri(name)).unwrap();
            let (mine, bought) = (attempt("mine"), Bought::new(&location, name));
            let kept = tokio::time::timeout(Duration::from_millis(100), one.write(&mine, &bought));
            assert!(kept.await.is_err(), "it is held until its attempt ends");
            let state = mine.state();
            let again = Attempt::new("r.2".to_owned(), "mine".to_owned(), 0, state);
            assert!(one.check_spooled(&again).is_err(), "elsewhere it is waited for");
        }
        std::fs::remove_file(&out).unwrap();
        std::fs::create_dir(&out).unwrap();
        let (other, _) = worker(folder.path());
        let place = storage.resolve(&uri("a")).unwrap();
        other.recover(&attempt("mine"), &place).await.unwrap();
        assert_eq!(place.read().await.unwrap(), "a");
        let spool = other.spool.as_ref().unwrap();
        assert_eq!(spool.files().unwrap().len(), 1);
        other.drain_once(spool, &|uri: &str| storage.resolve(uri)).await.unwrap();
        assert_eq!(storage.resolve(&uri("b")).unwrap().read().await.unwrap(), "b");
        assert!(spool.files().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_store_that_fails_holds_back_no_answer_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let (all, storage) = worker(folder.path());
        let root = folder.path().canonicalize().unwrap();
        // A dangling link: a write to it fails.
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("broken")).unwrap();
        let spool = all.spool.as_ref().unwrap();
        let place =
            |name: String| storage.resolve(&format!("file://{}/{name}", root.display())).unwrap();
        for number in 0..8 {
            for store in ["broken", "well"] {
                let bought = Bought::new(&place(format!("{store}/{number}.json")), "paid");
                drop(spool.put(&bought.header(), &bought.bytes).unwrap());
            }
        }
        all.drain_once(spool, &|uri: &str| storage.resolve(uri)).await.unwrap();
        for number in 0..8 {
            assert_eq!(place(format!("well/{number}.json")).read().await.unwrap(), "paid");
        }
        assert_eq!(spool.files().unwrap().len(), 8, "the others stay");
    }

    #[tokio::test]
    async fn a_step_of_a_document_that_is_done_leaves_the_spool_and_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (all, storage) = worker(folder.path());
        let root = folder.path().canonicalize().unwrap();
        let place =
            |name: &str| storage.resolve(&format!("file://{}/{name}", root.display())).unwrap();
        let (step, version) = (place("parts/0-1.json"), place("parts/version"));
        let spool = all.spool.as_ref().unwrap();
        let put = || {
            let bought = Bought::new(&step, "late").needing(&version);
            drop(spool.put(&bought.header(), &bought.bytes).unwrap());
        };
        put();
        version.write("1").await.unwrap();
        all.drain_once(spool, &|uri: &str| storage.resolve(uri)).await.unwrap();
        assert_eq!(step.read().await.unwrap(), "late", "its document goes on");
        place("parts").clear().await.unwrap();
        put();
        all.drain_once(spool, &|uri: &str| storage.resolve(uri)).await.unwrap();
        assert!(spool.files().unwrap().is_empty());
        assert!(!root.join("parts").exists());
    }

    #[tokio::test]
    async fn an_answer_takes_the_place_of_what_it_was_bought_for_and_of_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (_, storage) = worker(folder.path());
        let uri = format!("file://{}/a.json", folder.path().canonicalize().unwrap().display());
        let place = storage.resolve(&uri).unwrap();
        let bought = |answer: &'static str| {
            Bought::new(&place, answer).instead_of(Some(Fingerprint::of_bytes(b"old")))
        };
        place.write("old").await.unwrap();
        Bought::new(&place, "for an empty place").write().await.unwrap();
        assert_eq!(place.read().await.unwrap(), "old");
        bought("new").write().await.unwrap();
        assert_eq!(place.read().await.unwrap(), "new");
        // This is what the spool of a returning worker does.
        bought("late").write().await.unwrap();
        assert_eq!(place.read().await.unwrap(), "new");
        place.delete().await.unwrap();
        bought("late").write().await.unwrap();
        assert_eq!(place.read().await.unwrap(), "late");
    }
}
