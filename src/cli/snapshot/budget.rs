//! A tenant's spending of today's budget.

use serde::Serialize;
use tidegate_quota::{Budgets, budget::Payer};
use tidegate_types::Tenant;

use crate::config::Config;

/// A tenant's budget today.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct BudgetView {
    pub(in crate::cli) tenant: Tenant,
    pub(in crate::cli) budget_usd: f64,
    /// US dollars spent, including reservations of calls under way.
    pub(in crate::cli) spent_usd: f64,
}

/// All tenants with a budget; tenants whose state cannot be read are left out.
pub(super) async fn all(config: &Config, budgets: &Budgets) -> Vec<BudgetView> {
    let mut seen = Vec::new();
    for (tenant, budget_usd) in config.daily_budgets().unwrap_or_default() {
        if let Ok(spent_usd) = budgets.spent(&Payer::Tenant(tenant.clone())).await {
            seen.push(BudgetView { tenant, budget_usd, spent_usd });
        }
    }
    seen.sort_by(|a, b| a.tenant.as_str().cmp(b.tenant.as_str()));
    seen
}
