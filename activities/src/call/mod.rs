//! What a document's call asks, and what becomes of its answer. The guard around the call is
//! [`tidegate_calls`].
//!
//! * `prompt`: what a call asks; `wording`: in which words, `template`: those with names in them
//! * [`attempt`]: what one attempt tells the next: of its calls, and of its document
//! * [`checkpoints`]: what was spent of budgets, beside Redis
//! * `output_cap`: how long an answer may be where the author does not say; [`cuts`]: how often one
//!   was cut
//! * [`unwritten`]: answers that cannot be written now; [`spool`]: the folder for them

pub mod attempt;
pub mod checkpoints;
pub mod cuts;
pub(crate) mod output_cap;
pub mod prompt;
pub mod spool;
pub(crate) mod template;
pub mod unwritten;
pub(crate) mod wording;
