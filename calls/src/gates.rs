//! What can hold a call: one list.
//!
//! The list runs before the wait for quota, where nothing is taken, and again after it: what was
//! looked at before may have changed. Then each gate takes what one call alone may have, and gets it
//! back when the call is dropped before it leaves.
//!
//! | gate | holds a call while | its failure | what it takes and gets back |
//! |---|---|---|---|
//! | `worker` | this worker stops | `QuotaWait` | |
//! | `pause` | its batch is paused | `QuotaWait` | |
//! | `results` | what its batch buys cannot be written | `Transient` | the call that finds out |
//! | `key` | the key is refused | `Unauthorized` | the call that finds out |
//! | `name` | the provider does not know the model, or does not take what its run asks of it | `InvalidRequest` | the call that finds out |
//! | `account` | the account is said to be spent | `QuotaExhausted` | the call that finds out |
//! | `budget` | a budget was found spent a moment ago | `BudgetExceeded`, `QuotaWait` | |
//! | `circuit` | calls to the model have failed one after the other | `Overloaded` | the call that finds out, until it has ended |
//!
//! What is waited for between the two runs holds a call, too, and is given back in the same way:
//!
//! | | holds a call while | its failure | what it takes and gets back |
//! |---|---|---|---|
//! | `quota` | the limiter has no room for it, or its gate is closed: [`tidegate_quota::Hold`] | `QuotaWait`, `QuotaExhausted`, `TooLarge`, `InvalidInput` | a permit |
//! | `budget` | what is left of a budget that pays for it is less than it may cost | `BudgetExceeded`, `QuotaWait`, `Transient` | that much, in each of them |

use std::{fmt, sync::Arc, time::Instant};

use tidegate_quota::{Quota, Refused};
use tidegate_types::ModelId;
use tokio_util::sync::CancellationToken;

use crate::{
    attempt::Attempt,
    budget::CallBudget,
    doubts::Doubts,
    failure::Failure,
    health::{BreakerGuard, Health},
    keys::Keys,
    probe::Probe,
    unknown_models::UnknownModels,
};

/// A call that wants to leave.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Whose call it is.
    pub attempt: &'a Attempt,
    /// The model that it asks.
    pub model: &'a ModelId,
    /// Now.
    pub now: Instant,
}

/// What a gate is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The batch, whichever model it asks.
    Batch,
    /// The model: another one may be asked.
    Model,
    /// What a run of a batch asks of the model: another one may be asked, and another run may ask this
    /// one.
    Question,
    /// What pays for the call.
    Money,
}

/// What a gate gives a call that is about to leave, and gets back if it does not.
#[derive(Debug)]
pub enum Taken {
    /// Nothing: as many may leave as come.
    Nothing,
    /// Leave to find out; it is used up when the call leaves.
    Probe(Probe),
    /// A way through the model's circuit, until the call has ended.
    Circuit(BreakerGuard),
}

/// Something that can hold a call.
pub trait Gate: fmt::Debug + Send + Sync {
    /// For people.
    fn name(&self) -> &'static str;

    /// What it is about.
    fn about(&self) -> About {
        About::Model
    }

    /// Whether the call may be made, as far as is known here.
    ///
    /// # Errors
    /// What holds it, and when to come back.
    fn check(&self, asking: Asking<'_>) -> Result<(), Failure>;

    /// The same of a call that is about to leave: takes what one call alone may have.
    ///
    /// # Errors
    /// As [`Self::check`].
    fn enter(&self, asking: Asking<'_>) -> Result<Taken, Failure> {
        self.check(asking).map(|()| Taken::Nothing)
    }

    /// Whether who is held and may come back counts as deferred.
    fn defers(&self) -> bool {
        true
    }
}

/// Why no call left.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct Held {
    /// The name of the gate.
    pub gate: &'static str,
    /// What it is about; `None` of the limiter.
    pub about: Option<About>,
    /// What that means, and when to come back.
    pub failure: Failure,
    /// What the limiter said, where it was the limiter.
    pub refused: Option<Box<Refused>>,
}

