//! The program `tidegate`.

use std::process::ExitCode;

use clap::Parser;
use tidegate::{cli::Cli, telemetry};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    telemetry::log(cli.log_format(), cli.log_level());
    // Two of rustls' providers are compiled in, and it refuses to choose. Only a second call fails.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli.run().await
}
