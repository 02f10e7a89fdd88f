//! How many documents a worker takes from its task queues: those that the quota admits soon. The
//! others stay in Temporal, where priority and fairness order them and any worker may take them.
//!
//! A worker takes a document before it knows for which model that is. So each lane has one number,
//! its *share*: documents that may be on their way to the quota at once. It follows from what callers
//! of this process were told last:
//!
//! ```text
//! share = (target + age − wait) ÷ (cost × workers)
//!
//! wait     how long a newcomer was told to wait; below 0 for room, as the time that an even pace
//!          takes to use it
//! age      time since then: each that stood before the newcomer goes at its turn
//! target   how long documents are to wait in their slots: a quarter of what they may
//! cost     the time that an even pace takes for one call
//! workers  live workers of the fleet
//! ```
//!
//! That is the work which the quota admits before a newcomer would wait for `target`, in calls,
//! divided by those who take from it. Each answer of the quota replaces `wait`, so a share is used
//! once; documents that wait in this process count at once, as so many times `cost × workers`. Of a
//! lane's models the one with the largest share counts, for its documents may be next; those that were
//! taken, and turned out to be another model's and wait, have used of it as well, but for one of each
//! model, which keeps watch. Below 1, nothing is taken until its time has come; but one document of a
//! lane waits in any case, and is there when room comes early. While nobody has had to wait, the share
//! is what has been admitted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId};
use tokio::sync::{Notify, futures::Notified};

use crate::{
    number::{duration, float, whole},
    numbers::Numbers,
};

/// What the numbers of the controller come to.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// How long documents are to wait in their slots, in seconds.
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

/// What a newcomer was told last.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: Instant,
    /// In seconds; below 0 for room.
    wait: f64,
    /// In seconds.
    cost: f64,
    /// One is to wait here for better news; not where another worker has to take it.
    waits_here: bool,
}

impl Told {
    /// The wait that is left; below 0 for room.
    fn left(&self, now: Instant) -> f64 {
        self.wait - now.saturating_duration_since(self.at).as_secs_f64()
    }
}

/// What is known of one model in one lane.
#[derive(Debug)]
struct Seen {
    /// When somebody last asked for it.
    at: Instant,
    /// `None` while nobody has had to wait.
    told: Option<Told>,
    /// Calls that have been admitted.
    admitted: u64,
    /// Attempts that wait for quota.
    waiting: usize,
    /// Calls under way.
    calling: usize,
}

impl Seen {
    fn new(now: Instant) -> Self {
        Self { at: now, told: None, admitted: 0, waiting: 0, calling: 0 }
    }

    /// Nobody asks for the model any more, and nothing says that it has no room.
    fn is_over(&self, far: Duration, now: Instant) -> bool {
        self.waiting + self.calling == 0
            && now.saturating_duration_since(self.at) > far
            && self.told.is_none_or(|told| told.wait <= 0.0)
    }

    /// Seconds until so many documents may be on their way at once; 0 or less for now.
    fn until(&self, documents: u64, bounds: &Bounds, workers: u64, now: Instant) -> f64 {
        let Some(told) = self.told else {
            let may = documents <= bounds.first + self.admitted;
            return if may { 0.0 } else { bounds.far.as_secs_f64() };
        };
        let (each, waiting) = (told.cost * float(workers.max(1)), float(self.waiting as u64));
        // The documents that wait here are known better.
        let behind = if waiting > 0.0 { waiting * each } else { f64::NEG_INFINITY };
        let wait = told.left(now).max(behind);
        float(documents) * each + wait - bounds.target
    }
}

type Models = BTreeMap<ModelId, Seen>;

/// What callers of this process were told, by lane and model.
#[derive(Debug)]
#[doc(hidden)]
pub struct Intake {
    bounds: Bounds,
    clock: fn() -> Instant,
    lanes: Mutex<HashMap<Lane, Models>>,
    news: Notify,
}

impl Intake {
    /// Attempts wait in their slots for `in_place` at most.
    pub(crate) fn new(in_place: Duration) -> Self {
        Self::with_clock(in_place, &Numbers::DEFAULT, Instant::now)
    }

