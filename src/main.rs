//! The program `tidegate`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser;
use tidegate::{attach, cli::Cli, runtime, telemetry};

/// With jemalloc, a worker's `memory` bounds what its process takes (`activities/tests/resident.rs`), and
/// a batch of a hundred thousand documents takes no more than one of a thousand. Other allocators keep
/// memory for each of the many threads that read and write files (`docs/scale.md`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // In a worker's child process, this reads one document and exits.
    attach::read_documents_here();
    runtime::run(run_command()).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: no threads can be started: {error}");
        ExitCode::FAILURE
    })
}

async fn run_command() -> ExitCode {
    let cli = Cli::parse();
    // Two of rustls' providers are compiled in, and it does not choose by itself. Only a second call
    // fails.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    telemetry::log(cli.log_format(), cli.usual_log());
    let ended = cli.run().await;
    telemetry::end().await;
    ended
}
