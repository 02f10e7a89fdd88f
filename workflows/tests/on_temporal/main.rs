//! The workflows on a real Temporal dev server, with scripted activities. One binary, because each
//! would hold Temporal's SDK.

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
