//! Texts around the document: in earlier turns, and in its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One turn of a conversation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// The speaker of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name that most vendors use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Shows the size instead of the text.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({} bytes)", self.role, self.text.len())
    }
}

/// The text in the document's own turn.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Said<'a> {
    /// Only the document.
    #[default]
    Nothing,
    /// This text, then the document.
    Before(&'a str),
    /// Only this text, which already contains the document's.
    Instead(&'a str),
}

/// Shows the size instead of the text.
impl fmt::Debug for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Self::Nothing => "Nothing",
            Self::Before(_) => "Before",
            Self::Instead(_) => "Instead",
        };
        write!(f, "{place}({} bytes)", self.text().len())
    }
}

impl<'a> Said<'a> {
    pub(crate) fn text(self) -> &'a str {
        match self {
            Self::Nothing => "",
            Self::Before(text) | Self::Instead(text) => text,
        }
    }
}
