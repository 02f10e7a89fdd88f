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
//! target   how long documents are to wait in their slots: half of what they may
//! cost     the time that an even pace takes for one call
//! workers  live workers of the fleet
//! ```
//!
//! That is the work which the quota admits before a newcomer would wait for `target`, in calls,
//! divided by those who take from it. Each answer of the quota replaces `wait`, so a share is used
//! once. Of a lane's models the one with the largest share counts, for its documents may be next.
//! Below 1, nothing is taken until its time has come; but one document of a lane waits in any case,
//! and is there when room comes early.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId};
use tokio::sync::{Notify, futures::Notified};

use crate::number::float;

/// A longer wait counts as so long: limits are raised and gates opened, and whoever comes next may
/// want another model. A model that nobody has asked for as long does not open its lane.
const FAR: Duration = Duration::from_mins(1);

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

    /// Seconds until the share is that of so many documents.
    fn until(&self, documents: f64, target: f64, workers: f64, now: Instant) -> f64 {
        documents * self.cost * workers + self.left(now) - target
    }
}

/// What is known of one model in one lane.
#[derive(Debug, Default)]
struct Seen {
    told: Option<Told>,
    /// Attempts that wait for quota.
    waiting: usize,
    /// Calls under way.
    calling: usize,
}

impl Seen {
    /// Nobody asks for the model any more, and nothing says that it has no room.
    fn is_over(&self, now: Instant) -> bool {
        let far = |told: Told| told.wait <= 0.0 && now.saturating_duration_since(told.at) > FAR;
        self.waiting + self.calling == 0 && self.told.is_none_or(far)
    }
}

type Models = BTreeMap<ModelId, Seen>;

/// What callers of this process were told, by lane and model.
#[derive(Debug)]
pub(crate) struct Intake {
    target: Duration,
    lanes: Mutex<HashMap<Lane, Models>>,
    news: Notify,
}

impl Intake {
    /// Attempts wait in their slots for `in_place` at most.
    pub(crate) fn new(in_place: Duration) -> Self {
        Self { target: in_place / 2, lanes: Mutex::default(), news: Notify::new() }
    }

    /// A newcomer was told to wait so long, or to go at once.
    pub(crate) fn told(&self, lane: &Lane, model: &ModelId, wait: Duration, cost: Duration) {
        let now = Instant::now();
        self.hears(lane, model, |seen| {
            let before = seen.told.map_or(f64::NEG_INFINITY, |told| told.left(now));
            let wait = if wait.is_zero() { before.min(0.0) } else { wait.min(FAR).as_secs_f64() };
            seen.told = Some(Told { at: now, wait, cost: cost.as_secs_f64(), waits_here: true });
        });
    }

    /// One that keeps a turn was told to wait so long: newcomers stand behind it.
    pub(crate) fn told_at_least(
        &self,
        lane: &Lane,
        model: &ModelId,
        wait: Duration,
        cost: Duration,
    ) {
        let (at, wait) = (Instant::now(), wait.min(FAR).as_secs_f64());
        self.hears(lane, model, |seen| {
            if seen.told.is_none_or(|told| told.left(at) < wait) {
                let cost = cost.as_secs_f64();
                seen.told = Some(Told { at, wait, cost, waits_here: true });
            }
        });
    }

    /// So much may go now, as the time that an even pace takes.
    pub(crate) fn has_room(&self, model: &ModelId, room: Duration) {
        let (now, mut lanes) = (Instant::now(), self.lanes.lock());
        let seen = lanes.values_mut().filter_map(|models| models.get_mut(model)?.told.as_mut());
        for told in seen.filter(|told| !room.is_zero() || told.left(now) < 0.0) {
            *told = Told { at: now, wait: -room.as_secs_f64(), waits_here: true, ..*told };
        }
        drop(lanes);
        self.news.notify_waiters();
    }

    /// For so long, only another worker can take the lane's documents for this model.
    pub(crate) fn is_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        let (at, wait) = (Instant::now(), wait.min(FAR).as_secs_f64());
        self.hears(lane, model, |seen| {
            let cost = seen.told.map_or(0.0, |told| told.cost);
            seen.told = Some(Told { at, wait, cost, waits_here: false });
        });
    }

    /// Documents for the model are to come in this lane.
    pub(crate) fn expects(&self, lane: &Lane, model: &ModelId) {
        self.told(lane, model, Duration::ZERO, Duration::ZERO);
    }

    /// An attempt stands in the queue for quota, until this is dropped.
    pub(crate) fn stand(self: &Arc<Self>, lane: &Lane, model: &ModelId) -> Place {
        self.hears(lane, model, |seen| seen.waiting += 1);
        Place {
            intake: Arc::clone(self),
            lane: lane.clone(),
            model: model.clone(),
            is_calling: false,
        }
    }

    /// How long until a lane may take one more document, where it holds so many slots: zero for now.
    pub(crate) fn until_next(&self, lane: &Lane, held: usize, workers: u64) -> Duration {
        let now = Instant::now();
        let mut lanes = self.lanes.lock();
        let Some(models) = lanes.get_mut(lane) else { return Duration::ZERO };
        models.retain(|_, seen| !seen.is_over(now));
        let seconds = until_next(models, held, self.target, workers, now);
        Duration::from_secs_f64(seconds.clamp(0.0, FAR.as_secs_f64()))
    }

    /// Resolves when [`Self::until_next`] may have another answer than it had before this was made.
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    fn hears(&self, lane: &Lane, model: &ModelId, change: impl FnOnce(&mut Seen)) {
        let mut lanes = self.lanes.lock();
        let models = match lanes.get_mut(lane) {
            Some(models) => models,
            None => lanes.entry(lane.clone()).or_default(),
        };
        match models.get_mut(model) {
            Some(seen) => change(seen),
            None => change(models.entry(model.clone()).or_default()),
        }
        drop(lanes);
        self.news.notify_waiters();
    }
}

