//! What a tenant has spent of today's budget.

use serde::Serialize;
use tidegate_quota::{Budgets, budget::Payer};
use tidegate_types::Tenant;

use crate::config::Config;

/// A tenant's day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct BudgetSeen {
    pub(in crate::cli) tenant: Tenant,
    pub(in crate::cli) budget_usd: f64,
    /// Spent, and held by calls under way.
    pub(in crate::cli) spent_usd: f64,
}

/// Of every tenant with a budget; those that cannot be seen are left out.
pub(super) async fn all(config: &Config, budgets: &Budgets) -> Vec<BudgetSeen> {
    let mut seen = Vec::new();
    for (tenant, budget_usd) in config.daily_budgets().unwrap_or_default() {
        if let Ok(spent_usd) = budgets.spent(&Payer::Tenant(tenant.clone())).await {
            seen.push(BudgetSeen { tenant, budget_usd, spent_usd });
        }
    }
    seen.sort_by(|a, b| a.tenant.as_str().cmp(b.tenant.as_str()));
    seen
}
