//! `[worker]`: one worker process.

use serde::{Deserialize, Serialize};

use super::span::Span;

/// One worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Worker {
    /// Documents that are worked on at once: the slots that the lanes share, each at least one. A
    /// worker uses fewer when its models' limits cannot use them all.
    pub max_concurrent_documents: usize,
    /// A longer wait for quota goes back to Temporal.
    pub max_slot_wait: Span,
    /// What is in flight gets this long to finish when the worker is told to stop; then it is
    /// handed back and starts again elsewhere. Keep it below the time that your service manager
    /// waits before it kills.
    pub shutdown_grace: Span,
    /// Where Prometheus finds `/metrics`: `host:port`; `off` or nothing for no page.
    pub metrics_listen: String,
}

impl Worker {
    /// Where the metrics page is to be, unless it is off.
    #[must_use]
    pub fn metrics_address(&self) -> Option<&str> {
        Some(self.metrics_listen.as_str()).filter(|listen| !listen.is_empty() && *listen != "off")
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            max_concurrent_documents: 200,
            max_slot_wait: Span::seconds(10),
            shutdown_grace: Span::seconds(20),
            metrics_listen: "127.0.0.1:9464".to_owned(),
        }
    }
}
