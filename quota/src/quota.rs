//! The handle that callers hold.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{ModelId, OutputHold};
use tracing::{error, info, warn};

use crate::{
    breaker::Breaker,
    budget::Budgets,
    dimension::Amounts,
    error::Error,
    fleet::{self, Fleet},
    memory, metrics,
    model::ModelQuota,
    number::{float, whole},
    permit::{Permit, Renewal, State},
    redis_store,
    refused::Refused,
    request::Request,
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Meter, Pause, Settlement, Store},
    wire,
};

/// Templates whose expectation is remembered here; each costs some 100 bytes, and all are also in
/// Redis.
const REMEMBERED_TEMPLATES: usize = 10_000;

/// The part of a call's bound on output that is held while nothing is known.
const UNKNOWN_OUTPUT: u64 = 3;

/// A caller that waits in place asks again at least this often: a limit may have been raised or a
/// gate opened.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// A closed gate is waited for in place no longer than this: another refusal may close it again
/// before it opens.
const MAX_PAUSE_IN_PLACE: Duration = Duration::from_secs(1);

/// How waiting is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// First part of every Redis key. Default `tidegate`.
    pub key_prefix: String,
    /// The longest wait in [`Quota::admit`] itself; a longer one is handed back as [`Refused`].
    /// Default 10 s.
    pub max_slot_wait: Duration,
    /// Each wake-up after a pause is spread over 0 to this. Default 30 s.
    pub jitter: Duration,
    /// No pause outlives this, imposed by a worker or an operator. Default 5 min.
    pub pause_ttl: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key_prefix: "tidegate".to_owned(),
            max_slot_wait: Duration::from_secs(10),
            jitter: Duration::from_secs(30),
            pause_ttl: Duration::from_secs(300),
        }
    }
}

/// A limiter over some models. Cheap to clone; every clone is the same limiter.
#[derive(Debug, Clone)]
pub struct Quota {
    shared: Arc<Shared>,
}

/// Which store granted a permit, and so must settle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Redis,
    Local,
}

#[derive(Debug)]
pub(crate) struct Shared {
    models: BTreeMap<ModelId, Arc<ModelQuota>>,
    options: Options,
    pub(crate) redis: Option<redis_store::Store>,
    local: memory::Store,
    breaker: Breaker,
    fleet: Fleet,
    expectations: Mutex<HashMap<(ModelId, u64), Expectation>>,
}

