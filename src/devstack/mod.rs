//! Temporal, Redis and a simulated provider, private to this process and on loopback ports, for `dev`,
//! `demo` and the tests.
//!
//! All data are temporary: stopping the stack, or the death of this process, ends everything.
//!
//! # Layout
//!
//! * [`stack`]: starts and stops all parts together
//! * [`temporal_server`], [`redis_server`], [`simulation`]: its parts
//! * [`server_program`]: finds or fetches the servers' programs
//! * [`child`]: a server as a child process that cannot outlive this process

pub mod child;
pub mod redis_server;
pub mod server_program;
pub mod simulation;
pub mod stack;
pub mod temporal_server;

pub use stack::Stack;
