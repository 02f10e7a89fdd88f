//! Which keys are refused, here and in the fleet.
//!
//! A 401 condemns a provider's key, a 403 the key for that model; but while the model answers other
//! calls, a 403 is about its document, until three documents in a row got one. The worker then reads its key
//! again. If the key is unchanged, documents that need it are handed back without a call until the
//! key is replaced, because another worker may have a good one.
//!
//! Documents fail for good only under three conditions: no live worker has had an accepted key for
//! [`KEYS_GONE`]; three calls in a row were refused with seconds between them (a passing fault
//! lasts seconds); and a call made since their batch began was refused too. So a new batch is never
//! failed on errors from before it started.
//!
//! Workers publish in Redis which keys are refused: the provider, the model and the status, and
//! nothing of the key. A worker that cannot read them decides alone.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Instant, SystemTime},
};

use parking_lot::Mutex;
use tidegate_providers::{Error, Key, Providers};
use tidegate_types::{FailureType, ModelId, seconds_since_1970};
use tokio::sync::Notify;
use tracing::{error, info, warn};

use crate::{
    doubts::{Evidence, Probe},
    failure::{Failure, KEY_ELSEWHERE, KEY_REFUSED, KEYS_GONE, SAME_REFUSALS},
    metrics,
    worker_status::{RefusedKey, WorkerStatus},
};

/// The keys of this worker, and the known state of other workers' keys.
#[derive(Debug, Default)]
pub struct Keys {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Distinguishes passing faults from verdicts.
    evidence: Evidence<Scope>,
    refused: BTreeMap<Scope, Refusal>,
    /// The other live workers of this queue, as last read; `None` if they cannot be asked.
    others: Option<Vec<WorkerStatus>>,
    /// Since when no worker can ask each model.
    gone: HashMap<ModelId, Instant>,
    /// When this worker's keys were last read.
    read_at: Option<Instant>,
    /// Documents that got a 403 since the model's last answer.
    forbidden: HashMap<ModelId, HashSet<String>>,
}

/// The scope of a refusal: a provider's key, or the key for one model.
type Scope = (String, Option<ModelId>);

#[derive(Debug)]
struct Refusal {
    /// The provider's message without key and document, and the place of the key.
    words: String,
    place: String,
    status: Option<u16>,
    since: SystemTime,
    /// When the next call tests the key.
    probe_at: Instant,
    /// Whether three calls in a row were refused: this is no passing fault.
    is_confirmed: bool,
    /// Runs of batches that wait for that test, and those that know its outcome.
    waiting: HashSet<String>,
    informed: HashSet<String>,
}

impl Refusal {
    /// Whether a call was refused since this run of a batch first met the refusal. Until then the
    /// run waits for a test.
    fn knows_outcome(&mut self, run: &str) -> bool {
        if self.informed.contains(run) {
            return true;
        }
        remember(&mut self.waiting, run);
        false
    }

    /// Records a refused call of this run: all waiting runs now know the outcome.
    fn record_refusal(&mut self, run: &str) {
        for run in std::mem::take(&mut self.waiting) {
            remember(&mut self.informed, &run);
        }
        remember(&mut self.informed, run);
    }
}

/// A 403 of this many documents in a row is about the key.
const DOCUMENTS: usize = SAME_REFUSALS as usize;

/// Maximum number of runs; beyond it, all are forgotten at once, and each waits for one more test.
const MAX_RUNS: usize = 1_000;

fn remember(runs: &mut HashSet<String>, run: &str) {
    if runs.len() >= MAX_RUNS {
        runs.clear();
    }
    runs.insert(run.to_owned());
}

/// The state of a key after a refused call.
#[derive(Debug, Clone, Copy)]
pub enum KeyNow<'a> {
    /// Another key was read, with unknown state.
    Replaced,
    /// The key is unchanged; `None` if there is no key, or this process does not have it.
    TheSame(Option<&'a Key>),
}

impl State {
    /// The newest refusal that applies to the model.
    fn refusal(&mut self, model: &ModelId) -> Option<&mut Refusal> {
        let holds = |(provider, of): &Scope| {
            provider == model.provider() && of.as_ref().is_none_or(|of| of == model)
        };
        let refused = self.refused.iter_mut().filter(|(scope, _)| holds(scope));
        refused.map(|(_, refusal)| refusal).max_by_key(|refusal| refusal.probe_at)
    }

