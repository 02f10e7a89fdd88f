//! `[serve]`: the HTTP door.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{secret, size::Size, span::Span};

/// The HTTP door, `tidegate serve`: OpenAI's and Anthropic's dialects for any program that speaks one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Serve {
    /// An address and a port, such as 127.0.0.1:8080, or off.
    pub listen: String,
    /// A call whose turn comes within this waits in place; a later one is answered 429 and keeps its
    /// turn. A client states another with `x-tidegate-max-wait`.
    pub max_wait: Span,
    /// A longer body is refused.
    pub max_body: Size,
    /// Where files and batches lie, such as file:///data/files or s3://bucket/files: below it a folder for
    /// each key. Workers read and write there, too. Without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Files, and batches with their results, are removed so long after they were made.
    pub keep_files: Span,
    /// Whether who reaches the door from this machine needs no key: as tenant `default`, in the lane
    /// `interactive`, for every model.
    pub open_on_loopback: bool,
    /// The file of the certificate and its chain, as PEM. With it the door speaks TLS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate_file: Option<PathBuf>,
    /// The file of the certificate's private key, as PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key_file: Option<PathBuf>,
    /// Who may call, by a name for logs and metrics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, ServeKey>,
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            listen: "off".to_owned(),
            max_wait: Span::seconds(30),
            max_body: Size(32 << 20),
            files: None,
            keep_files: Span::seconds(30 * 24 * 60 * 60),
            open_on_loopback: false,
            tls_certificate_file: None,
            tls_key_file: None,
            keys: BTreeMap::new(),
        }
    }
}

impl Serve {
    /// Where the door is, if anywhere.
    pub fn address(&self) -> Option<&str> {
        Some(self.listen.as_str()).filter(|listen| !listen.is_empty() && *listen != "off")
    }
}

/// One key of the HTTP door.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeKey {
    /// The environment variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The file that holds the key, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Whose budget pays. Without it `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The class of traffic. Without it `interactive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// What it may ask: models (`provider:model`) and routes by their names. Without it all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

impl ServeKey {
    /// The key itself.
    ///
    /// # Errors
    /// It is not there, or too short to be one.
    pub fn secret(&self) -> anyhow::Result<String> {
        let secret = secret::read("key", self.key_env.as_ref(), self.key_file.as_ref())?;
        ensure!(secret.len() >= MIN_KEY, "the key has fewer than {MIN_KEY} characters");
        Ok(secret)
    }
}

/// The lane of callers where none is named.
pub const INTERACTIVE: &str = "interactive";

/// A shorter key could be guessed.
const MIN_KEY: usize = 16;
