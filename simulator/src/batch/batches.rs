//! How batches end, as configured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::value::{self, ConfigError};

/// The section `[batches]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Batches {
    /// How long a batch takes, however many requests it has. They are done one after another, by
    /// chance, between the first and the last tenth of it. Default `"2s"`.
    #[serde(with = "value")]
    pub duration: Duration,
    /// The part of the requests that end in the vendor's server error, 0 to 1. Default 0.
    pub error_rate: f64,
    /// The part of the requests that are not done when the batch ends, 0 to 1. Default 0.
    pub expire_rate: f64,
    /// The most input tokens that all of OpenAI's batches that have not ended may have; a batch
    /// beyond it fails. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_tokens: Option<u64>,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(2),
            error_rate: 0.0,
            expire_rate: 0.0,
            queue_tokens: None,
        }
    }
}

impl Batches {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, rate) in [("error-rate", self.error_rate), ("expire-rate", self.expire_rate)] {
            if !(0.0..=1.0).contains(&rate) {
                return Err(ConfigError::invalid(
                    format!("batches.{key}"),
                    "a rate lies between 0 and 1",
                ));
            }
        }
        if self.error_rate + self.expire_rate > 1.0 {
            return Err(ConfigError::invalid(
                "batches.expire-rate".into(),
                "with error-rate it is more than all",
            ));
        }
        Ok(())
    }
}
