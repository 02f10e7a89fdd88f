//! The question of a document's call. The guard around the call is [`tidegate_calls`].
//!
//! * `inquiry`: asks any question and accepts the answer; `answer`: asks about a document; `embed`: gets
//!   a document's vector
//! * [`prompt`]: the question of a call; `prompt_builder`: its text; `template`: texts with names
//!   to fill in
//! * `expression`: whether an expression of the author's is true of an answer
//! * `output_cap`: the cap on output where the author states none
//! * `evidence`: quotes that an answer rests on; `quoted_fields`: the fields that have quotes
//! * [`row`]: a prompt for each row of a table
//! * [`sandbox`]: runs work that may take all memory or never end in a process of its own

pub(crate) mod answer;
pub(crate) mod embed;
pub(crate) mod evidence;
pub(crate) mod expression;
pub(crate) mod inquiry;
pub(crate) mod output_cap;
pub mod prompt;
pub(crate) mod prompt_builder;
pub(crate) mod quoted_fields;
pub mod row;
pub mod sandbox;
pub(crate) mod template;
