//! All that can hold a call, in one list.
//!
//! The list runs before the wait for quota, where no gate takes anything, and again after it,
//! because the state may have changed during the wait. In the second run each gate may take
//! something that one call alone can have, such as a probe. The gate gets it back if the call is
//! dropped before it leaves.
//!
//! | gate | holds a call while | its failure | what it takes and gets back |
//! |---|---|---|---|
//! | `worker` | this worker stops | `QuotaWait` | |
//! | `pause` | its batch is paused | `QuotaWait` | |
//! | `results` | the results of its batch cannot be written | `Transient` | the probe |
//! | `key` | the key is refused | `Unauthorized` | the probe |
//! | `name` | the provider does not know the model, or does not take what its run asks of it | `InvalidRequest` | the probe |
//! | `account` | the account may be spent | `QuotaExhausted` | the probe |
//! | `budget` | a budget refused a call a moment ago | `BudgetExceeded`, `QuotaWait` | |
//! | `circuit` | calls to the model have failed in a row | `Overloaded` | the probe, until it has ended |
//!
//! Two more things hold a call between the two runs; they are given back in the same way:
//!
//! | | holds a call while | its failure | what it takes and gets back |
//! |---|---|---|---|
//! | `quota` | the limiter has no room for it, or its gate is closed: [`tidegate_quota::Hold`] | `QuotaWait`, `QuotaExhausted`, `TooLarge`, `InvalidInput` | a permit |
//! | `budget` | too little is left of one of its budgets | `BudgetExceeded`, `QuotaWait`, `Transient` | its cost, in each budget |

use std::{fmt, sync::Arc, time::Instant};

use tidegate_quota::{Quota, Refused};
use tidegate_types::ModelId;
use tokio_util::sync::CancellationToken;

use crate::{
    attempt::Attempt,
    budget::CallBudget,
    doubts::{Doubts, Probe},
    failure::Failure,
    health::{BreakerGuard, Health},
    keys::Keys,
    unknown_models::UnknownModels,
};

/// A call that is checked before it leaves.
#[derive(Debug, Clone, Copy)]
pub struct CheckedCall<'a> {
    /// The attempt that makes it.
    pub attempt: &'a Attempt,
    /// The model that it asks.
    pub model: &'a ModelId,
    /// The time of the check.
    pub now: Instant,
}

/// The subject that a gate judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The batch, for any model that it asks.
    Batch,
    /// The model: another one may be asked.
    Model,
    /// The run's question to this model: another model may be asked, and another run may ask this
    /// one.
    Question,
    /// The budgets that pay for the call.
    Money,
}

/// The right that a gate gives to a call that is about to leave. It is returned if the call does
/// not leave.
#[derive(Debug)]
pub enum Taken {
    /// Nothing: any number of calls may leave.
    Nothing,
    /// The right to probe; used up when the call leaves.
    Probe(Probe),
    /// Passage through the model's circuit, until the call has ended.
    Circuit(BreakerGuard),
}

/// A check that can hold a call: one of the gates.
pub trait Check: fmt::Debug + Send + Sync {
    /// The gate's name in logs.
    fn name(&self) -> &'static str;

    /// Returns the subject that it judges.
    fn about(&self) -> About {
        About::Model
    }

    /// Checks whether the call may be made, as far as this process knows.
    ///
    /// # Errors
    /// The reason, and when to come back.
    fn check(&self, call: CheckedCall<'_>) -> Result<(), Failure>;

    /// Checks a call that is about to leave, and takes what only one call may have.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    fn enter(&self, call: CheckedCall<'_>) -> Result<Taken, Failure> {
        self.check(call).map(|()| Taken::Nothing)
    }

    /// Whether a held call that may come back counts as deferred.
    fn defers(&self) -> bool {
        true
    }
}

/// A call that was held, and the reason.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct Held {
    /// The name of the gate.
    pub gate: &'static str,
    /// The gate's subject; `None` for the limiter.
    pub about: Option<About>,
    /// The failure, with the time to come back.
    pub failure: Failure,
    /// The limiter's refusal, if the limiter held the call.
    pub refused: Option<Box<Refused>>,
}

