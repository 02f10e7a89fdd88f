//! The cost of a call.
//!
//! The built-in prices are in each vendor's `prices.toml`, with their sources. A file of the same
//! form can replace and add models; prices are US dollars per million tokens:
//!
//! ```toml
//! [[price]]
//! models = ["anthropic:claude-haiku-5-5"]   # provider:model
//! from = "2026-10-07"        # first day of these prices (UTC); without it, since the model came out
//! input = 0.10
//! cache-read = 0.01          # without it, the input price holds
//! cache-write = 0.125        # 5 minutes at Anthropic, 30 at OpenAI; without it, the input price holds
//! output = 0.50
//! # Another set for the whole request when its input, cached or not, exceeds so many tokens.
//! above = { tokens = 100_000, input = 0.50, cache-read = 0.05, cache-write = 0.625, output = 2.50 }
//! ```
//!
//! Batches cost half of these ([`batch::PRICE`](crate::batch::PRICE)). Not included, because
//! tidegate does not ask for them: other service tiers, one-hour cache writes, regional surcharges.

use std::collections::HashMap;

use chrono::NaiveDate;
use serde::Deserialize;
use tidegate_types::{ModelId, Usage, spend::is_amount};

use crate::vendor::Vendor;

/// A table of prices. The default one is built in.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices(HashMap<String, Vec<Row>>);

/// An invalid table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not TOML, or not in the expected form.
    #[error("the price table cannot be read")]
    Malformed(#[from] toml::de::Error),
    /// A price below zero or not a number.
    #[error(
        "the price of {model} is {price}; prices are US dollars per million tokens, from 0 to 1e12"
    )]
    Price {
        /// The model.
        model: String,
        /// As given.
        price: f64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    models: Vec<String>,
    from: Option<NaiveDate>,
    input: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
    above: Option<Above>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Above {
    tokens: u64,
    input: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
}

/// The prices of one model from a day on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    from: Option<NaiveDate>,
    rates: Rates,
    above: Option<(u64, Rates)>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    input: f64,
    cache_read: f64,
    cache_write: f64,
    output: f64,
}

fn built_in() -> String {
    Vendor::OWN.map(|vendor| vendor.0.prices).join("\n")
}

impl Default for Prices {
    /// The built-in table.
    fn default() -> Self {
        // A unit test ensures that it can be read.
        Self::parse(&built_in()).unwrap_or_else(|_| Self(HashMap::new()))
    }
}

impl Prices {
    /// Reads a table in the form that this module describes.
    ///
    /// # Errors
    /// [`Error`] if the form is wrong or a price is invalid.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut table: HashMap<String, Vec<Row>> = HashMap::new();
        for entry in toml::from_str::<File>(text)?.price {
            let rates = Rates::new(entry.input, entry.cache_read, entry.cache_write, entry.output);
            let above = entry.above.map(|above| {
                (
                    above.tokens,
                    Rates::new(above.input, above.cache_read, above.cache_write, above.output),
                )
            });
            for model in entry.models {
                for rates in [Some(rates), above.map(|(_, rates)| rates)].into_iter().flatten() {
                    rates.check(&model)?;
                }
                table.entry(model).or_default().push(Row { from: entry.from, rates, above });
            }
        }
        Ok(Self(table))
    }

    /// Adds `other`'s models; a model in both gets only `other`'s prices.
    pub fn overlaid_with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Gives the models named `other` the prices of those named `known`.
    pub fn also_for(mut self, known: &str, other: &str) -> Self {
        let rows = self.0.get(known).or_else(|| self.0.get(undated(known)?));
        if let Some(rows) = rows.cloned() {
            self.0.insert(other.to_owned(), rows);
        }
        self
    }

    /// US dollars for one call on a day (UTC), or `None` for a model without a price.
    ///
    /// A model is found by its full name, or else without a date at its end (`…-20261001`,
    /// `…-2026-10-01`). The same name at a provider with another configured name is another model:
    /// compatible endpoints have their own prices.
    pub fn cost_usd(&self, model: &ModelId, usage: &Usage, at: NaiveDate) -> Option<f64> {
        let name = model.as_str();
        let rows = self.0.get(name).or_else(|| self.0.get(undated(name)?))?;
        let row = rows
            .iter()
            .filter(|row| row.from.is_none_or(|from| from <= at))
            .max_by_key(|row| row.from)?;
        let rates = row
            .above
            .filter(|(tokens, _)| usage.input() > *tokens)
            .map_or(row.rates, |(_, rates)| rates);
        Some(rates.cost_usd(usage))
    }
}

impl Rates {
    fn new(input: f64, cache_read: Option<f64>, cache_write: Option<f64>, output: f64) -> Self {
        Self {
            input,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
            output,
        }
    }

