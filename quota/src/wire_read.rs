//! Reads the scripts' replies about a quota, for the policy and for people.

use redis::Value;

use crate::{
    conversions::{duration, float, whole},
    dimension::{Amounts, Dimension, PerDimension},
    error::Error,
    lane_numbers::LaneNumbers,
    mechanism::log::{MeterReading, Observation, Reading, RefusedUse},
    model::ModelQuota,
    plan::{Allowance, Plan, Reasoned, Units},
    policy::{Configured, Known},
    remembered::Remembered,
    snapshot::{DimensionSnapshot, LaneSnapshot, Snapshot},
};

/// The policy's task: a reading, and the policy's knowledge.
#[derive(Debug, Clone)]
pub(crate) struct PolicyTask {
    pub(crate) reading: Reading,
    pub(crate) known: Known,
}

/// Reads packed numbers one after the other.
struct NumberReader<'a>(&'a [u8]);

impl NumberReader<'_> {
    fn next(&mut self) -> Option<f64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(f64::from_le_bytes(*number))
    }

    fn whole(&mut self) -> Option<u64> {
        self.next().map(|number| whole(number.ceil()))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// Reads the policy's task.
pub(crate) fn read_task(reply: &[Value]) -> Result<PolicyTask, Error> {
    let [numbers, known, log @ ..] = reply else { return Err(unknown_reply(reply)) };
    let known = Known::from_json(bytes(known).ok_or_else(|| unknown_reply(reply))?);
    let reading = parse_reading(numbers, log).ok_or_else(|| unknown_reply(reply))?;
    Ok(PolicyTask { reading, known })
}

fn parse_reading(numbers: &Value, log: &[Value]) -> Option<Reading> {
    let mut numbers = NumberReader(bytes(numbers)?);
    let mut reading = Reading {
        now: numbers.next()?,
        version: numbers.whole()?,
        end: numbers.whole()?,
        answers: numbers.whole()?,
        ..Reading::default()
    };
    for it in Dimension::ALL {
        reading.drawn[it] = numbers.next()?;
        reading.peak[it] = numbers.next()?;
    }
    reading.log = log.iter().map(|it| parse_observation(bytes(it)?)).collect::<Option<_>>()?;
    Some(reading)
}

fn parse_observation(packed: &[u8]) -> Option<Observation> {
    const METERED: u8 = 0;
    const REFUSED_PROBE: u8 = 2;
    let mut numbers = NumberReader(packed);
    let kind = numbers.byte()?;
    let (at, admitted, retry) = (numbers.next()?, numbers.next()?, numbers.next()?);
    if kind == METERED {
        let mut each = PerDimension::default();
        while let Some(code) = numbers.byte() {
            each[Dimension::from_code(i64::from(code))?] = Some(MeterReading {
                used: numbers.next()?,
                limit: numbers.next()?,
                reset: numbers.next()?,
                drawn: numbers.next()?,
                held: numbers.next()?,
                total: numbers.next()?,
                since: numbers.next()?,
            });
        }
        return Some(Observation::Metered(each));
    }
    let mut each = PerDimension::default();
    while let Some(code) = numbers.byte() {
        each[Dimension::from_code(i64::from(code))?] = Some(RefusedUse {
            need: numbers.next()?,
            drawn: numbers.next()?,
            spent: numbers.next()?,
        });
    }
    Some(Observation::Refused { at, admitted, retry, probe: kind == REFUSED_PROBE, each })
}

/// The reply of `inspect`.
pub(crate) struct Inspected {
    pub(crate) snapshot: Snapshot,
    pub(crate) task: PolicyTask,
    /// The state to go on from while Redis is away; `None` without a plan.
    pub(crate) remembered: Option<Remembered>,
    /// The number of lanes in the reply.
    pub(crate) lanes: u64,
}

pub(crate) fn read_inspected(
    model: &ModelQuota,
    lanes: &LaneNumbers,
    reply: &[Value],
) -> Result<Inspected, Error> {
    let [numbers, reason, task @ ..] = reply else { return Err(unknown_reply(reply)) };
    let task = read_task(task)?;
    let seen = parse_inspected(model, lanes, numbers, reason, task);
    seen.ok_or_else(|| unknown_reply(reply))
}

fn parse_inspected(
    model: &ModelQuota,
    numbered: &LaneNumbers,
    numbers: &Value,
    reason: &Value,
    task: PolicyTask,
) -> Option<Inspected> {
    let mut numbers = NumberReader(bytes(numbers)?);
    let _now = numbers.next()?;
    let mut snapshot = Snapshot {
        pause: duration(numbers.next()?),
        exhausted: numbers.whole()? == 2,
        reservations: numbers.whole()?,
        latency: duration(numbers.next()?),
        cap: Some(numbers.whole()?).filter(|cap| *cap > 0),
        day_requests: numbers.whole()?,
        day_tokens: numbers.whole()?,
        day_left: duration(numbers.next()?),
        ..Snapshot::default()
    };
    snapshot.in_flight = DimensionSnapshot {
        used: numbers.whole()?,
        limit: numbers.whole()?,
        ..DimensionSnapshot::default()
    };
    let (horizon, version, fingerprint) = (numbers.next()?, numbers.whole()?, numbers.whole()?);
    let lanes = numbers.whole()?;
    let mut limits = PerDimension::default();
    let (mut drawn, mut in_window) = (Units::default(), Units::default());
    for it in Dimension::ALL {
        let why = task.known.reasons(it);
        let (rate, capacity, window, most) =
            (numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?);
        let (level, total, held) = (numbers.next()?, numbers.next()?, numbers.next()?);
        snapshot.dimensions[it].used = whole(total.max(0.0).ceil());
        snapshot.dimensions[it].held = whole(held.max(0.0).ceil());
        if most > 0.0 {
            let allowance = Allowance {
                rate: Reasoned::new(rate, why[0]),
                capacity: Reasoned::new(capacity, why[1]),
                window: Reasoned::new(window, why[2]),
                most,
            };
            snapshot.dimensions[it].ahead = duration((level - capacity) / rate);
            (drawn[it], in_window[it]) = (level, total);
            limits[it] = Some(allowance);
        }
    }
    let own = Configured::from_model(model).fingerprint();
    snapshot.other_fingerprint = (version > 0 && fingerprint != own).then_some((fingerprint, own));
    let concurrent = float(snapshot.in_flight.limit);
    let plan = Plan { horizon, concurrent, limits };
    snapshot.lanes = parse_lanes(model, numbered, lanes, &mut numbers)?;
    let reason = std::str::from_utf8(bytes(reason)?).ok()?;
    snapshot.reason = reason.split_once('|').map_or(String::new(), |(_, reason)| reason.to_owned());
    let known = task.known;
    let remembered = (version > 0).then_some(Remembered { known, plan, drawn, total: in_window });
    let snapshot = known.explain(snapshot, &plan);
    Some(Inspected { snapshot, task, remembered, lanes })
}

fn parse_lanes(
    model: &ModelQuota,
    numbered: &LaneNumbers,
    count: u64,
    numbers: &mut NumberReader<'_>,
) -> Option<Vec<LaneSnapshot>> {
    let (mut seen, mut names) = (Vec::new(), numbered.iter());
    for _ in 0..count {
        let (waiting, queue) = (numbers.whole()?, duration(numbers.next()?));
        let in_flight = numbers.whole()?;
        let mut used = Amounts::default();
        for it in Dimension::ALL {
            used[it] = numbers.whole()?;
        }
        let Some((lane, said)) = names.next().flatten() else { continue };
        let own = model.lanes.share(lane);
        seen.push(LaneSnapshot {
            lane: lane.clone(),
            share: own.unwrap_or(*said),
            elsewhere: own.is_none(),
            waiting,
            queue,
            in_flight,
            used,
        });
    }
    // Own lanes in their order, and other programs' lanes that are in use.
    let is_used = |lane: &LaneSnapshot| {
        lane.waiting > 0 || lane.in_flight > 0 || lane.used != Amounts::default()
    };
    seen.retain(|lane| !lane.elsewhere || is_used(lane));
    seen.sort_by_key(|lane| model.lanes.index(&lane.lane).unwrap_or(usize::MAX));
    Some(seen)
}

/// The error for a malformed reply.
pub(crate) fn unknown_reply(reply: &[Value]) -> Error {
    Error::Protocol(format!("{reply:?}").chars().take(200).collect())
}
