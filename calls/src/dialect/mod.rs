//! Translates a request of one dialect for a model that speaks another. Text messages, the system
//! prompt, the bound on the answer, the temperature, stops and a JSON Schema are translated; every
//! other field is refused, and the refusal names it.

pub mod account_fields;
mod chat;
mod client_error;
mod conversation;
mod dialect_route;
mod messages;
mod translated;

pub use self::{
    client_error::ClientError, conversation::RefusedField, dialect_route::DialectRoute,
    translated::Translated,
};

#[cfg(test)]
mod tests;
