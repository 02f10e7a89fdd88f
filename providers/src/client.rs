//! What the HTTP clients of all vendors have in common: write a body, send it once, say what came back.

use std::fmt;

use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    batch::{self, Answer, Answers, Batches, Desk, text},
    burndown::Burndown,
    envelope::Envelope,
    error::{Error, Kind},
    exchange::{Lines, Reply, Wire},
    message::Veil,
    observed::Observed,
    provider::{BoxFuture, Completion, Document, Provider, Request},
    refusal::Context,
    secret::Secret,
    settings::{Settings, SetupError, Vendor},
};

/// One vendor's API.
pub(crate) trait Api: Send + Sync + fmt::Debug + 'static {
    /// Whose names of errors come first.
    const VENDOR: Vendor;

    /// What it counts towards its limits.
    fn burndown(&self) -> &'static Burndown;

    /// The body of a request.
    fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error>;

    /// The last segment of the path, where the model stands in it.
    fn segment(&self, _request: &Request<'_>) -> Option<String> {
        None
    }

    /// The limits that headers tell.
    fn observed(&self, headers: &HeaderMap) -> Observed;

    /// A success without an error inside, which is not always an answer.
    fn read(&self, request: &Request<'_>, body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error>;

    /// What is known of an error beyond its words.
    fn refused(&self, error: Error, _reply: &Reply) -> Error {
        error
    }
}

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client<A> {
    api: A,
    wire: Wire,
    key: Option<Secret>,
    retry_codes: Vec<String>,
    batches: Option<Box<dyn Desk>>,
}

impl<A: Api> Client<A> {
    /// `path` is appended to the base URL.
    pub(crate) fn new(name: &str, settings: &Settings, api: A, path: &[&str], headers: HeaderMap) -> Result<Self, SetupError> {
        let wire = Wire::new(name, settings, path, headers)?;
        Ok(Self { api, wire, key: settings.api_key.clone(), retry_codes: settings.retry_codes.clone(), batches: None })
    }

    /// The same, with the vendor's batches.
    pub(crate) fn with_batches(self, batches: impl Desk + 'static) -> Self {
        Self { batches: Some(Box::new(batches)), ..self }
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let (body, veil) = (self.api.body(request)?, Veil::new(self.key.as_ref(), request));
        let reply = match self.api.segment(request) {
            Some(segment) => self.wire.post_below(&segment, body, &veil).await?,
            None => self.wire.post(body, &veil).await?,
        };
        self.read(request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    pub(crate) fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        let veil = Veil::new(self.key.as_ref(), request);
        let context = Context::new(A::VENDOR, veil, self.api.observed(&reply.headers)).retrying(&self.retry_codes);
        if !reply.is_success() {
            return Err(self.api.refused(context.refused(reply), reply));
        }
        let body = match reply.json() {
            Ok(body) => body,
            Err(why) => return Err(context.unreadable(reply, why)),
        };
        match Envelope::in_success(&body) {
            Some(envelope) => Err(context.error_in_success(reply, &envelope)),
            None => self.api.read(request, &body, reply, context),
        }
    }
}

impl<A: Api> Provider for Client<A> {
    fn complete<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn burndown(&self) -> &'static Burndown {
        self.api.burndown()
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.batches.is_some().then_some(self)
    }
}

/// In the place of the request that a reply of a batch answers: nobody knows it any more.
const FORGOTTEN: Request<'static> = Request {
    model: "",
    instructions: "",
    document: Document::Text(""),
    max_output_tokens: 0,
    schema: None,
    cache_instructions: false,
};

impl<A: Api> Client<A> {
    fn desk(&self) -> Result<&dyn Desk, Error> {
        self.batches.as_deref().ok_or_else(|| Error::unsent(Kind::InvalidRequest, "this provider has no batches"))
    }

    fn context(&self) -> Context<'_> {
        Context::new(A::VENDOR, Veil::of_key(self.key.as_ref()), Observed::default()).retrying(&self.retry_codes)
    }

    /// What a success says.
    fn told(&self, reply: &Reply) -> Result<Value, Error> {
        if !reply.is_success() {
            return Err(self.refused(reply));
        }
        reply.json().map_err(|why| self.context().unreadable(reply, why))
    }

    /// Without the vendor's sentence: it may quote any of the documents, and nobody has them at hand to find that.
    fn refused(&self, reply: &Reply) -> Error {
        let error = self.context().refused(reply);
        let name = Envelope::read(&reply.body);
        let name = name.codes.first().or_else(|| name.types.first()).map_or_else(String::new, |name| format!(" {name}"));
        let message = Veil::of_key(self.key.as_ref()).clean(&format!("{}: status {}{name}", A::VENDOR, reply.status));
        Error { message, ..error }
    }

    fn unreadable(&self, reply: &Reply) -> Error {
        self.context().unreadable(reply, "it is no batch (is base-url right?)")
    }
}

impl<A: Api> Batches for Client<A> {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        Ok(self.desk()?.line(custom_id, &self.api.body(request)?))
    }

    fn submit<'a>(&'a self, name: &'a str, lines: &'a [Vec<u8>]) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let reply = self.desk()?.submit(name, lines).await?;
            text(&self.told(&reply)?, "/id").ok_or_else(|| self.unreadable(&reply))
        })
    }

    fn find<'a>(&'a self, name: &'a str, requests: usize, since: DateTime<Utc>) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let list = self.told(&desk.list().await?)?;
            let batches = list.get("data").and_then(Value::as_array).into_iter().flatten();
            Ok(batches.filter(|batch| desk.is(batch, name, requests, since)).filter_map(|batch| text(batch, "/id")).collect())
        })
    }

    fn takes_notes(&self) -> bool {
        self.batches.as_deref().is_some_and(Desk::takes_notes)
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let batch = self.told(&desk.get(id).await?)?;
            match desk.forget(&batch).await? {
                Some(reply) if !reply.is_success() => Err(self.refused(&reply)),
                _ => Ok(()),
            }
        })
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<batch::State, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let reply = desk.get(id).await?;
            desk.state(&self.told(&reply)?).ok_or_else(|| self.unreadable(&reply))
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.told(&self.desk()?.cancel(id).await?).map(drop) })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let batch = self.told(&desk.get(id).await?)?;
            Ok(Answers::new(self, desk.files(&batch)))
        })
    }
}

impl<A: Api> batch::Reader for Client<A> {
    fn open<'a>(&'a self, file: &'a [String]) -> BoxFuture<'a, Result<Lines, Error>> {
        Box::pin(async move { self.desk()?.open(file).await?.map_err(|reply| self.refused(&reply)) })
    }

    fn answer(&self, line: &Value) -> Option<Answer> {
        let (custom_id, reply) = self.batches.as_deref()?.answer(line)?;
        Some(Answer { custom_id, result: reply.map(|reply| self.read(&FORGOTTEN, &reply)) })
    }

    fn broken(&self, reason: &str) -> Error {
        let message = Veil::of_key(self.key.as_ref()).clean(&format!("the answers of a batch broke off: {reason}"));
        Error::unsent(Kind::Transient, &message)
    }
}

/// A header with the key, if there is one.
pub(crate) fn key_header(settings: &Settings, name: HeaderName, prefix: &str) -> HeaderMap {
    let value = settings.api_key.as_ref().map(|key| HeaderValue::from_str(&format!("{prefix}{}", key.expose())));
    let mut headers = HeaderMap::new();
    // A key is ASCII (see `Secret`), so that this cannot fail.
    if let Some(Ok(mut value)) = value {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}
