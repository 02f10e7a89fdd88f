//! The scripts' arguments and replies, as in `lua/README.md`.

use std::time::Duration;

use redis::Value;

use crate::{
    conversions::{EXACT, float},
    dimension::{Amounts, DayLimit, Dimension, PerDimension},
    error::Error,
    lane_numbers::LaneNumbers,
    mechanism::log::Reading,
    model::ModelQuota,
    plan::{Plan, Units},
    policy::Configured,
    request::Ticket,
    store::{Ask, Decision, Expectation, Hold, ProviderSignal, Settled, Settlement},
    wire_read::{PolicyTask, read_task, unknown_reply},
};

const NUMBERS_OF_AN_ANSWER: usize = 10;

/// Numbers as packed little-endian doubles.
#[derive(Default)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn number(self, number: u64) -> Self {
        self.float(float(number.min(EXACT)))
    }

    pub(crate) fn float(mut self, number: f64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds a number of each dimension.
    fn dimensions(self, numbers: &PerDimension<u64>) -> Self {
        numbers.iter().fold(self, |packed, (_, number)| packed.number(*number))
    }

    pub(crate) fn micros(self, duration: Duration) -> Self {
        self.number(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The quota block of a script's arguments.
pub(crate) fn pack_quota(model: &ModelQuota, lanes: &LaneNumbers, began: u64) -> Vec<u8> {
    let limits = &model.limits;
    let packed = Packed::default()
        .micros(limits.window)
        .micros(limits.lease())
        .number(limits.requests_per_day.unwrap_or(0))
        .number(limits.tokens_per_day.unwrap_or(0))
        .micros(limits.day_offset)
        .number(Configured::from_model(model).fingerprint())
        .number(began);
    lanes
        .shares(&model.lanes)
        .fold(packed, |packed, share| packed.float(share.guaranteed).float(share.ceiling))
        .into_bytes()
}

pub(crate) fn pack_asks(asks: &[Ask], lane: u64, clock: u64) -> Vec<u8> {
    let pack = |packed, ask| pack_ask(packed, ask, lane, clock);
    asks.iter().fold(Packed::default(), pack).into_bytes()
}

fn pack_ask(packed: Packed, ask: &Ask, lane: u64, clock: u64) -> Packed {
    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
    packed
        .number(lane)
        .number(ticket.epoch)
        .number(ticket.position)
        .dimensions(&ask.amounts)
        .number(u64::from(ask.curious))
        .number(clock)
}

/// Arguments of `leave`: one caller by its ticket, or all of a tenant's.
pub(crate) fn pack_leave(lane: u64, clock: u64, one: Option<(Ticket, &Amounts)>) -> Vec<u8> {
    let none = (Ticket { epoch: 0, position: 0 }, &Amounts::default());
    let (ticket, amounts) = one.unwrap_or(none);
    let packed = Packed::default().number(lane).number(clock);
    packed.number(ticket.epoch).number(ticket.position).dimensions(amounts).into_bytes()
}

/// The script's treatment of a settlement.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Released,
    Settled,
    /// Nothing was reserved. The number of the lane to charge, and the amounts that have not
    /// refilled yet.
    Charged(u64, Amounts),
}

pub(crate) fn pack_settlement(
    model: &ModelQuota,
    settlement: &Settlement,
    mode: Mode,
    pause_ttl: Duration,
    clock: u64,
) -> Vec<u8> {
    let (mode, lane, drawn) = match mode {
        Mode::Released => (0, 0, Amounts::default()),
        Mode::Settled => (1, 0, Amounts::default()),
        Mode::Charged(lane, drawn) => (2, lane, drawn),
    };
    let sample = settlement.sample;
    let signal = match settlement.signal {
        ProviderSignal::None => 0,
        ProviderSignal::RateLimited => 1,
        ProviderSignal::Overloaded => 2,
        ProviderSignal::Exhausted => 3,
        ProviderSignal::Lost => 4,
    };
    Packed::default()
        .number(mode)
        .dimensions(&settlement.used.unwrap_or_default())
        .number(lane)
        .number(u64::from(model.charge.unused_returns))
        .number(sample.map_or(0, |sample| sample.estimated_input))
        .number(sample.map_or(0, |sample| sample.input))
        .number(sample.map_or(0, |sample| sample.output))
        .number(signal)
        .micros(settlement.pause.as_ref().map_or(Duration::ZERO, |pause| pause.length))
        .micros(settlement.longest_pause(pause_ttl))
        .number(clock)
        .dimensions(&settlement.meter.used.map(pack_option))
        .dimensions(&settlement.meter.limits.map(pack_option))
        .dimensions(&settlement.meter.resets.map(|reset| {
            pack_option(reset.map(|reset| u64::try_from(reset.as_micros()).unwrap_or(EXACT)))
        }))
        .number(pack_option(settlement.cached))
        .dimensions(&drawn)
        .into_bytes()
}

/// An optional number plus 1; 0 for `None`.
fn pack_option(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

/// Arguments of `plan`: a plan made from a reading.
pub(crate) fn pack_plan(reading: &Reading, plan: &Plan, change: &Units, clock: u64) -> Vec<u8> {
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
        .into_bytes()
}

/// A call's decision, and the expected use of such calls.
type Answer = (Decision, Option<Expectation>);

/// Reads the answers to `count` asks; `None` if a plan must be written first.
pub(crate) fn read_decisions(reply: &[Value], count: usize) -> Result<Option<Vec<Answer>>, Error> {
    const NO_PLAN: i64 = 6;
    let each = reply.chunks(NUMBERS_OF_AN_ANSWER);
    if each.len() != count {
        return Err(unknown_reply(reply));
    }
    if reply.first().and_then(integer) == Some(NO_PLAN) {
        return Ok(None);
    }
    each.map(read_decision).collect::<Result<_, _>>().map(Some)
}

fn read_decision(reply: &[Value]) -> Result<(Decision, Option<Expectation>), Error> {
    let [outcome, wait, hold, deficit, epoch, position, ratio, output, cached, turn] =
        read_integers(reply)?;
    let ticket =
        (epoch > 0).then(|| Ticket { epoch: unsigned(epoch), position: unsigned(position) });
    let wait = Duration::from_micros(unsigned(wait));
    let decision = match (outcome, ticket) {
        (1, _) => Decision::Granted,
        (2, Some(ticket)) => Decision::Wait {
            wait,
            hold: Hold::from_code(hold).ok_or_else(|| unknown_reply(reply))?,
            deficit: unsigned(deficit),
            ticket,
            turn: Duration::from_micros(unsigned(turn)),
        },
        (3, Some(ticket)) => Decision::GateClosed { wait, ticket },
        (4, _) => Decision::Never {
            dimension: Dimension::from_code(hold).ok_or_else(|| unknown_reply(reply))?,
            capacity: unsigned(deficit),
        },
        (5, _) => Decision::Exhausted { wait, day: DayLimit::from_code(hold) },
        _ => return Err(unknown_reply(reply)),
    };
    Ok((decision, read_expectation(ratio, output, cached)))
}

/// Reads a settlement's result, the expected use of such calls, the room that is left, and the
/// policy's task if this caller gets it.
pub(crate) fn read_settled(
    reply: &[Value],
) -> Result<(Settled, Option<Expectation>, Duration, Option<PolicyTask>), Error> {
    const NUMBERS: usize = 6;
    let (numbers, rest) = reply.split_at(reply.len().min(NUMBERS));
    let [outcome, _, ratio, output, cached, room] = read_integers(numbers)?;
    let settled = match outcome {
        1 => Settled::Done,
        2 => Settled::Before,
        0 => Settled::Unknown,
        _ => return Err(unknown_reply(reply)),
    };
    let task = if rest.is_empty() { None } else { Some(read_task(rest)?) };
    let room = Duration::from_micros(unsigned(room));
    Ok((settled, read_expectation(ratio, output, cached), room, task))
}

pub(crate) fn read_integers<const N: usize>(reply: &[Value]) -> Result<[i64; N], Error> {
    let numbers: Option<Vec<i64>> = reply.iter().map(integer).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| unknown_reply(reply))
}

/// Reads texts in pairs.
pub(crate) fn read_pairs(reply: &[Value]) -> Result<Vec<(String, String)>, Error> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    };
    let texts: Option<Vec<String>> = reply.iter().map(text).collect();
    let texts = texts.filter(|texts| texts.len() % 2 == 0).ok_or_else(|| unknown_reply(reply))?;
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

fn read_expectation(ratio: i64, output: i64, cached: i64) -> Option<Expectation> {
    (ratio > 0).then(|| Expectation {
        input_ratio: ratio as f64 / 1e6,
        output: unsigned(output),
        cached: unsigned(cached),
    })
}
