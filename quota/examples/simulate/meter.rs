//! Meters of providers: a bucket, a strict window, a fixed one.

use std::collections::VecDeque;

/// A meter of one limit. Times are seconds.
#[derive(Debug, Clone)]
pub(crate) enum Meter {
    Bucket(Bucket),
    Window(Window),
    Fixed(Fixed),
}

/// Refills evenly; later charges may take it below zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    pub(crate) rate: f64,
    pub(crate) depth: f64,
    pub(crate) level: f64,
    at: f64,
}

/// No span of its length may have more than the limit.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    limit: f64,
    length: f64,
    used: f64,
    log: VecDeque<(f64, f64)>,
}

/// Begins again after each span of its length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    limit: f64,
    length: f64,
    phase: f64,
    number: f64,
    used: f64,
}

impl Meter {
    /// A full bucket of `seconds` of this rate.
    pub(crate) fn bucket(rate: f64, seconds: f64) -> Self {
        let depth = rate * seconds;
        Self::Bucket(Bucket { rate, depth, level: depth, at: 0.0 })
    }

    /// A strict window.
    pub(crate) fn window(limit: f64, length: f64) -> Self {
        Self::Window(Window { limit, length, used: 0.0, log: VecDeque::new() })
    }

    /// A window that begins at whole multiples of its length after `phase`.
    pub(crate) fn fixed(limit: f64, length: f64, phase: f64) -> Self {
        Self::Fixed(Fixed { limit, length, phase, number: 0.0, used: 0.0 })
    }

    /// If a call of this cost would be refused: how long until it would not.
    pub(crate) fn lacks(&mut self, now: f64, cost: f64) -> Option<f64> {
        self.advance(now);
        match self {
            // If even a full bucket cannot hold the call, a full bucket admits it.
            Self::Bucket(bucket) => {
                let lack = cost.min(bucket.depth) - bucket.level;
                (lack > 0.0).then(|| lack / bucket.rate)
            }
            Self::Window(window) => {
                let mut over = window.used + cost - window.limit;
                if over <= 0.0 {
                    return None;
                }
                let fits = window.log.iter().find(|(_, used)| {
                    over -= used;
                    over <= 0.0
                });
                Some(fits.map_or(window.length, |(at, _)| at + window.length - now))
            }
            Self::Fixed(fixed) => {
                let ends = (fixed.number + 1.0) * fixed.length + fixed.phase;
                (fixed.used + cost > fixed.limit).then_some(ends - now)
            }
        }
    }

    /// Adds use, or returns it if below zero.
    pub(crate) fn charge(&mut self, now: f64, cost: f64) {
        self.advance(now);
        match self {
            Self::Bucket(bucket) => bucket.level = (bucket.level - cost).min(bucket.depth),
            Self::Window(window) => {
                window.used += cost;
                window.log.push_back((now, cost));
            }
            Self::Fixed(fixed) => fixed.used += cost,
        }
    }

    /// Accepts a call, or returns how long until it would.
    pub(crate) fn take(&mut self, now: f64, cost: f64) -> Result<(), f64> {
        if let Some(wait) = self.lacks(now, cost) {
            return Err(wait);
        }
        self.charge(now, cost);
        Ok(())
    }

    /// The present use.
    pub(crate) fn used(&mut self, now: f64) -> f64 {
        self.advance(now);
        match self {
            Self::Bucket(bucket) => bucket.depth - bucket.level,
            Self::Window(window) => window.used,
            Self::Fixed(fixed) => fixed.used,
        }
    }

    /// How long until nothing is used.
    pub(crate) fn reset(&mut self, now: f64) -> Option<f64> {
        self.advance(now);
        match self {
            Self::Bucket(bucket) => Some((bucket.depth - bucket.level) / bucket.rate),
            Self::Window(window) => Some(window.log.back()?.0 + window.length - now),
            Self::Fixed(fixed) => Some((fixed.number + 1.0) * fixed.length + fixed.phase - now),
        }
    }

    /// Multiplies its limit.
    pub(crate) fn scale(&mut self, now: f64, part: f64) {
        self.advance(now);
        match self {
            Self::Bucket(bucket) => {
                bucket.rate *= part;
                bucket.depth *= part;
                bucket.level = bucket.level.min(bucket.depth);
            }
            Self::Window(window) => window.limit *= part,
            Self::Fixed(fixed) => fixed.limit *= part,
        }
    }

    fn advance(&mut self, now: f64) {
        match self {
            Self::Bucket(bucket) => {
                let refilled = bucket.level + (now - bucket.at) * bucket.rate;
                bucket.level = refilled.min(bucket.depth);
                bucket.at = now;
            }
            Self::Window(window) => {
                let gone = |(at, _): &&(f64, f64)| at + window.length <= now;
                while let Some((_, used)) = window.log.front().filter(gone) {
                    window.used -= used;
                    window.log.pop_front();
                }
            }
            Self::Fixed(fixed) => {
                let number = ((now - fixed.phase) / fixed.length).floor();
                if number > fixed.number {
                    (fixed.number, fixed.used) = (number, 0.0);
                }
            }
        }
    }
}
