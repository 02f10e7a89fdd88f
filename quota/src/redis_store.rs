//! The store that a fleet shares: one script call an operation, on the server's clock.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::Value;

use crate::{
    amounts::{Amounts, Dimension},
    connection::Connection,
    error::Error,
    key::ModelKeys,
    limits::ModelQuota,
    script::Scripts,
    store::{Ask, Binding, Decision, Expectation, LaneSnapshot, Pause, Settled, Settlement, Snapshot},
    ticket::Ticket,
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
        f.debug_struct("Store").field("connection", &self.connection).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Store {
    /// Prepares a connection; it is made at the first use.
    ///
    /// # Errors
    /// [`Error::Address`] when the URL or the prefix cannot be used.
    pub fn open(url: &str, prefix: &str, pause_ttl: Duration) -> Result<Self, Error> {
        crate::key::check_prefix(prefix).map_err(Error::Address)?;
        Ok(Self {
            connection: Arc::new(Connection::open(url)?),
            scripts: Arc::new(Scripts::new()),
            prefix: prefix.to_owned(),
            pause_ttl,
            clock: Arc::default(),
        })
    }

    /// For tests and simulations: the scripts take this time, in microseconds, instead of the server's; 0 ends it.
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

    fn clock(&self) -> String {
        self.clock.load(Ordering::SeqCst).to_string()
    }

    fn four_keys(&self, model: &ModelQuota) -> Vec<String> {
        ModelKeys::new(&self.prefix, &model.id).four().to_vec()
    }

    fn five_keys(&self, model: &ModelQuota, template: u64) -> Vec<String> {
        let keys = ModelKeys::new(&self.prefix, &model.id);
        let mut five = keys.four().to_vec();
        five.push(keys.learned(template));
        five
    }
}

impl crate::store::Store for Store {
    async fn reserve(&self, model: &ModelQuota, ask: &Ask) -> Result<(Decision, Option<Expectation>), Error> {
        let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
        let mut arguments = vec![
            ask.reservation.clone(),
            (ask.lane + 1).to_string(),
            ticket.epoch.to_string(),
            ticket.position.to_string(),
            micros(model.limits.window),
            micros(model.limits.burst),
        ];
        arguments.extend(texts(ask.amounts));
        arguments.extend(texts(model.limits.effective()));
        arguments.push(self.clock());
        for (_, share) in model.lanes.iter() {
            arguments.push(share.guaranteed.to_string());
            arguments.push(share.ceiling.to_string());
        }
        let reply = self.connection.run(&self.scripts.reserve, &self.five_keys(model, ask.template), &arguments).await?;
        let [outcome, wait, dimension, deficit, epoch, position, ratio, output] = integers(&reply)?;
        let ticket = (epoch > 0).then(|| Ticket { epoch: unsigned(epoch), position: unsigned(position) });
        let wait = Duration::from_micros(unsigned(wait));
        let decision = match (outcome, ticket) {
            (1, _) => Decision::Granted,
            (2, Some(ticket)) => {
                let binding = Dimension::from_code(dimension).map_or(Binding::Turn, Binding::Limit);
                Decision::Wait { wait, binding, deficit: unsigned(deficit), ticket }
            }
            (3, ticket) => Decision::Paused { wait, ticket },
            (4, _) => Decision::Never {
                dimension: Dimension::from_code(dimension).ok_or_else(|| unknown(&reply))?,
                capacity: unsigned(deficit),
            },
            _ => return Err(unknown(&reply)),
        };
        Ok((decision, expectation(ratio, output)))
    }

    async fn settle(&self, model: &ModelQuota, settlement: &Settlement) -> Result<(Settled, Option<Expectation>), Error> {
        let lesson = settlement.lesson;
        let pause = settlement.pause.as_ref();
        let mut arguments = vec![settlement.reservation.clone(), u8::from(settlement.used.is_some()).to_string()];
        arguments.extend(texts(settlement.used.unwrap_or_default()));
        arguments.extend(texts(model.limits.effective()));
        arguments.push(micros(model.limits.window));
        arguments.push(lesson.map_or(0, |lesson| lesson.estimated_input).to_string());
        arguments.push(lesson.map_or(0, |lesson| lesson.input).to_string());
        arguments.push(lesson.map_or(0, |lesson| lesson.output).to_string());
        arguments.push(pause.map_or_else(|| "0".to_owned(), |pause| micros(pause.length)));
        arguments.push(micros(self.pause_ttl));
        arguments.push(pause.map_or_else(String::new, |pause| pause.reason.clone()));
        arguments.push(self.clock());
        let reply = self.connection.run(&self.scripts.settle, &self.five_keys(model, settlement.template), &arguments).await?;
        let [outcome, _, ratio, output] = integers(&reply)?;
        let settled = match outcome {
            1 => Settled::Done,
            2 => Settled::Before,
            0 => Settled::Unknown,
            _ => return Err(unknown(&reply)),
        };
        Ok((settled, expectation(ratio, output)))
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        let arguments =
            [micros(pause.length), micros(self.pause_ttl), micros(model.limits.window), pause.reason.clone(), self.clock()];
        let reply = self.connection.run(&self.scripts.pause, &self.four_keys(model), &arguments).await?;
        let [left] = integers(&reply)?;
        Ok(Duration::from_micros(unsigned(left)))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        let pause = Pause { length: Duration::ZERO, reason: String::new() };
        self.pause(model, &pause).await.map(drop)
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        let arguments = [micros(model.limits.window), model.lanes.iter().len().to_string(), self.clock()];
        let reply = self.connection.run(&self.scripts.inspect, &self.four_keys(model), &arguments).await?;
        snapshot(model, &reply).ok_or_else(|| unknown(&reply))
    }
}

fn snapshot(model: &ModelQuota, reply: &[Value]) -> Option<Snapshot> {
    let (reason, numbers) = reply.split_last()?;
    let numbers: Vec<u64> = numbers.iter().map(|value| integer(value).map(unsigned)).collect::<Option<_>>()?;
    let mut numbers = numbers.into_iter();
    let (_now, pause, reservations, lanes) = (numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?);
    let mut used = Amounts::default();
    let mut ahead = [Duration::ZERO; 4];
    for (used, ahead) in used.0.iter_mut().zip(&mut ahead) {
        *used = numbers.next()?;
        *ahead = Duration::from_micros(numbers.next()?);
    }
    let mut all = Vec::new();
    for _ in 0..lanes {
        let (in_flight, queue) = (numbers.next()?, Duration::from_micros(numbers.next()?));
        let mut used = Amounts::default();
        for amount in &mut used.0 {
            *amount = numbers.next()?;
        }
        all.push((in_flight, queue, used));
    }
    let lanes = model.lanes.iter().zip(all);
    Some(Snapshot {
        pause: Duration::from_micros(pause),
        reason: redis::from_redis_value_ref(reason).ok()?,
        reservations,
        used,
        ahead,
        lanes: lanes
            .map(|((lane, _), (in_flight, queue, used))| LaneSnapshot { lane: lane.clone(), in_flight, queue, used })
            .collect(),
    })
}

fn micros(duration: Duration) -> String {
    duration.as_micros().to_string()
}

fn texts(amounts: Amounts) -> [String; 4] {
    amounts.0.map(|amount| amount.to_string())
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn integers<const N: usize>(reply: &[Value]) -> Result<[i64; N], Error> {
    let numbers: Option<Vec<i64>> = reply.iter().map(integer).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| unknown(reply))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn expectation(ratio: i64, output: i64) -> Option<Expectation> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio in millionths lies far below 2^53")]
    (ratio > 0).then(|| Expectation { input_ratio: ratio as f64 / 1e6, output: unsigned(output) })
}

fn unknown(reply: &[Value]) -> Error {
    Error::Protocol(format!("{reply:?}").chars().take(200).collect())
}