impl Held {
    /// By the limiter. Whoever was told a turn keeps it.
    pub(crate) fn by_quota(refused: Refused, attempt: &Attempt) -> Self {
        match &refused {
            Refused::Wait { ticket, .. } => attempt.deferred(Some(*ticket)),
            Refused::Paused { ticket, .. } => attempt.deferred(*ticket),
            Refused::Exhausted { .. }
            | Refused::NeverFits { .. }
            | Refused::Outdated(_)
            | Refused::UnknownModel(_)
            | Refused::UnknownLane(_) => {}
        }
        let failure = Failure::refused(&refused);
        Self { gate: "quota", about: None, failure, refused: Some(Box::new(refused)) }
    }

    /// By a budget that has too little left, or cannot be kept.
    pub fn by_budget(failure: Failure) -> Self {
        Self { gate: BUDGET, about: Some(About::Money), failure, refused: None }
    }

    fn by(gate: &dyn Gate, asking: Asking<'_>, failure: Failure) -> Self {
        if gate.defers() && failure.is_retried() {
            asking.attempt.deferred(asking.attempt.state().ticket);
        }
        Self { gate: gate.name(), about: Some(gate.about()), failure, refused: None }
    }
}

impl From<Held> for Failure {
    fn from(held: Held) -> Self {
        held.failure
    }
}

/// The gates of one process. Clones are the same.
#[derive(Debug, Clone)]
pub struct Gates {
    worker: Worker,
    pause: Pause,
    results: Option<Arc<dyn Gate>>,
    /// Keys that are refused.
    pub keys: Arc<Keys>,
    /// Models that their provider does not know.
    pub names: Arc<UnknownModels>,
    /// Accounts that are said to be spent.
    pub accounts: Arc<Doubts>,
    /// Models that should not be asked for a while.
    pub health: Arc<Health>,
}

impl Gates {
    /// Of a process that goes on until `stopping` is cancelled.
    pub(crate) fn new(quota: Quota, stopping: CancellationToken) -> Self {
        Self {
            worker: Worker(stopping),
            pause: Pause(quota),
            results: None,
            keys: Arc::default(),
            names: Arc::default(),
            accounts: Arc::new(Doubts::new(Failure::account_may_pass)),
            health: Arc::default(),
        }
    }

    /// The same, where `results` knows whether what a batch buys can be written.
    pub(crate) fn with_results(self, results: Arc<dyn Gate>) -> Self {
        Self { results: Some(results), ..self }
    }

    /// All of them, in the order in which they are looked at.
    fn list<'a>(&'a self, budget: Option<&'a CallBudget>) -> Vec<&'a dyn Gate> {
        let mut list: Vec<&dyn Gate> = vec![&self.worker, &self.pause];
        list.extend(self.results.as_deref());
        list.extend([&self.keys as &dyn Gate, &self.names, &self.accounts]);
        list.extend(budget.map(|budget| budget as &dyn Gate));
        list.push(&self.health);
        list
    }

    /// The first run, before the wait: takes nothing.
    pub(crate) fn check(&self, asking: Asking<'_>, budget: &CallBudget) -> Result<(), Held> {
        let gates = self.list(Some(budget)).into_iter();
        each(gates, asking, |gate| gate.check(asking))
    }

    /// The second run, after the wait: the call leaves now.
    pub(crate) fn enter(&self, asking: Asking<'_>, budget: &CallBudget) -> Result<Passed, Held> {
        let mut passed = Passed::default();
        each(self.list(Some(budget)).into_iter(), asking, |gate| {
            match gate.enter(asking)? {
                Taken::Nothing => {}
                Taken::Probe(probe) => passed.probes.push(probe),
                Taken::Circuit(circuit) => passed.circuit = Some(circuit),
            }
            Ok(())
        })?;
        Ok(passed)
    }

    /// What of the batch holds a call, whichever model it asks.
    pub(crate) fn of_batch(&self, asking: Asking<'_>) -> Result<(), Held> {
        let gates = self.list(None).into_iter().filter(|gate| gate.about() == About::Batch);
        each(gates, asking, |gate| gate.check(asking))
    }

    /// Whether a call to the model could be made now: else another one should be asked, if there is
    /// one.
    pub(crate) fn let_ask(&self, asking: Asking<'_>) -> bool {
        let is_of_model = |gate: &&dyn Gate| matches!(gate.about(), About::Model | About::Question);
        let mut gates = self.list(None).into_iter().filter(is_of_model);
        gates.all(|gate| gate.check(asking).is_ok())
    }
}

