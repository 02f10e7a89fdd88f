//! Operations that a location allows, tried with one small object of a random name, which is
//! removed afterwards.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use object_store::RetryConfig;

use super::{Error, Location, Storage, credential::CredentialKind, root::variables};

/// Time-out of each step: object stores may be far away.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Codes of stores that refuse the credential itself, for any operation.
const REFUSED_KEYS: [&str; 10] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "NotSignedUp",
    "InvalidToken",
    "InvalidSecurity",
    "RequestTimeTooSkewed",
    "AuthenticationFailed",
    "AuthenticationRequired",
    "InvalidAuthenticationInfo",
];

/// The outcome of one step.
#[derive(Debug)]
pub enum Tried {
    /// It works.
    Works,
    /// It fails.
    Fails(Error),
    /// It was not tried, for this reason.
    Untried(&'static str),
}

impl Tried {
    /// Whether it works, if that is known.
    pub fn works(&self) -> Option<bool> {
        match self {
            Self::Works => Some(true),
            Self::Fails(_) => Some(false),
            Self::Untried(_) => None,
        }
    }

    /// Whether the store forbids it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Fails(Error::Forbidden(_)))
    }
}

impl Default for Tried {
    fn default() -> Self {
        Self::Untried("")
    }
}

impl From<Result<(), Error>> for Tried {
    fn from(result: Result<(), Error>) -> Self {
        result.map_or_else(Self::Fails, |()| Self::Works)
    }
}

/// The outcome of each operation that documents and results need.
#[derive(Debug, Default)]
pub struct Access {
    /// Getting a credential that must be fetched or exchanged.
    pub credential: Tried,
    /// Listing names below the location.
    pub list: Tried,
    /// Reading objects.
    pub read: Tried,
    /// Writing an object only where none exists.
    pub create: Tried,
    /// Replacing an object.
    pub write: Tried,
    /// Removing an object.
    pub delete: Tried,
    /// The URI of the small object, if it could not be removed.
    pub left: Option<String>,
}

impl Storage {
    /// Opens a storage of one root with short time-outs, to try its operations.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn for_access_test(root: &str) -> Result<Self, Error> {
        Self::for_access_test_with(root, &variables())
    }

    /// Like [`Self::for_access_test`], with these variables instead of the environment.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn for_access_test_with(root: &str, options: &[(String, String)]) -> Result<Self, Error> {
        let retries =
            RetryConfig { max_retries: 1, retry_timeout: ANSWER_WITHIN, ..RetryConfig::default() };
        Self::open([root], options, &retries)
    }
}

impl Location {
    /// Tries each operation in turn, with a credential of this kind. Skips operations that can no
    /// longer succeed.
    pub async fn try_access(&self, kind: CredentialKind) -> Access {
        let credential = match &self.root().bucket {
            // An anonymous store needs no credential.
            _ if kind == CredentialKind::Anonymous => Tried::Works,
            Some(bucket) => {
                let got = async {
                    bucket
                        .authenticate()
                        .await
                        .map_err(|error| self.failed("get a credential for", &error))
                };
                within(got).await.into()
            }
            None => Tried::Works,
        };
        let mut access = Access { credential, ..Access::default() };
        if access.credential.works() != Some(true) {
            return access.mark_untried("there is no credential");
        }
        if self.is_read_only() {
            access.read = match within(self.size()).await {
                Ok(Some(_)) => Tried::Works,
                Ok(None) => {
                    Tried::Untried("the server answers, and has nothing at this very address")
                }
                Err(error) => Tried::Fails(error),
            };
            return access.mark_untried("over HTTP objects are read, and nothing else");
        }
        let first = match within(self.first()).await {
            Ok(first) => {
                access.list = Tried::Works;
                first
            }
            Err(error) => {
                let is_all = !matches!(&error, Error::Forbidden(_)) || refuses_key(&error);
                access.list = Tried::Fails(error);
                if is_all {
                    return access.mark_untried("the store or the credential is at fault");
                }
                None
            }
        };
        let probe = self.child(&format!(".tidegate-doctor-{:016x}", rand::random::<u64>()));
        if !access.try_create(&probe).await {
            access.read = match first {
                Some(first) => within(first.size()).await.map(drop).into(),
                None => Tried::Untried("nothing was found that could be read"),
            };
            return access.mark_untried("nothing can be written");
        }
        access.write = within(probe.write(Bytes::from_static(b"second"))).await.into();
        access.read = within(probe.read()).await.map(drop).into();
        access.delete = within(probe.delete()).await.into();
        access.left = (access.delete.works() != Some(true)).then(|| probe.uri());
        access
    }
}

impl Access {
    /// Marks every operation that was not tried yet with this reason.
    fn mark_untried(mut self, why: &'static str) -> Self {
        let steps =
            [&mut self.list, &mut self.read, &mut self.create, &mut self.write, &mut self.delete];
        for step in steps {
            if matches!(step, Tried::Untried("")) {
                *step = Tried::Untried(why);
            }
        }
        self
    }

    /// Tries to create an object; returns whether it exists now. A store that creates it twice
    /// would keep two results of one document.
    async fn try_create(&mut self, probe: &Location) -> bool {
        let first = within(probe.create(Bytes::from_static(b"first"))).await;
        if let Err(error) = first {
            // Some stores ignore the condition and write nevertheless.
            let is_written = !matches!(error, Error::Forbidden(_))
                && within(probe.write(Bytes::from_static(b"first"))).await.is_ok();
            self.create = Tried::Fails(error);
            return is_written;
        }
        self.create = match within(probe.create(Bytes::from_static(b"again"))).await {
            Err(Error::Exists(_)) => Tried::Works,
            Err(error) => Tried::Fails(error),
            Ok(()) => Tried::Fails(Error::Misconfigured(format!(
                "the store created {probe} twice: it ignores If-None-Match"
            ))),
        };
        true
    }
}

/// Whether the store refuses the credential itself.
fn refuses_key(error: &Error) -> bool {
    error.code().is_some_and(|code| REFUSED_KEYS.contains(&code))
}

async fn within<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(ANSWER_WITHIN, step).await.unwrap_or_else(|_| {
        Err(Error::Failed(format!("no answer within {} s", ANSWER_WITHIN.as_secs())))
    })
}
