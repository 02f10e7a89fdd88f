//! Details that a failed activity adds to its message.

use serde::{Deserialize, Serialize};
use tidegate_types::{CallCounts, WaitsFor};

use super::{Taken, document::AskedAnswer};

/// Details of a failure: the document's use, and the resource that it waits for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureDetails {
    /// Calls and waits over all attempts.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Set for a `QuotaWait`, and for a `Transient` while answers cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// Tokens of answers that are no result, without their calls.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub discarded: Taken,
    /// URI of the last such answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Names of the checks that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// The answers that it was asked for and that were checked, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedAnswer>,
}

impl From<CallCounts> for FailureDetails {
    fn from(counts: CallCounts) -> Self {
        Self { counts, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_of_later_versions_are_read() {
        let counts = CallCounts { provider_calls: 3, rate_limited: 2, deferrals: 1 };
        let plain = json!({ "provider_calls": 3, "rate_limited": 2, "deferrals": 1 });
        let read = |value| serde_json::from_value::<FailureDetails>(value).unwrap();
        assert_eq!(read(plain.clone()), FailureDetails::from(counts));
        assert_eq!(serde_json::to_value(FailureDetails::from(counts)).unwrap(), plain);
        assert_eq!(read(json!({})), FailureDetails::default());

        let mut new = plain;
        new["waits_for"] = json!("in_flight");
        let details =
            FailureDetails { waits_for: Some(WaitsFor::InFlight), ..FailureDetails::from(counts) };
        assert_eq!(
            (read(new.clone()), serde_json::to_value(&details).unwrap()),
            (details, new.clone())
        );
        new["waits_for"] = json!("high tide");
        assert_eq!(read(new).waits_for, Some(WaitsFor::Other));
    }
}