    /// The same with other numbers, on a clock that the caller sets: for simulations.
    pub fn with_clock(in_place: Duration, numbers: &Numbers, clock: fn() -> Instant) -> Self {
        let bounds = Bounds::new(in_place, numbers);
        Self { bounds, clock, lanes: Mutex::default(), news: Notify::new() }
    }

    /// A newcomer was told to wait so long, or to go at once.
    pub fn told(&self, lane: &Lane, model: &ModelId, wait: Duration, cost: Duration) {
        self.hears(lane, model, |seen, now| {
            let wait = match seen.told {
                None if wait.is_zero() => return,
                Some(told) if wait.is_zero() => (told.left(now) + told.cost).min(0.0),
                _ => wait.min(self.bounds.far).as_secs_f64(),
            };
            seen.told = Some(Told { at: now, wait, cost: cost.as_secs_f64(), waits_here: true });
        });
    }

    /// One that keeps a turn was told to wait so long: newcomers stand behind it.
    pub fn told_at_least(&self, lane: &Lane, model: &ModelId, wait: Duration, cost: Duration) {
        let wait = wait.min(self.bounds.far).as_secs_f64();
        self.hears(lane, model, |seen, now| {
            if seen.told.is_none_or(|told| told.left(now) < wait) {
                let cost = cost.as_secs_f64();
                seen.told = Some(Told { at: now, wait, cost, waits_here: true });
            }
        });
    }

    /// So much may go now, as the time that an even pace takes. What is too little for a call is none:
    /// in a full window the rest comes when calls leave it, and not at an even pace.
    pub fn has_room(&self, model: &ModelId, room: Duration) {
        let (now, mut lanes) = ((self.clock)(), self.lanes.lock());
        let seen = lanes.values_mut().filter_map(|models| models.get_mut(model)?.told.as_mut());
        let fits = |told: &Told| !room.is_zero() && room.as_secs_f64() >= told.cost;
        for told in seen.filter(|told| fits(told) || told.left(now) < 0.0) {
            *told = Told { at: now, wait: -room.as_secs_f64(), waits_here: true, ..*told };
        }
        drop(lanes);
        self.news.notify_waiters();
    }

    /// For so long, only another worker can take the lane's documents for this model, or nobody.
    pub(crate) fn is_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        let wait = wait.min(self.bounds.far).as_secs_f64();
        self.hears(lane, model, |seen, now| {
            let cost = seen.told.map_or(0.0, |told| told.cost);
            seen.told = Some(Told { at: now, wait, cost, waits_here: false });
        });
    }

    /// Documents for the model are to come in this lane.
    pub(crate) fn expects(&self, lane: &Lane, model: &ModelId) {
        self.hears(lane, model, |_, _| {});
    }

    /// An attempt stands in the queue for quota, until this is dropped.
    pub fn stand(self: &Arc<Self>, lane: &Lane, model: &ModelId) -> Place {
        self.hears(lane, model, |seen, _| seen.waiting += 1);
        let (intake, lane, model) = (Arc::clone(self), lane.clone(), model.clone());
        Place { intake, lane, model, is_calling: false }
    }

    /// How long until a lane may take one more document, where it holds so many slots: zero for now.
    pub fn until_next(&self, lane: &Lane, held: usize, workers: u64) -> Duration {
        let now = (self.clock)();
        let far = self.bounds.far;
        let mut lanes = self.lanes.lock();
        let models = lanes.entry(lane.clone()).or_default();
        models.retain(|_, seen| !seen.is_over(far, now));
        let seconds = until_next(models, held, &self.bounds, workers, now);
        Duration::from_secs_f64(seconds.clamp(0.0, far.as_secs_f64()))
    }

    /// A slot was given back.
    pub(crate) fn has_slot(&self) {
        self.news.notify_waiters();
    }

    /// Resolves when [`Self::until_next`] may have another answer than it had before this was made.
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    fn hears(&self, lane: &Lane, model: &ModelId, change: impl FnOnce(&mut Seen, Instant)) {
        let (now, mut lanes) = ((self.clock)(), self.lanes.lock());
        let models = lanes.entry(lane.clone()).or_default();
        let seen = models.entry(model.clone()).or_insert_with(|| Seen::new(now));
        seen.at = now;
        change(seen, now);
        drop(lanes);
        self.news.notify_waiters();
    }
}

