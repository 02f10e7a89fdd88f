//! Operations of a vendor's API that can be called in its own form.

use std::fmt;

/// An operation of OpenAI's or Anthropic's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// OpenAI: `POST /v1/chat/completions`.
    ChatCompletions,
    /// OpenAI: `POST /v1/responses`.
    Responses,
    /// OpenAI: `POST /v1/embeddings`.
    Embeddings,
    /// Anthropic: `POST /v1/messages`.
    Messages,
    /// Anthropic: `POST /v1/messages/count_tokens`. It asks no model, and counts towards no limit
    /// on tokens.
    CountTokens,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ChatCompletions,
        Self::Responses,
        Self::Embeddings,
        Self::Messages,
        Self::CountTokens,
    ];

    /// Its path at the vendor's own host.
    pub fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Embeddings => "/v1/embeddings",
            Self::Messages => "/v1/messages",
            Self::CountTokens => "/v1/messages/count_tokens",
        }
    }

    /// The operation at this path, if there is one.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.path() == path.trim_end_matches('/'))
    }

    /// Appended to the base URL, which ends in `/v1` for OpenAI's API.
    pub(crate) fn below_base(self) -> &'static [&'static str] {
        match self {
            Self::ChatCompletions => &["chat", "completions"],
            Self::Responses => &["responses"],
            Self::Embeddings => &["embeddings"],
            Self::Messages => &["v1", "messages"],
            Self::CountTokens => &["v1", "messages", "count_tokens"],
        }
    }

    /// Whether it belongs to Anthropic's API.
    pub fn is_anthropics(self) -> bool {
        matches!(self, Self::Messages | Self::CountTokens)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}
