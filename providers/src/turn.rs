//! What is said beside the document: in the turns before its own, and in its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One turn of a conversation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose it is.
    pub role: Role,
    /// What is said.
    pub text: String,
}

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word of most vendors.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The size instead of the text.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({} bytes)", self.role, self.text.len())
    }
}

/// What is said in the document's own turn.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Said<'a> {
    /// Nothing but the document.
    #[default]
    Nothing,
    /// This, and then the document.
    Before(&'a str),
    /// This, which holds the document's text already.
    Instead(&'a str),
}

/// The size instead of the text.
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
