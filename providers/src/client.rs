//! What the HTTP clients of all vendors have in common: write a body, send it once, say what came
//! back.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use serde_json::Value;
use tidegate_types::Charge;

use crate::{
    batch::BatchApi,
    bounds::Bounds,
    call::{BoxFuture, Completion, Request},
    classify::Classifier,
    dialect::Dialect,
    embedding::{Embedded, EmbeddingRequest, Embeds},
    envelope::Envelope,
    error::{Charged, Error, Kind},
    error_rule::ErrorRule,
    exchange::{Reply, Wire},
    key::Key,
    message::Redactor,
    observed::Observed,
    provider::Provider,
    refusal::Context,
    schema,
    settings::{Settings, Setup, SetupError},
    vendor::Vendor,
};

/// What is sent to one of a vendor's APIs, and what its replies mean.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// Appended to the base URL.
    pub(crate) path: &'static [&'static str],
    /// The body of a request.
    pub(crate) body: fn(&Request<'_>, Dialect) -> Result<Vec<u8>, Error>,
    /// The last segments of the path, for APIs with the model in it.
    pub(crate) segments: Option<fn(&Request<'_>) -> Vec<String>>,
    /// The limits that headers tell.
    pub(crate) observed: fn(&HeaderMap) -> Observed,
    /// A success without an error inside, which is not always an answer.
    pub(crate) read: fn(&Value, &Reply, Context<'_>) -> Result<Completion, Error>,
    /// What is known of an error beyond its words.
    pub(crate) refused: fn(Error, &Reply) -> Error,
}

/// Makes completions and errors of the replies to one provider's calls.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    pub(crate) protocol: &'static Protocol,
    /// The provider's configured name.
    pub(crate) name: String,
    dialect: Dialect,
    classifier: Classifier,
    pub(crate) key: Key,
    errors: Vec<ErrorRule>,
    is_official: bool,
    request_timeout: Duration,
}

impl ReplyReader {
    pub(crate) fn new(setup: &Setup<'_>, protocol: &'static Protocol) -> Arc<Self> {
        let Settings { base_url, errors, request_timeout, .. } = setup.settings;
        Arc::new(Self {
            protocol,
            name: setup.name.to_owned(),
            dialect: Dialect::of(setup.settings),
            classifier: setup.classifier.clone(),
            key: setup.key.clone(),
            errors: errors.clone(),
            is_official: setup.settings.vendor.is_official(base_url),
            request_timeout: *request_timeout,
        })
    }

    pub(crate) fn vendor(&self) -> Vendor {
        self.dialect.vendor
    }

    /// The body of a call.
    pub(crate) fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let prepared = self.dialect.prepared(request);
        let body = (self.protocol.body)(&prepared.request(), self.dialect)?;
        Ok(schema::with_json_mode(body, prepared.json_mode))
    }

    fn bounds(&self, model: &str) -> Bounds {
        self.vendor().bounds(model, self.is_official, self.request_timeout)
    }

    /// Hides the key, and what a message quotes from the request.
    pub(crate) fn redactor<'a>(&'a self, request: &Request<'a>) -> Redactor<'a> {
        Redactor::new(&self.key, request)
    }

    /// Hides the key, where the request is not known.
    pub(crate) fn key_redactor(&self) -> Redactor<'_> {
        Redactor::of_key(&self.key)
    }

    pub(crate) fn context<'a>(&'a self, redactor: Redactor<'a>, observed: Observed) -> Context<'a> {
        Context::new(&self.name, &self.classifier, &self.errors, redactor, observed)
    }

    /// What the reply to a call means.
    pub(crate) fn read(&self, reply: &Reply, redactor: Redactor<'_>) -> Result<Completion, Error> {
        let (body, context) = self.success(reply, redactor)?;
        let completion = (self.protocol.read)(&body, reply, context)?;
        // No prompt has no tokens: such counts are not known, and are charged as reserved.
        let usage = completion.usage.filter(|usage| usage.input() > 0);
        Ok(Completion { usage, ..completion })
    }

    /// What a success says, without an error inside.
    fn success<'a>(
        &'a self,
        reply: &Reply,
        redactor: Redactor<'a>,
    ) -> Result<(Value, Context<'a>), Error> {
        let context = self.context(redactor, (self.protocol.observed)(&reply.headers));
        if !reply.is_success() {
            return Err((self.protocol.refused)(context.refused_call(reply), reply));
        }
        let body = match reply.json() {
            Ok(body) => body,
            Err(why) => return Err(context.unreadable(reply, why)),
        };
        match Envelope::in_success(&body) {
            Some(envelope) => Err(context.error_in_success(reply, &envelope)),
            None => Ok((body, context)),
        }
    }

    /// What the reply to a call for vectors means.
    fn embedded(
        &self,
        embeds: &Embeds,
        request: &EmbeddingRequest<'_>,
        reply: &Reply,
    ) -> Result<Embedded, Error> {
        let redactor = Redactor::of_texts(&self.key, request.texts);
        let (body, context) = self.success(reply, redactor)?;
        let Some((vectors, usage)) = (embeds.read)(&body) else {
            if body.get("data").or_else(|| body.get("embeddings")).is_some_and(Value::is_array) {
                let text = "an embedding is empty or holds what is no number";
                return Err(context.no_answer(reply, Kind::InvalidOutput, text, Charged::Unknown));
            }
            return Err(
                context.unreadable(reply, "it is no list of embeddings (is base-url right?)")
            );
        };
        let length = vectors.first().map_or(0, Vec::len);
        let (asked, came) = (request.texts.len(), vectors.len());
        // The batch asks for them, whatever the texts are.
        let others = request.dimensions.filter(|wanted| came > 0 && *wanted as usize != length);
        let wrong = if vectors.iter().any(|vector| vector.len() != length) {
            Some((Kind::InvalidOutput, "the embeddings are not of one length".to_owned()))
        } else if let Some(wanted) = others {
            let text = format!(
                "{wanted} dimensions were asked for, and {length} came: the model has no others"
            );
            Some((Kind::InvalidRequest, text))
        } else if came != asked {
            Some((Kind::InvalidOutput, format!("{came} embeddings came for {asked} texts")))
        } else {
            None
        };
        match wrong {
            Some((kind, text)) => Err(context.no_answer(reply, kind, &text, Charged::from(usage))),
            None => Ok(Embedded { vectors, usage, observed: context.observed }),
        }
    }
}

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    embeddings: Option<(Wire, &'static Embeds)>,
    replies: Arc<ReplyReader>,
    batches: Option<Box<dyn BatchApi>>,
}