    fn check(&self, model: &str) -> Result<(), Error> {
        match [self.input, self.cache_read, self.cache_write, self.output]
            .into_iter()
            .find(|price| !is_amount(*price))
        {
            Some(price) => Err(Error::Price { model: model.to_owned(), price }),
            None => Ok(()),
        }
    }

    fn cost_usd(&self, usage: &Usage) -> f64 {
        let part = |tokens: u64, price: f64| tokens as f64 * price;
        let sum = part(usage.uncached_input, self.input)
            + part(usage.cache_read, self.cache_read)
            + part(usage.cache_write, self.cache_write)
            + part(usage.output, self.output);
        sum / 1e6
    }
}

/// The name without `-YYYYMMDD` or `-YYYY-MM-DD` at its end.
fn undated(name: &str) -> Option<&str> {
    [("-00000000", 9), ("-0000-00-00", 11)].into_iter().find_map(|(pattern, length)| {
        let (head, tail) = name.split_at_checked(name.len().checked_sub(length)?)?;
        let fits = tail
            .bytes()
            .zip(pattern.bytes())
            .all(|(c, p)| if p == b'0' { c.is_ascii_digit() } else { c == p });
        fits.then_some(head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Usage =
        Usage { uncached_input: 1_000_000, cache_read: 0, cache_write: 0, output: 0 };

    fn cost(prices: &Prices, model: &str, usage: Usage, at: &str) -> Option<f64> {
        prices
            .cost_usd(&model.parse().unwrap(), &usage, at.parse().unwrap())
            .map(|usd| (usd * 1e6).round() / 1e6)
    }

    #[test]
    fn the_built_in_table_can_be_read() {
        let prices = Prices::parse(&built_in()).unwrap();
        assert_eq!(prices, Prices::default());
        for model in prices.0.keys() {
            assert!(model.parse::<ModelId>().is_ok(), "{model}");
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage =
            Usage { uncached_input: 1_000, cache_read: 2_000, cache_write: 3_000, output: 4_000 };
        let expected = (1_000.0 * 4.0 + 2_000.0 * 0.2 + 3_000.0 * 5.0 + 4_000.0 * 20.0) / 1e6;
        assert_eq!(
            cost(&Prices::default(), "anthropic:claude-opus-5-5", usage, "2026-11-20"),
            Some(expected)
        );
    }

    #[test]
    fn prices_have_days_and_bands() {
        let prices = Prices::default();
        let cached = Usage { cache_read: 1_000_000, ..Usage::default() };
        assert_eq!(cost(&prices, "anthropic:claude-sonnet-5-5", cached, "2026-10-06"), Some(0.2));
        assert_eq!(cost(&prices, "anthropic:claude-sonnet-5-5", cached, "2026-10-07"), Some(0.1));
        let short = Usage { uncached_input: 100_000, output: 1_000, ..Usage::default() };
        assert_eq!(cost(&prices, "anthropic:claude-haiku-5-5", short, "2026-11-20"), Some(0.0105));
        let long = Usage { cache_read: 1, ..short };
        assert_eq!(cost(&prices, "anthropic:claude-haiku-5-5", long, "2026-11-20"), Some(0.0525));
    }

    #[test]
    fn dated_names_are_found_and_other_providers_are_not() {
        let prices = Prices::default();
        for model in
            ["openai:gpt-4o-mini", "openai:gpt-4o-mini-2024-07-18", "openai:gpt-4o-mini-20240718"]
        {
            assert_eq!(cost(&prices, model, MILLION, "2026-11-20"), Some(0.15), "{model}");
        }
        for model in ["other:gpt-4o-mini", "openai:gpt-4o-mini-audio", "openai:é-20240718"] {
            assert_eq!(cost(&prices, model, MILLION, "2026-11-20"), None, "{model}");
        }
    }

    #[test]
    fn a_file_of_ones_own_goes_first() {
        let own = "[[price]]\nmodels = [\"openai:gpt-4o-mini\", \"mine:m\"]\ninput = 1.0\noutput = 2.0\nfrom = \"2026-01-01\"";
        let prices = Prices::default().overlaid_with(Prices::parse(own).unwrap());
        assert_eq!(cost(&prices, "openai:gpt-4o-mini", MILLION, "2026-11-20"), Some(1.0));
        assert_eq!(
            cost(&prices, "openai:gpt-4o-mini", MILLION, "2025-11-20"),
            None,
            "not priced before its first day"
        );
        assert_eq!(
            cost(&prices, "mine:m", Usage { cache_read: 1_000_000, ..MILLION }, "2026-11-20"),
            Some(2.0)
        );
        for bad in [
            "[[price]]\nmodels = []\ninput = 1.0",
            "[[price]]\nmodels = [\"a:b\"]\ninput = -1.0\noutput = 1.0",
            "[[price]]\nmodels = [\"a:b\"]\ninput = 1.0\noutput = 1e308",
            "prices = 1",
        ] {
            assert!(Prices::parse(bad).is_err(), "{bad}");
        }
    }
}
