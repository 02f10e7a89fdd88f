//! What a store of quota can do. [`crate::memory::Store`] and [`crate::redis_store::Store`] are the two; both pass the
//! same list of tests.

use std::{fmt, future::Future, time::Duration};

use tidegate_types::Lane;

use crate::{
    amounts::{Amounts, Dimension},
    error::Error,
    limits::ModelQuota,
    ticket::Ticket,
};

/// One question to a store: may this call go?
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Names the attempt; the same id is admitted once.
    pub reservation: String,
    /// The lane's place in [`crate::Lanes`].
    pub lane: usize,
    /// What to reserve.
    pub amounts: Amounts,
    /// From an earlier refusal.
    pub ticket: Option<Ticket>,
    /// Calls that learn from each other.
    pub template: u64,
}

/// What binds a refused caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// A limit.
    Limit(Dimension),
    /// Its turn in the lane has not come.
    Turn,
}

impl Binding {
    /// Low-cardinality name, for metrics and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit(dimension) => dimension.name(),
            Self::Turn => "turn",
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A store's answer to [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Reserved.
    Granted,
    /// Not yet.
    Wait {
        /// Until it is worth asking again.
        wait: Duration,
        /// What binds.
        binding: Binding,
        /// By how much the binding dimension is over.
        deficit: u64,
        /// Keeps the turn.
        ticket: Ticket,
    },
    /// The gate is closed.
    Paused {
        /// Until it opens.
        wait: Duration,
        /// The ticket that was shown, if it is still good.
        ticket: Option<Ticket>,
    },
    /// Never, however long one waits.
    Never {
        /// What binds.
        dimension: Dimension,
        /// The most that could be free.
        capacity: u64,
    },
}

/// What past calls of a template teach about the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    /// Real over estimated input.
    pub input_ratio: f64,
    /// Expected output tokens, each past call weighted by its latency.
    pub output: u64,
}

/// How a reservation ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The attempt.
    pub reservation: String,
    /// What was used; `None` releases the reservation as never sent.
    pub used: Option<Amounts>,
    /// What this call teaches.
    pub lesson: Option<Lesson>,
    /// Calls that learn from each other.
    pub template: u64,
    /// Closes the gate in the same step.
    pub pause: Option<Pause>,
}

/// One call's tokens, estimated and real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lesson {
    /// Input tokens as estimated before any correction.
    pub estimated_input: u64,
    /// Real input tokens.
    pub input: u64,
    /// Real output tokens.
    pub output: u64,
}

/// A pause to impose on a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// How long from now.
    pub length: Duration,
    /// Why, for people: at most a line. No prompt, answer or document name.
    pub reason: String,
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done.
    Done,
    /// It had been settled before; nothing changed.
    Before,
    /// The reservation has left the window, or the store was restarted; nothing changed.
    Unknown,
}

/// One model's quota at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Until the gate opens; zero when it is open.
    pub pause: Duration,
    /// Why it is closed; empty when it is open.
    pub reason: String,
    /// Reservations in the window.
    pub reservations: u64,
    /// Use and reservation in the window.
    pub used: Amounts,
    /// How far the pace clock of each dimension is ahead.
    pub ahead: [Duration; 4],
    /// Each lane, in the order of [`crate::Lanes`].
    pub lanes: Vec<LaneSnapshot>,
}

/// One lane of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSnapshot {
    /// The lane.
    pub lane: Lane,
    /// Calls admitted within the window and not settled.
    pub in_flight: u64,
    /// How long a newcomer would wait for its turn.
    pub queue: Duration,
    /// Use and reservation in the window.
    pub used: Amounts,
}

/// Keeps reservations, one atomic step a call.
pub trait Store: Send + Sync {
    /// Reserves, or says when to come back.
    fn reserve(&self, model: &ModelQuota, ask: &Ask)
    -> impl Future<Output = Result<(Decision, Option<Expectation>), Error>> + Send;

    /// Ends a reservation.
    fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(Settled, Option<Expectation>), Error>> + Send;

    /// Closes the gate for at least so long, and says for how long it is closed now.
    fn pause(&self, model: &ModelQuota, pause: &Pause) -> impl Future<Output = Result<Duration, Error>> + Send;

    /// Opens the gate.
    fn resume(&self, model: &ModelQuota) -> impl Future<Output = Result<(), Error>> + Send;

    /// Tells what the quota looks like.
    fn inspect(&self, model: &ModelQuota) -> impl Future<Output = Result<Snapshot, Error>> + Send;
}
