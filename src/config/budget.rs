//! `[tenants.<name>]`.

use serde::{Deserialize, Serialize};

/// Who pays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tenant {
    /// US dollars that it may spend in a day (UTC); without it as much as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget_usd: Option<f64>,
}
