//! What a limiter and its permits share: the stores, and which of them answers.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId, OutputHold};
use tracing::{error, info, warn};

use crate::{
    breaker::Breaker,
    changes::{Changes, Faults},
    connection::ANSWER_WITHIN,
    dimension::{Amounts, Dimension},
    error::Error,
    fleet::Fleet,
    history::Recorder,
    holds::Holds,
    intake::Intake,
    memory, metrics,
    model::ModelQuota,
    number::{float, whole},
    numbers::Numbers,
    questions::Questions,
    redis_store,
    request::Request,
    running::{Backend, Running},
    store::{Ask, Expectation, ProviderSignal, Settlement, Store},
    waiters::Waiters,
    watch::Watch,
};

/// Templates whose expectation is remembered here; each costs some 100 bytes, and all are also in
/// Redis.
const REMEMBERED_TEMPLATES: usize = 10_000;

/// What a cache gives is believed for this long; then it is asked for again.
const CACHE_BELIEVED: Duration = Duration::from_secs(60);

/// How waiting is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// First part of every Redis key. Default `tidegate`.
    pub key_prefix: String,
    /// The longest wait in [`crate::Quota::admit`] itself; a longer one is handed back as
    /// [`crate::Refused`]. Default 10 s.
    pub max_slot_wait: Duration,
    /// Each wake-up after a pause is spread over 0 to this. Default 30 s.
    pub jitter: Duration,
    /// No pause outlives this, imposed by a worker or an operator. Default 5 min.
    pub pause_ttl: Duration,
    /// Redis is away when it has not answered a question within this. Default 250 ms: no question is
    /// worth more time, and while Redis is away a worker keeps to its own share.
    pub answer_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key_prefix: "tidegate".to_owned(),
            max_slot_wait: Duration::from_secs(10),
            jitter: Duration::from_secs(30),
            pause_ttl: Duration::from_secs(300),
            answer_within: ANSWER_WITHIN,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) models: BTreeMap<ModelId, Arc<ModelQuota>>,
    pub(crate) options: Options,
    pub(crate) redis: Option<redis_store::Store>,
    pub(crate) local: memory::Store,
    pub(crate) breaker: Breaker,
    pub(crate) changes: Changes,
    faults: Faults,
    pub(crate) history: Recorder,
    pub(crate) holds: Holds,
    pub(crate) fleet: Fleet,
    pub(crate) waiters: Waiters,
    pub(crate) questions: Questions,
    pub(crate) intake: Arc<Intake>,
    /// Operators have changed something.
    pub(crate) news: tokio::sync::Notify,
    pub(crate) watch: Watch,
    pub(crate) running: Arc<Running>,
    expectations: Mutex<HashMap<(ModelId, u64), (Instant, Expectation)>>,
    /// Whether Redis has ever answered: until then nobody knows how many share the limits.
    joined: AtomicBool,
    /// Held while what was spent alone is handed over.
    handing_over: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(crate) fn new(
        redis: Option<redis_store::Store>,
        models: impl IntoIterator<Item = ModelQuota>,
        options: Options,
    ) -> Self {
        Self {
            models: models.into_iter().map(|model| (model.id.clone(), Arc::new(model))).collect(),
            local: memory::Store::new(options.pause_ttl),
            intake: Arc::new(Intake::new(options.max_slot_wait)),
            news: tokio::sync::Notify::new(),
            options,
            redis,
            breaker: Breaker::default(),
            changes: Changes::default(),
            faults: Faults::default(),
            history: Recorder::default(),
            holds: Holds::default(),
            fleet: Fleet::default(),
            waiters: Waiters::default(),
            questions: Questions::default(),
            watch: Watch::default(),
            running: Arc::default(),
            expectations: Mutex::default(),
            joined: AtomicBool::default(),
            handing_over: tokio::sync::Mutex::default(),
        }
    }

    /// Whether this worker has ever been part of the fleet. Without a Redis it is the fleet.
    pub(crate) fn is_joined(&self) -> bool {
        self.redis.is_none() || self.joined.load(Ordering::Relaxed)
    }

    /// Whether a call that is larger than this worker's share fits into the whole.
    pub(crate) fn fits_all(&self, model: &ModelQuota, ask: &Ask, dimension: Dimension) -> bool {
        let most = float(model.limits.effective()[dimension]) * model.lanes.at(ask.lane).ceiling;
        self.redis.is_some() && float(ask.amounts[dimension]) <= most
    }

    /// A caller was told to wait so long, or to go at once.
    pub(crate) fn told(&self, model: &ModelQuota, lane: &Lane, ask: &Ask, wait: Duration) {
        let cost = model.limits.pace_of(&ask.amounts);
        match ask.ticket {
            None => self.intake.told(lane, &model.id, wait, cost),
            Some(_) if wait.is_zero() => {}
            Some(_) => self.intake.told_at_least(lane, &model.id, wait, cost),
        }
    }

    pub(crate) async fn settle(
        self: &Arc<Self>,
        model: &ModelQuota,
        backend: Backend,
        settlement: &Settlement,
    ) {
        // Every worker also keeps the gates that it closed, for the case that Redis goes away.
        if let Some(pause) = &settlement.pause {
            let _ = self.local.pause(&self.share(model), pause).await;
            let exhausted = settlement.signal == ProviderSignal::Exhausted;
            self.changes.closed(&model.id, pause.length, &pause.reason, exhausted);
        }
        match (&self.redis, backend) {
            (Some(redis), Backend::Redis) => match redis.settle(model, settlement).await {
                Ok((_, expectation, room)) => {
                    self.answered();
                    self.remember(model, settlement.template, expectation);
                    self.wake(&model.id, room);
                }
                // The reservation stays charged until it leaves the window: too much, never too
                // little.
                Err(error) => self.away(&error),
            },
            _ => {
                // The provider's meter tells of all.
                let meter = settlement.meter.part(self.parts());
                let own = Settlement { meter, ..settlement.clone() };
                if let Ok((_, expectation, room)) =
                    self.local.settle(&self.share(model), &own).await
                {
                    self.remember(model, settlement.template, expectation);
                    self.wake(&model.id, room);
                }
            }
        }
    }

    /// Without Redis the only worker has everything; without an answer, each has its part.
    fn parts(&self) -> u64 {
        if self.redis.is_some() { self.fleet.size() } else { 1 }
    }

    pub(crate) fn share(&self, model: &ModelQuota) -> ModelQuota {
        model.share(self.parts())
    }

    /// What to reserve: the estimate corrected by what was learned, and the expected output or its
    /// bound.
    pub(crate) fn amounts(&self, model: &ModelQuota, request: &Request) -> Amounts {
        let expectation = self.expectation(model, request.template);
        let input = expectation.map_or(request.input_tokens, |known| {
            let all = whole((float(request.input_tokens) * known.input_ratio).ceil());
            all.saturating_sub(known.cached).max(all.min(1))
        });
        let bound = request.max_output_tokens;
        let output = match (model.charge.hold, expectation) {
            (OutputHold::Expected, Some(known)) => known.output.min(bound),
            // Nothing is known yet. The bound is no expectation: answers rarely use a third of what is
            // likely at most, and if they do use more, that is a debt for some calls and not a wait for
            // all.
            (OutputHold::Expected, None) => {
                whole((float(request.likely()) * Numbers::DEFAULT.unknown_output).ceil())
            }
            (OutputHold::Maximum, known) => {
                model.charge.held_output(bound, known.map_or(0, |known| known.output.min(bound)))
            }
        };
        model.amounts(input, output)
    }

    pub(crate) fn expectation(&self, model: &ModelQuota, template: u64) -> Option<Expectation> {
        let known = self.expectations.lock();
        let (at, expectation) = known.get(&(model.id.clone(), template))?;
        let fresh = expectation.cached == 0 || at.elapsed() < CACHE_BELIEVED;
        fresh.then_some(*expectation)
    }

    /// Whether to ask what calls of a template use: while nothing is known of them, or of what a cache
    /// gives where the provider does not count that.
    pub(crate) fn is_curious(&self, model: &ModelQuota, template: u64) -> bool {
        let cached = |known: Expectation| model.charge.cached_input || known.cached > 0;
        !self.expectation(model, template).is_some_and(cached)
    }

    pub(crate) fn remember(
        &self,
        model: &ModelQuota,
        template: u64,
        expectation: Option<Expectation>,
    ) {
        let Some(expectation) = expectation else { return };
        let mut known = self.expectations.lock();
        if known.len() >= REMEMBERED_TEMPLATES {
            known.clear();
        }
        known.insert((model.id.clone(), template), (Instant::now(), expectation));
    }

    pub(crate) fn answered(self: &Arc<Self>) {
        self.joined.store(true, Ordering::Relaxed);
        if let Some(away) = self.breaker.succeeded(Instant::now()) {
            metrics::degraded(false);
            info!("Redis is back after {away:?}; the fleet shares its quota again");
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.report_spending().await });
        }
    }

    /// What this worker spent on its own and is still in the window counts for the whole fleet
    /// again, once.
    async fn report_spending(&self) {
        let Some(redis) = &self.redis else { return };
        let _handing_over = self.handing_over.lock().await;
        for model in self.models.values() {
            let share = self.share(model);
            let mut drawn = self.local.drawn_alone(&share);
            for spent in self.local.spent(&share) {
                let name = format!("away:{:016x}", rand::random::<u64>());
                let charged = redis.charge(model, &name, spent.lane, spent.used, drawn).await;
                drawn = Amounts::default();
                match charged {
                    Ok(()) => {
                        self.local.handed_over(&share, &spent.calls);
                        info!(
                            model = %model.id, lane = spent.lane + 1, requests = spent.used.requests, tokens = spent.used.combined,
                            "reported what this worker spent in the last window while Redis was away"
                        );
                    }
                    Err(error) => {
                        warn!(%error, model = %model.id, "could not report what was spent while Redis was away");
                    }
                }
            }
        }
    }

    /// This worker's share goes on from what it last saw of the whole.
    fn go_on_alone(&self) {
        let Some(redis) = &self.redis else { return };
        for model in self.models.values() {
            if let Some(remembered) = redis.remembered(model) {
                self.local.begin(&self.share(model), &remembered, self.parts());
            }
        }
    }

    pub(crate) fn away(&self, error: &Error) {
        if let Error::Protocol(_) = error {
            // Redis is there, and answers for the other models.
            let Some(untold) = self.faults.tells(Instant::now()) else { return };
            error!(%error, times_since_last_told = untold, "the limiter's script failed; for such calls the worker keeps to its own share; `tidegate doctor` names what is wrong");
            return;
        }
        if self.breaker.failed(Instant::now()) {
            self.go_on_alone();
            metrics::degraded(true);
            warn!(%error, workers = self.fleet.size(), "Redis is away; this worker keeps to its share of the limits");
        }
    }
}
