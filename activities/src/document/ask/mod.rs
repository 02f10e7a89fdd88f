//! What a document's call asks. The guard around the call is [`tidegate_calls`].
//!
//! * `asked`: the answer to a question, whoever asks it; `answer`: of a document; `embed`: the same for a vector
//! * [`prompt`]: what a call asks; `prompt_builder`: in which words, `template`: those with names in them
//! * `expression`: whether what the author says of an answer is true
//! * `output_cap`: how long an answer may be where the author does not say
//! * [`row`]: a prompt for each row of a table
//! * [`sandbox`]: what may take all memory or never end, in a process of its own

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod embed;
pub(crate) mod evidence;
pub(crate) mod expression;
pub(crate) mod output_cap;
pub mod prompt;
pub(crate) mod prompt_builder;
pub mod row;
pub mod sandbox;
pub(crate) mod template;
