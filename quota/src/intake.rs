//! The number of documents that a worker takes from its task queues: those that the quota admits
//! soon. The others stay in Temporal, where priority and fairness order them and any worker may
//! take them.
//!
//! A worker takes a document before it knows the document's model. So each lane has one number, its
//! *share*: the documents that may be on their way to the quota at once. It follows from the waits
//! that the limiter last gave to callers of this process:
//!
//! ```text
//! share = (target + age − wait) ÷ (cost × workers)
//!
//! wait     the wait that a new call got; below 0 for room, as the time that an even pace takes to
//!          use it
//! age      time since then, in which calls before the new one go at their turns
//! target   how long documents should wait in their slots: a quarter of the longest wait in place
//! cost     the time that an even pace takes for one call
//! workers  live workers of the fleet
//! ```
//!
//! This is the number of calls that the quota admits before a new call would wait for `target`,
//! divided by the workers that share it. Each answer of the quota replaces `wait`, so a share is
//! used once; each document that waits in this process counts as `cost × workers` at once. The lane
//! has the largest share of its models, because its next document may be for that model. Documents
//! that turn out to be for another model and wait use up the share too, except the first of each
//! model. Below a share of 1, nothing is taken until its time has come. But one document of a lane
//! always waits, to be there when room comes early. While no call has had to wait, the share is the
//! number of admitted calls.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId};
use tokio::sync::{Notify, futures::Notified};

use crate::{
    conversions::{duration, float, whole},
    numbers::Numbers,
};

/// The controller's numbers, converted.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Target for the wait of documents in their slots, in seconds.
    target: f64,
    far: Duration,
    first: u64,
}

impl Bounds {
    fn new(in_place: Duration, numbers: &Numbers) -> Self {
        Self {
            target: in_place.as_secs_f64() * numbers.target,
            far: duration(numbers.far),
            first: whole(numbers.first_documents),
        }
    }
}

/// The last wait that the limiter gave to a new call.
#[derive(Debug, Clone, Copy)]
struct LatestWait {
    at: Instant,
    /// In seconds; below 0 if there is room.
    wait: f64,
    /// In seconds.
    cost: f64,
    /// Whether one document should wait here in case room comes early. False if another worker has
    /// to take it.
    waits_here: bool,
}

impl LatestWait {
    /// Seconds of the wait that are left; below 0 if there is room.
    fn remaining(&self, now: Instant) -> f64 {
        self.wait - now.saturating_duration_since(self.at).as_secs_f64()
    }
}

/// The state of one model in one lane.
#[derive(Debug)]
struct ModelState {
    /// Time of the last ask of a call for the model.
    at: Instant,
    /// `None` while no call has had to wait.
    latest: Option<LatestWait>,
    /// Calls that have been admitted.
    admitted: u64,
    /// Attempts that wait for quota.
    waiting: usize,
    /// Calls under way.
    calling: usize,
}

impl ModelState {
    fn new(now: Instant) -> Self {
        Self { at: now, latest: None, admitted: 0, waiting: 0, calling: 0 }
    }

    /// Whether no call asks for the model any more and no wait is known.
    fn is_over(&self, far: Duration, now: Instant) -> bool {
        self.waiting + self.calling == 0
            && now.saturating_duration_since(self.at) > far
            && self.latest.is_none_or(|latest| latest.wait <= 0.0)
    }

    /// Seconds until `documents` may be on their way at once; 0 or less for now.
    fn seconds_until(&self, documents: u64, bounds: &Bounds, workers: u64, now: Instant) -> f64 {
        let Some(latest) = self.latest else {
            let may = documents <= bounds.first + self.admitted;
            return if may { 0.0 } else { bounds.far.as_secs_f64() };
        };
        let (each, waiting) = (latest.cost * float(workers.max(1)), float(self.waiting as u64));
        // The documents that wait here give a better estimate.
        let behind = if waiting > 0.0 { waiting * each } else { f64::NEG_INFINITY };
        let wait = latest.remaining(now).max(behind);
        float(documents) * each + wait - bounds.target
    }
}

type Models = BTreeMap<ModelId, ModelState>;

/// The last waits of this process's callers, by lane and model.
#[derive(Debug)]
#[doc(hidden)]
pub struct Intake {
    bounds: Bounds,
    clock: fn() -> Instant,
    lanes: Mutex<HashMap<Lane, Models>>,
    change: Notify,
}

impl Intake {
    /// A limiter whose attempts wait in their slots for `in_place` at most.
    pub(crate) fn new(in_place: Duration) -> Self {
        Self::with_clock(in_place, &Numbers::DEFAULT, Instant::now)
    }

