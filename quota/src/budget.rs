//! Budgets in US dollars: one for each day of a tenant, and one for a whole batch.
//!
//! Before a call, its maximum expected cost is held; after it, its real cost is settled. So
//! concurrent calls cannot overspend together: a budget is exceeded only by the cost of single
//! calls beyond their bounds. While Redis is away, quota continues and budgets do not, because
//! uncounted money must not be spent.
//!
//! ```no_run
//! # async fn call() -> f64 { 0.01 }
//! # async fn example(budgets: tidegate_quota::Budgets) -> Result<(), tidegate_quota::budget::Unheld> {
//! use tidegate_quota::Budget;
//!
//! let budget = Budget::daily("acme".to_owned().try_into().expect("a name"), 10.0);
//! let mut hold = budgets.reserve(&budget, "job-7/attempt-1", 0.04).await?; // one Redis round trip
//! hold.sent(); //                                                             from here on it may have to be paid
//! let cost_usd = call().await;
//! hold.settle(cost_usd).await; //                                             one Redis round trip
//! # Ok(())
//! # }
//! ```

mod checkpoint;
mod ledger;
mod payer;

pub use self::{
    checkpoint::Checkpoint,
    ledger::{BudgetHold, Budgets},
    payer::{Budget, BudgetRefused, Payer, Unheld, Usd},
};
