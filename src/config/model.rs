//! `[models."<provider:model>"]`: a model's limits and defaults.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_providers::Defaults;
use tidegate_quota::{ConfiguredLimits, Limits, configured_limits::Algorithm};
use tidegate_types::Effort;

use super::duration::HumanDuration;

/// One model's limits, as the provider states them for your account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Model {
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Requests a second, where the provider counts by the second: calls are then spaced evenly, and 60
    /// times as many are allowed a minute.
    pub rps: Option<u64>,
    /// Input and output tokens a minute, counted together.
    pub tpm: Option<u64>,
    /// Input tokens a minute.
    pub itpm: Option<u64>,
    /// Output tokens a minute.
    pub otpm: Option<u64>,
    /// Requests a day.
    pub rpd: Option<u64>,
    /// Input and output tokens a day, counted together.
    pub tpd: Option<u64>,
    /// When the provider's day begins, after 00:00 UTC: `8h` for midnight Pacific standard time.
    pub day_begins: HumanDuration,
    /// Concurrent requests.
    pub concurrent: Option<u64>,
    /// The part of a minute's limit that may be used at once; learned if absent.
    pub burst: Option<HumanDuration>,
    /// How the provider counts, which decides margin and window. Default: what is known of the host.
    pub algorithm: Option<Algorithm>,
    /// The fraction of each limit that is used.
    pub margin: Option<f64>,
    /// The window in which the limits hold.
    pub window: Option<HumanDuration>,
    /// The weight of output tokens in `tpm` and `tpd`, where it differs from the vendor's known figure,
    /// such as Bedrock's burndown rate.
    pub output_weight: Option<f64>,
    /// The price of its calls, where it differs from the built-in table.
    pub price: Option<Price>,
    /// The reasoning effort that a batch may override.
    pub effort: Option<Effort>,
    /// The input tokens that the provider lets wait in its batch API, by your tier. All of the fleet's
    /// batches together stay within it; what finds no room is submitted later. Default: not known.
    pub enqueued_batch_tokens: Option<u64>,
    /// Fields of the vendor's request, by their JSON names, for batches that do not state them: `{
    /// temperature = 0 }`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl Model {
    /// The defaults that a batch may override.
    pub fn defaults(&self) -> Defaults {
        Defaults {
            effort: self.effort,
            parameters: self.parameters.clone(),
            enqueued_batch_tokens: self.enqueued_batch_tokens,
        }
    }

    /// Converts to the limiter's limits; `usual` is the endpoint's known algorithm, for a section that
    /// states none. A known but unstated algorithm keeps the margin of an unknown one.
    pub fn limits(&self, usual: Algorithm) -> Limits {
        ConfiguredLimits {
            rpm: self.rpm,
            rps: self.rps,
            tpm: self.tpm,
            itpm: self.itpm,
            otpm: self.otpm,
            rpd: self.rpd,
            tpd: self.tpd,
            day_begins: *self.day_begins,
            concurrent: self.concurrent,
            burst: self.burst.map(|burst| *burst),
            algorithm: self.algorithm,
            margin: self.margin,
            window: self.window.map(|window| *window),
        }
        .limits(usual)
    }

    /// Whether its section states limits.
    pub(super) fn states_limits(&self) -> bool {
        let numbers = [self.rpm, self.rps, self.tpm, self.itpm, self.otpm, self.rpd, self.tpd];
        numbers.into_iter().chain([self.concurrent]).any(|limit| limit.is_some())
    }

    /// Whether its limits equal another's.
    pub(super) fn has_limits_of(&self, other: &Self) -> bool {
        self.limits(Algorithm::Unknown) == other.limits(Algorithm::Unknown)
    }
}

/// One model's price, in US dollars per million tokens. It takes precedence over every table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Input tokens that are neither read from nor written to a cache.
    pub input_usd_per_mtok: f64,
    /// Output, reasoning included.
    pub output_usd_per_mtok: f64,
    /// Input read from a prompt cache; as other input, if absent.
    pub cache_read_usd_per_mtok: Option<f64>,
    /// Input written to a prompt cache; as other input, if absent.
    pub cache_write_usd_per_mtok: Option<f64>,
}

impl Price {
    /// The price as an entry of a price table, for `model`.
    pub(super) fn entry(&self, model: &str) -> toml::Table {
        let rates = [
            ("input", Some(self.input_usd_per_mtok)),
            ("output", Some(self.output_usd_per_mtok)),
            ("cache-read", self.cache_read_usd_per_mtok),
            ("cache-write", self.cache_write_usd_per_mtok),
        ];
        let rates =
            rates.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), rate?.into())));
        rates.chain([("models".to_owned(), vec![model.to_owned()].into())]).collect()
    }
}
