//! Models of how providers count. They are independent of the limiter: they know admissions and
//! completions only.

use std::collections::VecDeque;

use crate::{
    documents::{Document, MAX_OUTPUT, MEAN_INPUT, MEAN_OUTPUT},
    event::{Micros, SECOND},
    meter::Meter,
};

const MINUTE: Micros = 60 * SECOND;

/// A virtual time in a meter's seconds.
const LENGTH: f64 = 60.0;

/// The nine models.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bucket60,
    Bucket5,
    FixedMinute,
    StrictLog,
    ChargesMaximum,
    ChargesLate,
    Split,
    StrictLogSkewed,
    BucketSkewed,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Bucket60,
        Self::Bucket5,
        Self::FixedMinute,
        Self::StrictLog,
        Self::ChargesMaximum,
        Self::ChargesLate,
        Self::Split,
        Self::StrictLogSkewed,
        Self::BucketSkewed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bucket60 => "token bucket, 60 s deep",
            Self::Bucket5 => "token bucket, 5 s deep",
            Self::FixedMinute => "fixed minute",
            Self::StrictLog => "strict 60 s log",
            Self::ChargesMaximum => "bucket, charges max_tokens, corrects",
            Self::ChargesLate => "bucket, charges output at the end",
            Self::Split => "input and output apart, output late",
            Self::StrictLogSkewed => "strict 60 s log, 50-500 ms skew",
            Self::BucketSkewed => "token bucket, 50-500 ms skew",
        }
    }

    /// Shortest and longest time from our admission to the provider's.
    pub(crate) fn skew(self) -> (Micros, Micros) {
        match self {
            Self::StrictLogSkewed | Self::BucketSkewed => (SECOND / 20, SECOND / 2),
            _ => (0, 0),
        }
    }

    /// This provider with a limit of tokens a minute, at virtual time 0.
    pub(crate) fn provider(self, limit: u64) -> Box<dyn Provider> {
        let (bucket, all) = (bucket(limit, LENGTH), limit as f64);
        match self {
            Self::Bucket60 | Self::BucketSkewed => Box::new(AtAdmission(bucket)),
            Self::Bucket5 => Box::new(AtAdmission(crate::provider::bucket(limit, 5.0))),
            Self::FixedMinute => Box::new(AtAdmission(Meter::fixed(all, LENGTH, 0.0))),
            Self::StrictLog | Self::StrictLogSkewed => {
                Box::new(AtAdmission(Meter::window(all, LENGTH)))
            }
            Self::ChargesMaximum => Box::new(ChargesMaximum(bucket)),
            Self::ChargesLate => Box::new(ChargesLate(bucket)),
            Self::Split => {
                let (input, output) = split(limit, 1.07);
                Box::new(Split::new(input, output))
            }
        }
    }
}

/// A limit of tokens a minute, split into one of input and one of output, the latter with a
/// reserve.
pub(crate) fn split(limit: u64, spare: f64) -> (u64, u64) {
    let part = |mean: f64| mean / (MEAN_INPUT + MEAN_OUTPUT) * limit as f64;
    (part(MEAN_INPUT) as u64, (part(MEAN_OUTPUT) * spare) as u64)
}

/// A bucket of `seconds` of this limit of tokens a minute.
fn bucket(limit: u64, seconds: f64) -> Meter {
    Meter::bucket(limit as f64 / LENGTH, seconds)
}

fn clock(now: Micros) -> f64 {
    now as f64 / SECOND as f64
}

fn micros(seconds: f64) -> Micros {
    (seconds * SECOND as f64).ceil() as Micros
}

/// One provider.
pub(crate) trait Provider {
    /// A call arrives: accepted, or refused with the time after which it would be accepted.
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros>;

    /// An accepted call ends.
    fn complete(&mut self, _now: Micros, _document: &Document) {}

    /// How much of a call's input it would read from a cache now, and not count.
    fn cached(&self, _document: &Document) -> u64 {
        0
    }

    /// Whether it would accept a call of these tokens.
    fn has(&mut self, now: Micros, tokens: f64) -> bool;

    /// Its headers: use, and the time until all of it is available again.
    fn meter_reading(&mut self, _now: Micros) -> Option<(u64, Option<Micros>)> {
        None
    }
}

fn take(meter: &mut Meter, now: Micros, cost: u64) -> Result<(), Micros> {
    meter.take(clock(now), cost as f64).map_err(micros)
}

fn has(meter: &mut Meter, now: Micros, tokens: f64) -> bool {
    meter.lacks(clock(now), tokens).is_none()
}

