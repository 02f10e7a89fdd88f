//! The limits of one model in a minute.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    amounts::Dimension,
    value::{self, ConfigError},
};

/// One model's limits. Any subset may be set; a dimension without a limit is never refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Calls a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// Input and output tokens a minute, counted together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm: Option<u64>,
    /// Input tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub itpm: Option<u64>,
    /// Output tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otpm: Option<u64>,
    /// How the minute is measured. Default `"token-bucket"`.
    pub algorithm: Algorithm,
    /// How much of a minute a full token bucket holds. Default `"60s"`: a whole limit may go at
    /// once. `"1s"` is a provider that enforces 60 a minute as 1 a second.
    #[serde(with = "value")]
    pub bucket: Duration,
    /// When tokens are counted, and how many. Default `"admission"`.
    pub charge: Charge,
    /// By how much real output counts in `tpm`: Bedrock's burndown. `max_tokens` counts once.
    /// Default 1.
    pub output_weight: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rpm: None,
            tpm: None,
            itpm: None,
            otpm: None,
            algorithm: Algorithm::default(),
            bucket: Duration::from_mins(1),
            charge: Charge::default(),
            output_weight: 1.0,
        }
    }
}

impl Limits {
    /// The limit of one dimension.
    pub const fn get(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Requests => self.rpm,
            Dimension::Tokens => self.tpm,
            Dimension::Input => self.itpm,
            Dimension::Output => self.otpm,
        }
    }

    pub(crate) fn check(&self, section: &str) -> Result<(), ConfigError> {
        for (key, limit) in
            [("rpm", self.rpm), ("tpm", self.tpm), ("itpm", self.itpm), ("otpm", self.otpm)]
        {
            if limit == Some(0) {
                return Err(ConfigError::invalid(
                    format!("{section}.{key}"),
                    "0 admits nothing; leave it out for no limit",
                ));
            }
        }
        if !(0.0..=1_000.0).contains(&self.output_weight) {
            return Err(ConfigError::invalid(
                format!("{section}.output-weight"),
                "it lies between 0 and 1000",
            ));
        }
        if self.bucket.is_zero() {
            return Err(ConfigError::invalid(
                format!("{section}.bucket"),
                "an empty bucket admits nothing",
            ));
        }
        Ok(())
    }
}

/// How a minute is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Continuous refill up to [`Limits::bucket`]. A call that needs more than the bucket holds, but
    /// not more than the limit, is admitted when the bucket is full, and leaves it in debt.
    #[default]
    TokenBucket,
    /// Minutes that begin and end with the simulator's own clock.
    FixedWindow,
    /// Never more than the limit in any 60 seconds.
    SlidingWindow,
}

/// When tokens are counted, and how many. Input is always counted at admission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// The real output too, at admission: the simulator knows beforehand how long its answer will
    /// be.
    #[default]
    Admission,
    /// `max_tokens` at admission; what was not used is given back at completion.
    MaxTokens,
    /// `max_tokens` at admission, and nothing is given back.
    MaxTokensKept,
    /// The real output, at completion. Calls in flight can so bring a dimension into debt.
    Completion,
}
