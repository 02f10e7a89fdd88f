//! Requests that are too large for a call.

use tidegate_types::{FailureType, ModelId};

use super::{Concerns, Failure, MAX_MESSAGE_CHARS};

impl Failure {
    /// The failure for an input that is larger than the model's context. No call was made.
    pub fn exceeds_context(model: &ModelId, tokens: u64, most: u64) -> Self {
        let message = format!("the call has some {tokens} input tokens; {model} takes {most}");
        Self::never(FailureType::TooLarge, message)
    }

    /// Adds advice for the batch's author on a document that is too large for a call. If an
    /// operator's limit is too small, the message is unchanged.
    pub fn with_size_advice(self, size_advice: &str) -> Self {
        let is_too_large = self.kind == FailureType::TooLarge && self.concerns == Concerns::TheCall;
        if !is_too_large || self.is_retried() {
            return self;
        }
        // A provider's message may already have the maximum length.
        let room = MAX_MESSAGE_CHARS.saturating_sub(size_advice.chars().count() + 2);
        let message: String = self.message.chars().take(room).collect();
        let message = format!("{}; {size_advice}", message.trim_end_matches(['.', ' ']));
        Self { message, ..self }
    }
}
