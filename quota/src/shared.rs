//! The state that a limiter and its permits share: the stores, and the choice of the one that
//! answers.

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
    connection::ANSWER_WITHIN,
    conversions::{float, whole},
    dimension::{Amounts, Dimension},
    error::Error,
    fleet::Fleet,
    in_flight::{Backend, InFlightCalls},
    intake::Intake,
    mechanism::learned::REMEMBERED_TEMPLATES,
    memory, metrics,
    model::ModelQuota,
    numbers::Numbers,
    operator_holds::KnownHolds,
    poll_schedule::PollSchedule,
    redis_store,
    request::Request,
    reserve_batcher::{batches::Batches, waiters::Waiters},
    state_changes::{Faults, StateChanges},
    store::{Ask, Expectation, ProviderSignal, Settlement, Store},
    unheard::Unheard,
    usage_history::Recorder,
};

/// Time for which a learned number of cached tokens is used; then Redis is asked again.
const CACHE_BELIEVED: Duration = Duration::from_secs(60);

/// The waits of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// First part of every Redis key. Default `tidegate`.
    pub key_prefix: String,
    /// The longest wait inside [`crate::Quota::admit`]; a longer one is returned as
    /// [`crate::Refused`]. Default 10 s.
    pub max_slot_wait: Duration,
    /// Each wake-up after a pause is delayed by a random time up to this. Default 30 s.
    pub jitter: Duration,
    /// The longest pause by a worker or an operator. Default 5 min.
    pub pause_ttl: Duration,
    /// Redis counts as away after this time without an answer. Default 250 ms: a longer wait is not
    /// worth it, because a worker can use its own share.
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
    pub(crate) state_changes: StateChanges,
    faults: Faults,
    pub(crate) usage_history: Recorder,
    pub(crate) holds: KnownHolds,
    pub(crate) fleet: Fleet,
    pub(crate) waiters: Waiters,
    pub(crate) batches: Batches,
    pub(crate) intake: Arc<Intake>,
    /// Notified after a change by an operator.
    pub(crate) news: tokio::sync::Notify,
    pub(crate) poll_schedule: PollSchedule,
    pub(crate) in_flight: Arc<InFlightCalls>,
    expectations: Mutex<HashMap<(ModelId, u64), (Instant, Expectation)>>,
    /// Whether Redis has ever answered: until then the number of workers that share the limits is
    /// unknown.
    joined: AtomicBool,
    /// Until Redis answers for the first time: when it failed first, and the last error.
    unreached: Mutex<Option<(Instant, String)>>,
    pub(crate) unheard: Unheard,
    /// Held while the use from the time without Redis is reported.
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
            state_changes: StateChanges::default(),
            faults: Faults::default(),
            usage_history: Recorder::default(),
            holds: KnownHolds::default(),
            fleet: Fleet::default(),
            waiters: Waiters::default(),
            batches: Batches::default(),
            poll_schedule: PollSchedule::default(),
            in_flight: Arc::default(),
            expectations: Mutex::default(),
            joined: AtomicBool::default(),
            unreached: Mutex::default(),
            unheard: Unheard::default(),
            handing_over: tokio::sync::Mutex::default(),
        }
    }

    /// Whether this worker has ever been part of the fleet; always true without a Redis.
    pub(crate) fn is_joined(&self) -> bool {
        self.redis.is_none() || self.joined.load(Ordering::Relaxed)
    }

    /// Time since Redis failed this worker first, and its last error, if it has never answered.
    pub(crate) fn unreached(&self) -> Option<(Duration, String)> {
        let unreached = self.unreached.lock();
        let (since, error) = unreached.as_ref().filter(|_| !self.is_joined())?;
        Some((since.elapsed(), error.clone()))
    }

    /// Whether a call larger than this worker's share fits into the whole quota.
    pub(crate) fn fits_all(&self, model: &ModelQuota, ask: &Ask, dimension: Dimension) -> bool {
        let limit = float(model.limits.effective()[dimension]);
        let most = model.lanes.at(ask.lane).most_of(limit);
        self.redis.is_some() && float(ask.amounts[dimension]) <= most
    }

    /// Records the wait that a call got; zero if it was admitted at once.
    pub(crate) fn record_wait(&self, model: &ModelQuota, lane: &Lane, ask: &Ask, wait: Duration) {
        let cost = model.limits.pace_of(&ask.amounts);
        match ask.ticket {
            None => self.intake.record_wait(lane, &model.id, wait, cost),
            Some(_) if wait.is_zero() => {}
            Some(_) => self.intake.record_least_wait(lane, &model.id, wait, cost),
        }
    }

    pub(crate) async fn settle(
        self: &Arc<Self>,
        model: &ModelQuota,
        backend: Backend,
        settlement: &Settlement,
    ) {
        // Every worker also closes its own gate, in case Redis goes away.
        if let Some(pause) = &settlement.pause {
            let _ = self.local.pause(&self.share(model), pause).await;
        }
        match (&self.redis, backend) {
            (Some(redis), Backend::Redis) => {
                self.settle_in_redis(redis, model, settlement).await;
            }
            _ => {
                // The provider's meter counts the whole quota.
                let meter = settlement.meter.share(self.parts());
                let own = Settlement { meter, ..settlement.clone() };
                if let Ok((_, expectation, room)) =
                    self.local.settle(&self.share(model), &own).await
                {
                    self.remember(model, settlement.template, expectation);
                    self.wake(&model.id, room);
                }
            }
        }
        // Recorded last: an admission that begins after this has met the closed gate.
        if let Some(pause) = &settlement.pause {
            let exhausted = settlement.signal == ProviderSignal::Exhausted;
            let wait = Some(pause.length);
            self.state_changes.record_closed(&model.id, wait, &pause.reason, exhausted);
        }
    }

    /// Returns false if Redis does not answer: then the settlement is kept for its return.
    async fn settle_in_redis(
        self: &Arc<Self>,
        redis: &redis_store::Store,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> bool {
        match redis.settle(model, settlement).await {
            Ok((_, expectation, room)) => {
                self.record_answer();
                self.remember(model, settlement.template, expectation);
                self.wake(&model.id, room);
            }
            Err(error) => {
                let is_away = matches!(error, Error::Away(_));
                if is_away {
                    self.unheard.keep(model, settlement.clone());
                }
                self.record_failure(&error);
                return !is_away;
            }
        }
        true
    }

    /// The number of parts of the quota: 1 without a Redis, else the number of workers.
    fn parts(&self) -> u64 {
        if self.redis.is_some() { self.fleet.size() } else { 1 }
    }

    pub(crate) fn share(&self, model: &ModelQuota) -> ModelQuota {
        model.share(self.parts())
    }

    /// Turns a request into an ask.
    pub(crate) fn new_ask(&self, model: &ModelQuota, lane: usize, request: &Request) -> Ask {
        Ask {
            reservation: request.reservation.clone(),
            lane,
            amounts: self.amounts(model, request),
            ticket: request.ticket,
            template: request.template,
            curious: false,
            tenant: request.tenant.clone(),
        }
    }

    /// The amounts to reserve: the estimate corrected by the learned ratio, and the expected output
    /// or its bound.
    pub(crate) fn amounts(&self, model: &ModelQuota, request: &Request) -> Amounts {
        let expectation = self.expectation(model, request.template);
        let input = expectation.map_or(request.input_tokens, |known| {
            let all = whole((float(request.input_tokens) * known.input_ratio).ceil());
            all.saturating_sub(known.cached).max(all.min(1))
        });
        let bound = request.max_output_tokens;
        let output = match (model.charge.hold, expectation) {
            (OutputHold::Expected, Some(known)) => known.output.min(bound),
            // Nothing is known yet. The bound is not an expectation: answers rarely use a third of
            // the likely maximum. A longer answer causes a debt for some calls, not a wait for all.
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

    /// Whether to ask Redis for a template's expectation: while none is known, or no cached input
    /// where the provider does not count that.
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

    pub(crate) fn record_answer(self: &Arc<Self>) {
        self.joined.store(true, Ordering::Relaxed);
        if let Some(away) = self.breaker.record_success(Instant::now()) {
            metrics::set_degraded(false);
            info!("Redis is back after {away:?}; the fleet shares its quota again");
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.report_spending().await });
        }
    }

    /// Reports to Redis, once, the ends of calls that it did not hear of, and the use that this
    /// worker admitted on its own and that is still in the window.
    async fn report_spending(self: Arc<Self>) {
        let Some(redis) = &self.redis else { return };
        let _handing_over = self.handing_over.lock().await;
        while let Some((model, settlement)) = self.unheard.take() {
            let Some(model) = self.models.get(&model) else { continue };
            if !self.settle_in_redis(redis, model, &settlement).await {
                return;
            }
        }
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

    /// Starts this worker's own share from the last known state of the whole quota.
    fn go_on_alone(&self) {
        let Some(redis) = &self.redis else { return };
        for model in self.models.values() {
            if let Some(remembered) = redis.remembered(model) {
                self.local.begin(&self.share(model), &remembered, self.parts());
            }
        }
    }

    pub(crate) fn record_failure(&self, error: &Error) {
        if !self.is_joined() {
            let why = if let Error::Away(why) = error { why.clone() } else { error.to_string() };
            self.unreached.lock().get_or_insert_with(|| (Instant::now(), String::new())).1 = why;
        }
        if let Error::Protocol(_) = error {
            // Redis answers for the other models.
            let Some(unlogged) = self.faults.take_unlogged(Instant::now()) else { return };
            error!(%error, times_since_last_told = unlogged, "the limiter's script failed; for such calls the worker keeps to its own share; `tidegate doctor` names what is wrong");
            return;
        }
        if self.breaker.record_failure(Instant::now()) {
            self.go_on_alone();
            metrics::set_degraded(true);
            warn!(%error, workers = self.fleet.size(), "Redis is away; this worker keeps to its share of the limits");
        }
    }
}
