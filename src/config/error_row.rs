//! A configured rule for the meaning of a provider's refusals.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use tidegate_providers::error_rule::{ErrorRule, Meaning};

/// The statuses of HTTP replies.
const STATUSES: RangeInclusive<u16> = 100..=599;

/// One rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ErrorRow {
    /// A code or type of the reply's body.
    pub code: Option<String>,
    /// The status of the reply.
    pub status: Option<u16>,
    /// A text that the reply's message contains.
    pub contains: Option<String>,
    /// The failure type.
    pub is: String,
    /// How long a limit lasts.
    pub span: Option<String>,
}

impl ErrorRow {
    /// The rule in the form that providers take.
    ///
    /// # Errors
    /// A sentence about what is wrong with the rule.
    pub(super) fn rule(&self) -> Result<ErrorRule, String> {
        let Self { code, status, contains, is, span } = self;
        if code.is_none() && status.is_none() && contains.is_none() {
            return Err("it needs a code, a status or a part of the message (contains)".to_owned());
        }
        if let Some(status) = status.filter(|status| !STATUSES.contains(status)) {
            let (first, last) = (STATUSES.start(), STATUSES.end());
            return Err(format!("status is {status}; write an HTTP status, {first} to {last}"));
        }
        let is = Meaning::named(is, span.as_deref())?;
        Ok(ErrorRule { code: code.clone(), status: *status, contains: contains.clone(), is })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_means_nothing_is_refused() {
        let row = |text: &str| toml::from_str::<ErrorRow>(text).unwrap().rule();
        assert!(row("status = 418\nis = \"Transient\"").is_ok());
        for (text, why) in [
            ("is = \"Transient\"", "needs a code, a status"),
            ("code = \"x\"", "none of RateLimited"),
            (
                "status = 42900\nis = \"Transient\"",
                "status is 42900; write an HTTP status, 100 to 599",
            ),
            ("code = \"x\"\nis = \"TooLarge\"\nspan = \"day\"", "about limits"),
        ] {
            assert!(row(text).unwrap_err().contains(why), "{text}");
        }
        assert!(toml::from_str::<ErrorRow>("kode = \"x\"").is_err());
    }
}
