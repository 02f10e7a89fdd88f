//! A root: a store, and the part of it that may be read and written.

use std::{
    ffi::OsString,
    fmt,
    path::{Component, Path as FilePath, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use object_store::{
    ClientOptions, ObjectStore, ObjectStoreScheme, Result, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    azure::{MicrosoftAzure, MicrosoftAzureBuilder},
    client::{HttpClient, HttpConnector},
    gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder},
    http::HttpBuilder,
    list::PaginatedListStore,
    local::LocalFileSystem,
    multipart::MultipartStore,
};
use url::Url;

use crate::storage::Error;

/// Time-out for one file over HTTP.
const HTTP_TIMEOUT: Duration = Duration::from_secs(300);

/// One of the configured roots, opened.
pub(super) struct Root {
    /// Ends in a slash, so that `/data` does not cover `/database`.
    pub(super) url: Url,
    pub(super) store: Arc<dyn ObjectStore>,
    /// The client of a cloud's bucket.
    pub(super) bucket: Option<Bucket>,
    /// The folder of a `file://` root: links must not lead out of it.
    pub(super) folder: Option<PathBuf>,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl Root {
    pub(super) fn open(
        text: &str,
        options: &[(String, String)],
        retries: &RetryConfig,
    ) -> Result<Self, Error> {
        let invalid = |why: String| {
            Error::Invalid(format!("storage root \"{}\": {why}", text.escape_debug()))
        };
        let mut url = Url::parse(text).map_err(|_| {
            invalid("write an absolute URI such as file:///data or s3://bucket/prefix".to_owned())
        })?;
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        if url.scheme() == "file" {
            let folder = url.to_file_path().map_err(|()| {
                invalid("write file:// and an absolute path, three slashes in all".to_owned())
            })?;
            return Ok(Self {
                url,
                store: Arc::new(LocalFileSystem::new()),
                bucket: None,
                folder: Some(folder),
            });
        }
        if matches!(url.scheme(), "http" | "https") {
            let mut origin = url.clone();
            origin.set_path("/");
            let client = ClientOptions::new().with_allow_http(true);
            let builder = HttpBuilder::new()
                .with_url(origin)
                .with_retry(retries.clone())
                .with_client_options(client)
                .with_http_connector(Straight);
            let store = builder.build().map_err(|error| invalid(error.to_string()))?;
            return Ok(Self { url, store: Arc::new(store), bucket: None, folder: None });
        }
        let bucket = Bucket::open(&url, options, retries)
            .map_err(|error| invalid(error.to_string()))?
            .ok_or_else(|| invalid(format!("no store is called {}://", url.scheme())))?;
        Ok(Self { url, store: bucket.store(), bucket: Some(bucket), folder: None })
    }

    /// The parts of its path.
    pub(super) fn parts(&self) -> Vec<String> {
        let own = self.url.path_segments().into_iter().flatten().filter(|part| !part.is_empty());
        own.map(|part| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect()
    }

    /// The number of path parts below this root, if it covers the URL.
    pub(super) fn rest(&self, url: &Url, parts: &[String]) -> Option<usize> {
        let same_place = self.url.scheme() == url.scheme()
            && self.url.host_str() == url.host_str()
            && self.url.port() == url.port();
        let own = self.parts();
        (same_place && parts.starts_with(&own)).then(|| parts.len() - own.len())
    }
}

/// HTTP without redirects, because a redirect could lead to a host that is not a root.
#[derive(Debug)]
struct Straight;

impl HttpConnector for Straight {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // Objects are read as they are stored, in ranges.
        let client = reqwest::Client::builder()
            .no_gzip()
            .no_deflate()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(HTTP_TIMEOUT)
            .build();
        let client = client.map_err(|error| object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(error),
        })?;
        Ok(HttpClient::new(client))
    }
}

/// Whether the nearest existing ancestor of `file`, with all links resolved, is in `folder`, whose
/// links are resolved; `None` is a folder that does not exist.
pub(super) fn stays_inside(folder: Option<&FilePath>, file: &FilePath) -> bool {
    let Some(folder) = folder else {
        // A root that does not exist has no links; the read reports it.
        return !file.components().any(|part| part == Component::ParentDir);
    };
    file.ancestors()
        .find_map(|ancestor| ancestor.canonicalize().ok())
        .is_none_or(|real| real.starts_with(folder))
}

/// A bucket or container, and its client.
#[derive(Debug, Clone)]
pub(super) enum Bucket {
    S3(Arc<AmazonS3>),
    Google(Arc<GoogleCloudStorage>),
    Azure(Arc<MicrosoftAzure>),
}

impl Bucket {
    /// `None` if the URL names no bucket. Sends no request yet.
    pub(super) fn open(
        url: &Url,
        options: &[(String, String)],
        retries: &RetryConfig,
    ) -> Result<Option<Self>> {
        macro_rules! built {
            ($builder:ty) => {{
                let builder = <$builder>::new().with_url(url.as_str()).with_retry(retries.clone());
                let builder =
                    options.iter().fold(builder, |builder, (name, value)| match key(name) {
                        Some(key) => builder.with_config(key, value),
                        None => builder,
                    });
                Arc::new(builder.build()?)
            }};
        }
        Ok(match ObjectStoreScheme::parse(url) {
            Ok((ObjectStoreScheme::AmazonS3, _)) => Some(Self::S3(built!(AmazonS3Builder))),
            Ok((ObjectStoreScheme::GoogleCloudStorage, _)) => {
                Some(Self::Google(built!(GoogleCloudStorageBuilder)))
            }
            Ok((ObjectStoreScheme::MicrosoftAzure, _)) => {
                Some(Self::Azure(built!(MicrosoftAzureBuilder)))
            }
            _ => None,
        })
    }

    pub(super) fn store(&self) -> Arc<dyn ObjectStore> {
        match self {
            Self::S3(bucket) => Arc::clone(bucket) as _,
            Self::Google(bucket) => Arc::clone(bucket) as _,
            Self::Azure(bucket) => Arc::clone(bucket) as _,
        }
    }

    /// The paginated listing, where a store has one.
    pub(super) fn lister(&self) -> Option<&dyn PaginatedListStore> {
        match self {
            Self::S3(bucket) => Some(bucket.as_ref()),
            Self::Google(bucket) => Some(bucket.as_ref()),
            Self::Azure(_) => None,
        }
    }

    /// The multipart uploads, which another worker can continue.
    pub(super) fn uploads(&self) -> Arc<dyn MultipartStore> {
        match self {
            Self::S3(bucket) => Arc::clone(bucket) as _,
            Self::Google(bucket) => Arc::clone(bucket) as _,
            Self::Azure(bucket) => Arc::clone(bucket) as _,
        }
    }

    /// Gets the credential, if it has to be fetched or exchanged.
    ///
    /// # Errors
    /// The error of the service that was asked for it.
    pub(super) async fn authenticate(&self) -> Result<()> {
        match self {
            Self::S3(bucket) => bucket.credentials().get_credential().await.map(drop),
            Self::Google(bucket) => bucket.credentials().get_credential().await.map(drop),
            Self::Azure(bucket) => bucket.credentials().get_credential().await.map(drop),
        }
    }
}

/// Prefixes of the stores' variables: `TOKEN`, `REGION` or `ENDPOINT` alone may belong to another
/// program.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Two variables that Google and Azure set themselves.
const OTHERS: [&str; 2] = ["SERVICE_ACCOUNT", "IDENTITY_ENDPOINT"];

/// The environment variables that stores read.
pub(super) fn variables() -> Vec<(String, String)> {
    of_stores(std::env::vars_os())
}

/// A secret that was made from a file often ends in a line break, which no header may hold.
fn of_stores(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_of_a_store(name))
        .map(|(name, value)| (name, value.trim().to_owned()))
        .collect()
}

fn is_of_a_store(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    OTHERS.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The option of a store that a variable of this name sets, if any.
pub(super) fn key<K: FromStr>(name: &str) -> Option<K> {
    name.to_ascii_lowercase().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_behind_a_secret_is_no_part_of_it() {
        let stated = [("AWS_ACCESS_KEY_ID", "key\n"), ("HOME", "/root\n")];
        let read = of_stores(stated.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(read, [("AWS_ACCESS_KEY_ID".to_owned(), "key".to_owned())]);
    }

    /// Another program's `TOKEN` is not a session token of AWS.
    #[test]
    fn only_the_vendors_own_names_are_read() {
        for name in ["AWS_REGION", "aws_region", "AZURE_CLIENT_ID", "SERVICE_ACCOUNT"] {
            assert!(is_of_a_store(name), "{name}");
        }
        for name in ["TOKEN", "REGION", "BUCKET", "ENDPOINT", "TIMEOUT", "HOME"] {
            assert!(!is_of_a_store(name), "{name}");
        }
    }
}
