//! The kind and origin of a store's credential; never its value.
//!
//! The order is that of `object_store`'s builders, which [`super::root`] opens with these options.

mod aws;
mod azure;
mod found;
mod google;

use std::path::Path;

use object_store::ObjectStoreScheme;
use url::Url;

use self::found::Variables;
pub use self::found::{Credential, CredentialKind};
use crate::storage::root::variables;

impl Credential {
    /// The credential that the environment gives to a store of this URL.
    pub fn find(url: &Url) -> Self {
        let home = std::env::var_os("HOME").unwrap_or_default();
        Self::among(url, &variables(), Path::new(&home))
    }

    fn among(url: &Url, variables: &[(String, String)], home: &Path) -> Self {
        let variables = Variables(variables);
        match ObjectStoreScheme::parse(url) {
            _ if matches!(url.scheme(), "http" | "https") => {
                Self::new(CredentialKind::Anonymous, "over HTTP there is none")
            }
            Ok((ObjectStoreScheme::AmazonS3, _)) => aws::find(&variables, home),
            Ok((ObjectStoreScheme::GoogleCloudStorage, _)) => google::find(&variables, home),
            Ok((ObjectStoreScheme::MicrosoftAzure, _)) => azure::find(&variables),
            _ => Self::new(CredentialKind::User, "the file system asks for nothing else"),
        }
    }
}

#[cfg(test)]
mod tests;
