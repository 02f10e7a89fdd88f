//! Calls that another client makes: what its request asks for ([`Asked`]), and what the reply to it
//! means ([`Heard`]), by [`Hearing`]. So that a vendor's own SDK, or any HTTP client, can go through a limiter.

mod asked;
mod heard;
mod hearing;
mod stream;

use http::HeaderMap;

pub use self::{
    asked::Asked,
    heard::Heard,
    hearing::{Begun, Hearing, Whole},
    stream::Stream,
};
use crate::{
    error::Error,
    exchange::{self, Fault},
    key::{Key, KeySource},
    message::Redactor,
    vendor::Vendor,
};

impl Vendor {
    /// What a whole reply to a call means. Its words are not looked at: an empty or refused answer
    /// is one, too.
    ///
    /// # Errors
    /// What the vendor's error means. It may quote the request, as vendors do; keys are masked.
    pub fn heard(self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Heard, Error> {
        Hearing::from(self).heard(status, headers, body)
    }
}

/// What it means that a request got no reply: before a connection stands nothing was asked; after
/// that it is not known what the provider has done.
impl From<&reqwest::Error> for Error {
    fn from(error: &reqwest::Error) -> Self {
        // Of `error_for_status`: its headers and its body are gone.
        if let Some(status) = error.status() {
            let told = Vendor::OPENAI.heard(status.as_u16(), &HeaderMap::new(), b"");
            if let Err(told) = told {
                return told;
            }
        }
        let host = error.url().and_then(url::Url::host_str).unwrap_or("the provider").to_owned();
        let key = Key::new(None, KeySource::Fixed);
        exchange::no_reply(&host, &Fault::of(error), &Redactor::of_key(&key))
    }
}

#[cfg(test)]
mod tests;
