//! The commands. Data goes to stdout, talk to stderr.
//!
//! # Layout
//!
//! * `command`: the command line, and which command answers
//! * the commands: `demo`; `serve` (`dev`, `worker`, `simulator`); `run`, `ask`, `submit`, `follow`, `status`, `why`, `top`, `workers`; `quota`,
//!   `limits`, `pause` (and `resume`); `dashboard`; `doctor`, `config`
//! * `snapshot`: what the fleet is doing, for whoever shows it; `page`: in a browser
//! * `shell`: `completions` and `man`
//! * `servers`: what `demo` and `dev` start, fetched where it is missing
//! * `exit`: exit codes, and what deserves which
//! * `output`: stdout and stderr, colour and columns
//! * `figures`: numbers, times and rates for people
//! * `place`: documents and results as paths and URLs, and a batch's name made from them
//! * `follow`: a batch on its way; `summary`: how it ended; `failed`: what was given up, and why;
//!   `reported`: what the report in its output tells; `webhook`: whether its receiver knows
//! * `cause`: what holds a batch back; `trouble`: what calls have met lately; `keys`: those that are
//!   refused; `advice`: what to do

mod advice;
mod agreement;
mod ask;
mod budget;
mod cause;
mod command;
mod compare;
mod config;
mod dashboard;
mod demo;
mod doctor;
mod exit;
mod extract;
mod failed;
mod figures;
mod follow;
mod given;
mod keys;
mod limits;
mod outlook;
mod output;
mod page;
mod pause;
mod place;
mod quota;
mod reported;
mod run;
mod sampled;
mod serve;
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

pub use command::Cli;
