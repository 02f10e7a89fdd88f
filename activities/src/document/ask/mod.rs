//! The question of a document's call. The guard around the call is [`tidegate_calls`].
//!
//! * `inquiry`: asks a question and accepts the answer; `embed`: gets a document's vector
//! * [`prompt`]: the question of a call; `prompt_builder`: its text; `template`: texts with names
//!   to fill in
//! * `expression`: whether an expression of the author's is true of an answer
//! * `output_cap`: the cap on output where the author states none
//! * `evidence`: quotes that an answer rests on
//! * `unjudged`: answers that are stored before they are judged
//! * [`sandbox`]: runs work that may take all memory or never end in a process of its own

pub(crate) mod embed;
pub(crate) mod evidence;
pub(crate) mod expression;
pub(crate) mod inquiry;
pub(crate) mod output_cap;
pub mod prompt;
pub(crate) mod prompt_builder;
pub mod sandbox;
pub mod template;
pub(crate) mod unjudged;
