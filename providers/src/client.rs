//! The HTTP client of all vendors except Bedrock: writes a body, sends it once, reads the reply.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_types::Charge;

use crate::{
    batch::BatchApi,
    bounds::Bounds,
    call::{BoxFuture, Completion, Request},
    dialect::Dialect,
    embedding::{Embedded, EmbeddingRequest, Embeds},
    error::{Error, Kind},
    exchange::Exchange,
    key::Key,
    provider::{self, Provider},
    reply_reader::ReplyReader,
    settings::{Setup, SetupError},
    vendor::{Api, Interface},
    verbatim::{Operation, Sender, Verbatim, VerbatimReply},
};

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Exchange,
    embeddings: Option<(Exchange, &'static Embeds)>,
    /// The operations whose bodies it sends unchanged, with their endpoints; below them lie the model
    /// and the operation if the path holds the model.
    verbatim: Vec<(Operation, Exchange)>,
    replies: Arc<ReplyReader>,
    batches: Option<Box<dyn BatchApi>>,
}

impl Client {
    /// Creates the client. `headers` are sent with each call, in addition to the key.
    pub(crate) fn new(
        setup: &Setup<'_>,
        replies: Arc<ReplyReader>,
        headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        let wire = Exchange::new(setup, replies.protocol.path, headers)?;
        let embeddings = setup.settings.vendor.0.embeddings;
        let embeddings =
            embeddings.map(|it| Ok((wire.at(setup, it.path)?.of_vectors(), it))).transpose()?;
        let verbatim = Operation::ALL.into_iter().filter(|it| takes(replies.dialect, *it));
        let verbatim = verbatim.map(|it| {
            let holds_model = has_model_in_path(replies.dialect);
            let path = if holds_model { replies.protocol.path } else { it.below_base() };
            Ok((it, wire.at(setup, path)?))
        });
        let verbatim = verbatim.collect::<Result<_, SetupError>>()?;
        Ok(Self { wire, embeddings, verbatim, replies, batches: None })
    }

    /// Adds the vendor's batch API.
    pub(crate) fn with_batches(self, batches: impl BatchApi + 'static) -> Self {
        Self { batches: Some(Box::new(batches)), ..self }
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let protocol = self.replies.protocol;
        let body = self.replies.body(request)?;
        let reply = match protocol.segments {
            Some(segments) => self.wire.post_below(&segments(request), body).await?,
            None => self.wire.post(body).await?,
        };
        let completion = self.replies.read(&reply, self.replies.redactor(request))?;
        Ok(self.replies.dialect.restored_for(request, completion))
    }

    async fn embed_texts(&self, request: &EmbeddingRequest<'_>) -> Result<Embedded, Error> {
        let Some((wire, embeds)) = &self.embeddings else {
            let text = format!("{} has no embeddings", self.replies.vendor());
            return Err(Error::unsent(Kind::InvalidRequest, &text));
        };
        let body = (embeds.body)(request).to_string().into_bytes();
        let reply = match embeds.segments {
            Some(segments) => wire.post_below(&segments(request.model), body).await?,
            None => wire.post(body).await?,
        };
        self.replies.embedded(embeds, request, &reply)
    }

    async fn send_as_it_is(&self, request: &Verbatim<'_>) -> Result<VerbatimReply, Error> {
        let wire = self.verbatim.iter().find(|(operation, _)| *operation == request.operation);
        let Some((_, wire)) = wire else { return Err(provider::not_taken(request)) };
        let body = Bytes::from(request.body.naming(request.model)?);
        let below = match has_model_in_path(self.replies.dialect) {
            true => [&[request.model][..], request.operation.below_base()].concat(),
            false => Vec::new(),
        };
        let response = wire.post_as_it_is(&below, request.headers, body.clone()).await?;
        let sender = Sender { replies: Arc::clone(&self.replies), request: body };
        Ok(VerbatimReply { response, sender })
    }

    /// Reads a reply; separate from the call, so that it can be tested on any bytes.
    #[cfg(test)]
    pub(crate) fn read(
        &self,
        request: &Request<'_>,
        reply: &crate::exchange::Reply,
    ) -> Result<Completion, Error> {
        self.replies.read(reply, self.replies.redactor(request))
    }
}

/// Whether the path of a call holds the model: Azure's deployments, which take OpenAI's bodies.
fn has_model_in_path(dialect: Dialect) -> bool {
    dialect.vendor.0.interface == Interface::AzureDeployments
}

/// Whether a provider takes unchanged bodies of this operation.
fn takes(dialect: Dialect, operation: Operation) -> bool {
    let Dialect { vendor, api } = dialect;
    let is_openais = vendor.0.interface == Interface::OpenAi;
    let is_openais_or_azures = is_openais || has_model_in_path(dialect);
    match operation {
        Operation::ChatCompletions => is_openais_or_azures,
        Operation::Responses => {
            is_openais && (vendor.0.responses.is_some() || api == Api::Responses)
        }
        Operation::Embeddings => is_openais_or_azures && vendor.0.embeddings.is_some(),
        Operation::Messages | Operation::CountTokens => vendor.0.interface == Interface::Messages,
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

    fn takes(&self, operation: Operation) -> bool {
        takes(self.replies.dialect, operation)
    }

    fn send<'a>(
        &'a self,
        request: &'a Verbatim<'a>,
    ) -> BoxFuture<'a, Result<VerbatimReply, Error>> {
        Box::pin(self.send_as_it_is(request))
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
