//! The reply to a request that was sent unchanged.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;

use crate::reply_reader::ReplyReader;

/// A reply whose body has not been read yet. Its status may be any;
/// [`PassiveReader`](crate::passive::PassiveReader) reads its meaning.
pub struct VerbatimReply {
    pub(crate) response: reqwest::Response,
    pub(crate) sender: Sender,
}

/// The provider that replies, and the request.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) replies: Arc<ReplyReader>,
    /// The body that was sent.
    pub(crate) request: Bytes,
}

impl VerbatimReply {
    /// Its HTTP status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Its bytes, as they arrive. A broken connection is an error of `reqwest`.
    pub fn into_body(self) -> reqwest::Body {
        http::Response::<reqwest::Body>::from(self.response).into_body()
    }
}

/// Shows neither the key nor the request.
impl fmt::Debug for VerbatimReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.sender.replies.name;
        f.debug_struct("VerbatimReply")
            .field("provider", name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
