//! The store that a fleet shares through Redis: one script call for each operation, on the server's
//! clock.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tidegate_types::Tenant;

use crate::{
    connection::{ANSWER_WITHIN, Connection},
    dimension::Amounts,
    error::Error,
    kept_tasks::KeptTasks,
    key::{self, ModelKeys},
    lane_numbers::LaneNumbers,
    lanes::Lanes,
    mechanism::log::Reading,
    model::ModelQuota,
    numbers::Numbers,
    plan::{Plan, Units},
    policy::{self, Configured, Known, Outcome},
    remembered::Remembered,
    request::Ticket,
    script::{Script, Scripts},
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Pause, Settled, Settlement},
    wire,
    wire_read::{Inspected, PolicyTask, read_inspected},
};

/// Maximum number of plans that are tried for one operation: another program may write one first.
const PLANS: usize = 5;

/// Quota in Redis.
#[derive(Clone)]
pub struct Store {
    pub(crate) connection: Arc<Connection>,
    pub(crate) scripts: Arc<Scripts>,
    /// The numbers of lanes, as last read from Redis.
    numbers: Arc<Mutex<Arc<LaneNumbers>>>,
    pub(crate) prefix: String,
    pause_ttl: Duration,
    clock: Arc<AtomicU64>,
    /// Start of this program, in microseconds since 1970: of two configurations the newer program's
    /// plan is in force.
    began: u64,
    /// The last known state of each quota.
    remembered: Arc<Mutex<HashMap<String, Remembered>>>,
    tasks: KeptTasks,
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
    pub fn open(url: &str, prefix: &str, pause_ttl: Duration) -> Result<Self, Error> {
        Self::open_within(url, prefix, pause_ttl, ANSWER_WITHIN)
    }