fn meter_reading(meter: &mut Meter, now: Micros) -> Option<(u64, Option<Micros>)> {
    let used = meter.used(clock(now)).max(0.0).ceil() as u64;
    let reset = meter.reset(clock(now)).map(|seconds| (seconds * SECOND as f64) as Micros);
    Some((used, reset))
}

struct AtAdmission(Meter);

impl Provider for AtAdmission {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        take(&mut self.0, now, document.tokens())
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.0, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        meter_reading(&mut self.0, now)
    }
}

struct ChargesMaximum(Meter);

impl Provider for ChargesMaximum {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        take(&mut self.0, now, document.input + MAX_OUTPUT)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.0.charge(clock(now), document.output as f64 - MAX_OUTPUT as f64);
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.0, now, tokens + MAX_OUTPUT as f64)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        meter_reading(&mut self.0, now)
    }
}

struct ChargesLate(Meter);

impl Provider for ChargesLate {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        take(&mut self.0, now, document.input)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.0.charge(clock(now), document.output as f64);
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.0, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        meter_reading(&mut self.0, now)
    }
}

/// Two buckets; output is charged at completion, and refuses the next call while it is overdrawn.
pub(crate) struct Split {
    input: Meter,
    output: Meter,
}

impl Split {
    pub(crate) fn new(input: u64, output: u64) -> Self {
        Self { input: bucket(input, LENGTH), output: bucket(output, LENGTH) }
    }
}

impl Provider for Split {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        if let Some(wait) = self.output.lacks(clock(now), 1.0) {
            return Err(micros(wait));
        }
        take(&mut self.input, now, document.input)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.output.charge(clock(now), document.output as f64);
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.output, now, 1.0) && has(&mut self.input, now, tokens)
    }
}

/// A bucket of input tokens. After the first answer the prefix is in a cache, and cached input does
/// not count.
pub(crate) struct Caching {
    input: Meter,
    warm: bool,
}

impl Caching {
    pub(crate) fn new(input: u64) -> Self {
        Self { input: bucket(input, LENGTH), warm: false }
    }
}

impl Provider for Caching {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        let counted = document.input - self.cached(document);
        take(&mut self.input, now, counted)
    }

    fn complete(&mut self, _now: Micros, _document: &Document) {
        self.warm = true;
    }

    fn cached(&self, document: &Document) -> u64 {
        if self.warm { document.prefix } else { 0 }
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.input, now, tokens)
    }
}

/// A bucket whose limit changes by a factor at some time; its headers still show the old limit.
pub(crate) struct Changing {
    bucket: Meter,
    told: Meter,
    at: Micros,
    part: f64,
}

impl Changing {
    pub(crate) fn new(limit: u64, at: Micros, part: f64) -> Self {
        let [bucket, told] = [(); 2].map(|()| bucket(limit, LENGTH));
        Self { bucket, told, at, part }
    }

    fn change(&mut self, now: Micros) {
        if now >= self.at && self.at > 0 {
            self.bucket.scale(clock(now), self.part);
            self.at = 0;
        }
    }
}

impl Provider for Changing {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.change(now);
        let taken = take(&mut self.bucket, now, document.tokens());
        if taken.is_ok() {
            self.told.charge(clock(now), document.tokens() as f64);
        }
        taken
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        self.change(now);
        has(&mut self.bucket, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        meter_reading(&mut self.told, now)
    }
}

/// A bucket that also refuses fast growth: above a floor, no minute may have more than one and a
/// half times the most of any minute at least a quarter of an hour before.
pub(crate) struct Ramping {
    bucket: Meter,
    floor: u64,
    minute: VecDeque<(Micros, u64)>,
    used: u64,
    /// The most in any minute, by the time when it was first reached.
    risen: VecDeque<(Micros, u64)>,
    before: u64,
}

impl Ramping {
    const QUARTER: Micros = 15 * MINUTE;

    pub(crate) fn new(limit: u64, floor: u64) -> Self {
        let bucket = bucket(limit, LENGTH);
        let (minute, risen) = (VecDeque::new(), VecDeque::new());
        Self { bucket, floor, minute, used: 0, risen, before: 0 }
    }

    /// The most that a minute may have now.
    pub(crate) fn allowed(&mut self, now: Micros) -> u64 {
        while let Some(&(_, used)) = self.risen.front().filter(|(at, _)| at + Self::QUARTER <= now)
        {
            self.before = used;
            self.risen.pop_front();
        }
        (self.before * 3 / 2).max(self.floor)
    }
}

