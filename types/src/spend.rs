//! Calls, tokens and money that work has used; they add up over steps, documents and shards.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Calls, tokens and their price. Payloads that contain one have its fields at their own level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spend {
    /// Provider calls made.
    pub provider_calls: u64,
    /// Of these, calls answered with 429.
    pub rate_limited: u64,
    /// Attempts that went back to Temporal to wait for quota; no call was made.
    pub deferrals: u64,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Calls with tokens but without a known price; [`Self::cost_usd`] leaves them out.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unpriced_calls: u64,
}

impl Spend {
    /// The tokens of a call and their price, if known, without the call itself.
    pub fn of_tokens(usage: &Usage, cost_usd: Option<f64>) -> Self {
        Self {
            input_tokens: usage.input(),
            cached_input_tokens: usage.cache_read,
            output_tokens: usage.output,
            cost_usd: cost_usd.unwrap_or(0.0),
            unpriced_calls: u64::from(cost_usd.is_none() && usage.input() + usage.output > 0),
            ..Self::default()
        }
    }

    /// The difference to an earlier sum.
    pub fn beyond(self, before: Self) -> Self {
        Self {
            provider_calls: self.provider_calls.saturating_sub(before.provider_calls),
            rate_limited: self.rate_limited.saturating_sub(before.rate_limited),
            deferrals: self.deferrals.saturating_sub(before.deferrals),
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_input_tokens: self
                .cached_input_tokens
                .saturating_sub(before.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_usd: (self.cost_usd - before.cost_usd).max(0.0),
            unpriced_calls: self.unpriced_calls.saturating_sub(before.unpriced_calls),
        }
    }

    /// Only the tokens and their price, without the calls.
    pub fn tokens(self) -> Self {
        Self { provider_calls: 0, rate_limited: 0, deferrals: 0, ..self }
    }

    /// Only the calls, without tokens and price.
    pub fn calls(self) -> Self {
        let Self { provider_calls, rate_limited, deferrals, .. } = self;
        Self { provider_calls, rate_limited, deferrals, ..Self::default() }
    }

    /// US dollars; `None` if no price is known for any of it.
    pub fn known_usd(&self) -> Option<f64> {
        (self.unpriced_calls == 0 || self.cost_usd > 0.0).then_some(self.cost_usd)
    }
}

/// Most US dollars of an amount or a price: sums and products of them stay finite.
pub const MAX_USD: f64 = 1e12;

/// Whether this is an amount of US dollars: a number from 0 to [`MAX_USD`].
pub fn is_amount(usd: f64) -> bool {
    (0.0..=MAX_USD).contains(&usd)
}

/// Rounds an amount for output to a billionth of a dollar, less than the price of a token. Sums of
/// floats have meaningless further digits.
pub fn rounded_usd(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}

impl AddAssign for Spend {
    fn add_assign(&mut self, other: Self) {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            provider_calls,
            rate_limited,
            deferrals,
            input_tokens,
            cached_input_tokens,
            output_tokens,
            cost_usd,
            unpriced_calls,
        } = other;
        self.provider_calls += provider_calls;
        self.rate_limited += rate_limited;
        self.deferrals += deferrals;
        self.input_tokens += input_tokens;
        self.cached_input_tokens += cached_input_tokens;
        self.output_tokens += output_tokens;
        self.cost_usd += cost_usd;
        self.unpriced_calls += unpriced_calls;
    }
}

impl Add for Spend {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// Calls and waits of one document, passed from attempt to attempt, and part of a final failure's
/// details.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Provider calls made.
    pub provider_calls: u32,
    /// Of these, calls answered with 429.
    pub rate_limited: u32,
    /// Attempts that went back to Temporal to wait for quota; no call was made.
    pub deferrals: u32,
}

impl From<CallCounts> for Spend {
    fn from(counts: CallCounts) -> Self {
        let CallCounts { provider_calls, rate_limited, deferrals } = counts;
        Self {
            provider_calls: provider_calls.into(),
            rate_limited: rate_limited.into(),
            deferrals: deferrals.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_amounts_stay_finite() {
        assert!([0.0, 2.5, MAX_USD].into_iter().all(is_amount));
        assert!(![-1.0, 1e308, f64::INFINITY, f64::NAN].into_iter().any(is_amount));
    }

    #[test]
    fn money_is_written_without_the_dust_of_sums() {
        let sum = 0.044_837_999_999_999_996;
        assert_eq!(rounded_usd(sum).to_string(), "0.044838");
        assert_eq!(rounded_usd(0.000_000_01).to_string(), "0.00000001");
        assert_eq!(rounded_usd(0.0).to_string(), "0");
    }

    #[test]
    fn every_field_is_added() {
        let one = Spend {
            provider_calls: 1,
            rate_limited: 2,
            deferrals: 3,
            input_tokens: 4,
            cached_input_tokens: 5,
            output_tokens: 6,
            cost_usd: 0.5,
            unpriced_calls: 7,
        };
        let two = Spend {
            provider_calls: 2,
            rate_limited: 4,
            deferrals: 6,
            input_tokens: 8,
            cached_input_tokens: 10,
            output_tokens: 12,
            cost_usd: 1.0,
            unpriced_calls: 14,
        };
        assert_eq!(one + one, two);
        assert_eq!(one.calls() + one.tokens(), one);
        assert_eq!((two.beyond(one), one.beyond(two)), (one, Spend::default()));
    }

    #[test]
    fn a_call_without_a_price_is_no_call_for_nothing() {
        let usage = Usage { output: 3, ..Usage::default() };
        let (priced, unpriced) =
            (Spend::of_tokens(&usage, Some(0.5)), Spend::of_tokens(&usage, None));
        assert_eq!((priced.unpriced_calls, unpriced.unpriced_calls), (0, 1));
        assert_eq!(Spend::of_tokens(&Usage::default(), None), Spend::default());
        assert_eq!((priced.known_usd(), unpriced.known_usd()), (Some(0.5), None));
        assert_eq!((priced + unpriced).known_usd(), Some(0.5));
        assert_eq!(Spend::default().known_usd(), Some(0.0));
    }
}
