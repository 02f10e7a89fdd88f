//! The store that a fleet shares: one script call an operation, on the server's clock.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_types::Tenant;

use crate::{
    connection::{ANSWER_WITHIN, Connection},
    dimension::Amounts,
    error::Error,
    key::ModelKeys,
    model::ModelQuota,
    script::{Script, Scripts},
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Pause, Settled, Settlement},
    wire,
};

/// Quota in Redis.
#[derive(Clone)]
pub struct Store {
    connection: Arc<Connection>,
    scripts: Arc<Scripts>,
    prefix: String,
    pause_ttl: Duration,
    clock: Arc<AtomicU64>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("connection", &self.connection)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Prepares a connection; it is made at the first use.
    ///
    /// # Errors
    /// [`Error::Address`] when the URL or the prefix cannot be used.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn open(url: &str, prefix: &str, pause_ttl: Duration) -> Result<Self, Error> {
        Self::open_within(url, prefix, pause_ttl, ANSWER_WITHIN)
    }

    /// For tests, which have company: the same, and an answer may take so long.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[doc(hidden)]
    pub fn open_within(
        url: &str,
        prefix: &str,
        pause_ttl: Duration,
        answer_within: Duration,
    ) -> Result<Self, Error> {
        crate::key::check_prefix(prefix).map_err(Error::Address)?;
        Ok(Self {
            connection: Arc::new(Connection::open(url, answer_within)?),
            scripts: Arc::new(Scripts::new()),
            prefix: prefix.to_owned(),
            pause_ttl,
            clock: Arc::default(),
        })
    }

    /// For tests and simulations: the scripts take this time, in microseconds, instead of the
    /// server's; 0 ends it.
    #[doc(hidden)]
    pub fn set_test_clock(&self, micros: u64) {
        self.clock.store(micros, Ordering::SeqCst);
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn clock(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Runs a script.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Vec<redis::Value>, Error> {
        self.connection.run(script, keys, arguments).await
    }

    fn keys(&self, model: &ModelQuota) -> ModelKeys {
        ModelKeys::new(&self.prefix, &model.quota_name())
    }

    async fn end(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
        outcome: Vec<u8>,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        let keys = self.keys(model);
        let mut eight = keys.common().to_vec();
        eight.extend([
            keys.learned(model.learns_as(settlement.template)),
            keys.gate(),
            keys.burst(),
        ]);
        let reason = settlement.pause.as_ref().map_or("", |pause| &pause.reason);
        let arguments = [
            settlement.reservation.clone().into_bytes(),
            outcome,
            wire::model(model),
            reason.as_bytes().to_vec(),
        ];
        wire::settled(&self.run(&self.scripts.settle, &eight, &arguments).await?)
    }
}

impl crate::store::Store for Store {
    async fn reserve(
        &self,
        model: &ModelQuota,
        ask: &Ask,
    ) -> Result<(Decision, Option<Expectation>), Error> {
        let keys = self.keys(model);
        let mut eight = keys.common().to_vec();
        eight.extend([
            keys.learned(model.learns_as(ask.template)),
            keys.tenants(ask.lane + 1),
            keys.burst(),
        ]);
        let arguments = [
            ask.reservation.clone().into_bytes(),
            wire::ask(ask, self.clock()),
            wire::model(model),
            ask.tenant.as_str().as_bytes().to_vec(),
        ];
        wire::decision(&self.run(&self.scripts.reserve, &eight, &arguments).await?)
    }

    async fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        let mode =
            if settlement.used.is_some() { wire::Mode::Settled } else { wire::Mode::Released };
        self.end(
            model,
            settlement,
            wire::outcome(model, settlement, mode, self.pause_ttl, self.clock()),
        )
        .await
    }

    async fn charge(
        &self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
    ) -> Result<(), Error> {
        let settlement = Settlement::used(name, used);
        let outcome = wire::outcome(
            model,
            &settlement,
            wire::Mode::Charged(lane),
            self.pause_ttl,
            self.clock(),
        );
        self.end(model, &settlement, outcome).await.map(drop)
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        let keys = self.keys(model);
        let mut six = keys.common().to_vec();
        six.push(keys.gate());
        let call = wire::Packed::default()
            .micros(pause.length)
            .micros(self.pause_ttl)
            .number(self.clock())
            .done();
        let arguments = [pause.reason.clone().into_bytes(), call, wire::model(model)];
        let [left] = wire::integers(&self.run(&self.scripts.pause, &six, &arguments).await?)?;
        Ok(Duration::from_micros(wire::unsigned(left)))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        let pause = Pause { length: Duration::ZERO, reason: String::new() };
        self.pause(model, &pause).await.map(drop)
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        let arguments = [wire::limits(&model.limits, changes, self.clock()), wire::model(model)];
        self.run(&self.scripts.limits, &self.keys(model).common(), &arguments).await.map(drop)
    }

    async fn renew(&self, model: &ModelQuota, reservation: &str) -> Result<(), Error> {
        let [_, _, _, leases, _] = self.keys(model).common();
        let lease =
            wire::Packed::default().micros(model.limits.lease()).number(self.clock()).done();
        let arguments = [reservation.as_bytes().to_vec(), lease];
        self.run(&self.scripts.renew, &[leases], &arguments).await.map(drop)
    }

    async fn leave(&self, model: &ModelQuota, lane: usize, tenant: &Tenant) -> Result<(), Error> {
        let keys = self.keys(model);
        let mut six = keys.common().to_vec();
        six.push(keys.tenants(lane + 1));
        let call = wire::Packed::default().number(lane as u64 + 1).number(self.clock()).done();
        let arguments = [tenant.as_str().as_bytes().to_vec(), call, wire::model(model)];
        self.run(&self.scripts.leave, &six, &arguments).await.map(drop)
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        let keys = self.keys(model);
        let mut seven = keys.common().to_vec();
        seven.extend([keys.gate(), keys.burst()]);
        let arguments = [wire::Packed::default().number(self.clock()).done(), wire::model(model)];
        wire::snapshot(model, &self.run(&self.scripts.inspect, &seven, &arguments).await?)
    }
}
