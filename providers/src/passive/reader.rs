//! Reads the replies of one provider to another client's calls.

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use super::usage::ReplyFacts;
use crate::{
    batch::Answer,
    envelope::Envelope,
    error::Error,
    exchange::{Cut, MAX_REPLY_BYTES, Reply},
    key::{Key, KeySource},
    message::Redactor,
    observed::Observed,
    refusal::Context,
    vendor::Vendor,
    verbatim::{Sender, VerbatimReply, words},
};

/// Reads the replies to one call. Made from a vendor, for a provider that is not configured here;
/// or from a provider, whose name, key, own errors and request it then knows.
#[derive(Clone)]
pub struct PassiveReader(Of);

#[derive(Clone)]
enum Of {
    Vendor(Vendor),
    Provider(Sender),
}

impl From<Vendor> for PassiveReader {
    fn from(vendor: Vendor) -> Self {
        Self(Of::Vendor(vendor))
    }
}

/// For the provider that replies.
impl From<&VerbatimReply> for PassiveReader {
    fn from(reply: &VerbatimReply) -> Self {
        Self(Of::Provider(reply.sender.clone()))
    }
}

impl PassiveReader {
    fn vendor(&self) -> Vendor {
        match &self.0 {
            Of::Vendor(vendor) => *vendor,
            Of::Provider(Sender { replies, .. }) => replies.vendor(),
        }
    }

    /// Reads a whole reply to a call. The answer's text is not examined: an empty or refused answer
    /// counts as one.
    ///
    /// # Errors
    /// The vendor's error. Keys are masked, and quotations from the request are cut if the request
    /// is known.
    pub fn read_reply(
        &self,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<ReplyFacts, Error> {
        let reply = Reply { status, headers: headers.clone(), body: body.to_vec(), cut: None };
        if !reply.is_success() {
            return Err(self.refused(&reply));
        }
        // A success without JSON is audio or text: its usage is unknown.
        let Ok(body) = reply.json() else { return Ok(self.read_usage(headers, &Value::Null)) };
        self.read_success(&reply, &body)
    }

    /// Reads a whole answer, with its usage.
    fn whole(&self, reply: Reply) -> Result<Whole, Error> {
        let (body, facts) = self.read_whole(&reply)?;
        Ok(Whole { headers: reply.headers, body, facts })
    }

    /// Like [`Self::read_reply`], but a success that is incomplete or no JSON is an error.
    fn read_whole(&self, reply: &Reply) -> Result<(Value, ReplyFacts), Error> {
        if !reply.is_success() {
            return Err(self.refused(reply));
        }
        match reply.json() {
            Ok(body) => self.read_success(reply, &body).map(|facts| (body, facts)),
            Err(why) => Err(self.error_in_context(&reply.headers, |it| it.unreadable(reply, why))),
        }
    }

    fn read_success(&self, reply: &Reply, body: &Value) -> Result<ReplyFacts, Error> {
        match Envelope::in_success(body) {
            Some(envelope) => {
                Err(self
                    .error_in_context(&reply.headers, |it| it.error_in_success(reply, &envelope)))
            }
            None => Ok(self.read_usage(&reply.headers, body)),
        }
    }

    /// No call has zero input: a gateway that reports it reports nothing. No other usage is
    /// impossible, because a request may refer to a file, whose tokens no estimate knows.
    fn read_usage(&self, headers: &HeaderMap, body: &Value) -> ReplyFacts {
        let usage = self.vendor().usage(body).filter(|usage| usage.input() > 0);
        ReplyFacts { usage, observed: self.observed(headers) }
    }

    fn refused(&self, reply: &Reply) -> Error {
        let error = self.error_in_context(&reply.headers, |context| match self.0 {
            Of::Vendor(_) => context.refused(reply),
            Of::Provider(..) => context.refused_call(reply),
        });
        (self.vendor().0.refused)(error, &reply.headers)
    }

    fn error_in_context(
        &self,
        headers: &HeaderMap,
        error: impl FnOnce(Context<'_>) -> Error,
    ) -> Error {
        let observed = self.observed(headers);
        match &self.0 {
            Of::Vendor(vendor) => {
                let (classifier, key) = (vendor.classifier(), Key::new(None, KeySource::Fixed));
                let redactor = Redactor::of_key(&key);
                error(Context::new(vendor.as_str(), &classifier, &[], redactor, observed))
            }
            Of::Provider(Sender { replies, request }) => {
                let words = words(request);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let redactor = Redactor::of_texts(&replies.key, &words);
                error(replies.context(redactor, observed))
            }
        }
    }

    fn observed(&self, headers: &HeaderMap) -> Observed {
        (self.vendor().0.observed)(headers)
    }
}

impl VerbatimReply {
    /// Reads an answer in one piece to its end.
    ///
    /// # Errors
    /// The meaning of a refusal, or the reason why the answer cannot be read.
    pub async fn whole(self) -> Result<Whole, Error> {
        let reader = PassiveReader::from(&self);
        reader.whole(Reply::read(self.response, MAX_REPLY_BYTES).await)
    }

    /// Reads the beginning of an answer in one piece before any of it is passed on: to its end, or
    /// more than `most` bytes. The rest follows from [`Self::into_body`].
    ///
    /// # Errors
    /// The errors of [`Self::whole`], with the body that was read: null if it is no JSON.
    pub async fn begin(&mut self, most: usize) -> Result<Begun, Box<(Error, Value)>> {
        let reader = PassiveReader::from(&*self);
        let reply = Reply::read_most(&mut self.response, most).await;
        let is_longer = reply.cut == Some(Cut::TooLong);
        let facts = match is_longer {
            true => None,
            false => Some(
                reader
                    .read_whole(&reply)
                    .map(|(_, facts)| facts)
                    .map_err(|error| Box::new((error, reply.json().unwrap_or_default())))?,
            ),
        };
        Ok(Begun { bytes: reply.body.into(), facts })
    }

    /// Reads a refusal to its end: returns the error, and the vendor's body, which may quote the
    /// request.
    pub async fn refused(self) -> (Error, Value) {
        let reader = PassiveReader::from(&self);
        let reply = Reply::read(self.response, MAX_REPLY_BYTES).await;
        (reader.refused(&reply), reply.json().unwrap_or_default())
    }
}

impl Answer {
    /// Like [`Self::completion`], for a request in the vendor's own form.
    #[must_use]
    pub fn as_it_is(self) -> Option<Result<Whole, Error>> {
        self.reply.map(|reply| PassiveReader(Of::Provider(self.sender)).whole(reply))
    }
}

/// The beginning of an answer in one piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// The bytes as they came.
    pub bytes: Bytes,
    /// Its usage and limits; `None` if more bytes follow.
    pub facts: Option<ReplyFacts>,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Its headers.
    pub headers: HeaderMap,
    /// The vendor's body.
    pub body: Value,
    /// Its usage and limits.
    pub facts: ReplyFacts,
}

/// Shows neither the key nor the request.
impl fmt::Debug for PassiveReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PassiveReader").field(&self.vendor()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_input_is_no_usage_and_any_other_is_believed() {
        let input = |input: u64| {
            let body =
                format!("{{\"usage\": {{\"prompt_tokens\": {input}, \"completion_tokens\": 9}}}}");
            let facts = Vendor::OPENAI.read_reply(200, &HeaderMap::new(), body.as_bytes());
            facts.unwrap().usage.map(|usage| usage.uncached_input)
        };
        assert_eq!((input(0), input(60_000)), (None, Some(60_000)));
    }
}
