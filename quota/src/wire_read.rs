//! What scripts tell of a quota: for the policy, and for people.

use redis::Value;

use crate::{
    dimension::{Amounts, Dimension, PerDimension},
    error::Error,
    lane_numbers::Numbered,
    mechanism::log::{Observation, Reading, Refused, Told},
    model::ModelQuota,
    number::{duration, whole},
    plan::{Allowance, Plan, Reasoned, Units},
    policy::{Configured, Known},
    remembered::Remembered,
    snapshot::{DimensionSnapshot, LaneSnapshot, Snapshot},
};

/// What the policy goes by.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) reading: Reading,
    pub(crate) known: Known,
}

/// Numbers one after the other.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
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

/// The policy's task.
pub(crate) fn read(reply: &[Value]) -> Result<Read, Error> {
    let [numbers, known, log @ ..] = reply else { return Err(unknown(reply)) };
    let known = Known::read(bytes(known).ok_or_else(|| unknown(reply))?);
    let reading = reading(numbers, log).ok_or_else(|| unknown(reply))?;
    Ok(Read { reading, known })
}

fn reading(numbers: &Value, log: &[Value]) -> Option<Reading> {
    let mut numbers = Numbers(bytes(numbers)?);
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
    reading.log = log.iter().map(|it| observation(bytes(it)?)).collect::<Option<_>>()?;
    Some(reading)
}

fn observation(packed: &[u8]) -> Option<Observation> {
    const TOLD: u8 = 0;
    const REFUSED_PROBE: u8 = 2;
    let mut numbers = Numbers(packed);
    let kind = numbers.byte()?;
    let (at, admitted, retry) = (numbers.next()?, numbers.next()?, numbers.next()?);
    if kind == TOLD {
        let mut each = PerDimension::default();
        while let Some(code) = numbers.byte() {
            each[Dimension::from_code(i64::from(code))?] = Some(Told {
                used: numbers.next()?,
                limit: numbers.next()?,
                reset: numbers.next()?,
                drawn: numbers.next()?,
                held: numbers.next()?,
                total: numbers.next()?,
                since: numbers.next()?,
            });
        }
        return Some(Observation::Told(each));
    }
    let mut each = PerDimension::default();
    while let Some(code) = numbers.byte() {
        each[Dimension::from_code(i64::from(code))?] =
            Some(Refused { need: numbers.next()?, drawn: numbers.next()?, spent: numbers.next()? });
    }
    Some(Observation::Refused { at, admitted, retry, probe: kind == REFUSED_PROBE, each })
}

/// What `inspect` tells.
pub(crate) struct Inspected {
    pub(crate) snapshot: Snapshot,
    pub(crate) read: Read,
    /// To be gone on from while Redis is away; `None` without a plan.
    pub(crate) remembered: Option<Remembered>,
    /// How many lanes it tells of.
    pub(crate) lanes: u64,
}

pub(crate) fn inspected(
    model: &ModelQuota,
    lanes: &Numbered,
    reply: &[Value],
) -> Result<Inspected, Error> {
    let [numbers, reason, task @ ..] = reply else { return Err(unknown(reply)) };
    let read = read(task)?;
    let seen = seen(model, lanes, numbers, reason, read);
    seen.ok_or_else(|| unknown(reply))
}

fn seen(
    model: &ModelQuota,
    numbered: &Numbered,
    numbers: &Value,
    reason: &Value,
    read: Read,
) -> Option<Inspected> {
    let mut numbers = Numbers(bytes(numbers)?);
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
        let why = read.known.why(it);
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
    snapshot.of_others = version > 0 && fingerprint != Configured::of(model).fingerprint();
    let concurrent = crate::number::float(snapshot.in_flight.limit);
    let plan = Plan { horizon, concurrent, limits };
    snapshot.lanes = lanes_seen(model, numbered, lanes, &mut numbers)?;
    let reason = std::str::from_utf8(bytes(reason)?).ok()?;
    snapshot.reason = reason.split_once('|').map_or(String::new(), |(_, reason)| reason.to_owned());
    let known = read.known;
    let remembered = (version > 0).then_some(Remembered { known, plan, drawn, total: in_window });
    let snapshot = known.explain(snapshot, &plan);
    Some(Inspected { snapshot, read, remembered, lanes })
}

fn lanes_seen(
    model: &ModelQuota,
    numbered: &Numbered,
    count: u64,
    numbers: &mut Numbers<'_>,
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
    // Its own in their order, and of the others those that are in use.
    let is_used = |lane: &LaneSnapshot| {
        lane.waiting > 0 || lane.in_flight > 0 || lane.used != Amounts::default()
    };
    seen.retain(|lane| !lane.elsewhere || is_used(lane));
    seen.sort_by_key(|lane| model.lanes.index(&lane.lane).unwrap_or(usize::MAX));
    Some(seen)
}

/// A reply that is none of ours.
pub(crate) fn unknown(reply: &[Value]) -> Error {
    Error::Protocol(format!("{reply:?}").chars().take(200).collect())
}