    /// Opens a store with another time-out for answers, for tests, which share the machine.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
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
            began: micros_since_1970(),
            remembered: Arc::default(),
            tasks: KeptTasks::default(),
        })
    }

    /// Sets the scripts' clock in microseconds, for tests and simulations; 0 for the server's
    /// clock.
    #[doc(hidden)]
    pub fn set_test_clock(&self, micros: u64) {
        self.clock.store(micros, Ordering::SeqCst);
    }

    /// Acts as a program that began at this time, in microseconds since 1970; 0 replaces the plan of
    /// no other.
    #[doc(hidden)]
    pub fn begun_at(self, began: u64) -> Self {
        Self { began, ..self }
    }

    /// Sets, for tests, whether tasks of the policy are kept instead of run at once.
    #[doc(hidden)]
    pub fn keep_tasks(&self, keep: bool) {
        self.tasks.set_keep(keep);
    }

    /// Runs the kept tasks, or drops them if `forget`. Returns whether each plan was written.
    ///
    /// # Errors
    /// Errors of Redis.
    #[doc(hidden)]
    pub async fn end_tasks(&self, model: &ModelQuota, forget: bool) -> Result<Vec<bool>, Error> {
        let mut written = Vec::new();
        for task in self.tasks.take_kept().iter().filter(|_| !forget) {
            written.push(self.run_policy(model, task).await?.is_some());
        }
        Ok(written)
    }

    pub(crate) fn clock(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
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

    /// Removes a tenant's callers from a lane's queue, or one of them.
    async fn leave_queue(
        &self,
        model: &ModelQuota,
        lane: usize,
        tenant: &Tenant,
        one: Option<(Ticket, &Amounts)>,
    ) -> Result<(), Error> {
        let (keys, (lane, numbers)) = (self.keys(model), self.lane_number(model, lane).await?);
        let mut six = keys.common().to_vec();
        six.push(keys.tenants(lane));
        let call = wire::pack_leave(lane, self.clock(), one);
        let arguments =
            [tenant.as_str().as_bytes().to_vec(), call, self.quota_block(model, &numbers)];
        self.run(&self.scripts.leave, &six, &arguments).await.map(drop)
    }

    /// Names the lanes again: if Redis has lost their numbers, it gets those of this process.
    ///
    /// # Errors
    /// [`Error::Away`].
    #[doc(hidden)]
    pub async fn name_lanes(&self, lanes: &Lanes) -> Result<(), Error> {
        self.number_lanes(lanes).await.map(drop)
    }

    async fn number_lanes(&self, lanes: &Lanes) -> Result<Arc<LaneNumbers>, Error> {
        let words = Arc::clone(&self.numbers.lock()).arguments(lanes);
        let reply = self.run(&self.scripts.lanes, &[key::lanes(&self.prefix)], &words).await?;
        let numbered = Arc::new(LaneNumbers::from_pairs(wire::read_pairs(&reply)?)?);
        *self.numbers.lock() = Arc::clone(&numbered);
        Ok(numbered)
    }

    /// The numbers of a model's lanes. Asks Redis if one of them has none here yet.
    async fn lane_numbers(&self, model: &ModelQuota) -> Result<Arc<LaneNumbers>, Error> {
        let known = Arc::clone(&self.numbers.lock());
        if known.has_all(&model.lanes) { Ok(known) } else { self.number_lanes(&model.lanes).await }
    }

    /// The number of the lane with this index, and all numbers.
    async fn lane_number(
        &self,
        model: &ModelQuota,
        index: usize,
    ) -> Result<(u64, Arc<LaneNumbers>), Error> {
        let numbers = self.lane_numbers(model).await?;
        let lane = model.lanes.iter().nth(index).and_then(|(lane, _)| numbers.number(lane));
        let lane = lane.ok_or_else(|| Error::Protocol(format!("lane {index} has no number")))?;
        Ok((lane, numbers))
    }

    fn quota_block(&self, model: &ModelQuota, lanes: &LaneNumbers) -> Vec<u8> {
        wire::pack_quota(model, lanes, self.began)
    }

    async fn run_settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
        outcome: Vec<u8>,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        let keys = self.keys(model);
        let mut nine = keys.common().to_vec();
        let learned = keys.learned(model.learns_as(settlement.template));
        nine.extend([learned, keys.gate(), keys.log(), keys.known()]);
        let reason = settlement.pause.as_ref().map_or("", |pause| &pause.reason);
        let arguments = [
            settlement.reservation.clone().into_bytes(),
            outcome,
            self.quota_block(model, &*self.lane_numbers(model).await?),
            reason.as_bytes().to_vec(),
        ];
        let reply = self.run(&self.scripts.settle, &nine, &arguments).await?;
        let (settled, expectation, room, task) = wire::read_settled(&reply)?;
        // If this fails, another caller is handed the task later.
        let planned = match task.and_then(|task| self.tasks.take_unless_kept(task)) {
            Some(task) => Box::pin(self.run_policy(model, &task)).await.unwrap_or_default(),
            None => None,
        };
        Ok((settled, expectation, planned.unwrap_or(room)))
    }

    /// Runs the policy and writes its plan. Returns the room that is left now; `None` if another
    /// plan was written since.
    async fn run_policy(
        &self,
        model: &ModelQuota,
        task: &PolicyTask,
    ) -> Result<Option<Duration>, Error> {
        let configured = Configured::from_model(model);
        let Outcome { known, plan, change } =
            policy::run(task.known, &task.reading, &configured, &Numbers::DEFAULT);
        let room = self.write_plan(model, &task.reading, &known, &plan, &change).await?;
        if room.is_some() {
            let total = self.remembered(model).map_or_else(Units::default, |seen| seen.total);
            let drawn = task.reading.drawn;
            self.remember(model, Remembered { known, plan, drawn, total });
        }
        Ok(room)
    }

    async fn write_plan(
        &self,
        model: &ModelQuota,
        reading: &Reading,
        known: &Known,
        plan: &Plan,
        change: &Units,
    ) -> Result<Option<Duration>, Error> {
        let keys = self.keys(model);
        let mut seven = keys.common().to_vec();
        seven.extend([keys.log(), keys.known()]);
        let arguments = [
            wire::pack_plan(reading, plan, change, self.clock()),
            self.quota_block(model, &*self.lane_numbers(model).await?),
            known.encode_json(),
        ];
        let reply = self.run(&self.scripts.plan, &seven, &arguments).await?;
        let [written, room] = wire::read_integers(&reply)?;
        Ok((written > 0).then_some(Duration::from_micros(wire::unsigned(room))))
    }

    /// Writes the first plan. If Redis has lost the plan, it starts from the state that this
    /// process remembers.
    async fn write_first_plan(&self, model: &ModelQuota) -> Result<(), Error> {
        let mut task = self.run_inspect(model).await?.task;
        if task.reading.version == 0
            && let Some(remembered) = self.remembered(model)
        {
            let (known, drawn) = (remembered.known, remembered.levels());
            task.reading.drawn = drawn;
            let configured = Configured::from_model(model);
            let Outcome { known, plan, change } =
                policy::run(known, &task.reading, &configured, &Numbers::DEFAULT);
            let change = Units::from_fn(|it| drawn[it] + change[it]);
            return self.write_plan(model, &task.reading, &known, &plan, &change).await.map(drop);
        }
        self.run_policy(model, &task).await.map(drop)
    }

    fn remember(&self, model: &ModelQuota, seen: Remembered) {
        self.remembered.lock().insert(model.quota_name().into_owned(), seen);
    }

    /// The last known state of a quota.
    #[doc(hidden)]
    pub fn remembered(&self, model: &ModelQuota) -> Option<Remembered> {
        self.remembered.lock().get(&*model.quota_name()).copied()
    }

    async fn run_inspect(&self, model: &ModelQuota) -> Result<Inspected, Error> {
        let keys = self.keys(model);
        let mut eight = keys.common().to_vec();
        eight.extend([keys.gate(), keys.log(), keys.known()]);
        let numbers = self.lane_numbers(model).await?;
        let arguments = [
            wire::Packed::default().number(self.clock()).into_bytes(),
            self.quota_block(model, &numbers),
        ];
        let reply = self.run(&self.scripts.inspect, &eight, &arguments).await?;
        let seen = read_inspected(model, &numbers, &reply)?;
        if let Some(remembered) = seen.remembered {
            self.remember(model, remembered);
        }
        // Another program has added a lane.
        if seen.lanes > numbers.iter().count() as u64 {
            let numbers = self.number_lanes(&model.lanes).await?;
            return read_inspected(model, &numbers, &reply);
        }
        Ok(seen)
    }
}