    /// Creates one with other numbers and a clock that the caller sets, for simulations.
    pub fn with_clock(in_place: Duration, numbers: &Numbers, clock: fn() -> Instant) -> Self {
        let bounds = Bounds::new(in_place, numbers);
        Self { bounds, clock, lanes: Mutex::default(), change: Notify::new() }
    }

    /// Records the wait that a new call got; zero if it was admitted at once.
    pub fn record_wait(&self, lane: &Lane, model: &ModelId, wait: Duration, cost: Duration) {
        self.update(lane, model, |seen, now| {
            let wait = match seen.latest {
                None if wait.is_zero() => return,
                Some(latest) if wait.is_zero() => (latest.remaining(now) + latest.cost).min(0.0),
                _ => wait.min(self.bounds.far).as_secs_f64(),
            };
            seen.latest =
                Some(LatestWait { at: now, wait, cost: cost.as_secs_f64(), waits_here: true });
        });
    }

    /// Records the wait of a call with a ticket: new calls wait at least as long.
    pub fn record_least_wait(&self, lane: &Lane, model: &ModelId, wait: Duration, cost: Duration) {
        let wait = wait.min(self.bounds.far).as_secs_f64();
        self.update(lane, model, |seen, now| {
            if seen.latest.is_none_or(|latest| latest.remaining(now) < wait) {
                let cost = cost.as_secs_f64();
                seen.latest = Some(LatestWait { at: now, wait, cost, waits_here: true });
            }
        });
    }

    /// Records room, as the time that an even pace takes to use it. Room for less than a call
    /// counts as none: in a full window the rest comes when calls leave it, and not at an even
    /// pace.
    pub fn record_room(&self, model: &ModelId, room: Duration) {
        let (now, mut lanes) = ((self.clock)(), self.lanes.lock());
        let seen = lanes.values_mut().filter_map(|models| models.get_mut(model)?.latest.as_mut());
        let fits = |latest: &LatestWait| !room.is_zero() && room.as_secs_f64() >= latest.cost;
        for latest in seen.filter(|latest| fits(latest) || latest.remaining(now) < 0.0) {
            *latest =
                LatestWait { at: now, wait: -room.as_secs_f64(), waits_here: true, ..*latest };
        }
        drop(lanes);
        self.change.notify_waiters();
    }

    /// Records that for `wait` this worker cannot take the lane's documents for this model.
    pub(crate) fn set_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        let wait = wait.min(self.bounds.far).as_secs_f64();
        self.update(lane, model, |seen, now| {
            let cost = seen.latest.map_or(0.0, |latest| latest.cost);
            seen.latest = Some(LatestWait { at: now, wait, cost, waits_here: false });
        });
    }

    /// Announces documents for the model in this lane.
    pub(crate) fn expect_documents(&self, lane: &Lane, model: &ModelId) {
        self.update(lane, model, |_, _| {});
    }

    /// Counts an attempt that waits for quota, until the result is dropped.
    pub fn join_queue(self: &Arc<Self>, lane: &Lane, model: &ModelId) -> QueuedAttempt {
        self.update(lane, model, |seen, _| seen.waiting += 1);
        let (intake, lane, model) = (Arc::clone(self), lane.clone(), model.clone());
        QueuedAttempt { intake, lane, model, is_calling: false }
    }

    /// Time until a lane that holds `held` slots may take one more document; zero for now.
    pub fn until_next(&self, lane: &Lane, held: usize, workers: u64) -> Duration {
        let now = (self.clock)();
        let far = self.bounds.far;
        let mut lanes = self.lanes.lock();
        let models = lanes.entry(lane.clone()).or_default();
        models.retain(|_, seen| !seen.is_over(far, now));
        let seconds = until_next(models, held, &self.bounds, workers, now);
        Duration::from_secs_f64(seconds.clamp(0.0, far.as_secs_f64()))
    }

    /// Wakes waiting suppliers, because a slot was returned.
    pub(crate) fn notify_free_slot(&self) {
        self.change.notify_waiters();
    }

    /// Resolves when [`Self::until_next`] may have changed since this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.change.notified()
    }

    fn update(&self, lane: &Lane, model: &ModelId, change: impl FnOnce(&mut ModelState, Instant)) {
        let (now, mut lanes) = ((self.clock)(), self.lanes.lock());
        let models = lanes.entry(lane.clone()).or_default();
        let seen = models.entry(model.clone()).or_insert_with(|| ModelState::new(now));
        seen.at = now;
        change(seen, now);
        drop(lanes);
        self.change.notify_waiters();
    }
}

