//! A bucket of one of the clouds, opened once for each of its interfaces.

use std::{str::FromStr, sync::Arc};

use object_store::{
    ObjectStore, ObjectStoreScheme, Result, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    azure::{MicrosoftAzure, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder},
    list::PaginatedListStore,
    multipart::MultipartStore,
};
use url::Url;

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

/// The option of a store that a variable of this name sets, if any.
pub(super) fn key<K: FromStr>(name: &str) -> Option<K> {
    name.to_ascii_lowercase().parse().ok()
}
