//! A call in a vendor's own form: sent when it is admitted, and given as it begins.

use http::HeaderMap;
use serde_json::Value;
use tidegate_providers::{Error, Hearing, Key, Provider, Verbatim};
use tracing::Instrument as _;

use crate::{
    admission::Admitted,
    body::{Heeded, Listener},
    failure::Failure,
    spans,
};

/// A success, which is settled when its body has been read, or is dropped.
#[derive(Debug)]
pub struct Answer {
    /// Its HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its bytes as they come.
    pub body: Heeded<reqwest::Body>,
}

/// A call that brought no answer; it is settled.
#[derive(Debug)]
pub struct NoAnswer {
    /// What the provider refused, or why nothing came.
    pub error: Error,
    /// What that means, and when to come back.
    pub failure: Failure,
    /// What the vendor says in its own form; null where it says nothing. It may quote the request.
    pub body: Value,
}

impl Admitted {
    /// Sends one request. What it used is counted where events do not say it, or are not read to
    /// their end.
    ///
    /// # Errors
    /// [`NoAnswer`], where the reply is no success or none came.
    pub async fn send(
        self,
        provider: &dyn Provider,
        call: &Verbatim<'_>,
    ) -> Result<Answer, Box<NoAnswer>> {
        let version = provider.key().map(Key::version);
        let span = spans::call("chat", self.request());
        let input_tokens = self.request().input_tokens;
        let sent = self.sent();
        let reply = provider.send(call).instrument(span.clone()).await;
        let (error, body) = match reply {
            Ok(reply) if (200..300).contains(&reply.status()) => {
                let (status, headers) = (reply.status(), reply.headers().clone());
                let listener = Listener::new(Hearing::from(&reply), status, headers.clone());
                let listener = listener.counting(input_tokens);
                let body = Heeded::new(reply.into_body(), sent, listener);
                return Ok(Answer { status, headers, body });
            }
            Ok(reply) => reply.refused().await,
            Err(error) => (error, Value::Null),
        };
        spans::failed(&span, &error);
        let failure = sent.refused_by(provider, version, &error).await;
        Err(Box::new(NoAnswer { error, failure, body }))
    }
}
