//! The commands. Data goes to stdout, messages go to stderr.
//!
//! # Layout
//!
//! * `command`: the command line, and which module runs each command
//! * the commands: `demo`; `processes` (`serve`, `dev`, `worker`, `simulator`); `run`, `ask`, `submit`, `follow`, `status`, `why`, `top`, `workers`; `quota`,
//!   `limits`, `pause` (and `resume`); `dashboard`; `doctor`, `config`
//! * `snapshot`: the state of the fleet at one moment; `page`: shows it in a browser
//! * `shell`: `completions` and `man`
//! * `servers`: fetches the servers that `demo` and `dev` start
//! * `exit`: exit codes
//! * `output`: stdout and stderr, colour and columns
//! * `format`: formats numbers, times and rates
//! * `paths`: documents and results as paths and URLs, and a batch's id made from them
//! * `follow`: follows a batch; `summary`: shows its end; `failed`: its failures by type;
//!   `batch_report`: reads the report in its output; `webhook`: the delivery of its webhook
//! * `fleet`: the services that know the state of batches
//! * `actions`: what an operator does to models
//! * `diagnosis`: the cause that holds a batch back; `trouble`: recent faults of calls; `keys`:
//!   refused keys; `advice`: remedies

mod actions;
mod advice;
mod agreement;
mod ask;
mod batch_flags;
mod batch_report;
mod budget;
mod command;
mod compare;
mod config;
mod dashboard;
mod demo;
mod diagnosis;
mod doctor;
mod env_file;
mod eta;
mod exit;
mod extract;
mod failed;
mod fleet;
mod follow;
mod format;
mod keys;
mod limits;
mod output;
mod page;
mod paths;
mod pause;
mod processes;
mod quota;
mod run;
mod sample_report;
mod servers;
mod shell;
mod snapshot;
mod status;
mod submit;
mod summary;
#[cfg(feature = "top")]
mod top;
mod trouble;
mod webhook;
mod why;
mod workers;

pub use advice::failure_advice;
pub use command::Cli;
