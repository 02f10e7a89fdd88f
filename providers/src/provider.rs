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
};

/// A service that answers prompts.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Makes one call: at most one HTTP request, never a second.
    ///
    /// Dropping the future abandons the call. The provider may have worked on it by then and may
    /// charge it.
    fn complete<'a>(&'a self, request: &'a Request<'a>)
    -> BoxFuture<'a, Result<Completion, Error>>;

    /// Asks for vectors: at most one HTTP request, never a second. By default there are none.
    fn embed<'a>(
        &'a self,
        request: &'a EmbeddingRequest<'a>,
    ) -> BoxFuture<'a, Result<Embedded, Error>> {
        let message = format!("{}: this provider has no embeddings", request.model);
        Box::pin(future::ready(Err(Error::unsent(Kind::InvalidRequest, &message))))
    }

    /// What this provider counts towards its limits, and when. By default everything counts.
    /// The limiter keeps to it for each model that this provider serves.
    fn charge(&self) -> Charge {
        Charge::CAUTIOUS
    }

    /// What bounds the answers of one of its models. By default nothing is known.
    fn bounds(&self, model: &str) -> Bounds {
        let _ = model;
        Bounds::default()
    }

    /// The key that it uses now, if it is known here.
    fn key(&self) -> Option<&Key> {
        None
    }

    /// Its batch API, if it has one.
    fn batches(&self) -> Option<&dyn BatchApi> {
        None
    }
}
