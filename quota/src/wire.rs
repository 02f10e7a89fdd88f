//! What the scripts are asked and what they answer, as `lua/README.md` describes it.

use std::time::Duration;

use redis::Value;

use crate::{
    dimension::{Amounts, DayLimit, Dimension, PerDimension},
    error::Error,
    lane_numbers::Numbered,
    mechanism::log::Reading,
    model::ModelQuota,
    number::float,
    plan::{Plan, Units},
    policy::Configured,
    request::Ticket,
    store::{Ask, Decision, Expectation, Hold, ProviderSignal, Settled, Settlement},
    wire_read::{Read, read, unknown},
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

    pub(crate) fn float(mut self, number: f64) -> Self {
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

/// What every caller brings of a quota.
pub(crate) fn quota(model: &ModelQuota, lanes: &Numbered, began: u64) -> Vec<u8> {
    let limits = &model.limits;
    let packed = Packed::default()
        .micros(limits.window)
        .micros(limits.lease())
        .number(limits.requests_per_day.unwrap_or(0))
        .number(limits.tokens_per_day.unwrap_or(0))
        .micros(limits.day_offset)
        .number(Configured::of(model).fingerprint())
        .number(began);
    lanes
        .shares(&model.lanes)
        .fold(packed, |packed, share| packed.float(share.guaranteed).float(share.ceiling))
        .done()
}

pub(crate) fn asks(asks: &[Ask], lane: u64, clock: u64) -> Vec<u8> {
    let pack = |packed, ask| pack_ask(packed, ask, lane, clock);
    asks.iter().fold(Packed::default(), pack).done()
}

fn pack_ask(packed: Packed, ask: &Ask, lane: u64, clock: u64) -> Packed {
    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
    packed
        .number(lane)
        .number(ticket.epoch)
        .number(ticket.position)
        .each(&ask.amounts)
        .number(u64::from(ask.curious))
        .number(clock)
}

/// Callers of a lane that come no more: the one with this ticket, or all of a tenant's.
pub(crate) fn leaves(lane: u64, clock: u64, one: Option<(Ticket, &Amounts)>) -> Vec<u8> {
    let none = (Ticket { epoch: 0, position: 0 }, &Amounts::default());
    let (ticket, amounts) = one.unwrap_or(none);
    let packed = Packed::default().number(lane).number(clock);
    packed.number(ticket.epoch).number(ticket.position).each(amounts).done()
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
        .each(&settlement.meter.used.map(told))
        .each(&settlement.meter.limits.map(told))
        .each(
            &settlement.meter.resets.map(|reset| {
                told(reset.map(|reset| u64::try_from(reset.as_micros()).unwrap_or(MAX)))
            }),
        )
        .number(told(settlement.cached))
        .done()
}

/// 0 for what was not told.
fn told(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

/// A plan, made from a reading.
pub(crate) fn plan(reading: &Reading, plan: &Plan, change: &Units, clock: u64) -> Vec<u8> {
    let head = Packed::default()
        .number(reading.version)
        .number(reading.end)
        .number(clock)
        .float(plan.horizon)
        .float(plan.concurrent);
    plan.limits
        .iter()
        .fold(head, |packed, (it, limit)| {
            let packed = match limit {
                Some(limit) => packed
                    .float(limit.rate.value)
                    .float(limit.capacity.value)
                    .float(limit.window.value)
                    .float(limit.most),
                None => packed.float(0.0).float(0.0).float(0.0).float(0.0),
            };
            packed.float(change[it])
        })
        .done()
}

/// What a call is told, and what is known of such calls.
type Answer = (Decision, Option<Expectation>);

/// What is answered to so many asks; `None` where a plan is to be made first.
pub(crate) fn decisions(reply: &[Value], count: usize) -> Result<Option<Vec<Answer>>, Error> {
    const NO_PLAN: i64 = 6;
    let each = reply.chunks(NUMBERS_OF_AN_ANSWER);
    if each.len() != count {
        return Err(unknown(reply));
    }
    if reply.first().and_then(integer) == Some(NO_PLAN) {
        return Ok(None);
    }
    each.map(decision).collect::<Result<_, _>>().map(Some)
}

fn decision(reply: &[Value]) -> Result<(Decision, Option<Expectation>), Error> {
    let [outcome, wait, hold, deficit, epoch, position, ratio, output, cached] = integers(reply)?;
    let ticket =
        (epoch > 0).then(|| Ticket { epoch: unsigned(epoch), position: unsigned(position) });
    let wait = Duration::from_micros(unsigned(wait));
    let decision = match (outcome, ticket) {
        (1, _) => Decision::Granted,
        (2, Some(ticket)) => Decision::Wait {
            wait,
            hold: Hold::from_code(hold).ok_or_else(|| unknown(reply))?,
            deficit: unsigned(deficit),
            ticket,
        },
        (3, ticket) => Decision::Paused { wait, ticket },
        (4, _) => Decision::Never {
            dimension: Dimension::from_code(hold).ok_or_else(|| unknown(reply))?,
            capacity: unsigned(deficit),
        },
        (5, _) => {
            let day = match hold {
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

/// What became of a settlement, what is known of such calls, how much may go now, and the policy's
/// task, if it is handed to the caller.
pub(crate) fn settled(
    reply: &[Value],
) -> Result<(Settled, Option<Expectation>, Duration, Option<Read>), Error> {
    const NUMBERS: usize = 6;
    let (numbers, task) = reply.split_at(reply.len().min(NUMBERS));
    let [outcome, _, ratio, output, cached, room] = integers(numbers)?;
    let settled = match outcome {
        1 => Settled::Done,
        2 => Settled::Before,
        0 => Settled::Unknown,
        _ => return Err(unknown(reply)),
    };
    let read = if task.is_empty() { None } else { Some(read(task)?) };
    let room = Duration::from_micros(unsigned(room));
    Ok((settled, expectation(ratio, output, cached), room, read))
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

pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn expectation(ratio: i64, output: i64, cached: i64) -> Option<Expectation> {
    (ratio > 0).then(|| Expectation {
        input_ratio: ratio as f64 / 1e6,
        output: unsigned(output),
        cached: unsigned(cached),
    })
}
