//! Limits in the form of a configuration. Every program that shares a quota converts them to
//! [`Limits`] by the same rules.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{dimension::PerDimension, limits::Limits};

/// The burst where a limit is stated by the second: one call.
const EVENLY: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The algorithm by which a provider counts a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Unknown, or a strict sliding window: margin 0.98 over 60.5 s, which no provider model
    /// tried refuses.
    Unknown,
    /// A token bucket that refills steadily and holds a minute's worth: margin 1 over 60 s.
    TokenBucket,
}

/// One model's limits as its section in `tidegate.toml` states them; `None` if not stated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConfiguredLimits {
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Requests a second: calls then go evenly, 60 times as many a minute.
    pub rps: Option<u64>,
    /// Input and output tokens a minute, counted together.
    pub tpm: Option<u64>,
    /// Input tokens a minute.
    pub itpm: Option<u64>,
    /// Output tokens a minute.
    pub otpm: Option<u64>,
    /// Requests a day.
    pub rpd: Option<u64>,
    /// Tokens a day, counted together.
    pub tpd: Option<u64>,
    /// When the provider's day begins, after 00:00 UTC.
    pub day_begins: Duration,
    /// Requests at once.
    pub concurrent: Option<u64>,
    /// Amount that may go at once, as a time at the rate; learned if not stated.
    pub burst: Option<Duration>,
    /// How the provider counts; chooses margin and window.
    pub algorithm: Option<Algorithm>,
    /// The part of each limit that is used.
    pub margin: Option<f64>,
    /// The window in which the limits hold.
    pub window: Option<Duration>,
}

impl ConfiguredLimits {
    /// The limiter's limits. `usual` is the endpoint's algorithm if none is stated; an assumed
    /// algorithm keeps the margin of an unknown one.
    pub fn limits(&self, usual: Algorithm) -> Limits {
        let (margin, window) = match self.algorithm {
            Some(Algorithm::TokenBucket) => (1.0, Duration::from_secs(60)),
            Some(Algorithm::Unknown) | None => (Limits::default().margin, Limits::default().window),
        };
        let algorithm = self.algorithm.unwrap_or(usual);
        let window = self.window.unwrap_or(window);
        let even = self.rps.map(|_| EVENLY);
        let a_minute = self.rps.map(|rps| rps.saturating_mul(60));
        Limits {
            per_minute: PerDimension {
                requests: self.rpm.into_iter().chain(a_minute).min(),
                input: self.itpm,
                output: self.otpm,
                combined: self.tpm,
            },
            concurrent: self.concurrent,
            requests_per_day: self.rpd,
            tokens_per_day: self.tpd,
            day_offset: DAY.saturating_sub(self.day_begins),
            margin: self.margin.unwrap_or(margin),
            window,
            burst: even.or(self.burst),
            token_bucket: algorithm == Algorithm::TokenBucket,
            ..Limits::default()
        }
    }
}