    fn check(&mut self, model: &ModelId, run: &str, now: Instant) -> Result<(), Failure> {
        let Some(refusal) = self.refusal(model) else { return Ok(()) };
        if now >= refusal.probe_at {
            return Ok(());
        }
        let (words, left) =
            (refusal.words.clone(), refusal.probe_at.saturating_duration_since(now));
        let (is_confirmed, knows_outcome) = (refusal.is_confirmed, refusal.knows_outcome(run));
        let another = self.others.as_ref().map(|all| all.iter().any(|it| it.can_ask(model)));
        if another == Some(true) {
            self.gone.remove(model);
            return Err(Failure::handed_back(model, &words));
        }
        if !is_confirmed {
            return Err(Failure::key_is_tried(model, &words, left));
        }
        if !knows_outcome {
            return Err(Failure::key_is_tried(model, &words, KEY_ELSEWHERE));
        }
        let until = *self.gone.entry(model.clone()).or_insert(now) + KEYS_GONE;
        // A file may contain a good key already: it is read once more before documents fail for
        // good.
        if another.is_some() && (now < until || self.read_at.is_none_or(|at| at < until)) {
            return Err(Failure::handed_back(model, &words));
        }
        Err(Failure::keys_gone(model, &words))
    }

    fn update_metric(&self, provider: &str) {
        metrics::key_refused(provider, self.refused.keys().any(|(of, _)| of == provider));
    }
}

impl Keys {
    /// Records that a provider refused the key of a call to `model` in this run of a batch. Returns
    /// the failure of the document.
    pub fn refused(
        &self,
        model: &ModelId,
        run: &str,
        error: &Error,
        key: KeyNow<'_>,
        now: Instant,
    ) -> Failure {
        let KeyNow::TheSame(key) = key else { return Failure::key_refused(&error.message) };
        let model_alone = (error.status == Some(403)).then(|| model.clone());
        let scope = (model.provider().to_owned(), model_alone);
        let mut state = self.state.lock();
        let (place, status) = (key.and_then(Key::place).unwrap_or_default(), error.status);
        let words = match place.as_str() {
            "" => error.message.clone(),
            place => format!("the key of {} ({place}): {}", model.provider(), error.message),
        };
        let pause = state.evidence.refused(scope.clone(), now);
        let (is_confirmed, pause) = (pause.is_none(), pause.unwrap_or(KEY_REFUSED));
        let (since, probe_at) = (SystemTime::now(), now + pause);
        if let Some(known) = state.refused.get_mut(&scope) {
            (known.words, known.place, known.probe_at) = (words.clone(), place, probe_at);
            known.is_confirmed = is_confirmed;
            known.record_refusal(run);
        } else {
            let status_text = status.map_or_else(String::new, |status| format!(" ({status})"));
            error!(
                provider = model.provider(), %model, words,
                "a key is refused{status_text}; it is read again every few seconds, and meanwhile its documents go to other workers; put a valid key where this worker reads it"
            );
            let words = words.clone();
            let (waiting, informed) = (HashSet::new(), [run.to_owned()].into());
            let refusal =
                Refusal { words, place, status, since, probe_at, is_confirmed, waiting, informed };
            state.refused.insert(scope, refusal);
            // The time without a good key starts now.
            state.gone.retain(|of, _| of.provider() != model.provider());
            state.update_metric(model.provider());
            self.changed.notify_one();
        }
        if !is_confirmed {
            return Failure::key_may_pass(&words, pause);
        }
        if state.others.is_none() {
            return Failure::never(FailureType::Unauthorized, words);
        }
        Failure::key_refused(&words)
    }

    /// Whether a refusal by a model that has answered lately is about its document alone. A filter
    /// in front of a model answers 403 as a provider does for a key.
    pub(crate) fn is_about_the_document(
        &self,
        model: &ModelId,
        document: &str,
        error: &Error,
    ) -> bool {
        let mut state = self.state.lock();
        if error.status != Some(403) || state.refusal(model).is_some() {
            return false;
        }
        let documents = state.forbidden.entry(model.clone()).or_default();
        documents.insert(document.to_owned());
        documents.len() < DOCUMENTS
    }