impl Quota {
    /// A limiter that a fleet shares through Redis: `redis://`, `rediss://`, `unix://`,
    /// `redis+cluster://host:port,…` or `redis+sentinel://host:port,…/master-name`. Connects at the
    /// first use; while Redis is away every worker keeps to its share of the limits.
    ///
    /// # Errors
    /// [`Error::Address`] when the URL or the key prefix cannot be used.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn with_redis(
        url: &str,
        models: impl IntoIterator<Item = ModelQuota>,
        options: Options,
    ) -> Result<Self, Error> {
        let store = redis_store::Store::open(url, &options.key_prefix, options.pause_ttl)?;
        Ok(Self::new(Some(store), models, options))
    }

    /// A limiter for this process alone.
    #[must_use]
    pub fn in_memory(models: impl IntoIterator<Item = ModelQuota>, options: Options) -> Self {
        Self::new(None, models, options)
    }

    fn new(
        redis: Option<redis_store::Store>,
        models: impl IntoIterator<Item = ModelQuota>,
        options: Options,
    ) -> Self {
        let shared = Shared {
            models: models.into_iter().map(|model| (model.id.clone(), Arc::new(model))).collect(),
            local: memory::Store::new(options.pause_ttl),
            options,
            redis,
            breaker: Breaker::default(),
            fleet: Fleet::default(),
            expectations: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Admits one call: at once, or after a wait of at most [`Options::max_slot_wait`], in which
    /// nothing is held.
    ///
    /// Dropping the future at any time costs nothing.
    ///
    /// # Errors
    /// [`Refused`]: come back later with the ticket, or never.
    pub async fn admit(&self, request: &Request) -> Result<Permit, Refused> {
        let shared = &self.shared;
        let model = shared
            .models
            .get(&request.model)
            .ok_or_else(|| Refused::UnknownModel(request.model.clone()))?;
        let lane = model
            .lanes
            .index(&request.lane)
            .ok_or_else(|| Refused::UnknownLane(request.lane.clone()))?;
        let started = Instant::now();
        let amounts = shared.amounts(model, request);
        let mut ask = Ask {
            reservation: request.reservation.clone(),
            lane,
            amounts,
            ticket: request.ticket,
            template: request.template,
            curious: shared.expectation(model, request.template).is_none(),
            tenant: request.tenant.clone(),
        };
        loop {
            let (decision, backend) = shared.ask(model, &ask).await;
            let (sleep, wait, refused) = match decision {
                Decision::Granted => {
                    metrics::admitted(&model.id, &request.lane, started.elapsed());
                    let renewal = (backend == Backend::Redis)
                        .then(|| Renewal::start(shared, model, &ask.reservation));
                    return Ok(Permit {
                        meter: Meter::default(),
                        _renewal: renewal,
                        shared: Arc::clone(shared),
                        model: Arc::clone(model),
                        backend,
                        reserved: ask.amounts,
                        reservation: ask.reservation,
                        lane: request.lane.clone(),
                        estimated_input: request.input_tokens,
                        max_output_tokens: request.max_output_tokens,
                        template: request.template,
                        state: State::Unsent,
                    });
                }
                Decision::Never { dimension, capacity } => {
                    let asked = ask.amounts[dimension];
                    return Err(Refused::NeverFits {
                        model: model.id.clone(),
                        dimension,
                        asked,
                        capacity,
                    });
                }
                Decision::Exhausted { wait, day } => {
                    metrics::denied_by_gate(&model.id);
                    let reason = match day {
                        Some(limit) => format!("the limit of {limit} is spent"),
                        None => self
                            .inspect(&model.id)
                            .await
                            .map_or_else(|_| "it is exhausted".to_owned(), |seen| seen.reason),
                    };
                    return Err(Refused::Exhausted { model: model.id.clone(), wait, reason });
                }
                Decision::Wait { wait, binding, deficit, ticket } => {
                    metrics::denied(&model.id, binding);
                    ask.ticket = Some(ticket);
                    (
                        early(wait),
                        wait,
                        Refused::Wait { model: model.id.clone(), wait, binding, deficit, ticket },
                    )
                }
                Decision::Paused { wait, ticket } => {
                    metrics::denied_by_gate(&model.id);
                    let wait = wait + shared.options.jitter.mul_f64(rand::random());
                    (wait, wait, Refused::Paused { model: model.id.clone(), wait, ticket })
                }
            };
            let patience = match refused {
                Refused::Paused { .. } => shared.options.max_slot_wait.min(MAX_PAUSE_IN_PLACE),
                _ => shared.options.max_slot_wait,
            };
            if started.elapsed() + wait
                > request.max_wait.map_or(patience, |most| most.min(patience))
            {
                return Err(refused);
            }
            tokio::time::sleep(sleep).await;
        }
    }

    /// The models that this limiter knows.
    pub fn models(&self) -> impl Iterator<Item = &ModelQuota> {
        self.shared.models.values().map(AsRef::as_ref)
    }

    /// Tells what a model's quota looks like, for people and metrics.
    ///
    /// # Errors
    /// [`Error::UnknownModel`], or [`Error::Away`] with no fall-back: a guess would mislead.
    pub async fn inspect(&self, model: &ModelId) -> Result<Snapshot, Error> {
        let model = self.model(model)?;
        let snapshot = match &self.shared.redis {
            Some(redis) => redis.inspect(model).await?,
            None => self.shared.local.inspect(model).await?,
        };
        metrics::seen(model, &snapshot);
        Ok(snapshot)
    }

    /// Closes a model's gate for the whole fleet and says for how long it is closed now.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn pause(
        &self,
        model: &ModelId,
        length: Duration,
        reason: &str,
    ) -> Result<Duration, Error> {
        let model = self.model(model)?;
        let pause = Pause { length, reason: reason.to_owned() };
        metrics::paused(&model.id, "operator");
        match &self.shared.redis {
            Some(redis) => redis.pause(model, &pause).await,
            None => self.shared.local.pause(model, &pause).await,
        }
    }

    /// Sets limits for the whole fleet while it runs; they act from the next question on, and use
    /// in the window stays. They live in Redis for 30 days after the last use, so what is to stay
    /// belongs into the configuration.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn set_limits(&self, model: &ModelId, changes: &LimitChanges) -> Result<(), Error> {
        let model = self.model(model)?;
        match &self.shared.redis {
            Some(redis) => redis.set_limits(model, changes).await,
            None => self.shared.local.set_limits(model, changes).await,
        }
    }

    /// Opens a model's gate for the whole fleet.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn resume(&self, model: &ModelId) -> Result<(), Error> {
        let model = self.model(model)?;
        self.shared.local.resume(model).await?;
        match &self.shared.redis {
            Some(redis) => redis.resume(model).await,
            None => Ok(()),
        }
    }

    /// Budgets in US dollars, over the same connection.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        Budgets::new(self.shared.redis.clone())
    }

    /// Counts one more provider call beyond the first of a document, and says how many the batch
    /// has spent; `None` while Redis is away. The count lives for seven days after the last.
    pub async fn count_retry(&self, batch: &str) -> Option<u64> {
        let redis = self.shared.redis.as_ref()?;
        let keys = [crate::key::retries(redis.prefix(), batch)];
        let reply = redis.run(&redis.scripts().retries, &keys, &[]).await.ok()?;
        let [retries] = wire::integers(&reply).ok()?;
        Some(wire::unsigned(retries))
    }

    /// Shows the fleet that this worker lives, and keeps the gauges of every model fresh, until it
    /// is dropped or `stop` resolves. Run one for each process that admits calls.
    pub async fn keep_alive(&self, worker: &str, stop: impl Future<Output = ()>) {
        let Some(redis) = &self.shared.redis else { return stop.await };
        tokio::pin!(stop);
        let mut beat = tokio::time::interval(fleet::BEAT);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = beat.tick() => {
                    // Failures show in the breaker as soon as a call wants to be admitted.
                    if self.shared.fleet.beat(redis, worker).await.is_ok() {
                        self.shared.answered();
                        for model in self.shared.models.values() {
                            if let Ok(snapshot) = redis.inspect(model).await {
                                metrics::seen(model, &snapshot);
                            }
                        }
                    }
                }
            }
        }
        if let Err(error) = self.shared.fleet.leave(redis, worker).await {
            warn!(%error, "could not leave the fleet; the others count this worker for 15 s more");
        }
    }

    /// Live workers of the fleet as of the last beat, this one included.
    #[must_use]
    pub fn live_workers(&self) -> u64 {
        self.shared.fleet.size()
    }

    /// Whether Redis is known to be away.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.shared.breaker.is_open()
    }

    fn model(&self, model: &ModelId) -> Result<&Arc<ModelQuota>, Error> {
        self.shared.models.get(model).ok_or_else(|| Error::UnknownModel(model.clone()))
    }
}

