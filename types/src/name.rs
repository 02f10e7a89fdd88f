//! Lanes and tenants: short names that are valid in a Redis key, a metric label and a Temporal
//! header.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Longest name that is accepted, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// An invalid name, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} \"{given}\" is not usable: {reason}")]
pub struct InvalidName {
    /// The kind of name: "lane", "tenant", "model".
    pub what: &'static str,
    /// The given text, cut to a printable length.
    pub given: String,
    /// The remedy.
    pub reason: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, given: &str, reason: &'static str) -> Self {
        Self { what, given: given.chars().filter(|c| !c.is_control()).take(80).collect(), reason }
    }
}

/// Braces would break the hash tag of a Redis key, and control characters a log line.
pub(crate) fn check(what: &'static str, text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::new(what, text, "it is empty"));
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidName::new(what, text, "it is longer than 100 bytes"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '{' || c == '}' || c == '"')
    {
        return Err(InvalidName::new(
            what,
            text,
            "it must not contain spaces, quotes, braces or control characters",
        ));
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $default:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Checks and wraps a name.
            ///
            /// # Errors
            /// [`InvalidName`] when it is empty, over 100 bytes, or holds spaces, quotes, braces or
            /// control characters.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self($default.to_owned())
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }
    };
}

name!(
    /// A class of traffic with a guaranteed share of each model's limits: `interactive`,
    /// `standard`, `batch` or a configured one.
    Lane,
    "lane",
    "batch"
);
name!(
    /// The party that pays: budgets and fairness are counted per tenant.
    Tenant,
    "tenant",
    "default"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_a_key_are_refused() {
        for bad in ["", "a b", "a{b", "a}b", "a\nb", "\"", &"x".repeat(101)] {
            assert!(Lane::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Lane::new("bulk-2").map(String::from), Ok("bulk-2".to_owned()));
    }

    #[test]
    fn a_refused_name_says_what_and_why() {
        let text = Tenant::new("a b").unwrap_err().to_string();
        assert_eq!(
            text,
            "tenant \"a b\" is not usable: it must not contain spaces, quotes, braces or control characters"
        );
    }
}
