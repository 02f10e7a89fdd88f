//! The interface between the simulation and a limiter.

use tidegate_quota::Ticket;

use crate::{documents::Document, event::Micros};

/// One call that asks for admission.
pub(crate) struct Call<'a> {
    pub(crate) id: String,
    pub(crate) lane: usize,
    pub(crate) tenant: u64,
    pub(crate) document: &'a Document,
    pub(crate) ticket: Option<Ticket>,
}

/// The limiter's answer.
pub(crate) enum Answer {
    Granted(Held),
    /// `in_turn`: other calls come first.
    Wait {
        wait: Micros,
        ticket: Ticket,
        in_turn: bool,
    },
    Paused {
        wait: Micros,
        ticket: Ticket,
    },
}

/// A reservation until it is settled.
pub(crate) struct Held {
    pub(crate) id: String,
    /// The process that admitted it without Redis.
    pub(crate) alone: Option<usize>,
}

/// The provider's answer to a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    /// Use by the provider's meter, and the time until all of it is available again.
    pub(crate) meter: Option<(u64, Option<Micros>)>,
    /// Input tokens from the provider's cache.
    pub(crate) cached: u64,
}

/// One quota, shared by the processes of a fleet.
pub(crate) trait Limiter {
    /// Asks about calls of one process, lane and tenant.
    fn reserve(&mut self, now: Micros, process: usize, calls: Vec<Call<'_>>) -> Vec<Answer>;

    /// Settles a call that went well. Returns the room that is left, if it was learned just now.
    fn settle(&mut self, now: Micros, held: Held, document: &Document, told: Told) -> Micros;

    /// Settles a call that the provider refused, with the wait that it asked for.
    fn refused(&mut self, now: Micros, held: Held, retry: Micros);

    /// How long an even pace takes for such a document.
    fn pace_of(&self, document: &Document) -> Micros;

    /// Closes the gate, as an operator does.
    fn pause(&mut self, now: Micros, length: Micros);

    /// Opens the gate.
    fn resume(&mut self, now: Micros);

    /// Sets the limit on tokens.
    fn set_limit(&mut self, now: Micros, combined: u64);

    /// Removes a tenant's waiting callers.
    fn leave(&mut self, now: Micros, lane: usize, tenant: u64);

    /// Redis loses everything; a worker may remember the plan.
    fn flush(&mut self, now: Micros, remembered: bool);

    /// Redis goes away, for a fleet of this many processes, or comes back.
    fn away(&mut self, now: Micros, processes: Option<usize>);
}
