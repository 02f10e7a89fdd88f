//! Answers that are cut, empty, or not what the schema asks for.

use tidegate_types::{FailureType, ModelId};

use super::{AT_ONCE, Concerns, Failure, MAX_INVALID_OUTPUTS, Retry, Shortfall};

impl Failure {
    /// The answer does not satisfy the schema; `count` answers of this document did not.
    pub fn invalid_output(reason: &str, count: u32) -> Self {
        let message = format!("the answer does not satisfy the schema: {reason}");
        let again = count < MAX_INVALID_OUTPUTS;
        let retry = if again { Retry::After(AT_ONCE) } else { Retry::Never };
        Self::new(FailureType::InvalidOutput, message, retry)
    }

    /// The answer fails these checks; the document is asked once more.
    pub fn checked_again(names: &str) -> Self {
        let message = format!("the answer does not pass {names}; it is asked for again");
        Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE))
    }

    /// The answer is stored, and the next attempt has it judged. This is no failure.
    pub fn judged_next() -> Self {
        let message = "the answer is kept, and is judged by the next attempt";
        let failure = Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE));
        Self { benign: true, ..failure }
    }

    /// The answer fails these checks for good.
    pub fn check_failed(names: &str) -> Self {
        Self::never(FailureType::CheckFailed, format!("the answer does not pass {names}"))
    }

    /// The answer was cut or is empty; the next attempt has more room.
    pub fn cut(shortfall: Shortfall) -> Self {
        let message = format!("{shortfall}; it is asked for again with more room");
        Self::new(FailureType::Truncated, message, Retry::After(AT_ONCE))
    }

    /// The answer was cut or is empty, and is not asked for again.
    pub fn truncated(shortfall: Shortfall) -> Self {
        let message = format!(
            "{shortfall}; raise max_output_tokens, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The answer was cut or is empty at the most tokens that the model writes.
    pub fn truncated_at_cap(shortfall: Shortfall, model: &ModelId) -> Self {
        let message = format!(
            "{shortfall}, which is all that {model} writes; ask for less, read long documents in parts (\"long\"), choose another model, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The answer was cut, and is not kept because it fails the schema.
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

    /// Replaces the failure of a call that needed more room: if the room cannot be had, the cut
    /// answer is the result.
    pub fn without_room(self) -> Self {
        if !self.lacks_room() {
            return self;
        }
        let message =
            format!("the answer was cut or empty, and it cannot get more room: {}", self.message);
        Self::never(FailureType::Truncated, message)
    }
}
