//! Reads an answer as it passes through the layer, and settles its call at the end.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tidegate_providers::{Error, PassiveReader, ReplyFacts, passive::Stream};
use tokio::task::JoinHandle;
use tracing::Span;

use crate::{admission::Sent, spans};

/// Longest answer in bytes whose usage is read; a longer one stays charged with what was reserved.
const MAX_ANSWER: usize = 32 << 20;

/// Reads the usage of an answer on its way to the caller.
#[derive(Debug)]
pub struct Listener {
    reply: Reply,
    /// Estimated input tokens, if the use of events that do not report it is to be counted.
    input_tokens: Option<u64>,
    /// The span of the call, which ends with the answer.
    span: Span,
}

#[derive(Debug)]
enum Reply {
    /// An answer in one piece, read at its end.
    Whole {
        reader: PassiveReader,
        status: u16,
        headers: HeaderMap,
        bytes: Vec<u8>,
        is_too_long: bool,
    },
    /// An answer as events.
    Events(Box<Stream>),
}

impl Listener {
    /// Creates a listener for a reply with this status and these headers.
    pub fn new(reader: impl Into<PassiveReader>, status: u16, headers: HeaderMap) -> Self {
        let reader = reader.into();
        let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let reply = Reply::Events(Box::new(Stream::new(reader, status, headers)));
            return Self { reply, input_tokens: None, span: Span::none() };
        }
        let (bytes, is_too_long) = (Vec::new(), false);
        let reply = Reply::Whole { reader, status, headers, bytes, is_too_long };
        Self { reply, input_tokens: None, span: Span::none() }
    }

    /// Counts the use of events that do not report it, or that are not read to their end.
    /// `input_tokens` is the request's estimate.
    pub fn with_estimate(self, input_tokens: u64) -> Self {
        Self { input_tokens: Some(input_tokens), ..self }
    }

    /// Records the usage, or the error in the answer, in the call's span.
    pub(crate) fn with_span(self, span: Span) -> Self {
        Self { span, ..self }
    }

    /// Takes the next bytes, split at any position.
    pub fn hear(&mut self, piece: &[u8]) {
        match &mut self.reply {
            Reply::Events(stream) => stream.hear(piece),
            Reply::Whole { bytes, is_too_long, .. }
                if *is_too_long || bytes.len() + piece.len() > MAX_ANSWER =>
            {
                *is_too_long = true;
                bytes.clear();
            }
            Reply::Whole { bytes, .. } => bytes.extend_from_slice(piece),
        }
    }

    /// Whether the last event has come. SDKs stop reading there, before the body ends.
    pub fn is_over(&self) -> bool {
        matches!(&self.reply, Reply::Events(stream) if stream.is_over())
    }

    /// Whether the usage is known even if the caller reads no further.
    fn can_end(&self) -> bool {
        let counts = matches!(self.reply, Reply::Events(_)) && self.input_tokens.is_some();
        counts || self.is_over()
    }

    /// Ends the answer, and returns the data that was read from it.
    ///
    /// # Errors
    /// The errors of [`Vendor::read_reply`].
    pub fn finish(self) -> Result<ReplyFacts, Error> {
        match (self.reply, self.input_tokens) {
            (Reply::Events(stream), Some(input_tokens)) => stream.finish_estimated(input_tokens),
            (Reply::Events(stream), None) => stream.finish(),
            (Reply::Whole { reader, status, headers, bytes, is_too_long }, _) => {
                debug_assert!(!is_too_long || bytes.is_empty(), "what is too long is not kept");
                reader.read_reply(status, &headers, &bytes)
            }
        }
    }
}

/// The body of an answer, with its call. If it is dropped before its end or its last event, the
/// reservation stays charged, unless the use so far is counted.
pub struct MeteredBody<B> {
    /// Bytes of the body that were read before, if any.
    begun: Option<Bytes>,
    body: Pin<Box<B>>,
    state: State,
}

enum State {
    Listening(Box<(Sent, Listener)>),
    Settling(JoinHandle<()>),
    Done,
}

impl<B> fmt::Debug for MeteredBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredBody").finish_non_exhaustive()
    }
}

impl<B> MeteredBody<B> {
    pub(crate) fn new(body: B, sent: Sent, listener: Listener) -> Self {
        let state = State::Listening(Box::new((sent, listener)));
        Self { begun: None, body: Box::pin(body), state }
    }

