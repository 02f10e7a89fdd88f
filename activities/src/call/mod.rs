//! One provider call: who is asked, what is asked, whether it may be asked now, and who pays.
//!
//! * [`guard`]: admit → one call → settle
//! * `prompt`: what a call asks; [`route`]: which model answers; [`warm_cache`]: which call of a
//!   batch goes first, so that the others find the prompt cached
//! * [`attempt`]: what one attempt tells the next: its turn, and how often it asked
//! * [`budget`]: who pays for a call, and whether they can
//! * [`breaker`], [`stopped`]: models that should not be asked for a while
//! * [`waiting`]: how many slots may hold attempts that only wait

pub mod attempt;
pub mod breaker;
pub mod budget;
pub mod estimate;
pub mod guard;
pub mod prompt;
pub mod route;
pub mod stopped;
pub mod waiting;
pub mod warm_cache;
