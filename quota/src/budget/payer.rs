//! Payers, their budgets, and the errors of a budget that is spent.

use std::{fmt, time::Duration};

use tidegate_types::Tenant;

use crate::error::Error;

/// The payer of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A tenant, in each day from 00:00 UTC.
    Tenant(Tenant),
    /// A batch by its workflow id, over all its runs.
    Batch(String),
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "tenant \"{tenant}\""),
            Self::Batch(batch) => write!(f, "batch \"{batch}\""),
        }
    }
}

/// A payer's budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The payer.
    pub payer: Payer,
    /// US dollars. All callers should give the same; one that gives less is refused sooner.
    pub usd: f64,
    /// Whether the budget was opened and so must exist: if it does not, Redis has lost it.
    pub opened: bool,
}

impl Budget {
    /// A tenant's budget for each day (UTC), in US dollars.
    pub fn daily(tenant: Tenant, usd: f64) -> Self {
        Self { payer: Payer::Tenant(tenant), usd, opened: false }
    }

    /// A batch's whole budget, in US dollars. It is forgotten 30 days after its last call.
    pub fn of_batch(workflow_id: impl Into<String>, usd: f64) -> Self {
        Self { payer: Payer::Batch(workflow_id.into()), usd, opened: false }
    }

    /// This budget, which must exist: see [`Budgets::open`](super::Budgets::open).
    pub fn opened(self) -> Self {
        Self { opened: true, ..self }
    }
}

/// The reason why [`Budgets::reserve`](super::Budgets::reserve) held nothing. Without a hold no
/// call may be made.
#[derive(Debug, thiserror::Error)]
pub enum Unheld {
    /// The budget has too little left.
    #[error(transparent)]
    Refused(#[from] BudgetRefused),
    /// The budget was opened, and Redis has lost it: its spending is unknown.
    #[error("what {payer} has spent is not known any more: Redis has lost it")]
    Lost {
        /// The payer of the budget.
        payer: Payer,
        /// The budget's day, counted from 1970-01-01; 0 without days.
        day: u64,
    },
    /// Everything that the last checkpoint allows is spent or held: another one is due first.
    #[error("a checkpoint of the budget of {0} is due")]
    Unsaved(Payer),
    /// Redis does not answer, so the rest of the budget is unknown. Come back later.
    #[error("no budget can be kept, so no call is made: {0}")]
    Unknown(#[from] Error),
}

/// A budget that has too little left for a call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct BudgetRefused {
    /// The payer of the budget.
    pub payer: Payer,
    /// The budget in US dollars.
    pub budget_usd: f64,
    /// US dollars that are neither spent nor held.
    pub left_usd: f64,
    /// US dollars that the call may cost.
    pub needed_usd: f64,
    /// US dollars held by calls under way, which may be released.
    pub returning_usd: f64,
    /// Time until the budget begins again; `None` if it never does.
    pub reset: Option<Duration>,
}

impl BudgetRefused {
    /// Whether the call would fit if the calls under way cost nothing.
    pub fn may_come_back(&self) -> bool {
        self.returning_usd > 0.0 && self.needed_usd <= self.left_usd + self.returning_usd + 1e-10
    }
}

impl fmt::Display for BudgetRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payer, budget_usd, left_usd, needed_usd, reset, .. } = self;
        let budget = Usd(*budget_usd);
        let [left, needed] = told_apart(*left_usd, *needed_usd);
        let span = if reset.is_some() { "a day" } else { "in all" };
        write!(
            f,
            "{payer} may spend {budget} {span}; {left} is left and this call may cost {needed}; "
        )?;
        if self.may_come_back() {
            let returning = Usd(self.returning_usd);
            return write!(f, "calls under way hold {returning} and may give some of it back");
        }
        match reset {
            Some(reset) => {
                let minutes = reset.as_secs().div_ceil(60);
                write!(
                    f,
                    "the next day begins in {} h {} min, at 00:00 UTC",
                    minutes / 60,
                    minutes % 60
                )
            }
            None => f.write_str("start the batch again with a higher budget_usd to go on"),
        }
    }
}

/// What is left and what is needed, with enough digits to tell them apart.
fn told_apart(left: f64, needed: f64) -> [String; 2] {
    let usual = Usd(left).digits().max(Usd(needed).digits());
    let text = |usd: f64, digits: usize| format!("{usd:.digits$} USD");
    match (usual..=Usd::DECIMALS).find(|digits| text(left, *digits) != text(needed, *digits)) {
        Some(digits) if digits > usual => [text(left, digits), text(needed, digits)],
        _ => [Usd(left).to_string(), Usd(needed).to_string()],
    }
}

/// US dollars for people: cents, or two significant digits where cents would show too little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usd(pub f64);

impl Usd {
    /// Decimals of the wire protocol's unit.
    const DECIMALS: usize = 9;

    fn digits(self) -> usize {
        let text = format!("{:.*}", Self::DECIMALS, self.0);
        text.find('.').map_or(0, |point| {
            let fraction = &text[point + 1..];
            let last = fraction.trim_end_matches('0').len();
            let first = if self.0 >= 1.0 {
                0
            } else {
                fraction.len() - fraction.trim_start_matches('0').len()
            };
            (first + 2).min(last).max(2)
        })
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*} USD", self.digits(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_reads_as_money() {
        #[rustfmt::skip]
        let cases = [
            (0.0, "0.00 USD"), (10.0, "10.00 USD"), (0.5, "0.50 USD"), (12.3456, "12.35 USD"), (0.0123, "0.012 USD"),
            (0.000_004_2, "0.0000042 USD"), (1e-9, "0.000000001 USD"),
        ];
        for (usd, text) in cases {
            assert_eq!(Usd(usd).to_string(), text);
        }
    }

    #[test]
    fn a_refusal_names_the_payer_the_amounts_and_the_reset() {
        let refused = BudgetRefused {
            payer: Payer::Batch("night".to_owned()),
            budget_usd: 2.0,
            left_usd: 0.01,
            needed_usd: 0.04,
            returning_usd: 0.0,
            reset: None,
        };
        assert_eq!(
            refused.to_string(),
            "batch \"night\" may spend 2.00 USD in all; 0.01 USD is left and this call may cost 0.04 USD; start the batch again with a higher budget_usd to go on"
        );
        let close = BudgetRefused { left_usd: 0.01, needed_usd: 0.0103, ..refused.clone() };
        let close = close.to_string();
        assert!(
            close.contains("0.0100 USD is left and this call may cost 0.0103 USD"),
            "the amounts differ: {close}"
        );
        let waiting = BudgetRefused { returning_usd: 0.5, ..refused.clone() };
        assert!(waiting.may_come_back());
        assert!(
            waiting
                .to_string()
                .ends_with("calls under way hold 0.50 USD and may give some of it back")
        );
        assert!(!BudgetRefused { returning_usd: 0.02, ..waiting }.may_come_back(), "not enough");
        let payer = Payer::Tenant("acme".to_owned().try_into().unwrap());
        let refused = BudgetRefused {
            payer,
            reset: Some(Duration::from_secs(5 * 3600 + 11 * 60 + 1)),
            ..refused
        };
        assert_eq!(
            refused.to_string(),
            "tenant \"acme\" may spend 2.00 USD a day; 0.01 USD is left and this call may cost 0.04 USD; the next day begins in 5 h 12 min, at 00:00 UTC"
        );
    }
}
