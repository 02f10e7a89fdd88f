//! The seam: what the simulation asks of a limiter, whatever keeps it.

use tidegate_quota::Ticket;

use crate::{documents::Document, event::Micros};

/// One call that wants to go.
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
    Wait { wait: Micros, ticket: Ticket },
    Paused { wait: Micros, ticket: Option<Ticket> },
}

/// A reservation until it is settled.
pub(crate) struct Held {
    pub(crate) id: String,
    /// The process that admitted it by itself, while Redis was away.
    pub(crate) alone: Option<usize>,
}

/// What a call's answer says.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    /// Use by the provider's meter, and the time until all of it is there again.
    pub(crate) meter: Option<(u64, Option<Micros>)>,
    /// Input that was read from the provider's cache.
    pub(crate) cached: u64,
}

/// One quota, as the processes of a fleet use it.
pub(crate) trait Limiter {
    /// One question of a process about calls of a lane and tenant.
    fn reserve(&mut self, now: Micros, process: usize, calls: Vec<Call<'_>>) -> Vec<Answer>;

    /// A call went well. How much may go at once then, if that has just been learned.
    fn settle(&mut self, now: Micros, held: Held, document: &Document, told: Told) -> Micros;

    /// The provider refused a call, and said when it would take it.
    fn refused(&mut self, now: Micros, held: Held, retry: Micros);

    /// How long such a document takes at an even pace.
    fn pace_of(&self, document: &Document) -> Micros;

    /// An operator closes the gate.
    fn pause(&mut self, now: Micros, length: Micros);

    /// An operator opens it.
    fn resume(&mut self, now: Micros);

    /// An operator sets the limit on tokens.
    fn set_limit(&mut self, now: Micros, combined: u64);

    /// The callers of a tenant come no more.
    fn leave(&mut self, now: Micros, lane: usize, tenant: u64);

    /// Redis loses everything; perhaps a worker remembers the plan.
    fn flush(&mut self, now: Micros, remembered: bool);

    /// Redis is away, for a fleet of so many processes, or back.
    fn away(&mut self, now: Micros, processes: Option<usize>);
}