    /// Records that a provider answered a call to `model`, so its key is good.
    pub(crate) fn accepted(&self, model: &ModelId) {
        let mut state = self.state.lock();
        state.forbidden.remove(model);
        if state.refused.is_empty() {
            return;
        }
        let before = state.refused.len();
        for of in [None, Some(model.clone())] {
            let scope = (model.provider().to_owned(), of);
            state.evidence.accepted(&scope);
            state.refused.remove(&scope);
        }
        if state.refused.len() < before {
            info!(%model, "the key is accepted again");
            state.update_metric(model.provider());
            self.changed.notify_one();
        }
    }

    /// Forgets the refusals of the provider's old key, because another key was read.
    fn forget_old_key(&self, provider: &str) {
        info!(provider, "another key was read");
        let mut state = self.state.lock();
        state.refused.retain(|(of, _), _| of != provider);
        state.evidence.forget_where(|(of, _)| of == provider);
        state.forbidden.retain(|model, _| model.provider() != provider);
        state.update_metric(provider);
        self.changed.notify_one();
    }

    /// Whether a call of this run to `model` may be made with this worker's key, even as a test.
    ///
    /// # Errors
    /// `Unauthorized`: retried by another worker, or final if no live worker has an accepted key.
    pub fn check(&self, model: &ModelId, run: &str, now: Instant) -> Result<(), Failure> {
        self.state.lock().check(model, run, now)
    }

