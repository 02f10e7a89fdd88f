//! The store that a fleet shares: one script call an operation, on the server's clock.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tidegate_types::Tenant;

use crate::{
    connection::{ANSWER_WITHIN, Connection},
    dimension::Amounts,
    error::Error,
    key::{self, ModelKeys},
    lane_numbers::Numbered,
    lanes::Lanes,
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
    /// The numbers of lanes, as Redis last told them.
    numbers: Arc<Mutex<Arc<Numbered>>>,
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
            numbers: Arc::default(),
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

    /// Names the lanes again: where Redis has lost their numbers it gets those of this process.
    ///
    /// # Errors
    /// [`Error::Away`].
    #[doc(hidden)]
    pub async fn name_lanes(&self, lanes: &Lanes) -> Result<(), Error> {
        self.number_lanes(lanes).await.map(drop)
    }

    async fn number_lanes(&self, lanes: &Lanes) -> Result<Arc<Numbered>, Error> {
        let words = Arc::clone(&self.numbers.lock()).words(lanes);
        let reply = self.run(&self.scripts.lanes, &[key::lanes(&self.prefix)], &words).await?;
        let numbered = Arc::new(Numbered::read(wire::pairs(&reply)?)?);
        *self.numbers.lock() = Arc::clone(&numbered);
        Ok(numbered)
    }

    /// The numbers of a model's lanes; Redis is asked the first time that one of them is named.
    async fn numbers(&self, model: &ModelQuota) -> Result<Arc<Numbered>, Error> {
        let known = Arc::clone(&self.numbers.lock());
        if known.knows(&model.lanes) { Ok(known) } else { self.number_lanes(&model.lanes).await }
    }

    /// The number of the lane in this place, and all numbers.
    async fn number(
        &self,
        model: &ModelQuota,
        place: usize,
    ) -> Result<(u64, Arc<Numbered>), Error> {
        let numbers = self.numbers(model).await?;
        let lane = model.lanes.iter().nth(place).and_then(|(lane, _)| numbers.number(lane));
        let lane = lane.ok_or_else(|| Error::Protocol(format!("lane {place} has no number")))?;
        Ok((lane, numbers))
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
            wire::model(model, &*self.numbers(model).await?),
            reason.as_bytes().to_vec(),
        ];
        wire::settled(&self.run(&self.scripts.settle, &eight, &arguments).await?)
    }
}

impl crate::store::Store for Store {
    async fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> Result<Vec<(Decision, Option<Expectation>)>, Error> {
        let Some((first, others)) = asks.split_first() else { return Ok(Vec::new()) };
        let (keys, (lane, numbers)) = (self.keys(model), self.number(model, first.lane).await?);
        let mut eight = keys.common().to_vec();
        eight.extend([
            keys.learned(model.learns_as(first.template)),
            keys.tenants(lane),
            keys.burst(),
        ]);
        let mut arguments = vec![
            first.reservation.clone().into_bytes(),
            wire::asks(model, asks, lane, self.clock()),
            wire::model(model, &numbers),
            first.tenant.as_str().as_bytes().to_vec(),
        ];
        arguments.extend(others.iter().map(|ask| ask.reservation.clone().into_bytes()));
        let reply = self.run(&self.scripts.reserve, &eight, &arguments).await?;
        wire::decisions(&reply, asks.len())
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
        let (lane, _) = self.number(model, lane).await?;
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
        let numbers = self.numbers(model).await?;
        let arguments = [pause.reason.clone().into_bytes(), call, wire::model(model, &numbers)];
        let [left] = wire::integers(&self.run(&self.scripts.pause, &six, &arguments).await?)?;
        Ok(Duration::from_micros(wire::unsigned(left)))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        let pause = Pause { length: Duration::ZERO, reason: String::new() };
        self.pause(model, &pause).await.map(drop)
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        let block = wire::model(model, &*self.numbers(model).await?);
        let arguments = [wire::limits(&model.limits, changes, self.clock()), block];
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
        let (keys, (lane, numbers)) = (self.keys(model), self.number(model, lane).await?);
        let mut six = keys.common().to_vec();
        six.push(keys.tenants(lane));
        let call = wire::Packed::default().number(lane).number(self.clock()).done();
        let arguments = [tenant.as_str().as_bytes().to_vec(), call, wire::model(model, &numbers)];
        self.run(&self.scripts.leave, &six, &arguments).await.map(drop)
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        let keys = self.keys(model);
        let mut seven = keys.common().to_vec();
        seven.extend([keys.gate(), keys.burst()]);
        let numbers = self.numbers(model).await?;
        let arguments =
            [wire::Packed::default().number(self.clock()).done(), wire::model(model, &numbers)];
        let reply = self.run(&self.scripts.inspect, &seven, &arguments).await?;
        // Another program has come with a lane of its own.
        let numbers = match wire::lanes(&reply) > numbers.iter().count() as u64 {
            true => self.number_lanes(&model.lanes).await?,
            false => numbers,
        };
        wire::snapshot(model, &numbers, &reply)
    }
}
