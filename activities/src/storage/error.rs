//! The meaning of a store's error: gone, forbidden, misconfigured, or busy.

use std::{error::Error as StdError, io};

/// A fault of a URI or an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a usable URI; the sentence states the reason and the remedy.
    #[error("{0}")]
    Invalid(String),
    /// There is no such object.
    #[error("{0} does not exist")]
    Missing(String),
    /// The object exists already, and was to be created.
    #[error("{0} exists already")]
    Exists(String),
    /// The store does not accept the worker's credential, or forbids the operation; the sentence says
    /// what to check.
    #[error("{0}")]
    Forbidden(String),
    /// The store cannot do it with its present configuration; the sentence says what to check.
    #[error("{0}")]
    Misconfigured(String),
    /// The store is busy, full or away; it may work later.
    #[error("{0}")]
    Failed(String),
}

/// The meaning of an error, taken from the first of its causes that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Forbidden,
    Misconfigured,
    Busy,
}

impl Error {
    /// The store's code for the error, such as `NoSuchBucket`, if it gives one.
    pub fn code(&self) -> Option<&str> {
        let text = match self {
            Self::Forbidden(text) | Self::Misconfigured(text) | Self::Failed(text) => text,
            Self::Invalid(_) | Self::Missing(_) | Self::Exists(_) => return None,
        };
        let (_, rest) = text.split_once("<Code>")?;
        rest.split_once("</Code>").map(|(code, _)| code)
    }

    /// The error of a store that failed to do `what` to `uri`.
    pub(super) fn of_store(what: &str, uri: &str, error: &object_store::Error) -> Self {
        Self::new(&format!("cannot {what} {uri}"), error)
    }

    /// The error of a writer to a store.
    pub(crate) fn of_writing(error: &io::Error) -> Self {
        Self::new("cannot write", error)
    }

    fn new(what: &str, error: &(dyn StdError + 'static)) -> Self {
        let meaning = meaning(error);
        let error = with_first_cause(error);
        match meaning {
            Meaning::Forbidden => Self::Forbidden(format!(
                "{what}: the store forbids it; check the keys and the rights that the workers have there ({error})"
            )),
            Meaning::Misconfigured => Self::Misconfigured(format!(
                "{what}: the store is not set up for it; check the bucket or folder, its region and its endpoint ({error})"
            )),
            Meaning::Busy => Self::Failed(format!("{what}: {error}")),
        }
    }
}

/// The text of an error and, if it is silent about it, of the first of its causes: a request that
/// was not answered says of itself neither "connection refused" nor "unknown issuer".
fn with_first_cause(error: &(dyn StdError + 'static)) -> String {
    let text = error.to_string();
    let mut first = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    let first = first.to_string();
    if text.contains(&first) { text } else { format!("{text}: {first}") }
}

fn meaning(error: &(dyn StdError + 'static)) -> Meaning {
    let mut next = Some(error);
    while let Some(error) = next {
        let found = if let Some(error) = error.downcast_ref::<object_store::Error>() {
            of_object_store(error)
        } else if let Some(error) = error.downcast_ref::<io::Error>() {
            // `io::Error::source` skips the error that it wraps.
            let inner = || error.get_ref().map(|inner| meaning(inner));
            of_io(error.kind()).or_else(inner)
        } else {
            of_http(&error.to_string())
        };
        if let Some(found) = found {
            return found;
        }
        next = error.source();
    }
    Meaning::Busy
}

fn of_object_store(error: &object_store::Error) -> Option<Meaning> {
    use object_store::Error as E;
    match error {
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => Some(Meaning::Forbidden),
        // A missing object is handled earlier, so a bucket is missing.
        E::NotFound { .. }
        | E::InvalidPath { .. }
        | E::NotSupported { .. }
        | E::NotImplemented { .. }
        | E::UnknownConfigurationKey { .. } => Some(Meaning::Misconfigured),
        _ => None,
    }
}

/// A full disk counts as busy: space can be freed.
fn of_io(kind: io::ErrorKind) -> Option<Meaning> {
    use io::ErrorKind as K;
    match kind {
        K::PermissionDenied | K::ReadOnlyFilesystem => Some(Meaning::Forbidden),
        K::NotADirectory | K::IsADirectory | K::InvalidInput | K::Unsupported => {
            Some(Meaning::Misconfigured)
        }
        K::StorageFull | K::QuotaExceeded | K::TimedOut => Some(Meaning::Busy),
        _ => None,
    }
}

/// Reads the status from the text of an error, because `object_store` does not expose its request
/// errors. A bad request (400, as S3 answers for another region or an unknown key) or a redirect is
/// a fault of the configuration; 408 and 429 are temporary.
fn of_http(text: &str) -> Option<Meaning> {
    if text.starts_with("Received redirect without LOCATION") {
        return Some(Meaning::Misconfigured);
    }
    let status: u16 =
        text.strip_prefix("Server returned non-2xx status code: ")?.get(..3)?.parse().ok()?;
    match status {
        401 | 403 => Some(Meaning::Forbidden),
        408 | 425 | 429 => Some(Meaning::Busy),
        300..=499 => Some(Meaning::Misconfigured),
        _ => Some(Meaning::Busy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify_error(error: &object_store::Error) -> Error {
        Error::of_store("read", "s3://b/a.md", error)
    }

    fn io(kind: io::ErrorKind) -> object_store::Error {
        object_store::Error::Generic { store: "local", source: Box::new(io::Error::from(kind)) }
    }

    fn text(text: &'static str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn a_stores_answers_are_told_apart() {
        let path = || "a.md".to_owned();
        let forbidden = [
            object_store::Error::PermissionDenied { path: path(), source: "403".into() },
            object_store::Error::Unauthenticated { path: path(), source: "401".into() },
            io(io::ErrorKind::PermissionDenied),
            io(io::ErrorKind::ReadOnlyFilesystem),
        ];
        for error in forbidden {
            let told = classify_error(&error);
            assert!(
                matches!(&told, Error::Forbidden(why) if why.contains("s3://b/a.md")),
                "{told}"
            );
        }
        let misconfigured = [
            object_store::Error::NotFound { path: path(), source: "NoSuchBucket".into() },
            object_store::Error::NotImplemented {
                operation: "put".into(),
                implementer: "x".into(),
            },
            io(io::ErrorKind::NotADirectory),
            text(
                "Server returned non-2xx status code: 400 Bad Request: AuthorizationHeaderMalformed",
            ),
            text("Received redirect without LOCATION, this normally indicates …"),
        ];
        for error in misconfigured {
            assert!(matches!(classify_error(&error), Error::Misconfigured(_)), "{error:?}");
        }
        let busy = [
            io(io::ErrorKind::StorageFull),
            io(io::ErrorKind::ConnectionReset),
            text("Server returned non-2xx status code: 503 Service Unavailable: SlowDown"),
            text("Server returned non-2xx status code: 429 Too Many Requests"),
            text("error sending request"),
        ];
        for error in busy {
            assert!(matches!(classify_error(&error), Error::Failed(_)), "{error:?}");
        }
    }

    #[test]
    fn a_writers_error_keeps_its_meaning() {
        let denied =
            || object_store::Error::PermissionDenied { path: "a".into(), source: "403".into() };
        assert!(matches!(Error::of_writing(&io::Error::other(denied())), Error::Forbidden(_)));
        assert!(matches!(Error::of_writing(&denied().into()), Error::Forbidden(_)));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(matches!(Error::of_writing(&full), Error::Failed(_)));
    }
}
