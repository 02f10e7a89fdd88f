//! Failures without a call: quota, gates, circuits, budgets.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use tidegate_quota::{
    Dimension, Hold, Refused,
    budget::{BudgetRefused, Payer, Unheld},
    come_back,
};
use tidegate_types::{FailureType, ModelId, WaitsFor};

use super::{AT_ONCE, BUDGET_LOST, BUDGET_RETURNS, Concerns, Failure, PAUSED, Retry};

/// Delay after which another worker takes the documents of a worker that stops because it is too
/// old for the quota.
const OUTDATED: Duration = Duration::from_secs(10);

impl Failure {
    /// The limiter's refusal; no call was made.
    pub fn refused(refused: &Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Wait { wait, hold, .. } => {
                let delay = come_back::elsewhere(*wait);
                Self::quota_wait(message, Retry::Turn(delay), waits_for(*hold))
            }
            Refused::GateClosed { wait, .. } => {
                Self::quota_wait(message, Retry::After(*wait), WaitsFor::Gate)
            }
            Refused::Undecided { wait, .. } => {
                Self::quota_wait(message, Retry::After(*wait), WaitsFor::Redis)
            }
            Refused::Outdated(_) => {
                Self::new(FailureType::QuotaWait, message, Retry::After(OUTDATED))
            }
            // The failure is kept for good, so it has the time itself and not how long until then.
            Refused::Exhausted { model, wait, reason } => {
                let until = format_minute(SystemTime::now() + *wait);
                let message = format!("{model} gives nothing more until {until}: {reason}");
                Self::never(FailureType::QuotaExhausted, message)
            }
            Refused::NeverFits { model, set: Some(_), .. } => {
                let message = format!(
                    "{message}; `tidegate limits clear {model}` gives the configured limits back"
                );
                let failure = Self::never(FailureType::TooLarge, message);
                Self { concerns: Concerns::AnOperatorsLimit, ..failure }
            }
            Refused::NeverFits { .. } => Self::never(FailureType::TooLarge, message),
            Refused::UnknownModel(_) | Refused::UnknownLane(_) => Self::invalid_input(message),
        }
    }

    fn quota_wait(message: String, retry: Retry, waits_for: WaitsFor) -> Self {
        let waits_for = Some(waits_for);
        Self { waits_for, ..Self::new(FailureType::QuotaWait, message, retry) }
    }

    /// The failure while the model's circuit stays open for this long; `words` is the provider's
    /// message in the last failure. No call was made.
    pub fn circuit_open(model: &ModelId, open: Duration, words: Option<&str>) -> Self {
        let words = words.map_or_else(String::new, |words| format!(": {words}"));
        let message = format!(
            "{model} has failed several times in a row; one call tries it again in {open:.0?}{words}"
        );
        Self::new(FailureType::Overloaded, message, Retry::AfterSpread(open))
    }

    /// The failure while the batch has been paused for this long. No call was made.
    pub fn batch_paused(since: Duration) -> Self {
        let delay = (since / 2).clamp(PAUSED.0, PAUSED.1);
        let message = "its batch is paused; send it the signal resume";
        let waits_for = Some(WaitsFor::Paused);
        let retry = Retry::WhilePaused(delay);
        Self { waits_for, ..Self::new(FailureType::QuotaWait, message, retry) }
    }

    /// The failure when this worker stops before a call of the attempt has left. Another worker
    /// takes the document.
    pub fn worker_stops() -> Self {
        let message = "this worker is stopping, and hands the document over to another worker";
        Self::new(FailureType::QuotaWait, message, Retry::After(AT_ONCE))
    }

    /// The failure for a budget with too little money. No call was made.
    pub fn over_budget(refused: &BudgetRefused) -> Self {
        if refused.may_come_back() {
            let wait = BUDGET_RETURNS + BUDGET_RETURNS.mul_f64(2.0 * rand::random::<f64>());
            return Self::quota_wait(refused.to_string(), Retry::After(wait), WaitsFor::Budget);
        }
        Self::never(FailureType::BudgetExceeded, refused.to_string())
    }

    /// The failure for a budget whose spending Redis has lost. No call was made.
    pub fn budget_lost(payer: &Payer) -> Self {
        let (flag, name) = match payer {
            Payer::Tenant(tenant) => ("tenant", tenant.as_str()),
            Payer::Batch(batch) => ("batch", batch.as_str()),
        };
        let message = format!(
            "Redis has lost what {payer} has spent; set it with `tidegate budget set --{flag} {name} --spent-usd AMOUNT`, and set [storage] state to keep it from now on"
        );
        let wait = BUDGET_LOST.mul_f64(1.0 + rand::random::<f64>());
        Self::quota_wait(message, Retry::After(wait), WaitsFor::Budget)
    }

    /// Whether a budget has too little money, for now or for good.
    pub fn waits_for_budget(&self) -> bool {
        self.kind == FailureType::BudgetExceeded || self.waits_for == Some(WaitsFor::Budget)
    }
}

/// A budget with too little left is a final failure; a budget that cannot be checked is retried.
impl From<Unheld> for Failure {
    fn from(unheld: Unheld) -> Self {
        match unheld {
            Unheld::Refused(refused) => Self::over_budget(&refused),
            Unheld::Lost { payer, .. } => Self::budget_lost(&payer),
            unsaved @ Unheld::Unsaved(_) => Self::quota_wait(
                unsaved.to_string(),
                Retry::After(BUDGET_RETURNS),
                WaitsFor::Budget,
            ),
            unknown @ Unheld::Unknown(_) => Self::transient(unknown.to_string()),
        }
    }
}

/// A time to the nearest minute, so that failures of one cause have one text: `2026-11-29 11:27 UTC`.
fn format_minute(time: SystemTime) -> String {
    (DateTime::<Utc>::from(time) + TimeDelta::seconds(30)).format("%Y-%m-%d %H:%M UTC").to_string()
}

fn waits_for(hold: Hold) -> WaitsFor {
    match hold {
        Hold::Level(Dimension::Requests) | Hold::Window(Dimension::Requests) => WaitsFor::Requests,
        Hold::Level(Dimension::Input) | Hold::Window(Dimension::Input) => WaitsFor::Input,
        Hold::Level(Dimension::Output) | Hold::Window(Dimension::Output) => WaitsFor::Output,
        Hold::Level(Dimension::Combined) | Hold::Window(Dimension::Combined) => WaitsFor::Tokens,
        Hold::InFlight => WaitsFor::InFlight,
        Hold::Turn => WaitsFor::Turn,
        Hold::Lane => WaitsFor::Lane,
        Hold::Probe => WaitsFor::Probe,
        Hold::Gate => WaitsFor::Gate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_quota_is_told_with_the_time_of_its_end() {
        let end = DateTime::parse_from_rfc3339("2026-11-29T11:26:59.990Z").unwrap();
        assert_eq!(format_minute(end.into()), "2026-11-29 11:27 UTC");
        assert_eq!(
            format_minute(SystemTime::from(end) + Duration::from_millis(20)),
            "2026-11-29 11:27 UTC"
        );
        let failure = Failure::refused(&Refused::Exhausted {
            model: "a:b".parse().unwrap(),
            wait: Duration::from_secs(895),
            reason: "the credit is spent".to_owned(),
        });
        assert!(failure.message.starts_with("a:b gives nothing more until 2"), "{failure}");
        assert!(failure.message.ends_with(" UTC: the credit is spent"), "{failure}");
    }
}
