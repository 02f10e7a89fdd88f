//! What the scripts are asked and what they answer, as `lua/README.md` describes it.

use std::time::Duration;

use redis::Value;

use crate::{
    counted::Counted,
    dimension::{Amounts, Change, DayLimit, Dimension, Limited, PerDimension},
    error::Error,
    lane_numbers::Numbered,
    limits::Limits,
    model::ModelQuota,
    number::float,
    request::Ticket,
    snapshot::{DimensionSnapshot, LaneSnapshot, Snapshot},
    store::{
        Ask, Binding, Decision, Expectation, LimitChanges, ProviderSignal, Refill, Settled,
        Settlement,
    },
};

/// The scripts take no larger number: up to here whole ones are exact.
const MAX: u64 = 1 << 53;

const NUMBERS_OF_AN_ANSWER: usize = 9;

/// Numbers as packed little-endian doubles.
#[derive(Default)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn number(self, number: u64) -> Self {
        self.float(float(number.min(MAX)))
    }

    fn float(mut self, number: f64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A number of each dimension.
    fn each(self, numbers: &PerDimension<u64>) -> Self {
        numbers.iter().fold(self, |packed, (_, number)| packed.number(*number))
    }

    pub(crate) fn micros(self, duration: Duration) -> Self {
        self.number(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

pub(crate) fn model(model: &ModelQuota, lanes: &Numbered) -> Vec<u8> {
    let limits = &model.limits;
    let packed = Packed::default()
        .micros(limits.window)
        .micros(limits.burst)
        .micros(limits.lease())
        .each(&limits.effective())
        .number(limits.concurrent.unwrap_or(0))
        .number(limits.requests_per_day.unwrap_or(0))
        .number(limits.tokens_per_day.unwrap_or(0))
        .micros(limits.day_offset)
        .micros(limits.burst_max.unwrap_or_default())
        .number(u64::from(limits.token_bucket));
    lanes
        .shares(&model.lanes)
        .fold(packed, |packed, share| packed.float(share.guaranteed).float(share.ceiling))
        .done()
}

pub(crate) fn asks(model: &ModelQuota, asks: &[Ask], lane: u64, clock: u64) -> Vec<u8> {
    let pack = |packed, ask| pack_ask(packed, model, ask, lane, clock);
    asks.iter().fold(Packed::default(), pack).done()
}

fn pack_ask(packed: Packed, model: &ModelQuota, ask: &Ask, lane: u64, clock: u64) -> Packed {
    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
    packed
        .number(lane)
        .number(ticket.epoch)
        .number(ticket.position)
        .each(&ask.amounts)
        .number(match (ask.curious, model.charge.cached_input, model.learns_counting()) {
            (false, _, _) => 0,
            (true, true, false) => 1,
            (true, false, _) => 2,
            (true, true, true) => 3,
        })
        .number(clock)
}

/// How a settlement is to be taken.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Released,
    Settled,
    /// Nothing was reserved; in the lane of this number.
    Charged(u64),
}

pub(crate) fn outcome(
    model: &ModelQuota,
    settlement: &Settlement,
    mode: Mode,
    pause_ttl: Duration,
    clock: u64,
) -> Vec<u8> {
    let (mode, lane) = match mode {
        Mode::Released => (0, 0),
        Mode::Settled => (1, 0),
        Mode::Charged(lane) => (2, lane),
    };
    let sample = settlement.sample;
    let signal = match settlement.signal {
        ProviderSignal::None => 0,
        ProviderSignal::Refused => 1,
        ProviderSignal::Overloaded => 2,
        ProviderSignal::Exhausted => 3,
        ProviderSignal::Lost => 4,
    };
    Packed::default()
        .number(mode)
        .each(&settlement.used.unwrap_or_default())
        .number(lane)
        .number(u64::from(model.charge.unused_returns))
        .number(sample.map_or(0, |sample| sample.estimated_input))
        .number(sample.map_or(0, |sample| sample.input))
        .number(sample.map_or(0, |sample| sample.output))
        .number(signal)
        .micros(settlement.pause.as_ref().map_or(Duration::ZERO, |pause| pause.length))
        .micros(settlement.longest_pause(pause_ttl))
        .number(clock)
        .each(&settlement.meter.used.map(|used| used.map_or(0, |used| used.saturating_add(1))))
        .each(
            &settlement
                .meter
                .limits
                .map(|limit| limit.map_or(0, |limit| model.limits.with_margin(limit))),
        )
        .float(match settlement.meter.refill() {
            Refill::Unknown => 0.0,
            Refill::Otherwise => 1.0,
            Refill::Evenly(level) => 2.0 + level.min(1.0),
            Refill::Exactly(level) => 4.0 + level.min(1.0),
        })
        .number(settlement.cached.map_or(0, |cached| cached.saturating_add(1)))
        .number(u64::from(model.learns_counting()))
        .done()
}

pub(crate) fn limits(limits: &Limits, changes: &LimitChanges, clock: u64) -> Vec<u8> {
    let code = |(limited, change): (Limited, &Change)| match (*change, limited) {
        (Change::Keep, _) => 0,
        (Change::Clear, _) => 1,
        (Change::Set(limit), Limited::Window(_)) => limits.with_margin(limit).saturating_add(1),
        (Change::Set(limit), Limited::InFlight) => limit.saturating_add(1),
    };
    changes.iter().map(code).fold(Packed::default(), Packed::number).number(clock).done()
}

/// What is answered to so many asks.
pub(crate) fn decisions(
    reply: &[Value],
    count: usize,
) -> Result<Vec<(Decision, Option<Expectation>)>, Error> {
    let each = reply.chunks(NUMBERS_OF_AN_ANSWER);
    if each.len() != count {
        return Err(unknown(reply));
    }
    each.map(decision).collect()
}

fn decision(reply: &[Value]) -> Result<(Decision, Option<Expectation>), Error> {
    let [outcome, wait, dimension, deficit, epoch, position, ratio, output, cached] =
        integers(reply)?;
    let ticket =
        (epoch > 0).then(|| Ticket { epoch: unsigned(epoch), position: unsigned(position) });
    let wait = Duration::from_micros(unsigned(wait));
    let decision = match (outcome, ticket) {
        (1, _) => Decision::Granted,
        (2, Some(ticket)) => {
            let binding = match dimension {
                5 => Binding::InFlight,
                7 => Binding::Canary,
                code => Dimension::from_code(code).map_or(Binding::Turn, Binding::Limit),
            };
            Decision::Wait { wait, binding, deficit: unsigned(deficit), ticket }
        }
        (3, ticket) => Decision::Paused { wait, ticket },
        (4, _) => Decision::Never {
            dimension: Dimension::from_code(dimension).ok_or_else(|| unknown(reply))?,
            capacity: unsigned(deficit),
        },
        (5, _) => {
            let day = match dimension {
                8 => Some(DayLimit::Requests),
                9 => Some(DayLimit::Tokens),
                _ => None,
            };
            Decision::Exhausted { wait, day }
        }
        _ => return Err(unknown(reply)),
    };
    Ok((decision, expectation(ratio, output, cached)))
}

pub(crate) fn settled(reply: &[Value]) -> Result<(Settled, Option<Expectation>, Duration), Error> {
    let [outcome, _, ratio, output, cached, room] = integers(reply)?;
    let settled = match outcome {
        1 => Settled::Done,
        2 => Settled::Before,
        0 => Settled::Unknown,
        _ => return Err(unknown(reply)),
    };
    Ok((settled, expectation(ratio, output, cached), Duration::from_micros(unsigned(room))))
}

/// How many lanes a snapshot tells of.
pub(crate) fn lanes(snapshot: &[Value]) -> u64 {
    snapshot.get(10).and_then(integer).map_or(0, unsigned)
}

pub(crate) fn snapshot(
    model: &ModelQuota,
    lanes: &Numbered,
    reply: &[Value],
) -> Result<Snapshot, Error> {
    read_snapshot(model, lanes, reply).ok_or_else(|| unknown(reply))
}

fn read_snapshot(model: &ModelQuota, numbered: &Numbered, reply: &[Value]) -> Option<Snapshot> {
    let (reason, numbers) = reply.split_last()?;
    let numbers: Vec<u64> =
        numbers.iter().map(|value| integer(value).map(unsigned)).collect::<Option<_>>()?;
    let mut numbers = numbers.into_iter();
    let mut next = || numbers.next();
    let _now = next()?;
    let mut snapshot = Snapshot {
        pause: Duration::from_micros(next()?),
        exhausted: next()? == 2,
        reservations: next()?,
        latency: Duration::from_micros(next()?),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a factor in millionths lies far below 2^53"
        )]
        factor: next()? as f64 / 1e6,
        cap: some(next()?),
        day_requests: next()?,
        day_tokens: next()?,
        day_left: Duration::from_micros(next()?),
        ..Snapshot::default()
    };
    let lanes = next()?;
    let said = |limited, number| some(number).map(|it| model.limits.stated(limited, it));
    let mut dimension = |limited| {
        Some(DimensionSnapshot {
            limit: next()?,
            used: next()?,
            held: next()?,
            others: next()?,
            set: said(limited, next()?),
            stated: said(limited, next()?),
            ahead: Duration::from_micros(next()?),
        })
    };
    for slot in Dimension::ALL {
        snapshot.dimensions[slot] = dimension(Limited::Window(slot))?;
    }
    snapshot.in_flight = dimension(Limited::InFlight)?;
    let mut seen = Vec::new();
    let mut names = numbered.iter();
    for _ in 0..lanes {
        let (waiting, queue, head) =
            (next()?, Duration::from_micros(next()?), Duration::from_micros(next()?));
        let mut used = Amounts::default();
        for dimension in Dimension::ALL {
            used[dimension] = next()?;
        }
        let in_flight = next()?;
        let Some((lane, said)) = names.next().flatten() else { continue };
        let own = model.lanes.share(lane);
        seen.push(LaneSnapshot {
            lane: lane.clone(),
            share: own.unwrap_or(*said),
            elsewhere: own.is_none(),
            waiting,
            queue,
            next: head,
            in_flight,
            used,
        });
    }
    // Its own in their order, and of the others those that are in use.
    let is_used = |lane: &LaneSnapshot| {
        lane.waiting > 0 || lane.in_flight > 0 || lane.used != Amounts::default()
    };
    seen.retain(|lane| !lane.elsewhere || is_used(lane));
    seen.sort_by_key(|lane| model.lanes.index(&lane.lane).unwrap_or(usize::MAX));
    snapshot.lanes = seen;
    snapshot.counted = Counted::from_code(next()?);
    let reason: String = redis::from_redis_value_ref(reason).ok()?;
    snapshot.reason = reason.split_once('|').map_or(String::new(), |(_, reason)| reason.to_owned());
    Some(snapshot)
}

pub(crate) fn integers<const N: usize>(reply: &[Value]) -> Result<[i64; N], Error> {
    let numbers: Option<Vec<i64>> = reply.iter().map(integer).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| unknown(reply))
}

/// Texts in pairs.
pub(crate) fn pairs(reply: &[Value]) -> Result<Vec<(String, String)>, Error> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    };
    let texts: Option<Vec<String>> = reply.iter().map(text).collect();
    let texts = texts.filter(|texts| texts.len() % 2 == 0).ok_or_else(|| unknown(reply))?;
    let mut texts = texts.into_iter();
    Ok(std::iter::from_fn(|| Some((texts.next()?, texts.next()?))).collect())
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn some(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn expectation(ratio: i64, output: i64, cached: i64) -> Option<Expectation> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio in millionths lies far below 2^53")]
    (ratio > 0).then(|| Expectation {
        input_ratio: ratio as f64 / 1e6,
        output: unsigned(output),
        cached: unsigned(cached),
    })
}

fn unknown(reply: &[Value]) -> Error {
    Error::Protocol(format!("{reply:?}").chars().take(200).collect())
}
