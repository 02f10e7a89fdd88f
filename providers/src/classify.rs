//! Maps an error to its [`Kind`]: by codes first, then by messages and types, then by the status.
//!
//! Gateways use one vendor's dialect and pass on another's errors, so every client knows every
//! vendor's names; its own vendor's come first.

use std::sync::Arc;

use crate::{
    envelope::Envelope,
    error::Kind,
    rules::{Row, Sign},
};

/// The names of one vendor's errors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorNames {
    /// Functions of the vendor's folder.
    Read {
        /// Maps an exact code.
        by_code: fn(status: u16, code: &str, envelope: &Envelope) -> Option<Kind>,
        /// Maps less exact signs: a message's wording or an error's type.
        by_type: fn(status: u16, envelope: &Envelope) -> Option<Kind>,
    },
    /// The first matching row decides.
    Rows(&'static [Row]),
}

impl ErrorNames {
    fn by_code(self, status: u16, envelope: &Envelope) -> Option<Kind> {
        match self {
            Self::Read { by_code, .. } => {
                envelope.codes.iter().find_map(|code| by_code(status, code, envelope))
            }
            Self::Rows(rows) => first(rows, status, envelope, true),
        }
    }

    fn by_type(self, status: u16, envelope: &Envelope) -> Option<Kind> {
        match self {
            Self::Read { by_type, .. } => by_type(status, envelope),
            Self::Rows(rows) => first(rows, status, envelope, false),
        }
    }
}

/// The first matching row of those with an exact code, or of the others.
fn first(rows: &[Row], status: u16, envelope: &Envelope, exact: bool) -> Option<Kind> {
    let mut rows = rows.iter().filter(|row| matches!(row.sign, Sign::Name(_)) == exact);
    rows.find(|row| row.fits(status, envelope)).map(|row| row.kind)
}

/// The error names of all vendors, in the order in which they are tried.
#[derive(Debug, Clone)]
pub(crate) struct Classifier(Arc<[ErrorNames]>);

impl Classifier {
    pub(crate) fn new(names: impl IntoIterator<Item = ErrorNames>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The kind by an exact code; `None` if no vendor has the code.
    pub(crate) fn by_code(&self, status: u16, envelope: &Envelope) -> Option<Kind> {
        self.0.iter().find_map(|names| names.by_code(status, envelope))
    }

    /// The kind by wording or type; `None` if no vendor has it.
    pub(crate) fn by_type(&self, status: u16, envelope: &Envelope) -> Option<Kind> {
        self.0.iter().find_map(|names| names.by_type(status, envelope))
    }
}

/// Whether an invalid request is refused for its model, so that every other call of the model would
/// be refused too, in addition to [`rules`](crate::rules). All documents share a call's address, so
/// that a 404 concerns the model or `base-url`; a 410 concerns a model that has been withdrawn.
pub(crate) fn is_about_the_model(status: u16, envelope: &Envelope) -> bool {
    let says = |parts: &&[&str]| envelope.has_message(parts);
    if !says(&["model"].as_slice()) && NAMED_BY_ONE_REQUEST.iter().any(says) {
        return false;
    }
    matches!(status, 404 | 410) || envelope.codes.iter().any(|code| code == "model_not_found")
}

/// Messages of a 404 that concern only one request, not the model: an object is missing in the
/// vendor's account (OpenAI: `Vector store with id 'x' not found.`, `No such File object`;
/// Anthropic: `File not found`), or no provider of the model takes the content of this document
/// (`OpenRouter`).
const NAMED_BY_ONE_REQUEST: &[&[&str]] = &[
    &["no endpoints found that support"],
    &["no such file object"],
    &["file not found"],
    &["with id", "not found"],
];

/// The kind by status alone.
///
/// 503 means overload at every vendor. The vendors' SDKs retry 408 and 409; 421 and 425 ask for
/// another connection and a later moment; with 424 something behind the server failed (Groq, TGI).
/// 446 is a guardrail's (Portkey, WSO2), 451 a censor's. 520 to 527 are Cloudflare's statuses for a broken origin,
/// 524 for a slow one. 529 is Anthropic's overload. A redirect means a wrong base URL.
pub(crate) fn by_status(status: u16) -> Kind {
    match status {
        // 407 is a proxy's.
        401 | 403 | 407 => Kind::Unauthorized,
        402 => Kind::QuotaExhausted,
        413 => Kind::TooLarge,
        408 | 409 | 421 | 424 | 425 | 499 => Kind::Transient,
        446 | 451 => Kind::ContentRefused,
        405 | 501 => Kind::Unsupported,
        429 => Kind::RateLimited,
        503 | 529 => Kind::Overloaded,
        504 | 524 => Kind::Timeout,
        300..=499 => Kind::InvalidRequest,
        _ => Kind::Transient,
    }
}
