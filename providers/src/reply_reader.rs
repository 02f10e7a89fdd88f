//! Reads one provider's replies: completions, vectors, errors.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    bounds::Bounds,
    call::{Completion, Request},
    classify::Classifier,
    dialect::Dialect,
    embedding::{Embedded, EmbeddingRequest, Embeds},
    envelope::Envelope,
    error::{Charged, Error, Kind},
    error_rule::ErrorRule,
    exchange::Reply,
    key::Key,
    message::Redactor,
    observed::Observed,
    refusal::Context,
    schema,
    settings::{Settings, Setup},
    vendor::Vendor,
};

/// The requests and replies of one of a vendor's APIs.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// Appended to the base URL.
    pub(crate) path: &'static [&'static str],
    /// The body of a request.
    pub(crate) body: fn(&Request<'_>, Dialect) -> Result<Vec<u8>, Error>,
    /// The last segments of the path, for APIs with the model in it.
    pub(crate) segments: Option<fn(&Request<'_>) -> Vec<String>>,
    /// Reads a success without an error inside; it may still hold no answer.
    pub(crate) read: fn(&Value, &Reply, Context<'_>) -> Result<Completion, Error>,
}

/// Reads the replies to one provider's calls as completions and errors.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    pub(crate) protocol: &'static Protocol,
    /// The provider's configured name.
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
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
            dialect: Dialect::from_settings(setup.settings),
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

    pub(crate) fn bounds(&self, model: &str) -> Bounds {
        self.vendor().bounds(model, self.is_official, self.request_timeout)
    }

    /// Hides the key, and quotations from the request.
    pub(crate) fn redactor<'a>(&'a self, request: &Request<'a>) -> Redactor<'a> {
        Redactor::new(&self.key, request)
    }

    /// Hides the key, if the request is unknown.
    pub(crate) fn key_redactor(&self) -> Redactor<'_> {
        Redactor::of_key(&self.key)
    }

    pub(crate) fn context<'a>(&'a self, redactor: Redactor<'a>, observed: Observed) -> Context<'a> {
        Context::new(&self.name, &self.classifier, &self.errors, redactor, observed)
    }

    /// Reads the reply to a call.
    pub(crate) fn read(&self, reply: &Reply, redactor: Redactor<'_>) -> Result<Completion, Error> {
        let (body, context) = self.success(reply, redactor)?;
        let completion = (self.protocol.read)(&body, reply, context)?;
        // A prompt is never empty: a count of zero is unknown, and charged as reserved.
        let usage = completion.usage.filter(|usage| usage.input() > 0);
        Ok(Completion { usage, ..completion })
    }

    /// Reads a success without an error inside.
    fn success<'a>(
        &'a self,
        reply: &Reply,
        redactor: Redactor<'a>,
    ) -> Result<(Value, Context<'a>), Error> {
        let context = self.context(redactor, (self.vendor().0.observed)(&reply.headers));
        if !reply.is_success() {
            let error = context.refused_call(reply);
            return Err((self.vendor().0.refused)(error, &reply.headers));
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

    /// Reads the reply to a call for vectors.
    pub(crate) fn embedded(
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
        // The batch asks for these dimensions for all texts.
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
