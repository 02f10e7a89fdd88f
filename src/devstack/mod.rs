//! Temporal, Redis and a simulated provider, private to this process and on loopback ports, for `dev`, `demo` and
//! the tests.
//!
//! Nothing is kept: stopping the stack, or the death of this process however it comes, ends
//! everything.
//!
//! # Layout
//!
//! * [`stack`]: all of it, started and stopped together
//! * [`temporal_server`], [`redis_server`], [`simulation`]: its parts
//! * [`server_program`]: where the programs of the two servers come from
//! * [`child`]: a server as a child process that cannot outlive this one
//! * [`baseline`]: the same load without a limiter, the way it is usually done

pub mod baseline;
pub mod child;
pub mod redis_server;
pub mod server_program;
pub mod simulation;
pub mod stack;
pub mod temporal_server;

pub use stack::Stack;