    /// Puts bytes of the body that were already read in front.
    pub(crate) fn behind(mut self, begun: Bytes) -> Self {
        self.begun = Some(begun);
        self
    }

    /// Creates a body without a call to settle.
    pub(crate) fn unlimited(body: B) -> Self {
        Self { begun: None, body: Box::pin(body), state: State::Done }
    }
}

impl<B: Body<Data = Bytes>> Body for MeteredBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        loop {
            if let State::Settling(settling) = &mut this.state {
                // Nothing is left to do, for any outcome of the task.
                let _ = ready!(Pin::new(settling).poll(context));
                this.state = State::Done;
                return Poll::Ready(None);
            }
            let frame = match this.begun.take() {
                Some(begun) => Some(Ok(Frame::data(begun))),
                None => ready!(this.body.as_mut().poll_frame(context)),
            };
            match frame {
                Some(Ok(frame)) => {
                    if let (State::Listening(call), Some(piece)) =
                        (&mut this.state, frame.data_ref())
                    {
                        call.1.hear(piece);
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                // The call is dropped with the body.
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => match mem::replace(&mut this.state, State::Done) {
                    State::Listening(call) => {
                        let (sent, listener) = *call;
                        this.state = State::Settling(tokio::spawn(end(sent, listener)));
                    }
                    State::Settling(_) | State::Done => return Poll::Ready(None),
                },
            }
        }
    }
}

impl<B> Drop for MeteredBody<B> {
    fn drop(&mut self) {
        if let State::Listening(call) = mem::replace(&mut self.state, State::Done)
            && call.1.can_end()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (sent, listener) = *call;
            runtime.spawn(end(sent, listener));
        }
    }
}

async fn end(sent: Sent, listener: Listener) {
    let span = listener.span.clone();
    match listener.finish() {
        Ok(facts) => {
            spans::record_usage(&span, facts.usage.as_ref());
            drop(span);
            // This task is never cancelled.
            let _ = sent.settled(facts.usage.as_ref(), &facts.observed).await;
        }
        Err(error) => {
            spans::record_failure(&span, &error);
            drop(span);
            // The caller reads the error in the answer itself.
            let _ = sent.failed(&error).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tidegate_providers::{Operation, Vendor};
    use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request};
    use tracing::{Event, Metadata, Subscriber, field::Visit, span};

    use super::*;
    use crate::{Attempt, Backoff, Guard, budget::Budgets};

    /// Keeps what is recorded in spans after their start.
    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<(String, String)>>>);

    impl Visit for Recorded {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
            self.0.lock().unwrap().push((field.name().to_owned(), format!("{value:?}")));
        }
    }

    impl Subscriber for Recorded {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, values: &span::Record<'_>) {
            values.record(&mut self.clone());
        }

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[tokio::test]
    async fn the_usage_of_a_stream_is_in_its_calls_span() {
        let request = Request::new("a:b".parse().unwrap(), "r").tokens(100, 100);
        let limits = Limits::default().with(Dimension::Combined, 10_000);
        let lanes = Arc::new(Lanes::single());
        let model = ModelQuota::new(request.model.clone(), limits, Charge::default(), lanes);
        let quota = Quota::in_memory([model.unwrap()], Options::default());
        let (guard, attempt) = (Guard::new(quota, Backoff::default()), Attempt::once());
        let budget = Arc::new(Budgets::default()).call_budget(&attempt, &request, None).unwrap();
        let sent = guard.admit(&attempt, &request, &budget).await.unwrap().sent();

        let recorded = Recorded::default();
        let span = tracing::subscriber::with_default(recorded.clone(), || {
            spans::call(spans::operation(Operation::ChatCompletions), &request)
        });
        let kind = (http::header::CONTENT_TYPE, "text/event-stream".parse().unwrap());
        let headers = HeaderMap::from_iter([kind]);
        let listener = Listener::new(Vendor::OPENAI, 200, headers).with_estimate(100);
        let mut listener = listener.with_span(span);
        listener.hear(
            b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
        );
        listener.hear(b"data: [DONE]\n\n");
        end(sent, listener).await;
        let of =
            |name: &str, value: &str| (format!("gen_ai.usage.{name}_tokens"), value.to_owned());
        let recorded = recorded.0.lock().unwrap();
        assert!(recorded.contains(&of("input", "7")), "{recorded:?}");
        assert!(recorded.contains(&of("output", "3")), "{recorded:?}");
    }
}
