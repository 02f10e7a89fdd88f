//! Answers that are cut, empty, or not what the schema asks for.

use tidegate_types::{FailureType, ModelId};

use super::{AT_ONCE, Concerns, Failure, MAX_INVALID_OUTPUTS, Retry, Shortfall};

impl Failure {
    /// An answer does not satisfy the schema; `count` of this document's answers did not.
    pub fn invalid_output(reason: &str, count: u32) -> Self {
        let message = format!("the answer does not satisfy the schema: {reason}");
        let again = count < MAX_INVALID_OUTPUTS;
        let retry = if again { Retry::After(AT_ONCE) } else { Retry::Never };
        Self::new(FailureType::InvalidOutput, message, retry)
    }

    /// An answer does not pass these checks, and is asked for once more.
    pub fn checked_again(names: &str) -> Self {
        let message = format!("the answer does not pass {names}; it is asked for again");
        Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE))
    }

    /// An answer is kept, and the next attempt has it judged: nothing has failed.
    pub fn judged_next() -> Self {
        let message = "the answer is kept, and is judged by the next attempt";
        let failure = Self::new(FailureType::CheckFailed, message, Retry::After(AT_ONCE));
        Self { benign: true, ..failure }
    }

    /// An answer does not pass these checks, for good.
    pub fn check_failed(names: &str) -> Self {
        Self::never(FailureType::CheckFailed, format!("the answer does not pass {names}"))
    }

    /// An answer was cut, or is empty; the next attempt has more room.
    pub fn cut(shortfall: Shortfall) -> Self {
        let message = format!("{shortfall}; it is asked for again with more room");
        Self::new(FailureType::Truncated, message, Retry::After(AT_ONCE))
    }

    /// The same, and it stays as it is.
    pub fn truncated(shortfall: Shortfall) -> Self {
        let message = format!(
            "{shortfall}; raise max_output_tokens, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The same, of a model that writes no more.
    pub fn truncated_at_cap(shortfall: Shortfall, model: &ModelId) -> Self {
        let message = format!(
            "{shortfall}, which is all that {model} writes; ask for less, read long documents in parts (\"long\"), choose another model, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// A cut answer that would be kept, were it not for the schema.
    pub fn truncated_json(shortfall: Shortfall, reason: &str) -> Self {
        let message = format!(
            "{shortfall} and does not satisfy the schema ({reason}); raise max_output_tokens"
        );
        Self::never(FailureType::Truncated, message)
    }

    /// Whether a call with less room for its answer might have been made.
    pub fn lacks_room(&self) -> bool {
        let may_be = matches!(
            self.kind,
            FailureType::TooLarge | FailureType::InvalidRequest | FailureType::BudgetExceeded
        );
        may_be && !self.is_retried() && self.concerns == Concerns::TheCall
    }

    /// The same, of a document that was to be asked again with more room: where that cannot be
    /// had, the cut answer is all that there is.
    pub fn without_room(self) -> Self {
        if !self.lacks_room() {
            return self;
        }
        let message =
            format!("the answer was cut or empty, and more room cannot be had: {}", self.message);
        Self::never(FailureType::Truncated, message)
    }
}