    /// Checks a call that is about to leave; when a test is due, only one call passes.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn enter(
        self: &Arc<Self>,
        model: &ModelId,
        run: &str,
        now: Instant,
    ) -> Result<Probe, Failure> {
        let mut state = self.state.lock();
        state.check(model, run, now)?;
        let Some(refusal) = state.refusal(model) else { return Ok(Probe::default()) };
        let (before, mine) = (refusal.probe_at, now + KEY_REFUSED);
        refusal.probe_at = mine;
        // Other calls wait for the outcome.
        state.gone.remove(model);
        let (keys, model) = (Arc::clone(self), model.clone());
        Ok(Probe::new(move || {
            if let Some(refusal) = keys.state.lock().refusal(&model)
                && refusal.probe_at == mine
            {
                refusal.probe_at = before;
            }
        }))
    }

    /// Reads a key again after a refusal. Returns whether it differs from that of `version`.
    pub fn read_again(&self, provider: &str, key: &Key, version: u64) -> bool {
        let before = key.version();
        let now = key.read_again().unwrap_or_else(|fault| {
            warn!(provider, %fault, "the key cannot be read again; the old one stays in use");
            before
        });
        if now != before {
            self.forget_old_key(provider);
        }
        now != version
    }

    /// Resolves when a refusal begins or ends.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Reads the key files again. `unreadable` has the providers whose fault is logged already.
    pub(crate) fn read_files<'a>(
        &self,
        providers: &'a Providers,
        unreadable: &mut BTreeSet<&'a str>,
    ) {
        for (name, key) in providers.names().filter_map(|name| Some((name, providers.key(name)?))) {
            let version = key.version();
            match key.read_again() {
                Ok(now) => {
                    unreadable.remove(name);
                    if now != version {
                        self.forget_old_key(name);
                    }
                }
                Err(fault) if unreadable.insert(name) => {
                    warn!(provider = name, %fault, "the key cannot be read again; the old one stays in use");
                }
                Err(_) => {}
            }
        }
        self.state.lock().read_at = Some(Instant::now());
    }

    /// The refused keys, for the other workers.
    pub(crate) fn refused_keys(&self) -> Vec<RefusedKey> {
        let state = self.state.lock();
        let refused = state.refused.iter().map(|((provider, model), refusal)| RefusedKey {
            provider: provider.clone(),
            model: model.clone(),
            status: refusal.status,
            since: seconds_since_1970(refusal.since),
            place: refusal.place.clone(),
        });
        refused.collect()
    }

    /// Whether the other workers have been read.
    pub(crate) fn knows_others(&self) -> bool {
        self.state.lock().others.is_some()
    }

    /// Sets the statuses of the other workers of this queue.
    pub(crate) fn set_others(
        &self,
        worker: &str,
        queue: &str,
        statuses: Vec<(String, WorkerStatus)>,
    ) {
        let others = statuses.into_iter();
        let others = others.filter(|(name, status)| name != worker && status.queue == queue);
        self.state.lock().others = Some(others.map(|(_, status)| status).collect());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::time::Duration;

    use tidegate_providers::{Charged, Kind};

    use super::*;
    use crate::{failure::Retry, worker_status::read};

    const RUN: &str = "run";
    const SAME: KeyNow<'_> = KeyNow::TheSame(None);

    fn error(status: u16) -> Error {
        Error {
            kind: Kind::Unauthorized,
            message: "no such key".to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: Some(status),
            timed_out: false,
            span: None,
            observed: Box::default(),
        }
    }

    fn model(name: &str) -> ModelId {
        name.parse().unwrap()
    }

    fn status_text(worker: &str, queue: &str, refused: &[&str]) -> (String, String) {
        let refused = refused.iter().map(|provider| RefusedKey {
            provider: (*provider).to_owned(),
            model: None,
            status: Some(401),
            since: 0,
            place: String::new(),
        });
        let providers = ["a".to_owned(), "c".to_owned()].into();
        let status = WorkerStatus {
            queue: queue.to_owned(),
            providers,
            refused: refused.collect(),
            ..WorkerStatus::default()
        };
        (worker.to_owned(), serde_json::to_string(&status).unwrap())
    }

    /// Makes three refused calls in a row, seconds apart; returns the last failure.
    fn condemned(
        keys: &Keys,
        model: &ModelId,
        run: &str,
        error: &Error,
        start: Instant,
    ) -> Failure {
        let mut last = None;
        for seconds in [0, 2, 12] {
            let now = start + Duration::from_secs(seconds);
            last = Some(keys.refused(model, run, error, SAME, now));
        }
        last.unwrap()
    }

    /// Reads the key files `after` this time from `start`.
    fn read_later(keys: &Keys, start: Instant, after: Duration) {
        keys.state.lock().read_at = Some(start + after);
    }

    #[test]
    fn a_401_condemns_the_key_and_a_403_the_key_for_that_model() {
        let (keys, now) = (Arc::<Keys>::default(), Instant::now());
        let _ = keys.refused(&model("a:b"), RUN, &error(403), SAME, now);
        assert!(
            keys.check(&model("a:b"), RUN, now).is_err()
                && keys.check(&model("a:d"), RUN, now).is_ok()
        );
        let _ = keys.refused(&model("a:b"), RUN, &error(401), SAME, now);
        assert!(
            keys.check(&model("a:d"), RUN, now).is_err()
                && keys.check(&model("c:d"), RUN, now).is_ok()
        );
        keys.accepted(&model("a:b"));
        assert!(
            keys.check(&model("a:b"), RUN, now).is_ok()
                && keys.check(&model("a:d"), RUN, now).is_ok()
        );
    }

    #[test]
    fn a_403_of_a_model_that_answers_is_about_its_document() {
        let (keys, model) = (Keys::default(), model("a:b"));
        let is_about =
            |document, status| keys.is_about_the_document(&model, document, &error(status));
        assert!(is_about("1", 403) && is_about("1", 403) && is_about("2", 403));
        assert!(!is_about("1", 401), "a key is no document's");
        keys.accepted(&model);
        assert!(is_about("3", 403) && is_about("4", 403) && !is_about("5", 403));
        let _ = keys.refused(&model, RUN, &error(403), SAME, Instant::now());
        keys.accepted(&model);
        assert!(is_about("6", 403));
    }

    #[test]
    fn documents_are_handed_back_while_another_worker_could_and_then_fail() {
        let (keys, model, start) = (Arc::<Keys>::default(), model("a:b"), Instant::now());
        keys.set_others(
            "me",
            "q",
            read(vec![status_text("other", "q", &[]), status_text("me", "q", &["a"])]),
        );
        let first = condemned(&keys, &model, RUN, &error(401), start);
        assert!(first.is_retried() && !first.benign, "{first:?}");
        let later = |after: Duration| keys.check(&model, RUN, start + after).unwrap_err();
        let behind = later(KEYS_GONE);
        assert!(behind.is_retried() && behind.benign && behind.message.contains("no such key"));
        assert_eq!(behind.kind, FailureType::Unauthorized);
        // The other worker's key is refused too; a worker of another queue cannot help.
        keys.set_others(
            "me",
            "q",
            read(vec![status_text("other", "q", &["a"]), status_text("far", "p", &[])]),
        );
        assert!(later(Duration::ZERO).is_retried(), "a worker may be about to start");
        assert!(later(KEYS_GONE).is_retried(), "a good key may lie there");
        read_later(&keys, start, KEYS_GONE);
        let gone = later(KEYS_GONE);
        assert_eq!((gone.kind, gone.retry), (FailureType::Unauthorized, Retry::Never));
        assert!(gone.message.contains("no such key"), "{gone}");
        keys.set_others(
            "me",
            "q",
            read(vec![status_text("new", "q", &[]), ("old".to_owned(), "?".to_owned())]),
        );
        assert!(later(KEYS_GONE).is_retried());
    }

    #[test]
    fn an_old_refusal_is_no_part_of_a_new_one() {
        let (keys, model, start) = (Arc::<Keys>::default(), model("a:b"), Instant::now());
        keys.set_others("me", "q", Vec::new());
        read_later(&keys, start, 4 * KEYS_GONE);
        let final_at = |now| keys.check(&model, RUN, now).unwrap_err().retry == Retry::Never;
        let _ = condemned(&keys, &model, RUN, &error(401), start);
        assert!(!final_at(start) && final_at(start + KEYS_GONE));
        keys.accepted(&model);
        let _ = condemned(&keys, &model, RUN, &error(401), start);
        assert!(!final_at(start + 2 * KEYS_GONE));
        assert!(final_at(start + 3 * KEYS_GONE));
        // The other calls wait for the outcome of the test.
        let later = start + 2 * KEY_REFUSED;
        keys.enter(&model, RUN, later).unwrap().use_up();
        assert!(!final_at(later));
    }

    /// A batch that starts after refusals is failed only by a call made since its start, with that
    /// call's message.
    #[test]
    fn a_new_batch_waits_for_one_call_before_it_fails() {
        let (keys, model, start) = (Arc::<Keys>::default(), model("a:b"), Instant::now());
        keys.set_others("me", "q", Vec::new());
        read_later(&keys, start, 4 * KEYS_GONE);
        let _ = condemned(&keys, &model, RUN, &error(401), start);
        let seen = |run, now| keys.check(&model, run, now).unwrap_err();
        let soon = start + KEYS_GONE + Duration::from_secs(1);
        assert!(seen(RUN, start).is_retried());
        assert_eq!(seen(RUN, soon).retry, Retry::Never);
        let new = seen("new", soon);
        assert!(new.is_retried() && new.benign, "{new:?}");
        assert!(new.message.contains("one call tests it again"), "{new}");
        // That call is refused with another message, which is then reported.
        keys.enter(&model, "new", start + KEY_REFUSED + KEY_REFUSED).unwrap().use_up();
        let newer = Error { message: "it has expired".to_owned(), ..error(401) };
        let _ = condemned(&keys, &model, "new", &newer, start);
        assert!(seen("new", start).is_retried(), "another worker may be about to start");
        let failed = seen("new", start + KEYS_GONE);
        assert_eq!(failed.retry, Retry::Never);
        assert!(failed.message.contains("expired") && !failed.message.contains("no such key"));
        // A 403 is newer still.
        let newest = Error { message: "not this model".to_owned(), ..error(403) };
        let _ = condemned(&keys, &model, "new", &newest, start + 3 * KEY_REFUSED);
        assert!(seen("new", start + KEYS_GONE).message.contains("not this model"));
    }

    #[test]
    fn a_refusal_names_where_the_key_is_read() {
        use tidegate_providers::{KeySource, Settings, Vendor};
        let url = "http://127.0.0.1:9".parse().unwrap();
        let key_source = KeySource::Env { variable: "MY_KEY".to_owned() };
        let settings = Settings { key_source, ..Settings::new(Vendor::ANTHROPIC, url) };
        let providers = Providers::new([("a".to_owned(), settings)]).unwrap();
        let (keys, model) = (Arc::<Keys>::default(), model("a:b"));
        let key = KeyNow::TheSame(providers.key("a"));
        let now = Instant::now();
        for seconds in [0, 2] {
            let _ = keys.refused(&model, RUN, &error(401), key, now + Duration::from_secs(seconds));
        }
        let failure = keys.refused(&model, RUN, &error(401), key, now + Duration::from_secs(12));
        assert!(failure.message.contains("the key of a (MY_KEY is not set"), "{failure}");
        let behind = keys.check(&model, RUN, Instant::now()).unwrap_err();
        assert!(behind.message.contains("accepted for a:b: the key of a (MY_KEY"), "{behind}");
        assert!(keys.refused_keys()[0].place.starts_with("MY_KEY is not set"));
    }

    #[test]
    fn alone_a_worker_decides_after_three_calls() {
        let (keys, model, start) = (Arc::<Keys>::default(), model("a:b"), Instant::now());
        let first = keys.refused(&model, RUN, &error(401), SAME, start);
        assert!(first.is_retried(), "it may be a passing fault: {first:?}");
        assert!(keys.check(&model, RUN, start).unwrap_err().is_retried());
        keys.check(&model, RUN, start + Duration::from_secs(2)).unwrap();
        keys.accepted(&model);
        keys.check(&model, RUN, start).unwrap();
        assert_eq!(condemned(&keys, &model, RUN, &error(401), start).retry, Retry::Never);
        assert_eq!(keys.check(&model, RUN, start).unwrap_err().retry, Retry::Never);
    }

    #[test]
    fn of_those_that_come_after_half_a_minute_one_finds_out() {
        let (keys, model, start) = (Arc::<Keys>::default(), model("a:b"), Instant::now());
        let _ = condemned(&keys, &model, RUN, &error(401), start);
        let later = start + 2 * KEY_REFUSED;
        keys.check(&model, RUN, later).unwrap();
        keys.enter(&model, RUN, later).unwrap().use_up();
        keys.check(&model, RUN, later).unwrap_err();
        keys.enter(&model, RUN, later).unwrap_err();
        keys.accepted(&model);
        keys.enter(&model, RUN, later).unwrap().use_up();
    }

    #[test]
    fn a_key_that_was_replaced_is_not_condemned_for_the_old_one() {
        let (keys, model) = (Arc::<Keys>::default(), model("a:b"));
        assert!(
            keys.refused(&model, RUN, &error(401), KeyNow::Replaced, Instant::now()).is_retried()
        );
        keys.check(&model, RUN, Instant::now()).unwrap();
    }

    #[test]
    fn another_key_of_one_provider_says_nothing_about_the_others() {
        let (keys, start) = (Arc::<Keys>::default(), Instant::now());
        let of = ["a:b", "c:d"].map(model);
        let refused = |model: &ModelId, seconds| {
            let now = start + Duration::from_secs(seconds);
            keys.refused(model, RUN, &error(401), SAME, now)
        };
        let is_about_the_document =
            |model: &ModelId, document| keys.is_about_the_document(model, document, &error(403));
        for model in &of {
            assert!(is_about_the_document(model, "1") && is_about_the_document(model, "2"));
        }
        for model in &of {
            assert!(refused(model, 0).is_retried() && refused(model, 2).is_retried());
        }
        keys.forget_old_key("a");
        assert!(is_about_the_document(&of[0], "3"), "the documents of the old key are forgotten");
        assert!(refused(&of[0], 12).is_retried(), "the first refusal of a new key");
        assert_eq!(refused(&of[1], 12).retry, Retry::Never, "the third refusal of the same key");
    }

    #[test]
    fn a_workers_status_holds_no_message_about_a_key() {
        let keys = Arc::<Keys>::default();
        let _ = keys.refused(&model("a:b"), RUN, &error(403), SAME, Instant::now());
        let text = serde_json::to_string(&keys.refused_keys()).unwrap();
        assert!(text.contains("\"a:b\"") && text.contains("403"), "{text}");
        assert!(!text.contains("no such key"), "{text}");
    }
}
