//! A caller's request and its ticket.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_types::{Lane, ModelId, Tenant};

/// One provider call that wants to be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The model to call.
    pub model: ModelId,
    /// Unique id of this attempt. Asking again under the same id after a lost reply costs nothing.
    pub reservation: String,
    /// The class of traffic.
    pub lane: Lane,
    /// The tenant. The tenants of a lane get equal parts of its tokens while several of them wait.
    pub tenant: Tenant,
    /// Estimated input tokens, from any method: its error is learned.
    pub input_tokens: u64,
    /// The call's own bound on its output tokens.
    pub max_output_tokens: u64,
    /// Output tokens that such a call hardly exceeds, if its bound is far above them; otherwise the
    /// bound counts. The expected output follows from it while nothing is learned.
    pub likely_output_tokens: Option<u64>,
    /// Names similar calls (say, by a hash of the prompt): their real use is learned together.
    pub template: u64,
    /// From an earlier refusal.
    pub ticket: Option<Ticket>,
    /// The longest wait in place, where it is shorter than [`crate::Options::max_slot_wait`].
    pub max_wait: Option<Duration>,
}

impl Request {
    /// A call in the default lane with no tokens.
    pub fn new(model: ModelId, reservation: impl Into<String>) -> Self {
        Self {
            model,
            reservation: reservation.into(),
            lane: Lane::default(),
            tenant: Tenant::default(),
            input_tokens: 0,
            max_output_tokens: 0,
            likely_output_tokens: None,
            template: 0,
            ticket: None,
            max_wait: None,
        }
    }

    /// A request with a unique id, for a call that no earlier process can have begun.
    pub fn once(model: ModelId) -> Self {
        Self::new(model, format!("once:{:032x}", rand::random::<u128>()))
    }

    /// Sets the estimated input and the bound on output, in tokens.
    pub fn tokens(self, input_tokens: u64, max_output_tokens: u64) -> Self {
        Self { input_tokens, max_output_tokens, ..self }
    }

    /// Sets the output that such a call hardly exceeds, in tokens.
    pub fn likely_output(self, tokens: u64) -> Self {
        Self { likely_output_tokens: Some(tokens), ..self }
    }

    /// The output that the call hardly exceeds, in tokens; at most its bound.
    pub fn likely(&self) -> u64 {
        self.likely_output_tokens
            .map_or(self.max_output_tokens, |likely| likely.min(self.max_output_tokens))
    }

    /// Sets the lane.
    pub fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Sets the template.
    pub fn template(self, template: u64) -> Self {
        Self { template, ..self }
    }

    /// Sets the ticket of an earlier refusal.
    pub fn ticket(self, ticket: Option<Ticket>) -> Self {
        Self { ticket, ..self }
    }

    /// Sets the longest wait in place. With zero a refusal, and its ticket, is returned at once.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }
}

/// Keeps a caller's turn in its lane: the next call that shows it takes the place of the first.
///
/// It is valid only in the store that gave it. `epoch` identifies one life of the store, so that no
/// ticket waits for ever after a restart. An unused ticket holds up no other caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// When the store's life began, in microseconds.
    pub epoch: u64,
    /// The turn in the lane's queue: the work before it, in billionths of a limit, plus 1. A ticket
    /// with 0 keeps no turn.
    pub position: u64,
}
