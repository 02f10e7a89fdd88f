//! From what an error says to its [`Kind`]: codes first, then messages and types, then the status.
//!
//! Gateways speak one vendor's dialect and pass on another's errors, so every client is given every
//! vendor's names; those of its own vendor are asked first.

use std::sync::Arc;

use crate::{envelope::Envelope, error::Kind};

/// The names of one vendor's errors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorNames {
    /// Read by the vendor's folder.
    Read {
        /// By an exact code.
        by_code: fn(status: u16, code: &str, envelope: &Envelope) -> Option<Kind>,
        /// By what is less exact: a message's wording or an error's type.
        by_type: fn(status: u16, envelope: &Envelope) -> Option<Kind>,
    },
    /// On one of these statuses, or any where there are none, this sign is that kind of failure. The
    /// first row that fits decides.
    Rows(&'static [(&'static [u16], Sign, Kind)]),
}

/// What an error is known by, beside its status.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    /// Its status alone.
    Status,
    /// An exact code.
    Code(&'static str),
    /// An error's type.
    Type(&'static str),
    /// A message that holds this, in small letters.
    Says(&'static str),
}

impl ErrorNames {
    fn by_code(self, status: u16, code: &str, envelope: &Envelope) -> Option<Kind> {
        match self {
            Self::Read { by_code, .. } => by_code(status, code, envelope),
            Self::Rows(rows) => {
                first(rows, status, |sign| matches!(sign, Sign::Code(known) if known == code))
            }
        }
    }

    fn by_type(self, status: u16, envelope: &Envelope) -> Option<Kind> {
        match self {
            Self::Read { by_type, .. } => by_type(status, envelope),
            Self::Rows(rows) => first(rows, status, |sign| match sign {
                Sign::Status => true,
                Sign::Code(_) => false,
                Sign::Type(name) => envelope.types.iter().any(|class| class == name),
                Sign::Says(words) => envelope.says(&[words]),
            }),
        }
    }
}

fn first(rows: &[(&[u16], Sign, Kind)], status: u16, is: impl Fn(Sign) -> bool) -> Option<Kind> {
    let fits = |on: &[u16], sign| (on.is_empty() || on.contains(&status)) && is(sign);
    rows.iter().find(|(on, sign, _)| fits(on, *sign)).map(|(.., kind)| *kind)
}

/// The names of all vendors' errors, in the order in which they are asked.
#[derive(Debug, Clone)]
pub(crate) struct Classifier(Arc<[ErrorNames]>);

impl Classifier {
    pub(crate) fn new(names: impl IntoIterator<Item = ErrorNames>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The kind by an exact code; `None` when no vendor has such a code.
    pub(crate) fn by_code(&self, status: u16, envelope: &Envelope) -> Option<Kind> {
        self.0.iter().find_map(|names| {
            envelope.codes.iter().find_map(|code| names.by_code(status, code, envelope))
        })
    }

    /// The kind by wording or type; `None` when no vendor has such a one.
    pub(crate) fn by_type(&self, status: u16, envelope: &Envelope) -> Option<Kind> {
        self.0.iter().find_map(|names| names.by_type(status, envelope))
    }
}

/// Whether a call that is refused as an invalid request is refused for its model, so that every
/// other call of it would be too. A call's address is the same for all documents, so that a 404 is
/// about the model or about `base-url`. Some say it with a 400, in words:
///
/// * `The provided model identifier is invalid` (Bedrock, `ValidationException`)
/// * `x is not a valid model ID` (OpenRouter)
/// * `Model Not Exist` (DeepSeek)
/// * `Invalid model: x` (Mistral)
pub(crate) fn is_about_the_model(status: u16, envelope: &Envelope) -> bool {
    let says = |parts: &&[&str]| envelope.says(parts);
    if !says(&["model"].as_slice()) && NAMED_BY_ONE_REQUEST.iter().any(says) {
        return false;
    }
    let is_named = envelope.codes.iter().any(|code| code == "model_not_found");
    is_named || status == 404 || (status == 400 && says_that_the_model_is_unknown(envelope))
}

/// What a 404 says that is about one request alone, where it does not name the model: what lies in the
/// vendor's account is not there (OpenAI: `Vector store with id 'x' not found.`, `No such File object`;
/// Anthropic: `File not found`), or the model has no provider that takes what is in this one document
/// (`OpenRouter`).
const NAMED_BY_ONE_REQUEST: &[&[&str]] = &[
    &["no endpoints found that support"],
    &["no such file object"],
    &["file not found"],
    &["with id", "not found"],
];

/// The same by its words.
pub(crate) fn says_that_the_model_is_unknown(envelope: &Envelope) -> bool {
    let says = |parts: &[&str]| envelope.says(parts);
    says(&["model identifier is invalid"])
        || says(&["not a valid model id"])
        || says(&["model not exist"])
        || says(&["invalid model:"])
}

/// The kind by status alone.
///
/// 503 means overload at every vendor. 408 and 409 are retried by the vendors' SDKs;
/// 421 and 425 ask for another connection and a later moment. 520 to 527 are
/// Cloudflare's words for a broken origin, 524 for one that took too long. 529 is Anthropic's
/// overload. A redirect means a wrong base URL.
pub(crate) fn by_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Unauthorized,
        402 => Kind::QuotaExhausted,
        413 => Kind::TooLarge,
        408 | 409 | 421 | 425 | 499 => Kind::Transient,
        405 => Kind::Unsupported,
        429 => Kind::RateLimited,
        503 | 529 => Kind::Overloaded,
        504 | 524 => Kind::Timeout,
        300..=499 => Kind::InvalidRequest,
        _ => Kind::Transient,
    }
}
