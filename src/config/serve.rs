//! `[serve]`: the HTTP door.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_types::{DocumentId, Tenant as TenantName};

use super::{duration::HumanDuration, listen::unless_off, secret, size::Size};

/// The HTTP door, `tidegate serve`: OpenAI's and Anthropic's dialects for any program that speaks one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Serve {
    /// An address and a port, such as 127.0.0.1:8080, or off.
    pub listen: String,
    /// A call whose turn comes within this time waits in place; a later one is answered 429 and keeps its
    /// turn. A client overrides it with `x-tidegate-max-wait`.
    pub max_wait: HumanDuration,
    /// Maximum size of a body.
    pub max_body: Size,
    /// A prefix for files and batches, such as file:///data/files or s3://bucket/files, with a folder for
    /// each key. Workers read and write there, too. Without it, the door keeps no files and no batches.
    pub files: Option<String>,
    /// Files, and batches with their results, are removed this long after their creation.
    pub keep_files: HumanDuration,
    /// Whether callers on this machine need no key: they are tenant `default`, in the lane `interactive`,
    /// and may ask every model.
    pub open_on_loopback: bool,
    /// The file of the certificate and its chain, as PEM. With it the door speaks TLS alone.
    pub tls_certificate_file: Option<PathBuf>,
    /// The file of the certificate's private key, as PEM.
    pub tls_key_file: Option<PathBuf>,
    /// The keys, by a name for logs, metrics and the folder of the key's files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, ServeKey>,
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            listen: "off".to_owned(),
            max_wait: HumanDuration::seconds(30),
            max_body: Size(32 << 20),
            files: None,
            keep_files: HumanDuration::seconds(30 * 24 * 60 * 60),
            open_on_loopback: false,
            tls_certificate_file: None,
            tls_key_file: None,
            keys: BTreeMap::new(),
        }
    }
}

impl Serve {
    /// The address of the door, unless it is off.
    pub fn address(&self) -> Option<&str> {
        unless_off(&self.listen)
    }

    /// A warning if keys reach the door in plain text from other machines.
    pub fn plain_text_warning(&self) -> Option<String> {
        let address = self.address().filter(|_| self.tls_certificate_file.is_none())?;
        let is_loopback = address.parse().is_ok_and(|it: SocketAddr| it.ip().is_loopback());
        (!is_loopback).then(|| {
            format!(
                "the HTTP door at {address} speaks no TLS, so other machines send their keys in plain text; put a TLS proxy in front, or set serve.tls-certificate-file and serve.tls-key-file"
            )
        })
    }
}

/// One key of the HTTP door.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeKey {
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// The file that holds the key, and nothing else.
    pub key_file: Option<PathBuf>,
    /// The tenant whose budget pays. Default: `default`.
    pub tenant: Option<TenantName>,
    /// The lane. Default: `interactive`.
    pub lane: Option<String>,
    /// Models (`provider:model`) and routes that the key may ask. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

impl ServeKey {
    /// The key itself.
    ///
    /// # Errors
    /// The key is missing or too short.
    pub fn secret(&self) -> anyhow::Result<String> {
        secret::read_access("key", self.key_env.as_ref(), self.key_file.as_ref())
    }
}

/// The default lane of callers.
pub const INTERACTIVE: &str = "interactive";

/// The name of callers without a key. No key has it.
pub const OPEN: &str = "open";

/// The folder of a key's files and batches, below `files`.
pub fn folder_of_key(name: &str) -> DocumentId {
    DocumentId::from_relative_path(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_in_plain_text_for_other_machines_is_warned_of() {
        let warns = |listen: &str, certificate: Option<&str>| {
            let listen = listen.to_owned();
            let tls_certificate_file = certificate.map(PathBuf::from);
            Serve { listen, tls_certificate_file, ..Serve::default() }
                .plain_text_warning()
                .is_some()
        };
        assert!(warns("0.0.0.0:8080", None));
        assert!(!warns("0.0.0.0:8080", Some("chain.pem")));
        assert!(
            !warns("127.0.0.1:8080", None) && !warns("[::1]:8080", None) && !warns("off", None)
        );
    }
}