/// Seconds until a lane of these models that holds `held` slots may take one more document; 0 or
/// less for now.
fn until_next(models: &Models, held: usize, bounds: &Bounds, workers: u64, now: Instant) -> f64 {
    let waiting: usize = models.values().map(|seen| seen.waiting).sum();
    let calling: usize = models.values().map(|seen| seen.calling).sum();
    // Documents before the quota, or after their call.
    let preparing = held.saturating_sub(waiting + calling);
    let waits_here = |seen: &ModelState| seen.latest.is_none_or(|latest| latest.waits_here);
    if preparing + waiting == 0 && models.values().any(waits_here) {
        return 0.0;
    }
    // Documents that were taken for other models.
    let beyond = |seen: &ModelState| seen.waiting.saturating_sub(1);
    let taken = preparing + models.values().map(beyond).sum::<usize>();
    let until = |seen: &ModelState| {
        seen.seconds_until((taken - beyond(seen)) as u64 + 1, bounds, workers, now)
    };
    let nothing_known = until(&ModelState::new(now));
    models.values().map(until).reduce(f64::min).unwrap_or(nothing_known)
}

/// An attempt that waits for quota or makes its call.
#[derive(Debug)]
#[must_use = "an attempt is no longer counted when it is dropped"]
pub struct QueuedAttempt {
    intake: Arc<Intake>,
    lane: Lane,
    model: ModelId,
    is_calling: bool,
}

impl QueuedAttempt {
    /// Counts the attempt's call, which was admitted.
    pub fn start_call(&mut self) {
        self.is_calling = true;
        self.intake.update(&self.lane, &self.model, |seen, _| {
            seen.waiting = seen.waiting.saturating_sub(1);
            seen.calling += 1;
            seen.admitted += 1;
        });
    }
}

