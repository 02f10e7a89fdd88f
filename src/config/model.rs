//! `[models."<provider:model>"]`: what a provider allows for one model.

use serde::{Deserialize, Serialize};
use tidegate_quota::Limits;

use super::{prices::Price, span::Span};

/// One model's limits, as the provider states them for your account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Model {
    /// Requests a minute.
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
    /// Requests a day. Not enforced yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpd: Option<u64>,
    /// Requests at once. Not enforced yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u64>,
    /// How much of a minute may go at once.
    pub burst: Span,
    /// The part of each limit that is used.
    pub margin: f64,
    /// The window in which the limits hold.
    pub window: Span,
    /// What its calls cost, if that differs from the built-in table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl Default for Model {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            rpm: None,
            tpm: None,
            itpm: None,
            otpm: None,
            rpd: None,
            concurrent: None,
            burst: Span(limits.burst),
            margin: limits.margin,
            window: Span(limits.window),
            price: None,
        }
    }
}

impl Model {
    /// The limits as the limiter wants them.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            requests: self.rpm,
            input: self.itpm,
            output: self.otpm,
            combined: self.tpm,
            margin: self.margin,
            window: *self.window,
            burst: *self.burst,
        }
    }
}
