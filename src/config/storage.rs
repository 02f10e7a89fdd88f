//! `[storage]`: what may be read and written.

use serde::{Deserialize, Serialize};

/// Roots of all sources and outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Storage {
    /// `file:///folder`, `s3://bucket/prefix`, `gs://…`, `az://…`.
    pub roots: Vec<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self { roots: vec!["file:///data".to_owned()] }
    }
}
