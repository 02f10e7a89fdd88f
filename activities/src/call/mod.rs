//! One provider call: which model is asked, what it is asked, whether it may be asked now, and what
//! pays.
//!
//! * [`guard`]: admit → one call → settle; [`admission`]: a call from its leave to its settlement
//! * `ask`: a question's way to its answer; `prompt`: what a call asks; `wording`: in which words,
//!   `template`: those with names in them; [`route`]: which model
//!   answers; [`warm_cache`]: which call of a batch goes first, so that the others find the prompt
//!   cached
//! * [`attempt`]: what one attempt tells the next: its turn, and how often it asked
//! * [`budget`]: what pays for a call; `checkpoints`: what was spent, beside Redis
//! * [`health`]: models that should not be asked for a while; [`recent`]: what calls came to lately;
//!   [`doubts`]: models whose account is said to be spent, or which are said not to be there;
//!   [`unknown_models`]: models that their provider does not know; [`keys`]: keys that are refused,
//!   here and in the fleet; [`card`]: what a worker says of itself;
//!   [`differences`]: in what workers are configured differently
//! * `counted`: what a call can have used
//! * `output_cap`: how long an answer may be where the author does not say; [`cuts`]: how often one
//!   was cut
//! * [`waiting`]: how many slots may hold attempts that only wait; [`unwritten`]: answers that cannot
//!   be written now; [`spool`]: the folder for them

pub mod admission;
pub(crate) mod ask;
pub mod attempt;
pub mod budget;
pub mod card;
mod checkpoints;
mod counted;
pub mod cuts;
pub mod differences;
pub mod doubts;
pub(crate) mod evidence;
pub mod guard;
pub mod health;
pub mod keys;
pub mod learned_caps;
pub(crate) mod output_cap;
pub mod prompt;
pub mod recent;
pub mod retries;
pub mod route;
pub mod spool;
pub(crate) mod template;
pub mod unknown_models;
pub mod unwritten;
pub mod waiting;
pub mod warm_cache;
pub(crate) mod wording;