/// Forgets a model and lane that were never admitted nor made to wait, such as unconfigured ones.
impl Drop for QueuedAttempt {
    fn drop(&mut self) {
        self.intake.update(&self.lane, &self.model, |seen, _| {
            let count = if self.is_calling { &mut seen.calling } else { &mut seen.waiting };
            *count = count.saturating_sub(1);
        });
        let mut lanes = self.intake.lanes.lock();
        if let Some(models) = lanes.get_mut(&self.lane) {
            let is_used = |seen: &ModelState| seen.waiting + seen.calling > 0 || seen.admitted > 0;
            if models.get(&self.model).is_some_and(|it| it.latest.is_none() && !is_used(it)) {
                models.remove(&self.model);
            }
            if models.is_empty() {
                lanes.remove(&self.lane);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;
    use crate::numbers::numbers;

    const TARGET: Duration = Duration::from_secs(5);
    const FAR: Duration = Duration::from_mins(1);
    const FIRST: usize = 2;

    /// A model without waiting attempts.
    fn told_model(wait: f64, cost: f64, now: Instant) -> ModelState {
        ModelState {
            latest: Some(LatestWait { at: now, wait, cost, waits_here: true }),
            ..ModelState::new(now)
        }
    }

    /// Seconds until the next document, in a lane of these models with `preparing` documents on
    /// their way.
    fn until<const N: usize>(
        seen: [ModelState; N],
        preparing: usize,
        workers: u64,
        now: Instant,
    ) -> f64 {
        let names = (0..).map(|at| format!("test:{at}").parse().unwrap());
        let held = preparing + seen.iter().map(|seen| seen.waiting + seen.calling).sum::<usize>();
        until_next(
            &names.zip(seen).collect(),
            held,
            &Bounds::new(4 * TARGET, &numbers()),
            workers,
            now,
        )
    }

    /// Documents that may be on their way at once.
    fn share(seen: impl Fn() -> ModelState, workers: u64, now: Instant) -> usize {
        (1..).take_while(|preparing| until([seen()], *preparing, workers, now) <= 0.0).count() + 1
    }

    #[test]
    fn a_share_is_the_calls_admitted_before_a_new_one_waits_for_long() {
        let now = Instant::now();
        // A second a call, and a wait of two.
        assert_eq!(share(|| told_model(2.0, 1.0, now), 1, now), 3);
        assert_eq!(share(|| told_model(-20.0, 1.0, now), 1, now), 25, "there is room");
        assert_eq!(share(|| told_model(-20.0, 1.0, now), 5, now), 5, "others take from it");
        let waiting = || ModelState { waiting: 3, ..told_model(-20.0, 1.0, now) };
        assert_eq!(share(waiting, 1, now), 2, "those that wait here give a better estimate");
    }

    #[test]
    fn without_waits_as_many_are_on_their_way_as_were_admitted() {
        let now = Instant::now();
        assert_eq!(share(|| ModelState::new(now), 1, now), FIRST);
        assert_eq!(
            share(|| ModelState { admitted: 70, ..ModelState::new(now) }, 1, now),
            FIRST + 70
        );
        assert!(until([], FIRST - 1, 1, now) <= 0.0 && until([], FIRST, 1, now) > 0.0);
    }

    #[test]
    fn a_queue_grows_shorter_with_time() {
        let now = Instant::now();
        assert!((until([told_model(9.0, 1.0, now)], 1, 12, now) - 28.0).abs() < 1e-9);
        let later = now + Duration::from_secs(28);
        assert!(until([told_model(9.0, 1.0, now)], 1, 12, later) <= 0.0);
        assert!(until([told_model(9.0, 1.0, now)], 2, 12, later) > 0.0);
    }

    #[test]
    fn the_model_that_is_free_soonest_opens_the_lane() {
        let now = Instant::now();
        assert!(until([told_model(50.0, 1.0, now), told_model(2.0, 1.0, now)], 1, 1, now) <= 0.0);
        assert!(until([told_model(50.0, 1.0, now), told_model(50.0, 1.0, now)], 1, 1, now) > 40.0);
    }

    #[test]
    fn a_share_is_used_by_documents_that_turn_out_to_be_another_model_s_and_wait() {
        let now = Instant::now();
        let slow = |waiting| ModelState { waiting, ..told_model(9.0, 1.0, now) };
        let left = |waiting| until([told_model(0.0, 2.0, now), slow(waiting)], 0, 1, now);
        assert!(left(1) <= 0.0 && left(2) <= 0.0, "the first keeps watch");
        assert!(left(3) > 0.0, "two of the slow model have been taken for the other");
    }

    #[test]
    fn one_document_waits_here_unless_another_worker_has_to_take_it() {
        let intake = Arc::new(Intake::with_clock(4 * TARGET, &numbers(), Instant::now));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let next = |held| intake.until_next(&lane, held, 1);
        let cost = Duration::from_secs(1);
        intake.record_wait(&lane, &model, FAR, cost);
        assert_eq!(next(0), Duration::ZERO);
        assert!(next(1) > FAR / 2, "it is on its way");
        let place = intake.join_queue(&lane, &model);
        assert!(next(1) > FAR / 2, "it waits");
        drop(place);
        intake.set_elsewhere(&lane, &model, FAR);
        assert!(next(0) > FAR / 2);
        intake.record_room(&model, Duration::from_secs(3));
        assert_eq!(next(7), Duration::ZERO);
        assert!(next(9) > Duration::ZERO);
        intake.record_least_wait(&lane, &model, FAR / 2, cost);
        intake.record_room(&model, cost / 2);
        assert!(next(1) > FAR / 4);
        intake.record_wait(&lane, &model, Duration::ZERO, cost);
        assert_eq!(next(1), Duration::ZERO, "a newcomer went at once");
    }

    #[test]
    fn nothing_is_kept_of_an_unknown_model() {
        let intake = Arc::new(Intake::new(4 * TARGET));
        for number in 0..3 {
            let lane = Lane::try_from(format!("lane-{number}")).unwrap();
            drop(intake.join_queue(&lane, &"test:unknown".parse().unwrap()));
        }
        assert!(intake.lanes.lock().is_empty());
    }

    #[tokio::test]
    async fn an_idle_model_is_forgotten_and_changes_wake() {
        let intake = Arc::new(Intake::with_clock(4 * TARGET, &numbers(), Instant::now));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let mut place = intake.join_queue(&lane, &model);
        place.start_call();
        let mut changed = std::pin::pin!(intake.changed());
        assert!(!changed.as_mut().enable());
        intake.expect_documents(&lane, &model);
        changed.await;
        let seen = &intake.lanes.lock()[&lane][&model];
        let second = Duration::from_secs(1);
        let (soon, later) = (Instant::now() + FAR - second, Instant::now() + FAR + second);
        let far = intake.bounds.far;
        assert!(!seen.is_over(far, later), "its call is under way");
        let idle = ModelState { calling: 0, ..*seen };
        assert!(idle.is_over(far, later) && !idle.is_over(far, soon));
    }
}
