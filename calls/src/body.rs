//! An answer on its way through the layer: listened to, and settled when it ends.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tidegate_providers::{Error, Heard, Hearing, overheard::Stream};
use tokio::task::JoinHandle;

use crate::admission::Sent;

/// More of an answer is not kept to read its use from: what was reserved then stays charged.
const MAX_ANSWER: usize = 32 << 20;

/// Listens to an answer on its way to whoever asked.
#[derive(Debug)]
pub struct Listener {
    listens: Listens,
    /// Of the request, estimated, where events that do not say what they used are counted.
    input_tokens: Option<u64>,
}

#[derive(Debug)]
enum Listens {
    /// It comes in one piece, which is read at its end.
    Whole { hearing: Hearing, status: u16, headers: HeaderMap, bytes: Vec<u8>, is_too_long: bool },
    /// It comes as events.
    Events(Box<Stream>),
}

impl Listener {
    /// To a reply that begins so.
    pub fn new(hearing: impl Into<Hearing>, status: u16, headers: HeaderMap) -> Self {
        let hearing = hearing.into();
        let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let listens = Listens::Events(Box::new(Stream::new(hearing, status, headers)));
            return Self { listens, input_tokens: None };
        }
        let (bytes, is_too_long) = (Vec::new(), false);
        let listens = Listens::Whole { hearing, status, headers, bytes, is_too_long };
        Self { listens, input_tokens: None }
    }

    /// The same, which counts what events have used that do not say so, or were not read to their
    /// end; the request has so many tokens, estimated.
    pub fn counting(self, input_tokens: u64) -> Self {
        Self { input_tokens: Some(input_tokens), ..self }
    }

    /// The next bytes of it, wherever they are cut.
    pub fn hear(&mut self, piece: &[u8]) {
        match &mut self.listens {
            Listens::Events(stream) => stream.hear(piece),
            Listens::Whole { bytes, is_too_long, .. }
                if *is_too_long || bytes.len() + piece.len() > MAX_ANSWER =>
            {
                *is_too_long = true;
                bytes.clear();
            }
            Listens::Whole { bytes, .. } => bytes.extend_from_slice(piece),
        }
    }

    /// Whether its last event has come. SDKs stop reading there, before the body ends.
    pub fn is_over(&self) -> bool {
        matches!(&self.listens, Listens::Events(stream) if stream.is_over())
    }

    /// Whether what it has used is known now, if nobody reads on.
    fn can_end(&self) -> bool {
        let counts = matches!(self.listens, Listens::Events(_)) && self.input_tokens.is_some();
        counts || self.is_over()
    }

    /// It has ended.
    ///
    /// # Errors
    /// As [`Vendor::heard`].
    pub fn ended(self) -> Result<Heard, Error> {
        match (self.listens, self.input_tokens) {
            (Listens::Events(stream), Some(input_tokens)) => stream.counted(input_tokens),
            (Listens::Events(stream), None) => stream.ended(),
            (Listens::Whole { hearing, status, headers, bytes, is_too_long }, _) => {
                debug_assert!(!is_too_long || bytes.is_empty(), "what is too long is not kept");
                hearing.heard(status, &headers, &bytes)
            }
        }
    }
}

/// The body of an answer, with its call. Dropped before its end or its last event, what
/// was reserved stays charged, unless what came is counted.
pub struct Heeded<B> {
    /// What was read of the body before, if anything was.
    begun: Option<Bytes>,
    body: Pin<Box<B>>,
    state: State,
}

enum State {
    Listening(Box<(Sent, Listener)>),
    Settling(JoinHandle<()>),
    Done,
}

impl<B> fmt::Debug for Heeded<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heeded").finish_non_exhaustive()
    }
}

impl<B> Heeded<B> {
    pub(crate) fn new(body: B, sent: Sent, listener: Listener) -> Self {
        let state = State::Listening(Box::new((sent, listener)));
        Self { begun: None, body: Box::pin(body), state }
    }

    /// The same, behind bytes of it that were read already.
    pub(crate) fn behind(mut self, begun: Bytes) -> Self {
        self.begun = Some(begun);
        self
    }

    /// Nothing is left to be settled.
    pub(crate) fn unlimited(body: B) -> Self {
        Self { begun: None, body: Box::pin(body), state: State::Done }
    }
}

impl<B: Body<Data = Bytes>> Body for Heeded<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        loop {
            if let State::Settling(settling) = &mut this.state {
                // Ended or not, there is nothing more to do.
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
                // Its call is dropped with it.
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

impl<B> Drop for Heeded<B> {
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
    match listener.ended() {
        Ok(heard) => {
            // It is never cancelled.
            let _ = sent.settled(heard.usage.as_ref(), &heard.observed).await;
        }
        Err(error) => {
            // Whoever asked reads what it says.
            let _ = sent.refused(&error).await;
        }
    }
}
