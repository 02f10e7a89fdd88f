//! The program `tidegate`.

use std::process::ExitCode;

use clap::Parser;
use tidegate::{attach, cli::Cli, telemetry};

fn main() -> ExitCode {
    // A worker's child, which reads one document and needs nothing else of this program.
    attach::read_documents_here();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let cli = Cli::parse();
    telemetry::log(cli.log_format(), cli.usual_log());
    // Two of rustls' providers are compiled in, and it refuses to choose. Only a second call fails.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli.run().await
}
