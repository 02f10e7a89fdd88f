//! Faults of a call, before a vendor puts them in its own words.

use std::time::Duration;

use crate::limiter::Refusal;
use crate::picture::BadPicture;

#[derive(Debug)]
pub(crate) enum Problem {
    /// There is no key.
    NoKey,
    /// The key is not accepted.
    WrongKey,
    /// The key is good, and not for this model.
    NoAccess,
    /// The call cannot be read, or lacks something.
    Invalid { message: String, param: Option<&'static str> },
    /// There is no such thing.
    NotFound { message: String, code: Option<&'static str> },
    /// A limit refused it.
    Refused(Refusal),
    /// The fault `rate-limited`.
    Ramp,
    /// The fault `overloaded`.
    Overloaded,
    /// The fault `server-error`.
    Server,
    /// The fault `spend-limit`.
    Spent,
}

impl From<BadPicture> for Problem {
    fn from(BadPicture(why): BadPicture) -> Self {
        Self::invalid(why, "image")
    }
}

impl Problem {
    pub(crate) fn invalid(message: impl Into<String>, param: &'static str) -> Self {
        Self::Invalid { message: message.into(), param: Some(param) }
    }

    /// More model names than any client has.
    pub(crate) fn no_model() -> Self {
        Self::NotFound {
            message: "There are too many models.".into(),
            code: Some("model_not_found"),
        }
    }

    /// The fault `unknown-model`.
    pub(crate) fn unknown_model() -> Self {
        Self::NotFound {
            message: "model: there is no such model".into(),
            code: Some("model_not_found"),
        }
    }

    /// When a caller may come back.
    pub(crate) const fn wait(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) if !refusal.is_too_large() => Some(refusal.wait),
            _ => None,
        }
    }
}
