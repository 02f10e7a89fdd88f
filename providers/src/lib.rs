//! Clients of LLM providers: they send one HTTP request, classify the reply, and never retry.
//!
//! A retry inside a client would be a call that no quota admitted and that Temporal does not see,
//! so there is none: [`Provider::complete`] sends at most one request. A failure is an [`Error`]:
//! its [`Kind`] determines the effect of a retry, its `retry_after` is the wait that the provider
//! asks for, and its [`Charged`] is the cost of the call.
//!
//! # Layout
//!
//! Public:
//!
//! * [`provider`]: the trait; [`call`]: one call and its completion; [`turn`]: texts around the
//!   document; [`prompt`]: how the document is wrapped
//! * [`batch`]: many requests at once, answered within a day
//! * [`embedding`]: vectors of texts
//! * [`error`]: a failed call
//! * [`observed`]: limits and remaining quota, from response headers
//! * [`passive`]: reads requests and replies of another client's calls
//! * [`verbatim`]: calls in a vendor's own form that are sent unchanged
//! * [`schema`]: a JSON Schema in the form that a vendor takes
//! * [`vendor`]: the vendor whose API a provider speaks
//! * [`settings`], [`secret`]: the connection to a provider, and its key, which cannot be printed
//! * [`registry`]: all configured providers by name
//! * [`probe`]: one free request that tests the connection and the key
//! * [`dialect`]: properties of a provider's API; [`parameters`]: fields of the vendor's request
//!   that authors state
//! * [`picture`]: pictures, and their token counts
//! * [`price`]: the cost of a call; [`bounds`]: the maximum length of its answer
//!
//! `vendors` is the table of vendors, a row each: name, endpoint, key, error names, charging rules,
//! caps, prices, interface. `own.rs` has those with an API of their own, `compatible.rs` those
//! compatible with OpenAI's Chat Completions, `clouds.rs` vendors' APIs at Azure and Google Cloud.
//! Each vendor's own code is in one folder (`anthropic`, `openai`, `gemini`, `bedrock`) with the
//! same files: `mod.rs` is the API, `request.rs` and `response.rs` the two bodies, `parameters.rs`
//! the fields that authors may add to a request, `errors.rs` the vendor's error names and
//! rate-limit headers, `prices.toml` its prices, and `batches.rs` its batch API, if it has one. No
//! vendor type leaves its folder. `vertex` holds other vendors' APIs at Google Cloud, and `google`
//! its credentials.
//!
//! Shared and private: `client` (all but Bedrock) and `reply_reader` (its replies), `batch_engine`
//! (every batch API) and `batch_endpoint` (its requests), `exchange` (one HTTP exchange), `endings`
//! and `finish` (how an answer ended), `endpoint` (base URLs), `body` (adds parameters), `envelope`
//! (error bodies, including gateways' wrappings), `classify` (name or status to kind), `wait_hint`
//! (how long to wait), `refusal` (builds an [`Error`] from these), `message` (text that is safe to
//! show), `json`.
//!
//! # Features
//!
//! * `bedrock` (on): AWS Bedrock through its SDK, which is half of this crate's compile time.

#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first fault")
)]

pub mod batch;
pub mod bounds;
pub mod call;
pub mod dialect;
pub mod embedding;
pub mod error;
pub mod error_rule;
pub mod key;
pub mod observed;
pub mod parameters;
pub mod passive;
pub mod picture;
pub mod price;
pub mod probe;
pub mod prompt;
pub mod provider;
pub mod registry;
#[cfg(test)]
mod replies;
mod rules;
pub mod schema;
pub mod secret;
pub mod settings;
pub mod turn;
pub mod vendor;
pub mod verbatim;

mod anthropic;
mod batch_endpoint;
mod batch_engine;
mod bedrock;
mod body;
mod classify;
mod client;
mod endings;
mod endpoint;
mod envelope;
mod exchange;
mod finish;
mod gemini;
mod google;
mod json;
mod known_names;
mod large_replies;
mod message;
mod openai;
mod refusal;
mod reply_reader;
mod vendors;
mod vertex;
mod wait_hint;

#[cfg(test)]
mod testing;

pub use batch::BatchApi;
pub use bounds::Bounds;
pub use call::{BoxFuture, Completion, Document, Finish, Request, StopReason};
pub use dialect::Dialect;
pub use embedding::{Embedded, EmbeddingRequest};
pub use error::{Charged, Error, Kind, Span};
pub use google::ApplicationDefault;
pub use key::{Key, KeySource};
pub use large_replies::ReplyShare;
pub use observed::{Observed, Window};
pub use parameters::Parameters;
pub use passive::{PassiveReader, ReplyFacts, RequestFacts};
pub use picture::Picture;
pub use price::Prices;
pub use provider::Provider;
pub use registry::{Defaults, Providers};
pub use secret::{Secret, SecretError};
pub use settings::{Settings, SetupError};
pub use turn::{Role, Said, Turn};
pub use vendor::{Api, OutputCap, Vendor};
pub use verbatim::{Fields, Operation, Verbatim, VerbatimReply};