impl Held {
    /// A call held by the limiter. An attempt that got a ticket keeps it.
    pub(crate) fn by_quota(refused: Refused, attempt: &Attempt) -> Self {
        if let Some((_, ticket)) = refused.comes_back() {
            attempt.defer(ticket);
        }
        let failure = Failure::refused(&refused);
        Self { gate: "quota", about: None, failure, refused: Some(Box::new(refused)) }
    }

    /// A call held by a budget that has too little left, or cannot be checked.
    pub fn by_budget(failure: Failure) -> Self {
        Self { gate: BUDGET, about: Some(About::Money), failure, refused: None }
    }

    fn by(gate: &dyn Check, call: CheckedCall<'_>, failure: Failure) -> Self {
        if gate.defers() && failure.is_retried() {
            call.attempt.defer(call.attempt.state().ticket);
        }
        Self { gate: gate.name(), about: Some(gate.about()), failure, refused: None }
    }
}

impl From<Held> for Failure {
    fn from(held: Held) -> Self {
        held.failure
    }
}

/// The gates of one process. Clones share their state.
#[derive(Debug, Clone)]
pub struct Gates {
    worker: Worker,
    pause: Pause,
    results: Option<Arc<dyn Check>>,
    /// Keys that are refused.
    pub keys: Arc<Keys>,
    /// Models that their provider does not know.
    pub unknown_models: Arc<UnknownModels>,
    /// Accounts that may be spent.
    pub accounts: Accounts,
    /// Models that should not be asked for now.
    pub health: Arc<Health>,
}

impl Gates {
    /// Creates the gates of a process that runs until `stopping` is cancelled.
    pub(crate) fn new(quota: Quota, stopping: CancellationToken) -> Self {
        Self {
            worker: Worker(stopping),
            pause: Pause(quota),
            results: None,
            keys: Arc::default(),
            unknown_models: Arc::default(),
            accounts: Accounts { doubts: Arc::new(Doubts::new(Failure::account_may_pass)) },
            health: Arc::default(),
        }
    }

    /// Adds the gate `results`, which knows whether a batch's results can be written.
    pub(crate) fn with_results(self, results: Arc<dyn Check>) -> Self {
        Self { results: Some(results), ..self }
    }

    /// All gates, in the order of their checks.
    fn list<'a>(&'a self, budget: Option<&'a CallBudget>) -> Vec<&'a dyn Check> {
        let mut list: Vec<&dyn Check> = vec![&self.worker, &self.pause];
        list.extend(self.results.as_deref());
        list.extend([&self.keys as &dyn Check, &self.unknown_models, &self.accounts]);
        list.extend(budget.map(|budget| budget as &dyn Check));
        list.push(&self.health);
        list
    }

    /// First run, before the wait: takes nothing.
    pub(crate) fn check(&self, call: CheckedCall<'_>, budget: &CallBudget) -> Result<(), Held> {
        let gates = self.list(Some(budget)).into_iter();
        each(gates, call, |gate| gate.check(call))
    }

    /// Second run, after the wait: the call is about to leave.
    pub(crate) fn enter(&self, call: CheckedCall<'_>, budget: &CallBudget) -> Result<Passed, Held> {
        let mut passed = Passed::default();
        each(self.list(Some(budget)).into_iter(), call, |gate| {
            match gate.enter(call)? {
                Taken::Nothing => {}
                Taken::Probe(probe) => passed.probes.push(probe),
                Taken::Circuit(circuit) => passed.circuit = Some(circuit),
            }
            Ok(())
        })?;
        Ok(passed)
    }

    /// Runs only the gates that judge the batch, for any model.
    pub(crate) fn of_batch(&self, call: CheckedCall<'_>) -> Result<(), Held> {
        let gates = self.list(None).into_iter().filter(|gate| gate.about() == About::Batch);
        each(gates, call, |gate| gate.check(call))
    }

    /// Whether a call to the model could be made now. If not, another model should be asked.
    pub(crate) fn let_ask(&self, call: CheckedCall<'_>) -> bool {
        let is_of_model =
            |gate: &&dyn Check| matches!(gate.about(), About::Model | About::Question);
        let mut gates = self.list(None).into_iter().filter(is_of_model);
        gates.all(|gate| gate.check(call).is_ok())
    }
}

