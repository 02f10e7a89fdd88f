//! The handle that callers hold.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_types::{Lane, ModelId, Tenant, Usage};
use tracing::warn;

use crate::{
    bucket::{Bucket, BucketLimit},
    budget::Budgets,
    dimension::Amounts,
    error::Error,
    fleet,
    intake::Place,
    metrics,
    model::ModelQuota,
    permit::{Permit, Renewal, State},
    redis_store,
    refused::Refused,
    request::Request,
    retries::Retries,
    running::Backend,
    shared::{Options, Shared},
    snapshot::Snapshot,
    store::{Ask, Decision, LimitChanges, Meter, Pause, Store},
    waiters::SOON,
    wire,
};

/// A caller that waits in place asks again at least this often: a limit may have been raised or a
/// gate opened.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// A closed gate is waited for in place no longer than this: another refusal may close it again
/// before it opens.
const MAX_PAUSE_IN_PLACE: Duration = Duration::from_secs(1);

/// Lanes are named again with each so many-th beat, for a Redis that has lost their numbers.
const LANES_EVERY: u64 = 12;

/// As long as what operators set, and twice that: it must not end before.
const MARK_LIVES: Duration = Duration::from_secs(60 * 86_400);

/// A limiter over some models. Cheap to clone; every clone is the same limiter.
#[derive(Debug, Clone)]
pub struct Quota {
    pub(crate) shared: Arc<Shared>,
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
        let Options { key_prefix, pause_ttl, answer_within, .. } = &options;
        let store = redis_store::Store::open_within(url, key_prefix, *pause_ttl, *answer_within)?;
        Ok(Self { shared: Arc::new(Shared::new(Some(store), models, options)) })
    }

    /// A limiter for this process alone.
    pub fn in_memory(models: impl IntoIterator<Item = ModelQuota>, options: Options) -> Self {
        Self { shared: Arc::new(Shared::new(None, models, options)) }
    }

    /// Admits one call: at once, or after a wait of at most [`Options::max_slot_wait`], in which
    /// nothing is held.
    ///
    /// Dropping the future at any time costs nothing.
    ///
    /// # Errors
    /// [`Refused`]: come back later with the ticket, or never.
    pub async fn admit(&self, request: &Request) -> Result<Permit, Refused> {
        self.admit_until(request, std::future::pending()).await
    }

    /// The same, where the wait ends with a refusal, which carries the ticket, as soon as `stop`
    /// resolves.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub async fn admit_until(
        &self,
        request: &Request,
        stop: impl Future<Output = ()>,
    ) -> Result<Permit, Refused> {
        let mut stop = std::pin::pin!(stop);
        let shared = &self.shared;
        let model = shared
            .models
            .get(&request.model)
            .ok_or_else(|| Refused::UnknownModel(request.model.clone()))?;
        let lane = model
            .lanes
            .index(&request.lane)
            .ok_or_else(|| Refused::UnknownLane(request.lane.clone()))?;
        shared.watch.asks(&model.id);
        let started = Instant::now();
        let amounts = shared.amounts(model, request);
        let mut ask = Ask {
            reservation: request.reservation.clone(),
            lane,
            amounts,
            ticket: request.ticket,
            template: request.template,
            curious: shared.is_curious(model, request.template),
            tenant: request.tenant.clone(),
        };
        let patience = |most: Duration| request.max_wait.map_or(most, |wait| wait.min(most));
        let mut told = None;
        if patience(shared.options.max_slot_wait) >= SOON {
            told = shared.wait_behind(model, &ask, started).await;
        }
        loop {
            let answer = match told.take() {
                Some(answer) => answer.map(|decision| (decision, Backend::Redis)),
                None => {
                    // More may be known than when it asked before.
                    ask.amounts = shared.amounts(model, request);
                    shared.ask(model, &ask, started).await
                }
            };
            let (decision, backend) =
                answer.map_err(|error| Refused::Outdated(error.to_string()))?;
            let (sleep, wait, refused) = match decision {
                Decision::Granted => {
                    shared.changes.open(&model.id);
                    shared.told(model, &request.lane, &ask, Duration::ZERO);
                    metrics::admitted(&model.id, &request.lane, started.elapsed());
                    let renewal = (backend == Backend::Redis)
                        .then(|| Renewal::start(shared, model, &ask.reservation));
                    return Ok(Permit {
                        meter: Meter::default(),
                        cached: None,
                        _renewal: renewal,
                        _running: shared.running.begin(model, backend),
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
                    // Who has set a limit by hand is told that it is this one.
                    let set = Box::pin(self.inspect(&model.id)).await.ok();
                    let set = set.and_then(|seen| seen.get(dimension).set);
                    return Err(Refused::NeverFits {
                        model: model.id.clone(),
                        dimension,
                        asked,
                        capacity,
                        set,
                    });
                }
                Decision::Exhausted { wait, day } => {
                    metrics::denied_by_gate(&model.id);
                    let reason = match day {
                        // The gate is open: there is nothing to resume.
                        Some(limit) => format!(
                            "the configured limit of {limit} is spent; where the account has more, raise it in the configuration of the workers"
                        ),
                        None => {
                            let seen = Box::pin(self.inspect(&model.id)).await;
                            let why = seen
                                .map_or_else(|_| "it is exhausted".to_owned(), |seen| seen.reason);
                            format!("{why}; `tidegate resume {}` opens it sooner", model.id)
                        }
                    };
                    return Err(Refused::Exhausted { model: model.id.clone(), wait, reason });
                }
                Decision::Wait { wait, hold, deficit, ticket } => {
                    metrics::denied(&model.id, hold);
                    shared.told(model, &request.lane, &ask, wait);
                    ask.ticket = Some(ticket);
                    (
                        early(wait),
                        wait,
                        Refused::Wait { model: model.id.clone(), wait, hold, deficit, ticket },
                    )
                }
                Decision::Paused { wait, ticket } => {
                    metrics::denied_by_gate(&model.id);
                    shared.told(model, &request.lane, &ask, wait);
                    // A worker that waits for its first answer shares no gate with others.
                    let jitter =
                        if shared.is_joined() { shared.options.jitter } else { Duration::ZERO };
                    let wait = wait + jitter.mul_f64(rand::random());
                    (wait, wait, Refused::Paused { model: model.id.clone(), wait, ticket })
                }
            };
            let most = match refused {
                Refused::Paused { .. } => shared.options.max_slot_wait.min(MAX_PAUSE_IN_PLACE),
                _ => shared.options.max_slot_wait,
            };
            if started.elapsed() + wait > patience(most) {
                return Err(refused);
            }
            ask.amounts = shared.amounts(model, request);
            tokio::select! {
                biased;
                () = &mut stop => return Err(refused),
                answer = shared.wait(model, &ask, started, sleep) => told = answer,
            }
        }
    }

    /// The models that this limiter knows.
    pub fn models(&self) -> impl Iterator<Item = &ModelQuota> {
        self.shared.models.values().map(AsRef::as_ref)
    }

    /// Output tokens of calls with this template, as far as this process has learned them.
    pub fn learned_output(&self, model: &ModelId, template: u64) -> Option<u64> {
        let model = self.shared.models.get(model)?;
        Some(self.shared.expectation(model, template)?.output)
    }

    /// Amounts that a finished call counts as, by what is known of the provider.
    pub fn used(&self, model: &ModelId, usage: &Usage, max_output_tokens: u64) -> Option<Amounts> {
        let model = self.shared.models.get(model)?;
        Some(model.used(usage, max_output_tokens))
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
        let closed = match &self.shared.redis {
            Some(redis) => redis.pause(model, &pause).await?,
            None => self.shared.local.pause(model, &pause).await?,
        };
        self.tell_news().await?;
        Ok(closed)
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
            Some(redis) => redis.set_limits(model, changes).await?,
            None => self.shared.local.set_limits(model, changes).await?,
        }
        self.renew_mark().await?;
        self.tell_news().await
    }

    /// A tenant's callers that wait in a lane come no more, because their batch was cancelled: its
    /// next ones need not stand behind them.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn leave(&self, model: &ModelId, lane: &Lane, tenant: &Tenant) -> Result<(), Error> {
        let model = self.model(model)?;
        let Some(lane) = model.lanes.index(lane) else { return Ok(()) };
        match &self.shared.redis {
            Some(redis) => redis.leave(model, lane, tenant).await,
            None => self.shared.local.leave(model, lane, tenant).await,
        }
    }

    /// The caller that waits with this request's ticket comes no more: those behind it move up.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn give_up(&self, request: &Request) -> Result<(), Error> {
        let model = self.model(&request.model)?;
        let Some(lane) = model.lanes.index(&request.lane) else { return Ok(()) };
        let ask = Ask {
            reservation: request.reservation.clone(),
            lane,
            amounts: self.shared.amounts(model, request),
            ticket: request.ticket,
            template: request.template,
            curious: false,
            tenant: request.tenant.clone(),
        };
        match &self.shared.redis {
            Some(redis) => redis.give_up(model, &ask).await,
            None => self.shared.local.give_up(model, &ask).await,
        }
    }

    /// Opens a model's gate for the whole fleet, and ends [`Self::hold_model`].
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn resume(&self, model: &ModelId) -> Result<(), Error> {
        let model = self.model(model)?;
        self.let_model_go(&model.id).await?;
        self.shared.local.resume(model).await?;
        if let Some(redis) = &self.shared.redis {
            redis.resume(model).await?;
        }
        self.tell_news().await
    }

    /// A bucket for an API that is no language model, over the same connection; of this process
    /// alone where the limiter is.
    pub fn bucket(&self, name: &str, limit: BucketLimit) -> Bucket {
        match &self.shared.redis {
            Some(redis) => Bucket::in_redis(redis.clone(), name, limit),
            None => Bucket::in_memory(limit),
        }
    }

    /// Budgets in US dollars, over the same connection.
    pub fn budgets(&self) -> Budgets {
        Budgets::new(self.shared.redis.clone())
    }

    /// Counts one more provider call beyond the first of a document of this run of a batch. `adds` is
    /// a document that adds so many calls to the run's budget, which it does once. `None` while Redis
    /// is away. The counts live for seven days after the last call.
    pub async fn count_retry(&self, run: &str, adds: Option<(&str, u64)>) -> Option<Retries> {
        let redis = self.shared.redis.as_ref()?;
        let keys = [crate::key::retries(&redis.prefix, run)];
        let (document, calls) = adds.unwrap_or_default();
        let arguments = [document.into(), calls.to_string().into()];
        let reply = redis.run(&redis.scripts.retries, &keys, &arguments).await.ok()?;
        let [spent, added] = wire::integers(&reply).ok()?;
        Some(Retries { spent: wire::unsigned(spent), added: wire::unsigned(added) })
    }

    /// Shows the fleet that this worker lives, and keeps the gauges of every model fresh, until it
    /// is dropped or `stop` resolves: of models at which something goes on, every five seconds; of
    /// the others when an operator has changed something. Run one for each process that admits
    /// calls.
    ///
    /// # Errors
    /// [`Error::Outdated`] as soon as a newer program has taken over a quota: this one must end.
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
                        // Where it fails, a later beat names them again.
                        let _ = redis.name_lanes(&model.lanes).await;
                    }
                    let rests = self.shared.watch.is_idle() && !beats.is_multiple_of(2);
                    beats += 1;
                    if rests {
                        continue;
                    }
                    if let Err(error) = self.beat(redis, worker).await {
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

    /// One beat. Failures but one show in the breaker as soon as a call wants to be admitted.
    async fn beat(&self, redis: &redis_store::Store, worker: &str) -> Result<(), Error> {
        let shared = &self.shared;
        if shared.fleet.beat(redis, worker).await.is_err() {
            return Ok(());
        }
        shared.answered();
        metrics::workers(self.live_workers());
        for model in shared.watch.due(shared.models.keys()) {
            let Some(model) = shared.models.get(&model) else { continue };
            match redis.inspect(model).await {
                Ok(snapshot) => {
                    metrics::seen(model, &snapshot);
                    shared.changes.seen(&model.id, &snapshot);
                    shared.history.seen(&model.id, &snapshot);
                    shared.history.write(redis, model).await;
                    shared.watch.seen(&model.id, &snapshot);
                }
                Err(error @ Error::Outdated(_)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Says `words` of this worker to the fleet, for 15 s, and hears what all live workers say, this
    /// one included, if it `listens`. `None` without a Redis. No credential belongs into them.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn say(
        &self,
        worker: &str,
        words: &str,
        listens: bool,
    ) -> Result<Option<Vec<(String, String)>>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(None) };
        fleet::Fleet::say(redis, worker, words, listens).await.map(Some)
    }

    /// What all live workers say of themselves; nothing without a Redis.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn said(&self) -> Result<Vec<(String, String)>, Error> {
        self.say("", "", true).await.map(Option::unwrap_or_default)
    }

    /// A name that Redis has until it loses everything, and that is another one whenever limits were
    /// set; `None` where it has lost it, or never had it.
    ///
    /// # Errors
    /// [`Error::Away`]; also without a Redis.
    pub async fn mark(&self) -> Result<Option<String>, Error> {
        let (redis, key) = self.marked()?;
        redis.connection.command(redis::cmd("GET").arg(&key)).await
    }

    /// Has Redis keep that name for 60 days from now on, if it has it.
    ///
    /// # Errors
    /// As [`Self::mark`].
    pub async fn keep_mark(&self) -> Result<(), Error> {
        let (redis, key) = self.marked()?;
        let mut lives = redis::cmd("EXPIRE");
        lives.arg(&key).arg(MARK_LIVES.as_secs());
        redis.connection.command::<i64>(&lives).await.map(drop)
    }

    /// Gives Redis such a name, unless it has one.
    ///
    /// # Errors
    /// As [`Self::mark`].
    pub async fn make_mark(&self) -> Result<(), Error> {
        self.write_mark("NX").await
    }

    /// Where Redis has lost everything, nothing may look as if it had not.
    pub(crate) async fn renew_mark(&self) -> Result<(), Error> {
        if self.shared.redis.is_none() {
            return Ok(());
        }
        self.write_mark("XX").await
    }

    async fn write_mark(&self, only_if: &str) -> Result<(), Error> {
        let (redis, key) = self.marked()?;
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(format!("{:016x}", rand::random::<u64>())).arg(only_if);
        set.arg("EX").arg(MARK_LIVES.as_secs());
        redis.connection.command::<Option<String>>(&set).await.map(drop)
    }

    pub(crate) fn redis(&self) -> Option<&redis_store::Store> {
        self.shared.redis.as_ref()
    }

    fn marked(&self) -> Result<(&redis_store::Store, String), Error> {
        let redis = self.shared.redis.as_ref();
        let redis = redis.ok_or_else(|| Error::Away("this limiter has none".to_owned()))?;
        Ok((redis, crate::key::mark(&redis.prefix)))
    }

    /// Live workers of the fleet as of the last beat, this one included.
    pub fn live_workers(&self) -> u64 {
        self.shared.fleet.size()
    }

    /// An attempt of this worker stands in the queue for quota, until what this gives is dropped.
    pub fn stand(&self, lane: &Lane, model: &ModelId) -> Place {
        self.shared.intake.stand(lane, model)
    }

    /// Documents for the model are to come in this lane.
    pub fn expects(&self, lane: &Lane, model: &ModelId) {
        self.shared.intake.expects(lane, model);
    }

    /// For so long, only another worker can take the lane's documents for this model, or nobody.
    pub fn is_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        self.shared.intake.is_elsewhere(lane, model, wait);
    }

    /// A slot was given back: [`Self::wants`] looks again.
    pub fn has_slot(&self) {
        self.shared.intake.has_slot();
    }

    /// Waits until this worker should take one more document of a lane, of which it holds so many
    /// slots. See [`crate::intake`].
    pub async fn wants(&self, lane: &Lane, held: impl Fn() -> usize) {
        let intake = &self.shared.intake;
        loop {
            let news = intake.news();
            tokio::pin!(news);
            // Before the look: what is told between the look and the wait must wake us.
            news.as_mut().enable();
            let wait = intake.until_next(lane, held(), self.live_workers());
            if wait.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(wait, news).await;
        }
    }

    /// [`Options::max_slot_wait`].
    pub fn longest_wait_in_place(&self) -> Duration {
        self.shared.options.max_slot_wait
    }

    /// Whether Redis is known to be away.
    pub fn is_degraded(&self) -> bool {
        self.shared.breaker.is_open()
    }

    pub(crate) fn model(&self, model: &ModelId) -> Result<&Arc<ModelQuota>, Error> {
        self.shared.models.get(model).ok_or_else(|| Error::UnknownModel(model.clone()))
    }
}

/// A long wait is cut short, because the queue moves up when calls use less than was held; a short
/// one is waited for exactly.
pub(crate) fn early(wait: Duration) -> Duration {
    if wait > Duration::from_secs(2) { wait.mul_f64(0.95).min(MAX_SLEEP) } else { wait }
}
