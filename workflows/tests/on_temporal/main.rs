//! The workflows on a real Temporal dev server, with scripted activities. They share one binary,
//! because each binary would link Temporal's SDK.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may stop at the first fault, have a clock and read files"
)]

mod batch;
mod common;
mod continued;
mod economy;
mod invalid_input;
mod long;
mod million;
mod pace;
mod paths;
mod recorder;
mod replay;
mod window;
