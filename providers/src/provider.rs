//! The trait that every provider implements.

use std::{fmt, future};

use tidegate_types::Charge;

use crate::{
    batch::BatchApi,
    bounds::Bounds,
    call::{BoxFuture, Completion, Request},
    embedding::{Embedded, EmbeddingRequest},
    error::{Error, Kind},
    key::Key,
    verbatim::{Operation, Verbatim, VerbatimReply},
};

/// A service that answers prompts.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Makes one call: at most one HTTP request, never a second.
    ///
    /// Dropping the future abandons the call. The provider may have worked on it, and may charge
    /// it.
    fn complete<'a>(&'a self, request: &'a Request<'a>)
    -> BoxFuture<'a, Result<Completion, Error>>;

    /// Embeds texts: at most one HTTP request, never a second. By default not supported.
    fn embed<'a>(
        &'a self,
        request: &'a EmbeddingRequest<'a>,
    ) -> BoxFuture<'a, Result<Embedded, Error>> {
        let message = format!("{}: this provider has no embeddings", request.model);
        Box::pin(future::ready(Err(Error::unsent(Kind::InvalidRequest, &message))))
    }

    /// Whether it takes requests of this operation in its own form. By default none.
    fn takes(&self, operation: Operation) -> bool {
        let _ = operation;
        false
    }

    /// Sends a request in the vendor's own form, unchanged except for the model's name: at most one
    /// HTTP request, never a second. Any reply is returned; an error means that none came, or that
    /// nothing was sent because the provider does not [take](Self::takes) the operation.
    fn send<'a>(
        &'a self,
        request: &'a Verbatim<'a>,
    ) -> BoxFuture<'a, Result<VerbatimReply, Error>> {
        Box::pin(future::ready(Err(not_taken(request))))
    }

    /// The rules by which this provider charges calls against its limits. By default everything
    /// counts. The limiter uses it for each model of this provider.
    fn charge(&self) -> Charge {
        Charge::CAUTIOUS
    }

    /// Bounds of the answers of one of its models. By default unknown.
    fn bounds(&self, model: &str) -> Bounds {
        let _ = model;
        Bounds::default()
    }

    /// The key in use, if known here.
    fn key(&self) -> Option<&Key> {
        None
    }

    /// Its batch API, if it has one.
    fn batches(&self) -> Option<&dyn BatchApi> {
        None
    }
}

/// The error if a provider does not take an operation in its own form.
pub(crate) fn not_taken(request: &Verbatim<'_>) -> Error {
    let Verbatim { model, operation, .. } = request;
    let message = format!("{model}: its provider does not take a body of {operation} as it is");
    Error::unsent(Kind::InvalidRequest, &message)
}
