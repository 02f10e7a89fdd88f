//! The limiter's handle for callers.

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
    in_flight::Backend,
    intake::QueuedAttempt,
    metrics,
    model::ModelQuota,
    permit::{Permit, Renewal, State},
    redis_store,
    refused::Refused,
    request::Request,
    reserve_batcher::waiters::SOON,
    retries::Retries,
    shared::{Options, Shared},
    snapshot::Snapshot,
    store::{Ask, Decision, LimitChanges, Meter, Pause, Store},
    wire,
};

/// A caller that waits in place asks again at least this often: a limit may have been raised or a
/// gate opened.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// The longest wait in place for a closed gate: another refusal may close it again before it opens.
const MAX_PAUSE_IN_PLACE: Duration = Duration::from_secs(1);

/// Lanes are named again at each such beat, in case Redis has lost their numbers.
const LANES_EVERY: u64 = 12;

/// How long the mark lives without renewal: twice as long as what operators set, so that it never
/// ends first.
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

    /// Admits one call: at once, or after a wait of at most [`Options::max_slot_wait`]. Nothing is
    /// reserved during the wait.
    ///
    /// Dropping the future at any time costs nothing.
    ///
    /// # Errors
    /// [`Refused`]: come back later with the ticket, or never.
    pub async fn admit(&self, request: &Request) -> Result<Permit, Refused> {
        self.admit_until(request, std::future::pending()).await
    }

    /// As [`Self::admit`], but the wait ends as soon as `stop` resolves, with a refusal that
    /// carries the ticket.
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
        shared.poll_schedule.mark_busy(&model.id);
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
        let mut batched = None;
        if patience(shared.options.max_slot_wait) >= SOON {
            batched = shared.wait_behind(model, &ask, started).await;
        }
        loop {
            let answer = match batched.take() {
                Some(answer) => answer.map(|decision| (decision, Backend::Redis)),
                None => {
                    // More may be known than at the last ask.
                    ask.amounts = shared.amounts(model, request);
                    shared.ask(model, &ask, started).await
                }
            };
            let (decision, backend) =
                answer.map_err(|error| Refused::Outdated(error.to_string()))?;
            let (sleep, wait, refused) = match decision {
                Decision::Granted => {
                    shared.state_changes.record_open(&model.id);
                    shared.record_wait(model, &request.lane, &ask, Duration::ZERO);
                    metrics::record_admission(&model.id, &request.lane, started.elapsed());
                    let renewal = (backend == Backend::Redis)
                        .then(|| Renewal::start(shared, model, &ask.reservation));
                    return Ok(Permit {
                        meter: Meter::default(),
                        cached: None,
                        _renewal: renewal,
                        _in_flight: shared.in_flight.begin(model, backend),
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
                    // A limit set by an operator is named in the error.
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
                    metrics::count_gate_denial(&model.id);
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
                    metrics::count_denial(&model.id, hold);
                    shared.record_wait(model, &request.lane, &ask, wait);
                    ask.ticket = Some(ticket);
                    (
                        shorten_wait(wait),
                        wait,
                        Refused::Wait { model: model.id.clone(), wait, hold, deficit, ticket },
                    )
                }
                Decision::Paused { wait, ticket } => {
                    metrics::count_gate_denial(&model.id);
                    shared.record_wait(model, &request.lane, &ask, wait);
                    // A worker that waits for its first answer shares no gate with other workers.
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
                answer = shared.wait(model, &ask, started, sleep) => batched = answer,
            }
        }
    }

    /// The configured models.
    pub fn models(&self) -> impl Iterator<Item = &ModelQuota> {
        self.shared.models.values().map(AsRef::as_ref)
    }

    /// Expected output tokens of calls with this template, as far as this process knows them.
    pub fn learned_output(&self, model: &ModelId, template: u64) -> Option<u64> {
        let model = self.shared.models.get(model)?;
        Some(self.shared.expectation(model, template)?.output)
    }

    /// The amounts that a finished call is charged. `None` for an unknown model.
    pub fn used(&self, model: &ModelId, usage: &Usage, max_output_tokens: u64) -> Option<Amounts> {
        let model = self.shared.models.get(model)?;
        Some(model.used(usage, max_output_tokens))
    }

    /// Reads a model's quota, for people and metrics.
    ///
    /// # Errors
    /// [`Error::UnknownModel`], or [`Error::Away`] with no fall-back: a guess would mislead.
    pub async fn inspect(&self, model: &ModelId) -> Result<Snapshot, Error> {
        let model = self.find_model(model)?;
        let snapshot = match &self.shared.redis {
            Some(redis) => redis.inspect(model).await?,
            None => self.shared.local.inspect(model).await?,
        };
        metrics::record_snapshot(model, &snapshot);
        Ok(snapshot)
    }

    /// Closes a model's gate for the whole fleet, and returns how long it is closed now.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn pause(
        &self,
        model: &ModelId,
        length: Duration,
        reason: &str,
    ) -> Result<Duration, Error> {
        let model = self.find_model(model)?;
        let pause = Pause { length, reason: reason.to_owned() };
        metrics::count_pause(&model.id, "operator");
        let closed = match &self.shared.redis {
            Some(redis) => redis.pause(model, &pause).await?,
            None => self.shared.local.pause(model, &pause).await?,
        };
        self.announce_change().await?;
        Ok(closed)
    }

    /// Sets limits for the whole fleet while it runs. They act from the next ask on; the use in the
    /// window stays. They live in Redis for 31 days after the last use: lasting limits belong in
    /// the configuration.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn set_limits(&self, model: &ModelId, changes: &LimitChanges) -> Result<(), Error> {
        let model = self.find_model(model)?;
        match &self.shared.redis {
            Some(redis) => redis.set_limits(model, changes).await?,
            None => self.shared.local.set_limits(model, changes).await?,
        }
        self.renew_mark().await?;
        self.announce_change().await
    }

    /// Removes a tenant's waiting callers from a lane, because their batch was cancelled: the
    /// tenant's next callers need not stand behind them.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn leave(&self, model: &ModelId, lane: &Lane, tenant: &Tenant) -> Result<(), Error> {
        let model = self.find_model(model)?;
        let Some(lane) = model.lanes.index(lane) else { return Ok(()) };
        match &self.shared.redis {
            Some(redis) => redis.leave(model, lane, tenant).await,
            None => self.shared.local.leave(model, lane, tenant).await,
        }
    }

    /// Removes the caller with this request's ticket from its lane: those behind it move up.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn give_up(&self, request: &Request) -> Result<(), Error> {
        let model = self.find_model(&request.model)?;
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
        let model = self.find_model(model)?;
        self.let_model_go(&model.id).await?;
        self.shared.local.resume(model).await?;
        if let Some(redis) = &self.shared.redis {
            redis.resume(model).await?;
        }
        self.announce_change().await
    }

    /// A bucket for an API that is not a language model, over the same connection; in memory if the
    /// limiter is.
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

    /// Counts one more provider call beyond the first of a document, in this run of a batch. `adds`
    /// names a document and the calls that it adds, once, to the run's budget. `None` while Redis
    /// is away. The counts live for seven days after the last call.
    pub async fn count_retry(&self, run: &str, adds: Option<(&str, u64)>) -> Option<Retries> {
        let redis = self.shared.redis.as_ref()?;
        let keys = [crate::key::retries(&redis.prefix, run)];
        let (document, calls) = adds.unwrap_or_default();
        let arguments = [document.into(), calls.to_string().into()];
        let reply = redis.run(&redis.scripts.retries, &keys, &arguments).await.ok()?;
        let [spent, added] = wire::read_integers(&reply).ok()?;
        Some(Retries { spent: wire::unsigned(spent), added: wire::unsigned(added) })
    }

    /// Reports this worker as live and refreshes the gauges of the models, until it is dropped or
    /// `stop` resolves. Models in use are refreshed every five seconds, the others when an operator
    /// has changed something. Run one for each process that admits calls.
    ///
    /// # Errors
    /// [`Error::Outdated`] once a newer program has taken over a quota: this program must end.
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
                        // If this fails, a later beat repeats it.
                        let _ = redis.name_lanes(&model.lanes).await;
                    }
                    let rests = self.shared.poll_schedule.is_idle() && !beats.is_multiple_of(2);
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

    /// One beat. Failures other than [`Error::Outdated`] show in the breaker when a call asks to be
    /// admitted.
    async fn beat(&self, redis: &redis_store::Store, worker: &str) -> Result<(), Error> {
        let shared = &self.shared;
        if shared.fleet.beat(redis, worker).await.is_err() {
            return Ok(());
        }
        shared.record_answer();
        metrics::set_workers(self.live_workers());
        for model in shared.poll_schedule.take_due(shared.models.keys()) {
            let Some(model) = shared.models.get(&model) else { continue };
            match redis.inspect(model).await {
                Ok(snapshot) => {
                    metrics::record_snapshot(model, &snapshot);
                    shared.state_changes.record_snapshot(&model.id, &snapshot);
                    shared.usage_history.record_snapshot(&model.id, &snapshot);
                    shared.usage_history.flush(redis, model).await;
                    shared.poll_schedule.record_snapshot(&model.id, &snapshot);
                }
                Err(error @ Error::Outdated(_)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Publishes `words` as the status of `worker` for 15 s. If it `listens`, returns the statuses
    /// of all live workers, this one included. `None` without a Redis. The words must hold no
    /// credential.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn publish_status(
        &self,
        worker: &str,
        words: &str,
        listens: bool,
    ) -> Result<Option<Vec<(String, String)>>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(None) };
        fleet::Fleet::publish_status(redis, worker, words, listens).await.map(Some)
    }

    /// The statuses of all live workers; empty without a Redis.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn worker_statuses(&self) -> Result<Vec<(String, String)>, Error> {
        self.publish_status("", "", true).await.map(Option::unwrap_or_default)
    }

    /// The mark: a name that Redis holds until it loses everything, replaced whenever limits are
    /// set. `None` if Redis has lost it or never had it.
    ///
    /// # Errors
    /// [`Error::Away`]; also without a Redis.
    pub async fn mark(&self) -> Result<Option<String>, Error> {
        let (redis, key) = self.mark_key()?;
        redis.connection.command(redis::cmd("GET").arg(&key)).await
    }

    /// Extends the mark's life to 60 days from now, if there is one.
    ///
    /// # Errors
    /// As [`Self::mark`].
    pub async fn keep_mark(&self) -> Result<(), Error> {
        let (redis, key) = self.mark_key()?;
        let mut lives = redis::cmd("EXPIRE");
        lives.arg(&key).arg(MARK_LIVES.as_secs());
        redis.connection.command::<i64>(&lives).await.map(drop)
    }

    /// Writes a mark, unless there is one.
    ///
    /// # Errors
    /// As [`Self::mark`].
    pub async fn make_mark(&self) -> Result<(), Error> {
        self.write_mark("NX").await
    }

    /// Replaces the mark if there is one: after a loss in Redis no mark may appear.
    pub(crate) async fn renew_mark(&self) -> Result<(), Error> {
        if self.shared.redis.is_none() {
            return Ok(());
        }
        self.write_mark("XX").await
    }

    async fn write_mark(&self, only_if: &str) -> Result<(), Error> {
        let (redis, key) = self.mark_key()?;
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(format!("{:016x}", rand::random::<u64>())).arg(only_if);
        set.arg("EX").arg(MARK_LIVES.as_secs());
        redis.connection.command::<Option<String>>(&set).await.map(drop)
    }

    pub(crate) fn redis(&self) -> Option<&redis_store::Store> {
        self.shared.redis.as_ref()
    }

    fn mark_key(&self) -> Result<(&redis_store::Store, String), Error> {
        let redis = self.shared.redis.as_ref();
        let redis = redis.ok_or_else(|| Error::Away("this limiter has none".to_owned()))?;
        Ok((redis, crate::key::mark(&redis.prefix)))
    }

    /// Live workers of the fleet at the last beat, this one included.
    pub fn live_workers(&self) -> u64 {
        self.shared.fleet.size()
    }

    /// Counts an attempt that waits for quota, until the result is dropped.
    pub fn join_queue(&self, lane: &Lane, model: &ModelId) -> QueuedAttempt {
        self.shared.intake.join_queue(lane, model)
    }

    /// Announces documents for the model in this lane.
    pub fn expect_documents(&self, lane: &Lane, model: &ModelId) {
        self.shared.intake.expect_documents(lane, model);
    }

    /// Records that for `wait` this worker cannot take the lane's documents for this model.
    pub fn set_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        self.shared.intake.set_elsewhere(lane, model, wait);
    }

    /// Wakes [`Self::wait_to_take`]: a slot was returned.
    pub fn notify_free_slot(&self) {
        self.shared.intake.notify_free_slot();
    }

    /// Waits until this worker should take one more document of a lane. `held` gives the number of
    /// slots that the lane holds. See [`crate::intake`].
    pub async fn wait_to_take(&self, lane: &Lane, held: impl Fn() -> usize) {
        let intake = &self.shared.intake;
        loop {
            let changed = intake.changed();
            tokio::pin!(changed);
            // Register first: a change after the check must end the wait.
            changed.as_mut().enable();
            let wait = intake.until_next(lane, held(), self.live_workers());
            if wait.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(wait, changed).await;
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

    pub(crate) fn find_model(&self, model: &ModelId) -> Result<&Arc<ModelQuota>, Error> {
        self.shared.models.get(model).ok_or_else(|| Error::UnknownModel(model.clone()))
    }
}

/// Shortens a long wait, because the queue moves up when calls use less than was held. A short wait
/// stays exact.
pub(crate) fn shorten_wait(wait: Duration) -> Duration {
    if wait > Duration::from_secs(2) { wait.mul_f64(0.95).min(MAX_SLEEP) } else { wait }
}
