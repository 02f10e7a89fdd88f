//! End to end: worker processes with a real Temporal dev server, a real Redis and a simulated provider.
//! All tests are one binary, because each binary would be as large as the program.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod agreement;
mod answers;
mod asked;
mod attached;
mod batch;
mod browser;
mod checks;
mod codec;
mod content;
mod crash;
mod cut;
mod deploy;
mod docs;
mod door;
mod door_http;
mod economy;
mod embeddings;
mod evidence;
mod finish;
mod fleet;
mod followed;
mod hostile;
mod idle;
mod keys;
mod labels;
mod lanes;
mod large;
mod long;
mod many;
mod money;
mod outage;
mod own_activity;
mod pack;
mod page;
mod paused;
mod pool;
mod providers;
mod reference;
mod registry;
mod replies;
mod routes;
mod samples;
mod terminal;
mod through;
mod tls;
mod traces;
mod unknown;
mod versions;
mod webhooks;
mod why;
mod workers;
