//! `[models."<provider:model>"]`: what a provider allows for one model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_providers::Defaults;
use tidegate_quota::{ConfiguredLimits, Limits, configured_limits};
use tidegate_types::Effort;

use super::span::Span;

/// One model's limits, as the provider states them for your account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Model {
    /// Requests a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// Requests a second, where the provider counts by it: calls then go evenly, and 60 times as many
    /// a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps: Option<u64>,
    /// Input and output tokens a minute, counted together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm: Option<u64>,
    /// Input tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub itpm: Option<u64>,
    /// Output tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otpm: Option<u64>,
    /// Requests a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpd: Option<u64>,
    /// Input and output tokens a day, counted together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpd: Option<u64>,
    /// When the provider's day begins, after 00:00 UTC: `8h` for midnight Pacific standard time.
    pub day_begins: Span,
    /// Requests at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u64>,
    /// How much of a minute may go at once; learned if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Span>,
    /// How the provider counts; chooses margin and window. If absent, what is known of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// The part of each limit that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The window in which the limits hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// By how much output counts in `tpm` and `tpd`, where the vendor's own figure is another:
    /// Bedrock's burndown rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_weight: Option<f64>,
    /// What its calls cost, if that differs from the built-in table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How much it thinks, unless a batch says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Input tokens that the provider lets wait in its batch API, as your tier has them. What all of
    /// the fleet's batches have waiting is no more together; what finds no room is handed in later.
    /// Default: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_batch_tokens: Option<u64>,
    /// Fields of the vendor's request, under the names of its JSON, that a batch does not state:
    /// `{ temperature = 0 }`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// How a provider counts a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Unknown, or a strict sliding window: margin 0.98 over 60.5 s, which no provider model
    /// tried refuses.
    Unknown,
    /// A token bucket that refills steadily and holds a minute's worth: margin 1 over 60 s.
    TokenBucket,
}

impl Algorithm {
    fn counted(self) -> configured_limits::Algorithm {
        match self {
            Self::Unknown => configured_limits::Algorithm::Unknown,
            Self::TokenBucket => configured_limits::Algorithm::TokenBucket,
        }
    }
}

impl Model {
    /// How it is asked unless a batch says otherwise.
    pub fn defaults(&self) -> Defaults {
        Defaults {
            effort: self.effort,
            parameters: self.parameters.clone(),
            enqueued_batch_tokens: self.enqueued_batch_tokens,
        }
    }

    /// The limits as the limiter wants them, at an endpoint that counts so if nothing else is said.
    /// What is only taken to be so keeps the margin of what is not known.
    pub fn limits(&self, usual: Algorithm) -> Limits {
        let stated = ConfiguredLimits {
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
            algorithm: self.algorithm.map(Algorithm::counted),
            margin: self.margin,
            window: self.window.map(|window| *window),
        };
        stated.limits(usual.counted())
    }
}

impl Model {
    /// Whether its section says what the provider allows.
    pub(super) fn states_limits(&self) -> bool {
        let numbers = [self.rpm, self.rps, self.tpm, self.itpm, self.otpm, self.rpd, self.tpd];
        numbers.into_iter().chain([self.concurrent]).any(|limit| limit.is_some())
    }

    /// Whether it allows the same as another.
    pub(super) fn has_limits_of(&self, other: &Self) -> bool {
        self.limits(Algorithm::Unknown) == other.limits(Algorithm::Unknown)
    }
}

/// One model's price, in US dollars per million tokens. It goes before every table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Input that no cache has a part in.
    pub input_usd_per_mtok: f64,
    /// Output, reasoning included.
    pub output_usd_per_mtok: f64,
    /// Input read from a prompt cache; as other input, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_usd_per_mtok: Option<f64>,
    /// Input written to a prompt cache; as other input, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_usd_per_mtok: Option<f64>,
}

impl Price {
    /// The price as an entry of a table for `model`.
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
