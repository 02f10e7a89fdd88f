//! Temporal, Redis and a simulated provider of one's own, on loopback ports, for `dev`, `demo` and
//! the tests.
//!
//! Nothing is kept: stopping the stack, or the death of this process however it comes, ends
//! everything.
//!
//! # Layout
//!
//! * [`stack`]: all of it, started and stopped together
//! * [`child`]: a server as a child process that cannot outlive this one; [`ports`]: free ones
//! * [`temporal_server`], [`redis_server`], [`simulation`], [`worker_thread`]: the four parts
//! * [`baseline`]: the same load without a limiter, the way it is usually done
//! * [`report`], [`account`]: what came of it, and how much of the quota was used

pub mod account;
pub mod baseline;
pub mod child;
pub mod ports;
pub mod redis_server;
pub mod report;
pub mod simulation;
pub mod stack;
pub mod temporal_server;
pub mod worker_thread;

pub use stack::Stack;