/// Seconds until a lane of these models may take one more document, where it holds so many slots; 0 or
/// less for now.
fn until_next(models: &Models, held: usize, target: Duration, workers: u64, now: Instant) -> f64 {
    let waiting: usize = models.values().map(|seen| seen.waiting).sum();
    let calling: usize = models.values().map(|seen| seen.calling).sum();
    // On the way to the quota, or done with it.
    let preparing = held.saturating_sub(waiting + calling);
    let one_waits_here = models.values().any(|seen| seen.told.is_none_or(|told| told.waits_here));
    if preparing + waiting == 0 && one_waits_here {
        return 0.0;
    }
    let (target, workers) = (target.as_secs_f64(), float(workers.max(1)));
    let documents = float(preparing as u64 + 1);
    let until =
        |seen: &Seen| seen.told.map_or(0.0, |told| told.until(documents, target, workers, now));
    models.values().map(until).reduce(f64::min).unwrap_or(0.0)
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
        self.intake.hears(&self.lane, &self.model, |seen| {
            seen.waiting = seen.waiting.saturating_sub(1);
            seen.calling += 1;
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.intake.hears(&self.lane, &self.model, |seen| {
            let count = if self.is_calling { &mut seen.calling } else { &mut seen.waiting };
            *count = count.saturating_sub(1);
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_secs(5);

    fn told(wait: f64, cost: f64, now: Instant) -> Seen {
        let told = Some(Told { at: now, wait, cost, waits_here: true });
        Seen { told, waiting: 1, calling: 0 }
    }

    /// Seconds until the next document, in a lane of these models in which one waits beside so many
    /// that are on their way.
    fn until<const N: usize>(seen: [Seen; N], preparing: usize, workers: u64, now: Instant) -> f64 {
        let models = seen.into_iter().enumerate();
        let models: Models =
            models.map(|(at, seen)| (format!("test:{at}").parse().unwrap(), seen)).collect();
        until_next(&models, N + preparing, TARGET, workers, now)
    }

    #[test]
    fn a_share_is_what_is_admitted_before_a_newcomer_waits_for_long() {
        let now = Instant::now();
        let at = |preparing, seen| until([seen], preparing, 1, now) <= 0.0;
        // One second a call, and a wait of two: three more, each of which stands behind the others.
        let share = (0..).take_while(|preparing| at(*preparing, told(2.0, 1.0, now))).count();
        assert_eq!(share, 3);
        let of_room = (0..).take_while(|preparing| at(*preparing, told(-20.0, 1.0, now))).count();
        assert_eq!(of_room, 25);
        assert!(at(1_000, told(f64::NEG_INFINITY, 1.0, now)), "nobody had to wait");
    }

    #[test]
    fn a_fleet_shares_and_a_queue_grows_shorter_with_time() {
        let now = Instant::now();
        assert!((until([told(9.0, 1.0, now)], 0, 12, now) - 16.0).abs() < 1e-9);
        let later = now + Duration::from_secs(16);
        assert!(until([told(9.0, 1.0, now)], 0, 12, later) <= 0.0);
        assert!(until([told(9.0, 1.0, now)], 1, 12, later) > 0.0);
    }

    #[test]
    fn the_model_that_is_free_soonest_opens_the_lane() {
        let now = Instant::now();
        assert!(until([told(50.0, 1.0, now), told(2.0, 1.0, now)], 0, 1, now) <= 0.0);
        assert!(until([told(50.0, 1.0, now), told(50.0, 1.0, now)], 0, 1, now) > 40.0);
    }

    #[test]
    fn one_waits_here_for_better_news_but_where_another_worker_has_to_take_it() {
        let intake = Arc::new(Intake::new(2 * TARGET));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let next = |held| intake.until_next(&lane, held, 1);
        assert_eq!(next(9), Duration::ZERO, "nothing is known");
        intake.told(&lane, &model, FAR, Duration::from_secs(1));
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
    }

    #[tokio::test]
    async fn a_model_that_nobody_asks_for_is_forgotten_and_news_wake() {
        let intake = Arc::new(Intake::new(2 * TARGET));
        let (lane, model) = (Lane::default(), "test:model".parse().unwrap());
        let mut place = intake.stand(&lane, &model);
        place.calls();
        let mut news = std::pin::pin!(intake.news());
        assert!(!news.as_mut().enable());
        intake.expects(&lane, &model);
        news.await;
        let seen = &intake.lanes.lock()[&lane][&model];
        assert!(!seen.is_over(Instant::now() + 2 * FAR), "its call is under way");
        let idle = Seen { waiting: 0, calling: 0, ..*seen };
        assert!(idle.is_over(Instant::now() + 2 * FAR));
    }
}
