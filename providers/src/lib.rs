//! Clients of LLM providers: they make one HTTP request, classify what comes back, and never retry.
//!
//! A retry inside a client would be a call that no quota admitted and that Temporal does not see,
//! so there is none: [`Provider::complete`] puts at most one request on the wire. What went wrong
//! is an [`Error`] whose [`Kind`] says what a retry would bring, whose `retry_after` says
//! how long the provider wants to be left alone, and whose [`Charged`] says what the call has cost
//! all the same.
//!
//! # Layout
//!
//! What every caller sees:
//!
//! * [`provider`]: the trait; [`call`]: one call and its completion; [`turn`]: what is said beside
//!   the document; [`prompt`]: how it is wrapped
//! * [`batch`]: many requests at once, answered within a day
//! * [`embedding`]: vectors of texts
//! * [`error`]: a failed call
//! * [`observed`]: limits and remaining quota, as response headers state them
//! * [`overheard`]: calls that another client makes: what they ask for, and what their replies mean
//! * [`verbatim`]: calls in a vendor's own form that are sent as they are
//! * [`schema`]: a JSON Schema in the form that a vendor keeps to
//! * [`vendor`]: whose API a provider speaks
//! * [`settings`], [`secret`]: how a provider is reached, and its key, which cannot be printed
//! * [`registry`]: all configured providers by name
//! * [`probe`]: one free question, to find out whether it is reached and takes the key
//! * [`dialect`]: what is known of how a provider is asked; [`parameters`]: fields of the vendor's
//!   request that authors state
//! * [`picture`]: pictures, and what models take for them
//! * [`price`]: what a call costs; [`bounds`]: how long its answer can be
//!
//! `vendors` is the table of vendors, a row each: name, endpoint, key, error names, charging rules,
//! caps, prices, interface. `own.rs` has those with an API of their own, `compatible.rs` those that
//! are compatible with OpenAI's Chat Completions, `clouds.rs` vendors' APIs at Azure and Google
//! Cloud. What differs in code stands in one folder a vendor (`anthropic`, `openai`, `gemini`,
//! `bedrock`), each with the same files: `mod.rs` is the API, `request.rs` and `response.rs` are the
//! two bodies, `parameters.rs` says what authors may add to the former, `errors.rs` holds the names
//! of the vendor's errors and reads its rate-limit headers, `prices.toml` its prices; `batches.rs`,
//! where there is a batch API. No vendor type leaves its folder. `vertex` are other vendors' APIs at
//! Google Cloud, and `google` the credentials that it takes.
//!
//! Shared and private: `client` (what all but Bedrock are) and `reply_reader` (what its replies mean), `batch_engine` (one way through every
//! batch API) and `batch_endpoint` (its requests), `exchange` (one HTTP exchange), `endings` and
//! `finish` (how an answer ended), `endpoint` (base URLs), `body` (how parameters come in),
//! `envelope` (error bodies, gateways' wrappings included), `classify` (name or status to kind),
//! `wait_hint` (how long to wait), `refusal` (all of these made into an [`Error`]), `message` (text
//! that is safe to show), `json`.
//!
//! # Features
//!
//! * `bedrock` (on): AWS Bedrock through its SDK, which is half of all that this crate compiles.

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
pub mod overheard;
pub mod parameters;
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
pub use observed::{Observed, Window};
pub use overheard::{Asked, Heard, Hearing};
pub use parameters::Parameters;
pub use picture::Picture;
pub use price::Prices;
pub use provider::Provider;
pub use registry::{Defaults, Providers};
pub use secret::{Secret, SecretError};
pub use settings::{Settings, SetupError};
pub use turn::{Role, Said, Turn};
pub use vendor::{Api, OutputCap, Vendor};
pub use verbatim::{Fields, Operation, Verbatim, VerbatimReply};
