//! Answers that are cut, empty, or not valid by the schema.

use tidegate_types::{FailureType, ModelId};

use crate::failure::{
    AT_ONCE, Concerns, Failure, MAX_INVALID_OUTPUTS, MAX_MESSAGE_CHARS, Retry, Shortfall,
};

impl Failure {
    /// The failure for an answer that does not satisfy the schema; `count` answers of this document
    /// did not.
    pub fn invalid_output(reason: &str, count: u32) -> Self {
        let message = format!("the answer does not satisfy the schema: {reason}");
        let again = count < MAX_INVALID_OUTPUTS;
        let retry = if again { Retry::After(AT_ONCE) } else { Retry::Never };
        Self::new(FailureType::InvalidOutput, message, retry)
    }

    /// The failure for an answer that fails these checks; the document is asked once more.
    pub fn checked_again(names: &str) -> Self {
        let message = format!("the answer does not pass {names}; it is asked for again");
        Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE))
    }

    /// The failure for an answer that is stored and judged by the next attempt. This is not a
    /// fault.
    pub fn judged_next() -> Self {
        let message = "the answer is kept, and is judged by the next attempt";
        let failure = Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE));
        Self { benign: true, ..failure }
    }

    /// The failure for an answer that fails these checks for good.
    pub fn check_failed(names: &str) -> Self {
        Self::never(FailureType::CheckFailed, format!("the answer does not pass {names}"))
    }

    /// The failure for a cut or empty answer; the next attempt has more room.
    pub fn cut(shortfall: Shortfall) -> Self {
        let message = format!("{shortfall}; it is asked for again with more room");
        Self::new(FailureType::Truncated, message, Retry::After(AT_ONCE))
    }

    /// The failure for a cut or empty answer that is not asked for again.
    pub fn truncated(shortfall: Shortfall) -> Self {
        let message = format!(
            "{shortfall}; raise max_output_tokens, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The failure for an answer that was cut or is empty at the maximum output of the model.
    pub fn truncated_at_cap(shortfall: Shortfall, model: &ModelId) -> Self {
        let message = format!(
            "{shortfall}, which is all that {model} writes; ask for less, read long documents in parts (\"long\"), choose another model, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The failure for a cut answer that is not kept because it fails the schema.
    pub fn truncated_json(shortfall: Shortfall, reason: &str) -> Self {
        let message = format!(
            "{shortfall} and does not satisfy the schema ({reason}); raise max_output_tokens"
        );
        Self::never(FailureType::Truncated, message)
    }

    /// Whether a call with less room for its answer might have been allowed.
    pub fn lacks_room(&self) -> bool {
        let may_be = matches!(
            self.kind,
            FailureType::TooLarge | FailureType::InvalidRequest | FailureType::BudgetExceeded
        );
        may_be && !self.is_retried() && self.concerns == Concerns::TheCall
    }

    /// Replaces the failure of a call for which no more room is possible: the cut answer is then
    /// the result.
    pub fn without_room(self) -> Self {
        if !self.lacks_room() {
            return self;
        }
        let message =
            format!("the answer was cut or empty, and it cannot get more room: {}", self.message);
        Self::never(FailureType::Truncated, message)
    }
}

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
