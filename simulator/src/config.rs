//! The simulator's configuration.
//!
//! ```
//! # use tidegate_simulator::{Config, Charge};
//! let config = Config::from_toml(r#"
//!     mean-output-tokens = 150
//!     latency = { base = "300ms", per-output-token = "2ms", jitter = 0.2 }
//!
//!     [models."claude-sonnet-5"]
//!     rpm = 50
//!     itpm = 30_000
//!     otpm = 8_000
//!     charge = "max-tokens"
//!
//!     [batches]
//!     duration = "10s"
//!
//!     [[faults]]
//!     kind = "overloaded"
//!     rate = 0.02
//!     from = "30s"
//! "#)?;
//! assert_eq!(config.limits("claude-sonnet-5").charge, Charge::MaxTokens);
//! # Ok::<_, tidegate_simulator::ConfigError>(())
//! ```

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    batch::batches::Batches,
    fault::Fault,
    known::Known,
    limits::Limits,
    refused_key::RefusedKey,
    value::{self, ConfigError},
};

/// The whole configuration. [`Default`] is a provider without limits or faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Chance repeats itself with the same seed: the n-th call meets the same faults and the same
    /// latency. Default 0.
    pub seed: u64,
    /// The mean length of an answer. Default 150 tokens.
    pub mean_output_tokens: u32,
    /// How widely lengths scatter around the mean: the sigma of a lognormal distribution. Default
    /// 0.4; 0 for no scatter.
    pub output_spread: f64,
    /// The shortest beginning of a prompt that is cached. Default 1,024 tokens.
    pub cache_min_tokens: u64,
    /// The part of the documents in one call that its answer leaves out, 0 to 1. Default 0.
    pub forget_rate: f64,
    /// Documents whose right answer is known, for calls that want JSON.
    pub known: Vec<Known>,
    /// For each model, the part of its answers in which one field is wrong, and of its judgements that
    /// are wrong: 0 to 1. Default 0.
    pub error_rates: BTreeMap<String, f64>,
    /// For each model, the part of its quotes of known documents that are made up: 0 to 1. Default 0.
    pub invented_quotes: BTreeMap<String, f64>,
    /// How long answers take.
    pub latency: Latency,
    /// How batches end.
    pub batches: Batches,
    /// The limits of each model that has no section of its own.
    pub default: Limits,
    /// The limits of single models. A section stands alone: it takes nothing from `default`.
    pub models: BTreeMap<String, Limits>,
    /// Faults that are made on purpose.
    pub faults: Vec<Fault>,
    /// Keys that are not accepted. Every other key is.
    pub refused_keys: Vec<RefusedKey>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            mean_output_tokens: 150,
            output_spread: 0.4,
            cache_min_tokens: 1_024,
            forget_rate: 0.0,
            known: Vec::new(),
            error_rates: BTreeMap::new(),
            invented_quotes: BTreeMap::new(),
            latency: Latency::default(),
            batches: Batches::default(),
            default: Limits::default(),
            models: BTreeMap::new(),
            faults: Vec::new(),
            refused_keys: Vec::new(),
        }
    }
}

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// The text is no TOML, names an unknown key, or a value cannot be meant.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// Checks the values of a configuration that was put together by hand.
    ///
    /// # Errors
    /// A value cannot be meant; the error names its key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.mean_output_tokens == 0 {
            return Err(ConfigError::invalid(
                "mean-output-tokens".into(),
                "an answer has at least one token",
            ));
        }
        if !(0.0..=3.0).contains(&self.output_spread) {
            return Err(ConfigError::invalid("output-spread".into(), "it lies between 0 and 3"));
        }
        if !(0.0..=1.0).contains(&self.forget_rate) {
            return Err(ConfigError::invalid("forget-rate".into(), "a rate lies between 0 and 1"));
        }
        let rates =
            [("error-rates", &self.error_rates), ("invented-quotes", &self.invented_quotes)];
        for (key, rates) in rates {
            if let Some((model, _)) = rates.iter().find(|(_, rate)| !(0.0..=1.0).contains(*rate)) {
                let key = format!("{key}.{model:?}");
                return Err(ConfigError::invalid(key, "a rate lies between 0 and 1"));
            }
        }
        for (index, known) in self.known.iter().enumerate() {
            known.check(&format!("known[{index}]"))?;
        }
        if !(0.0..=1.0).contains(&self.latency.jitter) {
            return Err(ConfigError::invalid("latency.jitter".into(), "it lies between 0 and 1"));
        }
        self.batches.check()?;
        self.default.check("default")?;
        for (name, limits) in &self.models {
            limits.check(&format!("models.{name:?}"))?;
        }
        for (index, fault) in self.faults.iter().enumerate() {
            fault.check(&format!("faults[{index}]"))?;
        }
        for (index, key) in self.refused_keys.iter().enumerate() {
            key.check(&format!("refused-keys[{index}]"))?;
        }
        Ok(())
    }

    /// The limits that hold for a model.
    pub fn limits(&self, model: &str) -> &Limits {
        self.models.get(model).unwrap_or(&self.default)
    }
}

/// How long an answer takes: `(base + per-output-token × tokens) × (1 ± jitter)`. Default: no time
/// at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Latency {
    /// The part that every answer takes.
    #[serde(with = "value")]
    pub base: Duration,
    /// The part that grows with the answer.
    #[serde(with = "value")]
    pub per_output_token: Duration,
    /// How much longer or shorter by chance, as a part of the whole: 0 to 1.
    pub jitter: f64,
}

impl Latency {
    /// The time of an answer; `chance` lies in 0..1.
    pub(crate) fn time_of(&self, output: u64, chance: f64) -> Duration {
        let tokens = u32::try_from(output).unwrap_or(u32::MAX);
        let whole = self.base + self.per_output_token.saturating_mul(tokens);
        whole.mul_f64(self.jitter.mul_add(2.0f64.mul_add(chance, -1.0), 1.0).max(0.0))
    }
}
