//! A call in a vendor's own form: sent once it is admitted, its answer passed on as it comes.

use http::{HeaderMap, header};
use serde_json::Value;
use tidegate_providers::{Error, Key, PassiveReader, Provider, Verbatim, passive::Begun};
use tracing::Instrument as _;

use crate::{
    admission::Admitted,
    body::{Listener, MeteredBody},
    failure::Failure,
    spans,
};

/// Bytes of an answer in one piece that are read before any is passed on: such an answer is useless
/// before its end, and one that is no answer despite its status becomes a failure of the provider.
/// Only vectors of many texts are longer.
const LOOKED_AT: usize = 1 << 20;

/// A successful reply. A reply in one piece is settled already, unless it is very long; any other
/// is settled when its body has been read or dropped.
#[derive(Debug)]
pub struct Answer {
    /// Its HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its bytes, as they arrive.
    pub body: MeteredBody<reqwest::Body>,
}

/// A call without an answer. It is settled.
#[derive(Debug)]
pub struct NoAnswer {
    /// The provider's error, or the reason why no reply came.
    pub error: Error,
    /// The failure, with the time to come back.
    pub failure: Failure,
    /// The vendor's error body; null if there is none. It may quote the request.
    pub body: Value,
}

impl Admitted {
    /// Sends one request. The use of a stream is counted if its events do not report it, or are not
    /// read to their end.
    ///
    /// # Errors
    /// [`NoAnswer`] if the reply is no success, or none came.
    pub async fn send(
        self,
        provider: &dyn Provider,
        call: &Verbatim<'_>,
    ) -> Result<Answer, Box<NoAnswer>> {
        let version = provider.key().map(Key::version);
        let span = spans::call(spans::operation(call.operation), self.request());
        let input_tokens = self.request().input_tokens;
        let sent = self.sent();
        let reply = provider.send(call).instrument(span.clone()).await;
        let (error, body) = match reply {
            Ok(mut reply) if (200..300).contains(&reply.status()) => {
                let (status, headers) = (reply.status(), reply.headers().clone());
                let begun = match comes_in_one_piece(&headers, call) {
                    true => reply.begin(LOOKED_AT).await.map(Some),
                    false => Ok(None),
                };
                match begun {
                    Ok(Some(Begun { bytes, facts: Some(facts) })) => {
                        spans::record_usage(&span, facts.usage.as_ref());
                        drop(sent.settled(facts.usage.as_ref(), &facts.observed));
                        let body = MeteredBody::unlimited(bytes.into());
                        return Ok(Answer { status, headers, body });
                    }
                    Ok(begun) => {
                        let listener =
                            Listener::new(PassiveReader::from(&reply), status, headers.clone());
                        let listener = listener.with_estimate(input_tokens).with_span(span);
                        let body = MeteredBody::new(reply.into_body(), sent, listener);
                        let body = match begun {
                            Some(Begun { bytes, .. }) => body.behind(bytes),
                            None => body,
                        };
                        return Ok(Answer { status, headers, body });
                    }
                    Err(refused) => *refused,
                }
            }
            Ok(reply) => reply.refused().await,
            Err(error) => (error, Value::Null),
        };
        spans::record_failure(&span, &error);
        let failure = sent.failed_by(provider, version, &error).await;
        Err(Box::new(NoAnswer { error, failure, body }))
    }
}

/// Whether the reply comes in one piece. Some servers send events under another type; an HTML page
/// or one JSON object is no event.
fn comes_in_one_piece(headers: &HeaderMap, call: &Verbatim<'_>) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default();
    match call.body.get("stream") {
        Some(Value::Bool(true)) => kind.contains("html") || kind.contains("json"),
        _ => !kind.starts_with("text/event-stream"),
    }
}
