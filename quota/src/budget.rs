//! Budgets in US dollars: what a tenant may spend in a day, and what a batch may spend in all.
//!
//! Before a call, the most that it should cost is held; after it, its real cost is settled. So
//! concurrent calls cannot overspend together: a budget is exceeded only by what a single call cost
//! beyond its bound. While Redis is away, quota goes on and budgets do not: uncounted money may not
//! be spent.
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
