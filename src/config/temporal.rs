//! `[temporal]`: where the Temporal server is.

use serde::{Deserialize, Serialize};

/// The Temporal server and our place in it. What is absent comes from `TEMPORAL_ADDRESS`,
/// `TEMPORAL_NAMESPACE`, `TEMPORAL_TLS_…`, `TEMPORAL_API_KEY` or `temporal.toml`, as in every
/// Temporal SDK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Temporal {
    /// `host:port`, or a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The task queue that workers poll and batches are started on.
    pub task_queue: String,
}

impl Default for Temporal {
    fn default() -> Self {
        Self { address: None, namespace: None, task_queue: "tidegate".to_owned() }
    }
}
