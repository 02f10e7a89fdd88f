//! The limiter's handle for callers.

use std::{sync::Arc, time::Duration};

use tidegate_types::{Lane, ModelId, Tenant, Usage};

use crate::{
    address,
    bucket::{Bucket, BucketLimit},
    budget::Budgets,
    dimension::Amounts,
    error::Error,
    metrics,
    model::ModelQuota,
    redis_store,
    request::Request,
    shared::{Options, Shared},
    snapshot::Snapshot,
    store::{LimitChanges, Pause, Store},
};

/// A limiter over some models. Cheap to clone; every clone is the same limiter.
#[derive(Debug, Clone)]
pub struct Quota {
    pub(crate) shared: Arc<Shared>,
}

impl Quota {
    /// Creates a limiter that a fleet shares through Redis: `redis://`, `rediss://`, `unix://`,
    /// `redis+cluster://host:port,…` or `redis+sentinel://host:port,…/master-name`, the last two also
    /// with `rediss`. User and password stand once, before the first host. Connects at the first
    /// use; while Redis is away every process that runs [`Self::keep_alive`] keeps to its share of
    /// the limits.
    ///
    /// # Errors
    /// [`Error::Address`] when the URL or the key prefix cannot be used.
    pub fn with_redis(
        url: &str,
        models: impl IntoIterator<Item = ModelQuota>,
        options: Options,
    ) -> Result<Self, Error> {
        let Options { key_prefix, pause_ttl, answer_within, .. } = &options;
        let store = redis_store::Store::open_within(url, key_prefix, *pause_ttl, *answer_within)?;
        Ok(Self { shared: Arc::new(Shared::new(Some(store), models, options)) })
    }

    /// Checks whether [`Self::with_redis`] can use a URL. Connects to nothing.
    ///
    /// # Errors
    /// The reason.
    pub fn check_url(url: &str) -> Result<(), String> {
        address::check_url(url)
    }

    /// The URLs of the servers that a URL names, each with its user and password: one server, or
    /// the named nodes of a cluster; none for sentinels, which find the master.
    pub fn servers(url: &str) -> Vec<String> {
        address::servers(url)
    }

    /// Creates a limiter for only this process.
    pub fn in_memory(models: impl IntoIterator<Item = ModelQuota>, options: Options) -> Self {
        Self { shared: Arc::new(Shared::new(None, models, options)) }
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

    /// Closes a model's gate for the whole fleet, and returns the time for which it is closed now.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn pause(
        &self,
        model: &ModelId,
        length: Duration,
        reason: &str,
    ) -> Result<Duration, Error> {
        metrics::count_pause(&self.find_model(model)?.id, "operator");
        let closed = self.close_gate(model, length, reason).await?;
        self.announce_change().await?;
        Ok(closed)
    }

    /// Like [`Self::pause`], without an announcement to the fleet.
    pub(crate) async fn close_gate(
        &self,
        model: &ModelId,
        length: Duration,
        reason: &str,
    ) -> Result<Duration, Error> {
        let model = self.find_model(model)?;
        let pause = Pause { length, reason: reason.to_owned() };
        match &self.shared.redis {
            Some(redis) => redis.pause(model, &pause).await,
            None => self.shared.local.pause(model, &pause).await,
        }
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
        let ask = self.shared.new_ask(model, lane, request);
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

    pub(crate) fn redis(&self) -> Option<&redis_store::Store> {
        self.shared.redis.as_ref()
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
