//! `provider:model`, the unit that every quota, pause and price belongs to.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::name::{self, InvalidName};

/// A provider's configured name and the model's name there: `anthropic:claude-sonnet-5`.
///
/// The model part may hold colons and slashes (`bedrock:anthropic.claude-sonnet-5-v1:0`); the
/// provider part may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelId {
    text: String,
    colon: usize,
}

impl ModelId {
    /// The provider's configured name: `anthropic`.
    pub fn provider(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The model's name as the provider knows it: `claude-sonnet-5`.
    pub fn model(&self) -> &str {
        &self.text[self.colon + 1..]
    }

    /// Both, as written in configuration: `anthropic:claude-sonnet-5`.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for ModelId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        name::check("model", text)?;
        match text.find(':') {
            Some(colon) if colon > 0 && colon + 1 < text.len() => {
                Ok(Self { text: text.to_owned(), colon })
            }
            _ => Err(InvalidName::new(
                "model",
                text,
                "write it as provider:model, for example anthropic:claude-sonnet-5",
            )),
        }
    }
}

impl TryFrom<String> for ModelId {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<ModelId> for String {
    fn from(id: ModelId) -> Self {
        id.text
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_divides() {
        let id: ModelId = "bedrock:anthropic.claude-sonnet-5-v1:0".parse().unwrap();
        assert_eq!((id.provider(), id.model()), ("bedrock", "anthropic.claude-sonnet-5-v1:0"));
    }

    #[test]
    fn half_a_name_is_refused() {
        for bad in ["", "claude", ":claude", "anthropic:", "anthropic:cl aude", "a:{b}"] {
            assert!(bad.parse::<ModelId>().is_err(), "{bad:?}");
        }
    }
}
