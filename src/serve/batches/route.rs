//! The paths of files and batches.

use axum::http::Method;

use super::id::Kind;

/// An operation on files or batches, with the id in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) enum Endpoint {
    Upload,
    Files,
    File(String),
    Content(String),
    DeleteFile(String),
    Create,
    CreateMessages,
    Batches(Kind),
    Batch(Kind, String),
    Cancel(Kind, String),
    Results(String),
    DeleteMessages(String),
}

impl Endpoint {
    /// The operation of a request; `None` if the path has none.
    pub(in crate::serve) fn from_request(method: &Method, path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix("/v1/")?.split('/').collect();
        let id = |id: &str| id.to_owned();
        Some(match (method.as_str(), parts.as_slice()) {
            ("POST", ["files"]) => Self::Upload,
            ("GET", ["files"]) => Self::Files,
            ("GET", ["files", file]) => Self::File(id(file)),
            ("GET", ["files", file, "content"]) => Self::Content(id(file)),
            ("DELETE", ["files", file]) => Self::DeleteFile(id(file)),
            ("POST", ["batches"]) => Self::Create,
            ("GET", ["batches"]) => Self::Batches(Kind::Batch),
            ("GET", ["batches", batch]) => Self::Batch(Kind::Batch, id(batch)),
            ("POST", ["batches", batch, "cancel"]) => Self::Cancel(Kind::Batch, id(batch)),
            ("POST", ["messages", "batches"]) => Self::CreateMessages,
            ("GET", ["messages", "batches"]) => Self::Batches(Kind::MessageBatch),
            ("GET", ["messages", "batches", batch]) => Self::Batch(Kind::MessageBatch, id(batch)),
            ("POST", ["messages", "batches", batch, "cancel"]) => {
                Self::Cancel(Kind::MessageBatch, id(batch))
            }
            ("GET", ["messages", "batches", batch, "results"]) => Self::Results(id(batch)),
            ("DELETE", ["messages", "batches", batch]) => Self::DeleteMessages(id(batch)),
            _ => return None,
        })
    }

    /// The path for the log, without the id.
    pub(in crate::serve) fn path(&self) -> &'static str {
        match self {
            Self::Upload | Self::Files => "/v1/files",
            Self::File(_) | Self::DeleteFile(_) => "/v1/files/{id}",
            Self::Content(_) => "/v1/files/{id}/content",
            Self::Create | Self::Batches(Kind::Batch) => "/v1/batches",
            Self::Batch(Kind::Batch, _) => "/v1/batches/{id}",
            Self::Cancel(Kind::Batch, _) => "/v1/batches/{id}/cancel",
            Self::CreateMessages | Self::Batches(_) => "/v1/messages/batches",
            Self::Batch(..) | Self::DeleteMessages(_) => "/v1/messages/batches/{id}",
            Self::Cancel(..) => "/v1/messages/batches/{id}/cancel",
            Self::Results(_) => "/v1/messages/batches/{id}/results",
        }
    }
}