/// Stops at the first gate that holds the call.
fn each<'a>(
    gates: impl Iterator<Item = &'a dyn Check>,
    call: CheckedCall<'_>,
    mut passes: impl FnMut(&dyn Check) -> Result<(), Failure>,
) -> Result<(), Held> {
    for gate in gates {
        passes(gate).map_err(|failure| Held::by(gate, call, failure))?;
    }
    Ok(())
}

/// The rights that the gates gave to a call. If it is dropped before the call leaves, all of them
/// are returned.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    probes: Vec<Probe>,
    circuit: Option<BreakerGuard>,
}

impl Passed {
    /// Uses them up, because the call leaves. Returns the circuit's guard, which learns the outcome
    /// at the call's end.
    pub(crate) fn leave(self) -> Option<BreakerGuard> {
        self.probes.into_iter().for_each(Probe::use_up);
        self.circuit
    }
}

/// Holds calls once this process stops.
#[derive(Debug, Clone)]
struct Worker(CancellationToken);

impl Check for Worker {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn about(&self) -> About {
        About::Batch
    }

    fn check(&self, _: CheckedCall<'_>) -> Result<(), Failure> {
        if self.0.is_cancelled() { Err(Failure::worker_stops()) } else { Ok(()) }
    }

    fn defers(&self) -> bool {
        false
    }
}

/// Holds calls of a paused batch.
#[derive(Debug, Clone)]
struct Pause(Quota);

impl Check for Pause {
    fn name(&self) -> &'static str {
        "pause"
    }

    fn about(&self) -> About {
        About::Batch
    }

    fn check(&self, call: CheckedCall<'_>) -> Result<(), Failure> {
        let since = self.0.batch_held_for(&call.attempt.run);
        since.map_or(Ok(()), |since| Err(Failure::batch_paused(since)))
    }
}

impl Check for Arc<Keys> {
    fn name(&self) -> &'static str {
        "key"
    }

    fn check(&self, call: CheckedCall<'_>) -> Result<(), Failure> {
        Keys::check(self, call.model, &call.attempt.run, call.now)
    }

    fn enter(&self, call: CheckedCall<'_>) -> Result<Taken, Failure> {
        Keys::enter(self, call.model, &call.attempt.run, call.now).map(Taken::Probe)
    }
}

impl Check for Arc<UnknownModels> {
    fn name(&self) -> &'static str {
        "name"
    }

    fn about(&self) -> About {
        About::Question
    }

    fn check(&self, call: CheckedCall<'_>) -> Result<(), Failure> {
        UnknownModels::check(self, call.model, &call.attempt.run, call.now)
    }

    fn enter(&self, call: CheckedCall<'_>) -> Result<Taken, Failure> {
        UnknownModels::enter(self, call.model, &call.attempt.run, call.now).map(Taken::Probe)
    }
}

/// Accounts that may be spent.
#[derive(Debug, Clone)]
pub struct Accounts {
    pub(crate) doubts: Arc<Doubts>,
}

impl Check for Accounts {
    fn name(&self) -> &'static str {
        "account"
    }

    fn check(&self, CheckedCall { model, now, .. }: CheckedCall<'_>) -> Result<(), Failure> {
        self.doubts.check((model, None), now)
    }

    fn enter(&self, CheckedCall { model, now, .. }: CheckedCall<'_>) -> Result<Taken, Failure> {
        self.doubts.enter((model, None), now).map(Taken::Probe)
    }
}

/// Between the two runs the budgets hold what the call may cost, so the second run checks nothing
/// more.
impl Check for CallBudget {
    fn name(&self) -> &'static str {
        BUDGET
    }

    fn about(&self) -> About {
        About::Money
    }

    fn check(&self, _: CheckedCall<'_>) -> Result<(), Failure> {
        Self::check(self)
    }

    fn enter(&self, _: CheckedCall<'_>) -> Result<Taken, Failure> {
        Ok(Taken::Nothing)
    }
}

const BUDGET: &str = "budget";

impl Check for Arc<Health> {
    fn name(&self) -> &'static str {
        "circuit"
    }

    fn check(&self, CheckedCall { model, now, .. }: CheckedCall<'_>) -> Result<(), Failure> {
        Health::check(self, model, now)
    }

    fn enter(&self, CheckedCall { model, now, .. }: CheckedCall<'_>) -> Result<Taken, Failure> {
        Health::enter(self, model, now).map(Taken::Circuit)
    }
}

#[cfg(test)]
mod tests;