/// Seconds until a lane of these models may take one more document, where it holds so many slots; 0 or
/// less for now.
fn until_next(models: &Models, held: usize, bounds: &Bounds, workers: u64, now: Instant) -> f64 {
    let waiting: usize = models.values().map(|seen| seen.waiting).sum();
    let calling: usize = models.values().map(|seen| seen.calling).sum();
    // On the way to the quota, or done with it.
    let preparing = held.saturating_sub(waiting + calling);
    let waits_here = |seen: &Seen| seen.told.is_none_or(|told| told.waits_here);
    if preparing + waiting == 0 && models.values().any(waits_here) {
        return 0.0;
    }
    // Taken in the place of the others' documents.
    let beyond = |seen: &Seen| seen.waiting.saturating_sub(1);
    let taken = preparing + models.values().map(beyond).sum::<usize>();
    let until = |seen: &Seen| seen.until((taken - beyond(seen)) as u64 + 1, bounds, workers, now);
    let nothing_known = until(&Seen::new(now));
    models.values().map(until).reduce(f64::min).unwrap_or(nothing_known)
}

/// An attempt in the queue for quota, or its call.
#[derive(Debug)]
#[must_use = "a place is given up when it is dropped"]
pub struct Place {
    intake: Arc<Intake>,
    lane: Lane,
    model: ModelId,
    is_calling: bool,
}

impl Place {
    /// It was admitted.
    pub fn calls(&mut self) {
        self.is_calling = true;
        self.intake.hears(&self.lane, &self.model, |seen, _| {
            seen.waiting = seen.waiting.saturating_sub(1);
            seen.calling += 1;
            seen.admitted += 1;
        });
    }
}