impl Provider for Ramping {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        while let Some(&(_, tokens)) = self.minute.front().filter(|(at, _)| at + MINUTE <= now) {
            self.used -= tokens;
            self.minute.pop_front();
        }
        if self.used + document.tokens() > self.allowed(now) {
            return Err(5 * SECOND);
        }
        take(&mut self.bucket, now, document.tokens())?;
        self.used += document.tokens();
        self.minute.push_back((now, document.tokens()));
        if self.used > self.risen.back().map_or(self.before, |(_, most)| *most) {
            self.risen.push_back((now, self.used));
        }
        Ok(())
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        self.used as f64 + tokens <= self.allowed(now) as f64 && has(&mut self.bucket, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        meter_reading(&mut self.bucket, now)
    }
}

/// A bucket with another limit over any ten minutes, as Gemini's limits on spending. When it
/// refuses for that, it asks for a wait of a minute at most.
pub(crate) struct Spending {
    bucket: Meter,
    log: Meter,
}

impl Spending {
    pub(crate) fn new(limit: u64, in_ten_minutes: u64) -> Self {
        let log = Meter::window(in_ten_minutes as f64, 10.0 * LENGTH);
        Self { bucket: bucket(limit, LENGTH), log }
    }
}

impl Provider for Spending {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        let cost = document.tokens() as f64;
        if let Some(wait) = self.bucket.lacks(clock(now), cost) {
            return Err(micros(wait));
        }
        self.log.take(clock(now), cost).map_err(|wait| micros(wait).min(MINUTE))?;
        self.bucket.charge(clock(now), cost);
        Ok(())
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.log, now, tokens) && has(&mut self.bucket, now, tokens)
    }
}

/// A meter that others share in every other five minutes.
pub(crate) struct Shared {
    meter: Meter,
    /// Tokens a second used by the others.
    others: f64,
    at: f64,
}

impl Shared {
    const TURN: f64 = 5.0 * LENGTH;

    pub(crate) fn bucket(limit: u64, part: f64) -> Self {
        Self::with_part(bucket(limit, LENGTH), limit, part)
    }

    pub(crate) fn window(limit: u64, part: f64) -> Self {
        Self::with_part(Meter::window(limit as f64, LENGTH), limit, part)
    }

    pub(crate) fn fixed(limit: u64, part: f64) -> Self {
        Self::with_part(Meter::fixed(limit as f64, LENGTH, 0.0), limit, part)
    }

    fn with_part(meter: Meter, limit: u64, part: f64) -> Self {
        Self { meter, others: limit as f64 / LENGTH * part, at: 0.0 }
    }

    /// The others use what is available, in steps of a tenth of a second.
    fn advance(&mut self, now: Micros) {
        const STEP: f64 = 0.1;
        while self.at + STEP <= clock(now) {
            self.at += STEP;
            if (self.at / Self::TURN) as u64 % 2 == 1 {
                let _ = self.meter.take(self.at, self.others * STEP);
            }
        }
    }
}

impl Provider for Shared {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.advance(now);
        take(&mut self.meter, now, document.tokens())
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        self.advance(now);
        has(&mut self.meter, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        self.advance(now);
        meter_reading(&mut self.meter, now)
    }
}

/// A provider whose headers show the real use times a factor.
pub(crate) struct Lying {
    provider: Box<dyn Provider>,
    part: f64,
}

impl Lying {
    pub(crate) fn new(provider: Box<dyn Provider>, part: f64) -> Self {
        Self { provider, part }
    }
}

impl Provider for Lying {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.provider.admit(now, document)
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        self.provider.has(now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        let (used, reset) = self.provider.meter_reading(now)?;
        let lie = |value: u64| (value as f64 * self.part) as u64;
        Some((lie(used), reset.map(lie)))
    }
}

/// A bucket of less than a minute. Its headers show the limit of a minute, and what is in the
/// bucket.
pub(crate) struct Shallow {
    bucket: Meter,
    missing: u64,
}

impl Shallow {
    pub(crate) fn new(limit: u64, seconds: f64) -> Self {
        let missing = (limit as f64 * (1.0 - seconds / LENGTH)) as u64;
        Self { bucket: bucket(limit, seconds), missing }
    }
}

impl Provider for Shallow {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        take(&mut self.bucket, now, document.tokens())
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        has(&mut self.bucket, now, tokens)
    }

    fn meter_reading(&mut self, now: Micros) -> Option<(u64, Option<Micros>)> {
        let (used, reset) = meter_reading(&mut self.bucket, now)?;
        Some((used + self.missing, reset))
    }
}

/// Fixed minutes that begin at some second.
pub(crate) struct Phased(AtAdmission);

impl Phased {
    pub(crate) fn new(limit: u64, phase: f64) -> Self {
        Self(AtAdmission(Meter::fixed(limit as f64, LENGTH, phase - LENGTH)))
    }
}

impl Provider for Phased {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.0.admit(now, document)
    }

    fn has(&mut self, now: Micros, tokens: f64) -> bool {
        self.0.has(now, tokens)
    }
}
