//! `[prices]` and the `price` of a model: what calls cost.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Prices beyond the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prices {
    /// A file in the form of the built-in `prices.toml`; its models replace and add to the built-in
    /// ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
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
