//! What comes back for a request that was sent as it is.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;

use crate::reply_reader::ReplyReader;

/// A reply that has begun. Its status may be any; what it means says
/// [`Hearing`](crate::overheard::Hearing).
pub struct VerbatimReply {
    pub(crate) response: reqwest::Response,
    pub(crate) sender: Sender,
}

/// Whose reply it is, and to what.
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

    /// Its bytes as they come. What breaks off is an error of `reqwest`.
    pub fn into_body(self) -> reqwest::Body {
        http::Response::<reqwest::Body>::from(self.response).into_body()
    }
}

/// Neither the key nor the request.
impl fmt::Debug for VerbatimReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.sender.replies.name;
        f.debug_struct("VerbatimReply")
            .field("provider", name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