impl Shared {
    /// Asks Redis, or while it is away this worker's own share.
    async fn ask(self: &Arc<Self>, model: &ModelQuota, ask: &Ask) -> (Decision, Backend) {
        if let Some(redis) = &self.redis
            && self.breaker.allows(Instant::now())
        {
            match redis.reserve(model, ask).await {
                Ok((decision, expectation)) => {
                    self.answered();
                    self.remember(model, ask.template, expectation);
                    return (decision, Backend::Redis);
                }
                Err(error) => self.away(&error),
            }
        }
        let (decision, expectation) = self.local.reserve_now(&self.share(model), ask);
        self.remember(model, ask.template, expectation);
        (decision, Backend::Local)
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
        }
        match (&self.redis, backend) {
            (Some(redis), Backend::Redis) => match redis.settle(model, settlement).await {
                Ok((_, expectation)) => {
                    self.answered();
                    self.remember(model, settlement.template, expectation);
                }
                // The reservation stays charged until it leaves the window: too much, never too
                // little.
                Err(error) => self.away(&error),
            },
            _ => {
                if let Ok((_, expectation)) =
                    self.local.settle(&self.share(model), settlement).await
                {
                    self.remember(model, settlement.template, expectation);
                }
            }
        }
    }

    /// Without Redis the only worker has everything; without an answer, each has its part.
    fn share(&self, model: &ModelQuota) -> ModelQuota {
        model.share(if self.redis.is_some() { self.fleet.size() } else { 1 })
    }

    /// What to reserve: the estimate corrected by what was learned, and the expected output or its
    /// bound.
    fn amounts(&self, model: &ModelQuota, request: &Request) -> Amounts {
        let expectation = self.expectation(model, request.template);
        let input = expectation.map_or(request.input_tokens, |known| {
            whole((float(request.input_tokens) * known.input_ratio).ceil())
        });
        let bound = request.max_output_tokens;
        let output = match (model.charge.hold, expectation) {
            (OutputHold::Expected, Some(known)) => known.output.min(bound),
            // Nothing is known yet. The bound is no expectation: answers rarely use a third of it, and
            // if they do use more, that is a debt for some calls and not a wait for all.
            (OutputHold::Expected, None) => bound.div_ceil(UNKNOWN_OUTPUT),
            (OutputHold::Maximum, known) => {
                model.charge.held_output(bound, known.map_or(0, |known| known.output.min(bound)))
            }
        };
        model.amounts(input, output)
    }

    fn expectation(&self, model: &ModelQuota, template: u64) -> Option<Expectation> {
        let known = self.expectations.lock();
        known.get(&(model.id.clone(), template)).copied()
    }

    fn remember(&self, model: &ModelQuota, template: u64, expectation: Option<Expectation>) {
        let Some(expectation) = expectation else { return };
        let mut known = self.expectations.lock();
        if known.len() >= REMEMBERED_TEMPLATES {
            known.clear();
        }
        known.insert((model.id.clone(), template), expectation);
    }

    fn answered(self: &Arc<Self>) {
        if let Some(away) = self.breaker.succeeded(Instant::now()) {
            metrics::degraded(false);
            info!("Redis is back after {away:?}; the fleet shares its quota again");
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.report_spending().await });
        }
    }

    /// What this worker spent on its own and is still in the window counts for the whole fleet
    /// again.
    async fn report_spending(&self) {
        let Some(redis) = &self.redis else { return };
        for model in self.models.values() {
            let Ok(spent) = self.local.inspect(&self.share(model)).await else { continue };
            for (lane, state) in
                spent.lanes.iter().enumerate().filter(|(_, state)| state.used != Amounts::default())
            {
                let name = format!("away:{:016x}", rand::random::<u64>());
                match redis.charge(model, &name, lane, state.used).await {
                    Ok(()) => info!(
                        model = %model.id, lane = %state.lane, requests = state.used.requests, tokens = state.used.combined,
                        "reported what this worker spent in the last window while Redis was away"
                    ),
                    Err(error) => {
                        warn!(%error, model = %model.id, "could not report what was spent while Redis was away")
                    }
                }
            }
        }
    }

    fn away(&self, error: &Error) {
        if let Error::Protocol(_) = error {
            error!(%error, "the limiter's script failed; this worker keeps to its own share");
        }
        if self.breaker.failed(Instant::now()) {
            metrics::degraded(true);
            warn!(%error, workers = self.fleet.size(), "Redis is away; this worker keeps to its share of the limits");
        }
    }
}

/// A long wait is cut short, because the queue moves up when calls use less than was held; a short
/// one is waited for exactly.
fn early(wait: Duration) -> Duration {
    if wait > Duration::from_secs(2) { wait.mul_f64(0.95).min(MAX_SLEEP) } else { wait }
}
