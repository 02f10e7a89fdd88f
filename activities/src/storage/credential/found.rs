//! A credential's kind and origin, and the variables that it may come from.

use std::str::FromStr;

use serde::Serialize;

use crate::storage::root::key;

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// AWS: an access key that does not expire.
    AccessKey,
    /// AWS: an access key with a session token, which expires.
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
    /// Google: a person's credential, from `gcloud auth application-default login`.
    AuthorizedUser,
    /// Google: the service account of the machine or pod, from the metadata server.
    MetadataServer,
    /// Google and Azure: a token that was made elsewhere, which expires.
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
    /// Azure: the login of `az login`.
    AzureCli,
    /// Azure: a token of Fabric's own service.
    Fabric,
    /// Requests are not signed.
    Anonymous,
    /// A file system's: the user of the process.
    User,
    /// No credential, or one of an unsupported kind.
    Unusable,
}

impl CredentialKind {
    /// The kind's name for people.
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

/// A credential's kind and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// Its kind.
    pub kind: CredentialKind,
    /// The variables, the file or the service that it comes from.
    pub from: String,
    /// Parts that are missing or not supported, each with a remedy.
    pub remarks: Vec<String>,
}

impl Credential {
    pub(super) fn new(kind: CredentialKind, from: impl Into<String>) -> Self {
        Self { kind, from: from.into(), remarks: Vec::new() }
    }

    pub(super) fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remarks.push(remark.into());
        self
    }
}

/// A variable that sets an option of a store.
#[derive(Clone, Copy)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

/// The environment's variables, by the options that they set.
pub(super) struct Variables<'a>(pub(super) &'a [(String, String)]);

impl<'a> Variables<'a> {
    /// The last of several variables for one option wins, as in the builders.
    pub(super) fn get<K: FromStr + PartialEq>(&self, option: &K) -> Option<Variable<'a>> {
        let found = self.0.iter().rev().find(|(name, _)| key::<K>(name).as_ref() == Some(option));
        found.map(|(name, value)| Variable { name, value })
    }

    pub(super) fn is_true<K: FromStr + PartialEq>(&self, option: &K) -> bool {
        let yes = |value: &str| matches!(value, "1" | "true" | "on" | "yes" | "y");
        self.get(option).is_some_and(|found| yes(&found.value.to_ascii_lowercase()))
    }

    /// Remarks the variables that are missing beside a first one, without which it is not read.
    pub(super) fn missing<K: FromStr + PartialEq>(
        &self,
        found: Credential,
        sets: &[(&str, &[&str])],
    ) -> Credential {
        let is_set = |name: &str| key::<K>(name).is_some_and(|it| self.get(&it).is_some());
        sets.iter().filter(|(first, _)| is_set(first)).fold(found, |found, (first, others)| {
            let absent: Vec<_> = others.iter().copied().filter(|name| !is_set(name)).collect();
            if absent.is_empty() {
                return found;
            }
            found.remark(format!("{first} is not read alone: set {}, too", absent.join(" and ")))
        })
    }

    /// A variable that a vendor's own tools read, and stores do not.
    pub(super) fn named(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A credential of these variables; an empty variable counts as a wrong key.
    pub(super) fn credential<const N: usize>(
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
