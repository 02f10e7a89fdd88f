//! An endpoint of a vendor's batch API, and the replies to batch requests.

use std::{collections::VecDeque, fmt, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::{
    call::{Completion, Request},
    envelope::Envelope,
    error::{Error, Kind},
    exchange::{Exchange, Lines, Reply},
    json,
    message::Redactor,
    observed::Observed,
    refusal::Context,
    reply_reader::ReplyReader,
    settings::{Setup, SetupError},
    verbatim::Sender,
};

/// Reads one line of a batch's answers: the request's name, and the reply that it would have had
/// alone.
pub(crate) type ReadLine = fn(&Value) -> Option<(String, Option<Reply>)>;

/// One endpoint of a vendor's batch API.
#[derive(Debug)]
pub(crate) struct BatchEndpoint {
    pub(crate) wire: Exchange,
    replies: Arc<ReplyReader>,
}

impl BatchEndpoint {
    /// Creates the endpoint. `headers` are sent with each request, in addition to the key.
    pub(crate) fn new(
        setup: &Setup<'_>,
        path: &[&str],
        headers: HeaderMap,
        replies: &Arc<ReplyReader>,
    ) -> Result<Self, SetupError> {
        Ok(Self { wire: Exchange::new(setup, path, headers)?, replies: Arc::clone(replies) })
    }

    /// Another endpoint of the same provider; `query` is added to each request.
    pub(crate) fn at(
        &self,
        setup: &Setup<'_>,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Self, SetupError> {
        let wire = self.wire.at(setup, path)?.with_query(query);
        Ok(Self { wire, replies: Arc::clone(&self.replies) })
    }

    /// The body that a single call of this request would have.
    pub(crate) fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        self.replies.body(request)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Error> {
        let reply = self.wire.delete(&[id]).await?;
        self.accepted(&reply)
    }

    /// The answers in these files, each named by its path segments below this endpoint.
    pub(crate) fn answers(&self, files: Vec<Vec<String>>, read: ReadLine) -> Answers<'_> {
        Answers { endpoint: self, files: files.into(), open: None, read }
    }

    /// Checks that the reply is a success, with any body.
    pub(crate) fn accepted(&self, reply: &Reply) -> Result<(), Error> {
        if reply.is_success() { Ok(()) } else { Err(self.refused(reply)) }
    }

    /// The body of a successful reply.
    pub(crate) fn success(&self, reply: &Reply) -> Result<Value, Error> {
        if !reply.is_success() {
            return Err(self.refused(reply));
        }
        reply.json().map_err(|why| self.context().unreadable(reply, why))
    }

    /// The error of a refused request. It omits the vendor's message, which may quote any document
    /// of the batch, and the documents are not available here to find quotations.
    fn refused(&self, reply: &Reply) -> Error {
        let context = self.context();
        let envelope = Envelope::read(&reply.utf8());
        let is_known = context.knows(reply.status, &envelope);
        let name = envelope.codes.first().or_else(|| envelope.types.first());
        let name = name.filter(|_| is_known).map_or_else(String::new, |name| format!(" {name}"));
        let error = context.refused(reply);
        let message =
            self.redactor().clean(&format!("{}: status {}{name}", self.replies.name, reply.status));
        Error { message, ..error }
    }

    /// A success whose body is no batch.
    pub(crate) fn unreadable(&self, reply: &Reply) -> Error {
        self.context().unreadable(reply, "it is no batch (is base-url right?)")
    }

    pub(crate) fn redactor(&self) -> Redactor<'_> {
        self.replies.key_redactor()
    }

    fn context(&self) -> Context<'_> {
        self.replies.context(self.redactor(), Observed::default())
    }
}

/// The answer to one request of a batch.
pub struct Answer {
    /// The request's name.
    pub custom_id: String,
    pub(crate) reply: Option<Reply>,
    pub(crate) sender: Sender,
}

impl Answer {
    /// Reads the answer; `None` for a request that was not processed because the batch was
    /// cancelled or ran out of time.
    pub fn completion(&self) -> Option<Result<Completion, Error>> {
        let replies = &self.sender.replies;
        self.reply.as_ref().map(|reply| replies.read(reply, replies.key_redactor()))
    }
}

/// Shows neither the key nor the answer.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.reply.as_ref().map(|reply| reply.status);
        f.debug_struct("Answer")
            .field("custom_id", &self.custom_id)
            .field("status", &status)
            .finish_non_exhaustive()
    }
}

/// The answers of a batch, one at a time, because together they may exceed the memory. They are
/// read line by line from the batch's result files.
pub struct Answers<'a> {
    endpoint: &'a BatchEndpoint,
    files: VecDeque<Vec<String>>,
    open: Option<Box<Lines>>,
    read: ReadLine,
}

impl fmt::Debug for Answers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Answers<'_> {
    /// The next answer; `None` after the last. An invalid line is skipped: its request has no
    /// answer then.
    ///
    /// # Errors
    /// The rest cannot be read now.
    pub async fn next(&mut self) -> Result<Option<Answer>, Error> {
        loop {
            let Some(lines) = &mut self.open else {
                let Some(file) = self.files.pop_front() else { return Ok(None) };
                self.open = Some(Box::new(Box::pin(self.open(&file)).await?));
                continue;
            };
            match Box::pin(lines.next()).await {
                Ok(Some(line)) => {
                    if let Some(answer) = json::bounded(&line).and_then(|line| self.answer(&line)) {
                        return Ok(Some(answer));
                    }
                }
                Ok(None) => self.open = None,
                Err(reason) => {
                    let text = self
                        .endpoint
                        .redactor()
                        .clean(&format!("the answers of a batch broke off: {reason}"));
                    return Err(Error::unsent(Kind::Transient, &text));
                }
            }
        }
    }

    async fn open(&self, file: &[String]) -> Result<Lines, Error> {
        let opened = self.endpoint.wire.lines(file).await?;
        opened.map_err(|reply| self.endpoint.refused(&reply))
    }

    fn answer(&self, line: &Value) -> Option<Answer> {
        let (custom_id, reply) = (self.read)(line)?;
        // The request is not available here.
        let replies = Arc::clone(&self.endpoint.replies);
        Some(Answer { custom_id, reply, sender: Sender { replies, request: Bytes::new() } })
    }
}
