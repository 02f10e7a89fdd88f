//! What is too large for a call, and what can be done about it.

use tidegate_types::{FailureType, ModelId};

use super::{Concerns, Failure, MAX_MESSAGE_CHARS};

impl Failure {
    /// The input is larger than what the model takes; no call was made.
    pub fn exceeds_context(model: &ModelId, tokens: u64, most: u64) -> Self {
        let message = format!("the call has some {tokens} input tokens; {model} takes {most}");
        Self::never(FailureType::TooLarge, message)
    }

    /// The same, with what the batch's author can do where a document is too large for a call,
    /// whoever says so. Where an operator's limit is too small it is not the document that is too
    /// large.
    pub fn with_way_out(self, way_out: &str) -> Self {
        let is_too_large = self.kind == FailureType::TooLarge && self.concerns == Concerns::TheCall;
        if !is_too_large || self.is_retried() {
            return self;
        }
        // A provider's words may fill a message by themselves.
        let room = MAX_MESSAGE_CHARS.saturating_sub(way_out.chars().count() + 2);
        let message: String = self.message.chars().take(room).collect();
        let message = format!("{}; {way_out}", message.trim_end_matches(['.', ' ']));
        Self { message, ..self }
    }
}
