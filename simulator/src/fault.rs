//! Faults that are made on purpose.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::value::{self, ConfigError};

/// One way to fail, and when. Of several that would strike, the first in the file does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// The fault.
    pub kind: FaultKind,
    /// The part of the calls that it strikes, 0 to 1. Default 1.
    #[serde(default = "always")]
    pub rate: f64,
    /// Only calls whose prompt contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<String>,
    /// Only from this long after the start. Default: from the start.
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub from: Option<Duration>,
    /// Only until this long after the start. Default: without end.
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// Only so many times. Default: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// How long a `slow` answer drags on (default `"5s"`), when a `hang` is cut off (default:
    /// never), and how long every other fault takes to appear (default: at once).
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// The `retry-after` of `rate-limited`, `overloaded` and `server-error`: a header (anthropic,
    /// openai), a `RetryInfo` in the body (gemini), nothing at all (bedrock). Default: nothing.
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

const fn always() -> f64 {
    1.0
}

impl Fault {
    /// A fault of this kind that strikes every call.
    pub const fn always(kind: FaultKind) -> Self {
        Self {
            kind,
            rate: 1.0,
            matching: None,
            from: None,
            to: None,
            times: None,
            delay: None,
            retry_after: None,
        }
    }

    /// Whether the fault is meant for such a call at such a time; chance is not asked.
    pub(crate) fn concerns(&self, prompt: &str, now: Duration) -> bool {
        self.from.is_none_or(|from| now >= from)
            && self.to.is_none_or(|to| now < to)
            && self.matching.as_deref().is_none_or(|part| prompt.contains(part))
    }

    pub(crate) fn check(&self, section: &str) -> Result<(), ConfigError> {
        if !(0.0..=1.0).contains(&self.rate) {
            return Err(ConfigError::invalid(
                format!("{section}.rate"),
                "a rate lies between 0 and 1",
            ));
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(ConfigError::invalid(
                format!("{section}.to"),
                "it must be later than from",
            ));
        }
        Ok(())
    }
}

/// How a call can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// 529 (anthropic) or 503 (all others). Nothing is charged.
    Overloaded,
    /// 500. Nothing is charged.
    ServerError,
    /// 429 although the limits would allow the call (a ramp limit). Nothing is charged.
    RateLimited,
    /// No answer comes. Nothing is charged.
    Hang,
    /// The connection is reset before any byte of an answer. Nothing is charged.
    ResetBefore,
    /// The work is done and charged; the connection is reset in the middle of the answer.
    ResetAfter,
    /// The work is done and charged; status 200, but the JSON breaks off.
    Malformed,
    /// The work is done and charged; headers come at once, the body in small pieces.
    Slow,
    /// A gateway's 502 with an HTML page. Nothing is charged.
    Html,
    /// The account's money is spent: a 429 that no waiting mends. Nothing is charged.
    SpendLimit,
    /// The model is not known: a 404. Nothing is charged.
    UnknownModel,
}

impl FaultKind {
    /// Whether it strikes after the provider has done its work, and counted it.
    pub const fn is_charged(self) -> bool {
        matches!(self, Self::ResetAfter | Self::Malformed | Self::Slow)
    }
}
