//! How providers count. Written without a look at the limiter: these know admissions and
//! completions, nothing else.

use std::collections::VecDeque;

use crate::{
    documents::{Document, MAX_OUTPUT, MEAN_INPUT, MEAN_OUTPUT},
    event::{Micros, SECOND},
};

const MINUTE: Micros = 60 * SECOND;

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

    /// Such a provider with this limit of tokens a minute, at virtual time 0.
    pub(crate) fn provider(self, limit: u64) -> Box<dyn Provider> {
        let bucket = Bucket::new(limit, 60.0);
        match self {
            Self::Bucket60 | Self::BucketSkewed => Box::new(AtAdmission(bucket)),
            Self::Bucket5 => Box::new(AtAdmission(Bucket::new(limit, 5.0))),
            Self::FixedMinute => Box::new(FixedMinute { limit, minute: 0, used: 0 }),
            Self::StrictLog | Self::StrictLogSkewed => Box::new(StrictLog::new(limit, MINUTE)),
            Self::ChargesMaximum => Box::new(ChargesMaximum(bucket)),
            Self::ChargesLate => Box::new(ChargesLate(bucket)),
            Self::Split => {
                let (input, output) = split(limit, 1.07);
                Box::new(Split::new(input, output))
            }
        }
    }
}

/// A limit of tokens a minute as one of input and one of output, the output's with so much to
/// spare.
pub(crate) fn split(limit: u64, spare: f64) -> (u64, u64) {
    let part = |mean: f64| mean / (MEAN_INPUT + MEAN_OUTPUT) * limit as f64;
    (part(MEAN_INPUT) as u64, (part(MEAN_OUTPUT) * spare) as u64)
}

/// One provider's meter.
pub(crate) trait Provider {
    /// A call arrives: taken, or refused with the time after which it would be taken.
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros>;

    /// A call that was taken is over.
    fn complete(&mut self, _now: Micros, _document: &Document) {}

    /// What of a call's input it would read from a cache now, and not count.
    fn cached(&self, _document: &Document) -> u64 {
        0
    }

    /// What its headers say is used.
    fn used(&mut self, _now: Micros) -> u64 {
        0
    }

    /// What its headers say of the time until all of it is there again.
    fn reset(&mut self, _now: Micros) -> Option<Micros> {
        None
    }
}

/// Refills evenly; may go below zero for what is charged afterwards.
struct Bucket {
    rate: f64,
    depth: f64,
    level: f64,
    at: Micros,
}

impl Bucket {
    fn new(limit: u64, seconds: f64) -> Self {
        let rate = limit as f64 / MINUTE as f64;
        let depth = rate * seconds * SECOND as f64;
        Self { rate, depth, level: depth, at: 0 }
    }

    fn refill(&mut self, now: Micros) {
        self.level = (self.level + (now - self.at) as f64 * self.rate).min(self.depth);
        self.at = now;
    }

    /// When a full bucket cannot hold the call, a full bucket admits it.
    fn lacks(&mut self, now: Micros, cost: u64) -> Option<Micros> {
        self.refill(now);
        let lack = (cost as f64).min(self.depth) - self.level;
        (lack > 0.0).then(|| (lack / self.rate).ceil() as Micros)
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.refill(now);
        (self.depth - self.level).ceil() as u64
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.refill(now);
        Some(((self.depth - self.level) / self.rate) as Micros)
    }

    fn charge(&mut self, now: Micros, cost: f64) {
        self.refill(now);
        self.level = (self.level - cost).min(self.depth);
    }

    fn take(&mut self, now: Micros, cost: u64) -> Result<(), Micros> {
        if let Some(wait) = self.lacks(now, cost) {
            return Err(wait);
        }
        self.charge(now, cost as f64);
        Ok(())
    }
}

struct AtAdmission(Bucket);

impl Provider for AtAdmission {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.0.take(now, document.tokens())
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.0.used(now)
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.0.reset(now)
    }
}

struct ChargesMaximum(Bucket);

impl Provider for ChargesMaximum {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.0.take(now, document.input + MAX_OUTPUT)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.0.charge(now, document.output as f64 - MAX_OUTPUT as f64);
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.0.used(now)
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.0.reset(now)
    }
}

struct ChargesLate(Bucket);

impl Provider for ChargesLate {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.0.take(now, document.input)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.0.charge(now, document.output as f64);
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.0.used(now)
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.0.reset(now)
    }
}

/// Two buckets; output is charged at completion, and refuses the next call while it is overdrawn.
pub(crate) struct Split {
    input: Bucket,
    output: Bucket,
}

impl Split {
    pub(crate) fn new(input: u64, output: u64) -> Self {
        Self { input: Bucket::new(input, 60.0), output: Bucket::new(output, 60.0) }
    }
}

impl Provider for Split {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        if let Some(wait) = self.output.lacks(now, 1) {
            return Err(wait);
        }
        self.input.take(now, document.input)
    }

    fn complete(&mut self, now: Micros, document: &Document) {
        self.output.charge(now, document.output as f64);
    }
}

/// A bucket of input tokens. The prefix is in a cache after the first answer, and what is read from
/// there does not count.
pub(crate) struct Caching {
    input: Bucket,
    warm: bool,
}

impl Caching {
    pub(crate) fn new(input: u64) -> Self {
        Self { input: Bucket::new(input, 60.0), warm: false }
    }
}

