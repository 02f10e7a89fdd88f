//! Calls that another client makes: what its request asks for ([`Asked`]), and what the reply to it
//! means ([`Heard`]), by [`Hearing`]. So that a vendor's own SDK, or any HTTP client, can go through a limiter.

mod asked;
mod hearing;
mod stream;

use http::HeaderMap;
use serde_json::Value;
use tidegate_types::Usage;

pub use self::{
    asked::Asked,
    hearing::{Hearing, Whole},
    stream::Stream,
};
use crate::{
    anthropic,
    error::Error,
    exchange::{self, Fault},
    gemini,
    json::count,
    key::{Key, KeySource},
    message::Redactor,
    observed::Observed,
    openai,
    vendor::Vendor,
};

/// What an answer says beside its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// What the call used; `None` where the answer does not say.
    pub usage: Option<Usage>,
    /// Limits and remaining quota.
    pub observed: Observed,
}

impl Vendor {
    /// What a whole reply to a call means. Its words are not looked at: an empty or refused answer
    /// is one, too.
    ///
    /// # Errors
    /// What the vendor's error means. It may quote the request, as vendors do; keys are masked.
    pub fn heard(self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Heard, Error> {
        Hearing::from(self).heard(status, headers, body)
    }

    /// By the form of the vendor's own API, else by that of any other: gateways mix them.
    fn usage(self, body: &Value) -> Option<Usage> {
        let of_openai = |body: &Value| {
            openai::usage(body).or_else(|| {
                // Anthropic's has the same names for other things.
                let cached = body.pointer("/usage/input_tokens_details").is_some();
                cached.then(|| openai::usage_of_responses(body)).flatten()
            })
        };
        of_openai(body)
            .or_else(|| anthropic::usage(body))
            .or_else(|| gemini::usage(body))
            .or_else(|| converse(body))
    }
}

/// AWS Bedrock's, as on the wire: cached tokens stand beside `inputTokens`
/// (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html).
fn converse(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    Some(Usage {
        uncached_input: count(usage, &["inputTokens"])?,
        cache_read: count(usage, &["cacheReadInputTokens"]).unwrap_or(0),
        cache_write: count(usage, &["cacheWriteInputTokens"]).unwrap_or(0),
        output: count(usage, &["outputTokens"])?,
    })
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
