//! A failed call.

use std::{fmt, time::Duration};

use tidegate_types::Usage;

use crate::observed::Observed;

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind, which determines the effect of a retry.
    pub kind: Kind,
    /// The period of the limit that was hit, if the reply states it.
    pub span: Option<Span>,
    /// One line for people, at most 500 characters; contains neither credentials nor the document.
    pub message: String,
    /// The wait that the provider asks callers for. Never zero. With [`Kind::QuotaExhausted`] it is
    /// the time until access returns, for people and not for a timer.
    pub retry_after: Option<Duration>,
    /// The cost of the failed call.
    pub charged: Charged,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Whether no response came within the request's time limit.
    pub timed_out: bool,
    /// Limits and remaining quota, as the response's headers state them.
    pub observed: Box<Observed>,
}

impl Error {
    /// An error without a reply. `charged` says whether the provider may have worked on the call.
    pub fn no_reply(message: String, charged: Charged) -> Self {
        let kind = if charged == Charged::No { Kind::Transient } else { Kind::Timeout };
        Self { charged, message, ..Self::unsent(kind, "") }
    }

    /// An error found before anything was sent.
    pub(crate) fn unsent(kind: Kind, message: &str) -> Self {
        Self {
            kind,
            span: None,
            message: message.to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: None,
            timed_out: false,
            observed: Box::default(),
        }
    }
}

/// The kind of a failure, and the effect of a retry. The clients never retry: Temporal does, after
/// quota has been reserved again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A limit that refills was hit. The same call succeeds after a wait of at least `retry_after`;
    /// until then every call of this model fails. Close the gate.
    RateLimited,
    /// The provider is short of capacity, independent of our quota. Retry after a growing wait; do
    /// not reduce quota.
    Overloaded,
    /// A fault of the network or the provider. Retry soon, a few times.
    Transient,
    /// No whole answer came: a time-out on either side, or a connection that broke after the
    /// request may have been sent. Retry a few times; the lost attempt may be billed, so keep its
    /// reservation.
    Timeout,
    /// Credit, a spend limit or a day's quota is used up. No retry on a timer: stop asking this
    /// model and tell a person.
    QuotaExhausted,
    /// The key is missing, wrong, or lacks a permission. No retry until the configuration has
    /// changed.
    Unauthorized,
    /// The provider cannot take the request as it is. No retry.
    InvalidRequest,
    /// The provider does not know the model, or has nothing at this address: every call of this
    /// model fails, for any document. No retry; another model may be asked.
    UnknownModel,
    /// The model does not support a feature that every document of a batch uses: a parameter, a
    /// schema, this endpoint, on-demand use. Every call of this model fails. No retry; another
    /// model may be asked.
    Unsupported,
    /// `max_output_tokens` is more than the model allows. The document is not too large: the same call
    /// with a smaller bound succeeds.
    OutputCapTooLarge,
    /// The provider cannot be reached as configured: the connection was refused, the host does not
    /// exist, TLS failed, or the certificate is not trusted. Every call fails until the
    /// configuration, the network or the provider has changed.
    Unreachable,
    /// The document exceeds the model's context, a body limit, or a whole minute's quota. No retry.
    TooLarge,
    /// The provider or the model refused the content. No retry with this model.
    ContentRefused,
    /// The answer does not satisfy the schema. No retry. Only the caller, which checks the schema,
    /// uses this kind.
    InvalidOutput,
}

impl Kind {
    /// A name for metric labels and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Transient => "transient",
            Self::Timeout => "timeout",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Unauthorized => "unauthorized",
            Self::InvalidRequest => "invalid_request",
            Self::UnknownModel => "unknown_model",
            Self::Unsupported => "unsupported",
            Self::OutputCapTooLarge => "output_cap_too_large",
            Self::Unreachable => "unreachable",
            Self::TooLarge => "too_large",
            Self::ContentRefused => "content_refused",
            Self::InvalidOutput => "invalid_output",
        }
    }

    /// The failure type of tidegate's workflows for this kind: `RateLimited`, `Overloaded`, ….
    pub fn failure(self) -> &'static str {
        match self {
            Self::RateLimited => "RateLimited",
            Self::Overloaded => "Overloaded",
            Self::Transient | Self::Timeout | Self::Unreachable => "Transient",
            Self::QuotaExhausted => "QuotaExhausted",
            Self::Unauthorized => "Unauthorized",
            Self::InvalidRequest
            | Self::UnknownModel
            | Self::Unsupported
            | Self::OutputCapTooLarge => "InvalidRequest",
            Self::TooLarge => "TooLarge",
            Self::ContentRefused => "ContentRefused",
            Self::InvalidOutput => "InvalidOutput",
        }
    }

    /// Whether the same call can succeed later without any change.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Transient
                | Self::Timeout
                | Self::Unreachable
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The period of a limit, which tells when the same call can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Span {
    /// Seconds to minutes: it refills while a batch runs.
    Minute,
    /// Calls at once: frees up when one of them ends.
    Concurrency,
    /// Some hours.
    Hours,
    /// A day.
    Day,
    /// A month.
    Month,
    /// Money: until the account is paid.
    Credit,
    /// A limit on this key alone: until it is raised.
    Key,
}

impl Span {
    /// Its name in the configuration, in messages and in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Concurrency => "concurrency",
            Self::Hours => "hours",
            Self::Day => "day",
            Self::Month => "month",
            Self::Credit => "credit",
            Self::Key => "key",
        }
    }
}

/// The token cost of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charged {
    /// Nothing: the request never reached the provider, or was refused before any work. (It may
    /// still count as a request: see
    /// [`Charge::failed_calls`](tidegate_types::Charge::failed_calls).)
    No,
    /// This usage: the provider did the work and reported it, for instance when the model's answer
    /// is a refusal.
    Usage(Usage),
    /// Unknown: the provider may have worked on it. Treat the whole reservation as spent.
    Unknown,
}

impl From<Option<Usage>> for Charged {
    fn from(usage: Option<Usage>) -> Self {
        usage.map_or(Self::Unknown, Self::Usage)
    }
}