impl Provider for Caching {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.input.take(now, document.input - self.cached(document))
    }

    fn complete(&mut self, _now: Micros, _document: &Document) {
        self.warm = true;
    }

    fn cached(&self, document: &Document) -> u64 {
        if self.warm { document.prefix } else { 0 }
    }
}

/// A bucket whose limit becomes another part of what it was at some time; its headers go on telling
/// of the old one.
pub(crate) struct Changing {
    bucket: Bucket,
    told: Bucket,
    at: Micros,
    part: f64,
}

impl Changing {
    pub(crate) fn new(limit: u64, at: Micros, part: f64) -> Self {
        let [bucket, told] = [(); 2].map(|()| Bucket::new(limit, 60.0));
        Self { bucket, told, at, part }
    }

    fn change(&mut self, now: Micros) {
        if now >= self.at && self.at > 0 {
            self.bucket.refill(now);
            self.bucket.rate *= self.part;
            self.bucket.depth *= self.part;
            self.bucket.level = self.bucket.level.min(self.bucket.depth);
            self.at = 0;
        }
    }
}

impl Provider for Changing {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        self.change(now);
        let taken = self.bucket.take(now, document.tokens());
        if taken.is_ok() {
            self.told.charge(now, document.tokens() as f64);
        }
        taken
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.told.used(now)
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.told.reset(now)
    }
}

/// A bucket that moreover refuses whoever grows too fast: beyond a floor, no minute may have more than
/// one and a half times what any minute had a quarter of an hour ago and before.
pub(crate) struct Ramping {
    bucket: Bucket,
    floor: u64,
    minute: VecDeque<(Micros, u64)>,
    used: u64,
    /// The most that a minute had, by the time when it was first so much.
    risen: VecDeque<(Micros, u64)>,
    before: u64,
}

impl Ramping {
    const QUARTER: Micros = 15 * MINUTE;

    pub(crate) fn new(limit: u64, floor: u64) -> Self {
        let bucket = Bucket::new(limit, 60.0);
        let (minute, risen) = (VecDeque::new(), VecDeque::new());
        Self { bucket, floor, minute, used: 0, risen, before: 0 }
    }

    /// What a minute may have now.
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
        self.bucket.take(now, document.tokens())?;
        self.used += document.tokens();
        self.minute.push_back((now, document.tokens()));
        if self.used > self.risen.back().map_or(self.before, |(_, most)| *most) {
            self.risen.push_back((now, self.used));
        }
        Ok(())
    }

    fn used(&mut self, now: Micros) -> u64 {
        self.bucket.used(now)
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        self.bucket.reset(now)
    }
}

struct FixedMinute {
    limit: u64,
    minute: u64,
    used: u64,
}

impl Provider for FixedMinute {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        let minute = now / MINUTE;
        if minute != self.minute {
            (self.minute, self.used) = (minute, 0);
        }
        if self.used + document.tokens() > self.limit {
            return Err((minute + 1) * MINUTE - now);
        }
        self.used += document.tokens();
        Ok(())
    }

    fn used(&mut self, now: Micros) -> u64 {
        if now / MINUTE == self.minute { self.used } else { 0 }
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        Some(MINUTE - now % MINUTE)
    }
}

/// A bucket that moreover lets only so much through in any ten minutes, as Gemini's limits on spending
/// do: then it refuses, and of the time says no more than a minute.
pub(crate) struct Spending {
    bucket: Bucket,
    log: StrictLog,
}

impl Spending {
    pub(crate) fn new(limit: u64, in_ten_minutes: u64) -> Self {
        let log = StrictLog::new(in_ten_minutes, 10 * MINUTE);
        Self { bucket: Bucket::new(limit, 60.0), log }
    }
}

impl Provider for Spending {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        if let Some(wait) = self.bucket.lacks(now, document.tokens()) {
            return Err(wait);
        }
        self.log.admit(now, document).map_err(|wait| wait.min(MINUTE))?;
        self.bucket.charge(now, document.tokens() as f64);
        Ok(())
    }
}

struct StrictLog {
    limit: u64,
    window: Micros,
    used: u64,
    log: VecDeque<(Micros, u64)>,
}

impl StrictLog {
    fn new(limit: u64, window: Micros) -> Self {
        Self { limit, window, used: 0, log: VecDeque::new() }
    }
}

impl Provider for StrictLog {
    fn admit(&mut self, now: Micros, document: &Document) -> Result<(), Micros> {
        while let Some(&(_, tokens)) = self.log.front().filter(|(at, _)| at + self.window <= now) {
            self.used -= tokens;
            self.log.pop_front();
        }
        let mut over = (self.used + document.tokens()).saturating_sub(self.limit);
        if over > 0 {
            let fits = self.log.iter().find(|(_, tokens)| {
                over = over.saturating_sub(*tokens);
                over == 0
            });
            return Err(fits.map_or(self.window, |(at, _)| at + self.window - now));
        }
        self.used += document.tokens();
        self.log.push_back((now, document.tokens()));
        Ok(())
    }

    fn used(&mut self, now: Micros) -> u64 {
        let gone = self.log.iter().take_while(|(at, _)| at + self.window <= now);
        self.used - gone.map(|(_, tokens)| tokens).sum::<u64>()
    }

    fn reset(&mut self, now: Micros) -> Option<Micros> {
        Some((self.log.back()?.0 + self.window).saturating_sub(now))
    }
}