/// Of a model and lane that were never admitted nor told to wait, such as those that nobody has
/// configured, nothing is kept.
impl Drop for Place {
    fn drop(&mut self) {
        self.intake.hears(&self.lane, &self.model, |seen, _| {
            let count = if self.is_calling { &mut seen.calling } else { &mut seen.waiting };
            *count = count.saturating_sub(1);
        });
        let mut lanes = self.intake.lanes.lock();
        if let Some(models) = lanes.get_mut(&self.lane) {
            let is_used = |seen: &Seen| seen.waiting + seen.calling > 0 || seen.admitted > 0;
            if models.get(&self.model).is_some_and(|it| it.told.is_none() && !is_used(it)) {
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

    /// A model of which nobody waits here.
    fn told(wait: f64, cost: f64, now: Instant) -> Seen {
        Seen { told: Some(Told { at: now, wait, cost, waits_here: true }), ..Seen::new(now) }
    }

    /// Seconds until the next document, in a lane of these models of which so many are on their way.
    fn until<const N: usize>(seen: [Seen; N], preparing: usize, workers: u64, now: Instant) -> f64 {
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

    /// How many may be on their way at once.
    fn share(seen: impl Fn() -> Seen, workers: u64, now: Instant) -> usize {
        (1..).take_while(|preparing| until([seen()], *preparing, workers, now) <= 0.0).count() + 1
    }

    #[test]
    fn a_share_is_what_is_admitted_before_a_newcomer_waits_for_long() {
        let now = Instant::now();
        // A second a call, and a wait of two.
        assert_eq!(share(|| told(2.0, 1.0, now), 1, now), 3);
        assert_eq!(share(|| told(-20.0, 1.0, now), 1, now), 25, "there is room");
        assert_eq!(share(|| told(-20.0, 1.0, now), 5, now), 5, "others take from it");
        let waiting = || Seen { waiting: 3, ..told(-20.0, 1.0, now) };
        assert_eq!(share(waiting, 1, now), 2, "those that wait here are known better");
    }

    #[test]
    fn while_nobody_has_to_wait_as_many_are_on_their_way_as_have_been_admitted() {
        let now = Instant::now();
        assert_eq!(share(|| Seen::new(now), 1, now), FIRST);
        assert_eq!(share(|| Seen { admitted: 70, ..Seen::new(now) }, 1, now), FIRST + 70);
        assert!(until([], FIRST - 1, 1, now) <= 0.0 && until([], FIRST, 1, now) > 0.0);
    }

    #[test]
    fn a_queue_grows_shorter_with_time() {
        let now = Instant::now();
        assert!((until([told(9.0, 1.0, now)], 1, 12, now) - 28.0).abs() < 1e-9);
        let later = now + Duration::from_secs(28);
        assert!(until([told(9.0, 1.0, now)], 1, 12, later) <= 0.0);
        assert!(until([told(9.0, 1.0, now)], 2, 12, later) > 0.0);
    }

    #[test]
    fn the_model_that_is_free_soonest_opens_the_lane() {
        let now = Instant::now();
        assert!(until([told(50.0, 1.0, now), told(2.0, 1.0, now)], 1, 1, now) <= 0.0);
        assert!(until([told(50.0, 1.0, now), told(50.0, 1.0, now)], 1, 1, now) > 40.0);
    }

    #[test]
    fn a_share_is_used_by_documents_that_turn_out_to_be_another_model_s_and_wait() {
        let now = Instant::now();
        let slow = |waiting| Seen { waiting, ..told(9.0, 1.0, now) };
        let left = |waiting| until([told(0.0, 2.0, now), slow(waiting)], 0, 1, now);
        assert!(left(1) <= 0.0 && left(2) <= 0.0, "the first keeps watch");
        assert!(left(3) > 0.0, "two of the slow model have been taken for the other");
    }

    #[test]
    fn one_waits_here_for_better_news_but_where_another_worker_has_to_take_it() {
        let intake = Arc::new(Intake::with_clock(4 * TARGET, &numbers(), Instant::now));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let next = |held| intake.until_next(&lane, held, 1);
        let cost = Duration::from_secs(1);
        intake.told(&lane, &model, FAR, cost);
        assert_eq!(next(0), Duration::ZERO);
        assert!(next(1) > FAR / 2, "it is on its way");
        let place = intake.stand(&lane, &model);
        assert!(next(1) > FAR / 2, "it waits");
        drop(place);
        intake.is_elsewhere(&lane, &model, FAR);
        assert!(next(0) > FAR / 2);
        intake.has_room(&model, Duration::from_secs(3));
        assert_eq!(next(7), Duration::ZERO);
        assert!(next(9) > Duration::ZERO);
        intake.told_at_least(&lane, &model, FAR / 2, cost);
        intake.has_room(&model, cost / 2);
        assert!(next(1) > FAR / 4);
        intake.told(&lane, &model, Duration::ZERO, cost);
        assert_eq!(next(1), Duration::ZERO, "a newcomer went at once");
    }

    #[test]
    fn nothing_is_kept_of_whom_nobody_knows() {
        let intake = Arc::new(Intake::new(4 * TARGET));
        for number in 0..3 {
            let lane = Lane::try_from(format!("lane-{number}")).unwrap();
            drop(intake.stand(&lane, &"test:unknown".parse().unwrap()));
        }
        assert!(intake.lanes.lock().is_empty());
    }

    #[tokio::test]
    async fn a_model_that_nobody_asks_for_is_forgotten_and_news_wake() {
        let intake = Arc::new(Intake::with_clock(4 * TARGET, &numbers(), Instant::now));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let mut place = intake.stand(&lane, &model);
        place.calls();
        let mut news = std::pin::pin!(intake.news());
        assert!(!news.as_mut().enable());
        intake.expects(&lane, &model);
        news.await;
        let seen = &intake.lanes.lock()[&lane][&model];
        let second = Duration::from_secs(1);
        let (soon, later) = (Instant::now() + FAR - second, Instant::now() + FAR + second);
        let far = intake.bounds.far;
        assert!(!seen.is_over(far, later), "its call is under way");
        let idle = Seen { calling: 0, ..*seen };
        assert!(idle.is_over(far, later) && !idle.is_over(far, soon));
    }
}
