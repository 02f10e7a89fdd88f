//! What a caller asks for, and what keeps its turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_types::{Lane, ModelId, Tenant};

/// One provider call that wants to be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The model to call.
    pub model: ModelId,
    /// Names this attempt and no other; asking again under the same id after a lost reply costs
    /// nothing.
    pub reservation: String,
    /// The class of traffic.
    pub lane: Lane,
    /// Whose call it is. The tenants of a lane get equal parts of its tokens while they wait for
    /// each other.
    pub tenant: Tenant,
    /// Estimated input tokens. What the estimate is made from matters little: its error is learned.
    pub input_tokens: u64,
    /// The call's own bound on its output tokens.
    pub max_output_tokens: u64,
    /// Output tokens that such a call hardly exceeds, where its bound says little about that;
    /// without it, the bound. What is expected while nothing is learned is made from it.
    pub likely_output_tokens: Option<u64>,
    /// Calls with the same template are alike: what they really use is learned together (say, a
    /// hash of the prompt).
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

    /// The same under a name that no other has: for a call that no earlier process can have begun.
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

    /// The output that the call hardly exceeds, in tokens; never more than its bound.
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

    /// Sets the longest wait in place. A wait of nothing gets its refusal, and its ticket, at once.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }
}

/// Keeps a caller's turn in its lane: the caller that next asks with it stands where the first one stood.
///
/// It means nothing outside the store that gave it: `epoch` tells one life of the store from the
/// next, so that no ticket waits for ever after a restart. A ticket that is never redeemed holds up
/// no other caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The life of the store, as its time of birth in microseconds.
    pub epoch: u64,
    /// The place in the lane's virtual time, in microseconds.
    pub position: u64,
}
