//! Passive reading of calls that another client makes: the request ([`RequestFacts`]) and the reply
//! ([`ReplyFacts`], read by [`PassiveReader`]). So a vendor's own SDK, or any HTTP client, can go through a
//! limiter.

mod reader;
mod request;
mod stream;
mod usage;

use http::HeaderMap;

pub use self::{
    reader::{Begun, PassiveReader, Whole},
    request::RequestFacts,
    stream::Stream,
    usage::ReplyFacts,
};
use crate::{
    error::Error,
    exchange::{self, Fault},
    key::{Key, KeySource},
    message::Redactor,
    vendor::Vendor,
};

impl Vendor {
    /// Reads a whole reply to a call. The answer's text is not examined: an empty or refused answer
    /// counts as one.
    ///
    /// # Errors
    /// The vendor's error. It may quote the request, as vendors do; keys are masked.
    pub fn read_reply(
        self,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<ReplyFacts, Error> {
        PassiveReader::from(self).read_reply(status, headers, body)
    }
}

/// The error of a request without a reply. Before a connection was made nothing was sent; after
/// that the provider may have worked on it.
impl From<&reqwest::Error> for Error {
    fn from(error: &reqwest::Error) -> Self {
        // An error from `error_for_status`: its headers and body are gone.
        if let Some(status) = error.status() {
            let told = Vendor::OPENAI.read_reply(status.as_u16(), &HeaderMap::new(), b"");
            if let Err(told) = told {
                return told;
            }
        }
        let host = error.url().and_then(url::Url::host_str).unwrap_or("the provider").to_owned();
        let key = Key::new(None, KeySource::Fixed);
        exchange::no_reply(&host, &Fault::from_error(error), &Redactor::of_key(&key))
    }
}

#[cfg(test)]
mod tests;
