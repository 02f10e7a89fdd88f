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

/// Prefixes of the stores' variables: `TOKEN`, `REGION` or `ENDPOINT` alone may belong to another
/// program.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Two variables that Google and Azure set themselves.
const OTHERS: [&str; 2] = ["SERVICE_ACCOUNT", "IDENTITY_ENDPOINT"];

/// The environment variables that stores read.
pub(super) fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_of_a_store(name))
        .collect()
}

fn is_of_a_store(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    OTHERS.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

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