impl crate::store::Store for Store {
    async fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> Result<Vec<(Decision, Option<Expectation>)>, Error> {
        let Some((first, others)) = asks.split_first() else { return Ok(Vec::new()) };
        let (keys, (lane, numbers)) =
            (self.keys(model), self.lane_number(model, first.lane).await?);
        let mut seven = keys.common().to_vec();
        seven.extend([keys.learned(model.learns_as(first.template)), keys.tenants(lane)]);
        let mut arguments = vec![
            first.reservation.clone().into_bytes(),
            wire::pack_asks(asks, lane, self.clock()),
            self.quota_block(model, &numbers),
            first.tenant.as_str().as_bytes().to_vec(),
        ];
        arguments.extend(others.iter().map(|ask| ask.reservation.clone().into_bytes()));
        for _ in 0..PLANS {
            let reply = self.run(&self.scripts.reserve, &seven, &arguments).await?;
            if let Some(decisions) = wire::read_decisions(&reply, asks.len())? {
                return Ok(decisions);
            }
            Box::pin(self.write_first_plan(model)).await?;
        }
        Err(Error::Protocol("Redis keeps no plan".to_owned()))
    }

    async fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        let mode =
            if settlement.used.is_some() { wire::Mode::Settled } else { wire::Mode::Released };
        let outcome = wire::pack_settlement(model, settlement, mode, self.pause_ttl, self.clock());
        self.run_settle(model, settlement, outcome).await
    }

    async fn charge(
        &self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
        drawn: Amounts,
    ) -> Result<(), Error> {
        let settlement = Settlement::used(name, used);
        let (lane, _) = self.lane_number(model, lane).await?;
        let mode = wire::Mode::Charged(lane, drawn);
        let outcome = wire::pack_settlement(model, &settlement, mode, self.pause_ttl, self.clock());
        self.run_settle(model, &settlement, outcome).await.map(drop)
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        let keys = self.keys(model);
        let mut six = keys.common().to_vec();
        six.push(keys.gate());
        let call = wire::Packed::default()
            .micros(pause.length)
            .micros(self.pause_ttl)
            .number(self.clock())
            .into_bytes();
        let numbers = self.lane_numbers(model).await?;
        let arguments =
            [pause.reason.clone().into_bytes(), call, self.quota_block(model, &numbers)];
        let [left] = wire::read_integers(&self.run(&self.scripts.pause, &six, &arguments).await?)?;
        Ok(Duration::from_micros(wire::unsigned(left)))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        let pause = Pause { length: Duration::ZERO, reason: String::new() };
        self.pause(model, &pause).await.map(drop)
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        // Also a program that serves an operator sets limits: the plan stays that of the workers.
        let operator = self.clone().begun_at(0);
        for _ in 0..PLANS {
            let mut task = self.run_inspect(model).await?.task;
            task.known.set_limits(changes);
            if operator.run_policy(model, &task).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Protocol(format!("{PLANS} other plans were written meanwhile")))
    }

    async fn renew(&self, model: &ModelQuota, reservation: &str) -> Result<(), Error> {
        let [_, _, _, leases, _] = self.keys(model).common();
        let lease =
            wire::Packed::default().micros(model.limits.lease()).number(self.clock()).into_bytes();
        let arguments = [reservation.as_bytes().to_vec(), lease];
        self.run(&self.scripts.renew, &[leases], &arguments).await.map(drop)
    }

    async fn leave(&self, model: &ModelQuota, lane: usize, tenant: &Tenant) -> Result<(), Error> {
        self.leave_queue(model, lane, tenant, None).await
    }

    async fn give_up(&self, model: &ModelQuota, ask: &Ask) -> Result<(), Error> {
        match ask.ticket.filter(|ticket| ticket.position > 0) {
            Some(ticket) => {
                self.leave_queue(model, ask.lane, &ask.tenant, Some((ticket, &ask.amounts))).await
            }
            None => Ok(()),
        }
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        Ok(self.run_inspect(model).await?.snapshot)
    }
}

fn micros_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}