/// Stops at the first that holds the call.
fn each<'a>(
    gates: impl Iterator<Item = &'a dyn Gate>,
    asking: Asking<'_>,
    mut passes: impl FnMut(&dyn Gate) -> Result<(), Failure>,
) -> Result<(), Held> {
    for gate in gates {
        passes(gate).map_err(|failure| Held::by(gate, asking, failure))?;
    }
    Ok(())
}

/// What a call was let through with. Dropped before it leaves, everything is given back.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    probes: Vec<Probe>,
    circuit: Option<BreakerGuard>,
}

impl Passed {
    /// The call leaves. What it finds out for its circuit is told at its end.
    pub(crate) fn leaves(self) -> Option<BreakerGuard> {
        self.probes.into_iter().for_each(Probe::leaves);
        self.circuit
    }
}

/// Until this process stops.
#[derive(Debug, Clone)]
struct Worker(CancellationToken);

impl Gate for Worker {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn about(&self) -> About {
        About::Batch
    }

    fn check(&self, _: Asking<'_>) -> Result<(), Failure> {
        if self.0.is_cancelled() { Err(Failure::worker_stops()) } else { Ok(()) }
    }

    fn defers(&self) -> bool {
        false
    }
}

/// While nobody has paused the batch.
#[derive(Debug, Clone)]
struct Pause(Quota);

impl Gate for Pause {
    fn name(&self) -> &'static str {
        "pause"
    }

    fn about(&self) -> About {
        About::Batch
    }

    fn check(&self, asking: Asking<'_>) -> Result<(), Failure> {
        let since = self.0.batch_held_for(&asking.attempt.run);
        since.map_or(Ok(()), |since| Err(Failure::batch_paused(since)))
    }
}

impl Gate for Arc<Keys> {
    fn name(&self) -> &'static str {
        "key"
    }

    fn check(&self, Asking { attempt, model, now }: Asking<'_>) -> Result<(), Failure> {
        Keys::check(self, model, &attempt.run, now)
    }

    fn enter(&self, Asking { attempt, model, now }: Asking<'_>) -> Result<Taken, Failure> {
        Keys::enter(self, model, &attempt.run, now).map(Taken::Probe)
    }
}

impl Gate for Arc<UnknownModels> {
    fn name(&self) -> &'static str {
        "name"
    }

    fn about(&self) -> About {
        About::Question
    }

    fn check(&self, Asking { attempt, model, now }: Asking<'_>) -> Result<(), Failure> {
        UnknownModels::check(self, model, &attempt.run, now)
    }

    fn enter(&self, Asking { attempt, model, now }: Asking<'_>) -> Result<Taken, Failure> {
        UnknownModels::enter(self, model, &attempt.run, now).map(Taken::Probe)
    }
}

impl Gate for Arc<Doubts> {
    fn name(&self) -> &'static str {
        "account"
    }

    fn check(&self, Asking { model, now, .. }: Asking<'_>) -> Result<(), Failure> {
        Doubts::check(self, (model, None), now)
    }

    fn enter(&self, Asking { model, now, .. }: Asking<'_>) -> Result<Taken, Failure> {
        Doubts::enter(self, (model, None), now).map(Taken::Probe)
    }
}

/// What it may cost is held in each of them between the two runs: the second one asks no more.
impl Gate for CallBudget {
    fn name(&self) -> &'static str {
        BUDGET
    }

    fn about(&self) -> About {
        About::Money
    }

    fn check(&self, _: Asking<'_>) -> Result<(), Failure> {
        Self::check(self)
    }

    fn enter(&self, _: Asking<'_>) -> Result<Taken, Failure> {
        Ok(Taken::Nothing)
    }
}

const BUDGET: &str = "budget";

impl Gate for Arc<Health> {
    fn name(&self) -> &'static str {
        "circuit"
    }

    fn check(&self, Asking { model, now, .. }: Asking<'_>) -> Result<(), Failure> {
        Health::check(self, model, now)
    }

    fn enter(&self, Asking { model, now, .. }: Asking<'_>) -> Result<Taken, Failure> {
        Health::enter(self, model, now).map(Taken::Circuit)
    }
}

#[cfg(test)]
mod tests;