impl Client {
    /// `headers` are sent with each call, beside the key.
    pub(crate) fn new(
        setup: &Setup<'_>,
        replies: Arc<ReplyReader>,
        headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        let wire = Wire::new(setup, replies.protocol.path, headers)?;
        let embeddings = setup.settings.vendor.0.embeddings;
        let embeddings = embeddings.map(|it| Ok((wire.at(setup, it.path)?, it))).transpose()?;
        Ok(Self { wire, embeddings, replies, batches: None })
    }

    /// The same, with the vendor's batches.
    pub(crate) fn with_batches(self, batches: impl BatchApi + 'static) -> Self {
        Self { batches: Some(Box::new(batches)), ..self }
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let protocol = self.replies.protocol;
        let (body, redactor) = (self.replies.body(request)?, self.replies.redactor(request));
        let reply = match protocol.segments {
            Some(segments) => self.wire.post_below(&segments(request), body, &redactor).await?,
            None => self.wire.post(body, &redactor).await?,
        };
        let completion = self.replies.read(&reply, redactor)?;
        Ok(self.replies.dialect.restored_for(request, completion))
    }

    async fn embed_texts(&self, request: &EmbeddingRequest<'_>) -> Result<Embedded, Error> {
        let Some((wire, embeds)) = &self.embeddings else {
            let text = format!("{} has no embeddings", self.replies.vendor());
            return Err(Error::unsent(Kind::InvalidRequest, &text));
        };
        let body = (embeds.body)(request).to_string().into_bytes();
        let redactor = Redactor::of_texts(&self.replies.key, request.texts);
        let reply = match embeds.segments {
            Some(segments) => wire.post_below(&segments(request.model), body, &redactor).await?,
            None => wire.post(body, &redactor).await?,
        };
        self.replies.embedded(embeds, request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    #[cfg(test)]
    pub(crate) fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        self.replies.read(reply, self.replies.redactor(request))
    }
}

impl Provider for Client {
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn embed<'a>(
        &'a self,
        request: &'a EmbeddingRequest<'a>,
    ) -> BoxFuture<'a, Result<Embedded, Error>> {
        Box::pin(self.embed_texts(request))
    }

    fn charge(&self) -> Charge {
        self.replies.vendor().charge()
    }

    fn bounds(&self, model: &str) -> Bounds {
        self.replies.bounds(model)
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.replies.key)
    }

    fn batches(&self) -> Option<&dyn BatchApi> {
        self.batches.as_deref()
    }
}
