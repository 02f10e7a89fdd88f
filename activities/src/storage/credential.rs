//! Which credential a store is opened with, and where it comes from; never its value.
//!
//! The order is that of `object_store`'s builders, which [`super::bucket`] opens with the same options.

mod aws;
mod azure;
mod google;

use std::{path::Path, str::FromStr};

use object_store::ObjectStoreScheme;
use serde::Serialize;
use url::Url;

use super::bucket::key;

/// What a store's variables begin with: `TOKEN`, `REGION` or `ENDPOINT` alone may be another program's.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// The two that Google and Azure set themselves.
const OTHERS: [&str; 2] = ["SERVICE_ACCOUNT", "IDENTITY_ENDPOINT"];

/// The variables of the environment that stores read.
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

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// AWS: an access key that does not end.
    AccessKey,
    /// AWS: an access key with a session token, which ends.
    TemporaryKey,
    /// AWS: a role, by the token of a web identity (IRSA).
    WebIdentity,
    /// AWS: the role of an ECS task.
    TaskRole,
    /// AWS: the role of an EKS pod identity.
    PodIdentity,
    /// AWS: the role of the instance, from its metadata service (IMDS).
    InstanceRole,
    /// Google: the key of a service account.
    ServiceAccountKey,
    /// Google: a person's, from `gcloud auth application-default login`.
    AuthorizedUser,
    /// Google: the service account of the machine or pod, from the metadata server.
    MetadataServer,
    /// Google and Azure: a token that was made elsewhere, which ends.
    BearerToken,
    /// Azure: the storage account's key.
    AccountKey,
    /// Azure: a shared access signature.
    Sas,
    /// Azure: an application with its secret.
    ClientSecret,
    /// Azure: an application or identity, by a federated token.
    WorkloadIdentity,
    /// Azure: the identity of the machine.
    ManagedIdentity,
    /// Azure: that of `az login`.
    AzureCli,
    /// Azure: a token of Fabric's own service.
    Fabric,
    /// Requests are not signed.
    Anonymous,
    /// A file system's: the user that the process runs as.
    User,
    /// There is none, or it is of a kind that is not read.
    Unusable,
}

impl CredentialKind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessKey => "access key",
            Self::TemporaryKey => "temporary access key",
            Self::WebIdentity => "role by web identity (IRSA)",
            Self::TaskRole => "role of the ECS task",
            Self::PodIdentity => "role of the EKS pod identity",
            Self::InstanceRole => "role of the instance (IMDS)",
            Self::ServiceAccountKey => "service account's key",
            Self::AuthorizedUser => "a person's application default credentials",
            Self::MetadataServer => "service account of the machine (metadata server)",
            Self::BearerToken => "bearer token",
            Self::AccountKey => "storage account's key",
            Self::Sas => "shared access signature (SAS)",
            Self::ClientSecret => "application with a client secret",
            Self::WorkloadIdentity => "workload identity",
            Self::ManagedIdentity => "managed identity",
            Self::AzureCli => "login of the Azure CLI",
            Self::Fabric => "token of Fabric",
            Self::Anonymous => "none: requests are not signed",
            Self::User => "user of the process",
            Self::Unusable => "none that can be used",
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// Its kind.
    pub kind: CredentialKind,
    /// The variables, the file or the service that it comes from.
    pub from: String,
    /// What is missing or not read, each with how to mend it.
    pub remarks: Vec<String>,
}

impl Credential {
    /// What the environment gives to a store of this URL.
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
            Ok((ObjectStoreScheme::AmazonS3, _)) => aws::found(&variables, home),
            Ok((ObjectStoreScheme::GoogleCloudStorage, _)) => google::found(&variables, home),
            Ok((ObjectStoreScheme::MicrosoftAzure, _)) => azure::found(&variables),
            _ => Self::new(CredentialKind::User, "the file system asks for nothing else"),
        }
    }

    fn new(kind: CredentialKind, from: impl Into<String>) -> Self {
        Self { kind, from: from.into(), remarks: Vec::new() }
    }

    fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remarks.push(remark.into());
        self
    }
}

/// A variable that a store takes an option from.
#[derive(Clone, Copy)]
struct Variable<'a> {
    name: &'a str,
    value: &'a str,
}

/// Those of the environment, by the options that they set.
struct Variables<'a>(&'a [(String, String)]);

impl<'a> Variables<'a> {
    /// Of several for one option the last holds, as in the builders.
    fn get<K: FromStr + PartialEq>(&self, option: &K) -> Option<Variable<'a>> {
        let found = self.0.iter().rev().find(|(name, _)| key::<K>(name).as_ref() == Some(option));
        found.map(|(name, value)| Variable { name, value })
    }

    fn is_true<K: FromStr + PartialEq>(&self, option: &K) -> bool {
        let yes = |value: &str| matches!(value, "1" | "true" | "on" | "yes" | "y");
        self.get(option).is_some_and(|found| yes(&found.value.to_ascii_lowercase()))
    }

    /// A variable that a vendor's own tools read, and stores do not.
    fn named(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A credential of these variables; one that is set and empty is as good as a wrong key.
    fn credential<const N: usize>(
        kind: CredentialKind,
        variables: [Variable<'_>; N],
    ) -> Credential {
        let names = variables.map(|variable| variable.name).join(", ");
        let found = Credential::new(kind, format!("the environment: {names}"));
        variables.iter().filter(|it| it.value.is_empty()).fold(found, |found, empty| {
            found.remark(format!("{} is set and empty: give it its value, or unset it", empty.name))
        })
    }
}

#[cfg(test)]
mod tests;
