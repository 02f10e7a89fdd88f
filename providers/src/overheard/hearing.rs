//! Who says what the replies of one provider mean.

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use super::heard::Heard;
use crate::{
    anthropic,
    batch::Answer,
    envelope::Envelope,
    error::Error,
    exchange::{Cut, Reply},
    gemini,
    key::{Key, KeySource},
    message::Redactor,
    observed::Observed,
    openai,
    refusal::Context,
    vendor::{Interface, Vendor},
    verbatim::{Sender, VerbatimReply, words},
};

/// Reads the replies to one call. Of a vendor alone, whose provider is not configured here; or of a
/// provider, whose name, key and own errors it then knows, and what was asked of it.
#[derive(Clone)]
pub struct Hearing(Of);

#[derive(Clone)]
enum Of {
    Vendor(Vendor),
    Provider(Sender),
}

impl From<Vendor> for Hearing {
    fn from(vendor: Vendor) -> Self {
        Self(Of::Vendor(vendor))
    }
}

/// Of the provider that replies.
impl From<&VerbatimReply> for Hearing {
    fn from(reply: &VerbatimReply) -> Self {
        Self(Of::Provider(reply.sender.clone()))
    }
}

impl Hearing {
    fn vendor(&self) -> Vendor {
        match &self.0 {
            Of::Vendor(vendor) => *vendor,
            Of::Provider(Sender { replies, .. }) => replies.vendor(),
        }
    }

    /// What a whole reply to a call means. Its words are not looked at: an empty or refused answer
    /// is one, too.
    ///
    /// # Errors
    /// What the vendor's error means. Keys are masked, and what it quotes from the request is cut
    /// where the request is known.
    pub fn heard(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Heard, Error> {
        let reply = Reply { status, headers: headers.clone(), body: body.to_vec(), cut: None };
        if !reply.is_success() {
            return Err(self.refused(&reply));
        }
        // A success that is no JSON is somebody's audio or text: nothing is known of what it used.
        let Ok(body) = reply.json() else { return Ok(self.heard_in(headers, &Value::Null)) };
        self.heard_inside(&reply, &body)
    }

    /// A whole answer, with what it used.
    fn whole(&self, reply: Reply) -> Result<Whole, Error> {
        let heard = self.heard_whole(&reply)?;
        let body = reply.json().unwrap_or_default();
        Ok(Whole { headers: reply.headers, body, heard })
    }

    /// The same of one that is to be read here: a success that is not whole or no JSON is an error.
    fn heard_whole(&self, reply: &Reply) -> Result<Heard, Error> {
        if !reply.is_success() {
            return Err(self.refused(reply));
        }
        match reply.json() {
            Ok(body) => self.heard_inside(reply, &body),
            Err(why) => Err(self.explained(&reply.headers, |it| it.unreadable(reply, why))),
        }
    }

    fn heard_inside(&self, reply: &Reply, body: &Value) -> Result<Heard, Error> {
        match Envelope::in_success(body) {
            Some(envelope) => {
                Err(self.explained(&reply.headers, |it| it.error_in_success(reply, &envelope)))
            }
            None => Ok(self.heard_in(&reply.headers, body)),
        }
    }

    fn heard_in(&self, headers: &HeaderMap, body: &Value) -> Heard {
        Heard { usage: self.vendor().usage(body), observed: self.observed(headers) }
    }

    fn refused(&self, reply: &Reply) -> Error {
        let error = self.explained(&reply.headers, |context| match self.0 {
            Of::Vendor(_) => context.refused(reply),
            Of::Provider(..) => context.refused_call(reply),
        });
        let is_gemini = self.vendor().0.interface == Interface::GenerateContent;
        if is_gemini { gemini::with_reset(error, reply) } else { error }
    }

    fn explained(&self, headers: &HeaderMap, error: impl FnOnce(Context<'_>) -> Error) -> Error {
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

    /// Those that are compatible with OpenAI have its headers.
    fn observed(&self, headers: &HeaderMap) -> Observed {
        match self.vendor().0.interface {
            Interface::Messages => anthropic::observed(headers),
            Interface::GenerateContent => gemini::observed(headers),
            _ => openai::observed(headers),
        }
    }
}

impl VerbatimReply {
    /// Reads it to its end: an answer in one piece, not as events.
    ///
    /// # Errors
    /// What a refusal means, or why the answer cannot be read.
    pub async fn whole(self) -> Result<Whole, Error> {
        let hearing = Hearing::from(&self);
        hearing.whole(Reply::read(self.response).await)
    }

    /// Reads an answer in one piece to its end before any of it is passed on, or more than `most` bytes
    /// of it; what follows is [`Self::into_body`].
    ///
    /// # Errors
    /// As [`Self::whole`].
    pub async fn begin(&mut self, most: usize) -> Result<Begun, Error> {
        let hearing = Hearing::from(&*self);
        let reply = Reply::read_most(&mut self.response, most).await;
        let is_longer = reply.cut == Some(Cut::TooLong);
        let heard = if is_longer { None } else { Some(hearing.heard_whole(&reply)?) };
        Ok(Begun { bytes: reply.body.into(), heard })
    }

    /// Reads a refusal to its end: what it means, and what the vendor says, which may quote the
    /// request.
    pub async fn refused(self) -> (Error, Value) {
        let hearing = Hearing::from(&self);
        let reply = Reply::read(self.response).await;
        (hearing.refused(&reply), reply.json().unwrap_or_default())
    }
}

impl Answer {
    /// As [`Self::completion`], of a request in the vendor's own form.
    #[must_use]
    pub fn as_it_is(self) -> Option<Result<Whole, Error>> {
        self.reply.map(|reply| Hearing(Of::Provider(self.sender)).whole(reply))
    }
}

/// The beginning of an answer in one piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// As they came.
    pub bytes: Bytes,
    /// What it used, and what its headers tell of limits; `None` where more bytes follow.
    pub heard: Option<Heard>,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Its headers.
    pub headers: HeaderMap,
    /// What the vendor says.
    pub body: Value,
    /// What it used, and what its headers tell of limits.
    pub heard: Heard,
}

/// Neither the key nor the request.
impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hearing").field(&self.vendor()).finish()
    }
}
