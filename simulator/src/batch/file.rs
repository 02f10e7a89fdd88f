//! A file that was uploaded.

use axum::body::Bytes;
use chrono::Utc;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) content: Bytes,
    name: String,
    created: i64,
}

impl File {
    pub(crate) fn new(name: String, content: Bytes) -> Self {
        Self { content, name, created: Utc::now().timestamp() }
    }

    /// The vendor's file object.
    pub(crate) fn object(&self, id: &str) -> Value {
        json!({
            "id": id,
            "object": "file",
            "bytes": self.content.len(),
            "created_at": self.created,
            "expires_at": null,
            "filename": self.name,
            "purpose": "batch",
            "status": "processed",
            "status_details": null,
        })
    }
}
