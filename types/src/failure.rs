//! Failure types of calls and documents, and the reasons for which they wait, with their names in
//! histories, results and metrics.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a failure: Temporal's `ApplicationFailure.type`. `docs/failures.md` lists them.
/// `tidegate-calls` decides what is retried and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureType {
    /// The provider answered 429 for a limit that refills.
    RateLimited,
    /// The document waits for its turn, a gate, Redis, a budget, or its batch to be resumed. No
    /// provider call was made.
    QuotaWait,
    /// The provider answered 529 or 503.
    Overloaded,
    /// The provider answered 500, 502 or 504, the connection broke, or time ran out; or a store failed.
    Transient,
    /// Credit, spend or a limit of a day or month is used up.
    QuotaExhausted,
    /// The budget of the tenant or the batch is spent.
    BudgetExceeded,
    /// The provider refused the request as malformed.
    InvalidRequest,
    /// The document can never fit into the limits or the model's context.
    TooLarge,
    /// The provider refused the credentials.
    Unauthorized,
    /// The provider refused the content.
    ContentRefused,
    /// The answer was cut or empty.
    Truncated,
    /// The answer does not satisfy the schema, or has more than 8 MiB.
    InvalidOutput,
    /// The answer fails the batch's checks.
    CheckFailed,
    /// The batch's input is invalid.
    InvalidInput,
    /// A request of a batch of the HTTP door names a model that does not exist, or that its key may
    /// not ask.
    UnknownModel,
    /// The document cannot be read as text.
    UnreadableDocument,
    /// The `completion_window` of a batch of the HTTP door was over before the call.
    Expired,
}

impl FailureType {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::RateLimited,
        Self::QuotaWait,
        Self::Overloaded,
        Self::Transient,
        Self::QuotaExhausted,
        Self::BudgetExceeded,
        Self::InvalidRequest,
        Self::TooLarge,
        Self::Unauthorized,
        Self::ContentRefused,
        Self::Truncated,
        Self::InvalidOutput,
        Self::CheckFailed,
        Self::InvalidInput,
        Self::UnknownModel,
        Self::UnreadableDocument,
        Self::Expired,
    ];

    /// The name in histories, results and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "RateLimited",
            Self::QuotaWait => "QuotaWait",
            Self::Overloaded => "Overloaded",
            Self::Transient => "Transient",
            Self::QuotaExhausted => "QuotaExhausted",
            Self::BudgetExceeded => "BudgetExceeded",
            Self::InvalidRequest => "InvalidRequest",
            Self::TooLarge => "TooLarge",
            Self::Unauthorized => "Unauthorized",
            Self::ContentRefused => "ContentRefused",
            Self::Truncated => "Truncated",
            Self::InvalidOutput => "InvalidOutput",
            Self::CheckFailed => "CheckFailed",
            Self::InvalidInput => "InvalidInput",
            Self::UnknownModel => "UnknownModel",
            Self::UnreadableDocument => "UnreadableDocument",
            Self::Expired => "Expired",
        }
    }

    /// Parses a name; `None` for Temporal's own types, and those of other programs.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for FailureType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The resource that a document without quota waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// The limit on calls.
    Requests,
    /// The limit on input tokens.
    Input,
    /// The limit on output tokens.
    Output,
    /// The limit on input and output tokens together.
    Tokens,
    /// The end of another call: the limit of calls in flight is reached.
    InFlight,
    /// Its turn in the lane: others come first.
    Turn,
    /// The one call that tests the model after a refusal.
    Probe,
    /// Room that belongs to other lanes.
    Lane,
    /// The gate to open.
    Gate,
    /// Redis to answer: the worker cannot decide alone.
    Redis,
    /// Bought answers to be written: no more are bought before that.
    Unwritten,
    /// Its batch to be resumed.
    Paused,
    /// Money that other calls hold of its budget, or an operator who states what was spent.
    Budget,
    /// A reason that only a later version knows.
    #[serde(other)]
    Other,
}

impl WaitsFor {
    /// The word for people and in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Input => "input",
            Self::Output => "output",
            Self::Tokens => "tokens",
            Self::InFlight => "in_flight",
            Self::Turn => "turn",
            Self::Probe => "probe",
            Self::Lane => "lane",
            Self::Gate => "the gate",
            Self::Redis => "Redis",
            Self::Unwritten => "unwritten answers",
            Self::Budget => "its budget",
            Self::Paused => "its batch to be resumed",
            Self::Other => "quota",
        }
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::{
        IntoDeserializer as _,
        value::{self, StrDeserializer},
    };

    use super::*;

    #[test]
    fn every_type_is_found_by_its_name() {
        for kind in FailureType::ALL {
            assert_eq!(FailureType::parse(kind.as_str()), Some(kind));
            let name: StrDeserializer<'_, value::Error> = kind.as_str().into_deserializer();
            assert_eq!(FailureType::deserialize(name), Ok(kind), "as it is stored");
        }
        assert_eq!(FailureType::parse("Timeout"), None);
    }
}
