//! A Temporal dev server in memory.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    server::{Server, leashed, on_path},
    skip,
};

/// Names a Temporal CLI to use before all others.
const CLI_VARIABLE: &str = "TIDEGATE_TEMPORAL_CLI";

/// As on the embedded server of the program (`src/devstack`), where the reasons stand: they save the
/// server about half of its processor time.
const SETTINGS: [&str; 3] = [
    "history.eventsCacheMaxSizeBytes=67108864",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
];

/// A `temporal server start-dev` without its web UI. It ends with the value, and with the test
/// process at the latest.
#[derive(Debug)]
pub struct Temporal {
    server: Server,
    cli: PathBuf,
    port: u16,
}

impl Temporal {
    /// Starts one with these dynamic settings (`key=value`). `None` if the
    /// Temporal CLI is not installed: see [`skip`].
    pub fn start(settings: &[&str]) -> Option<Self> {
        let Some(cli) = cli() else {
            skip(
                "no Temporal CLI in TIDEGATE_TEMPORAL_CLI, .tools/bin or the PATH; run `make setup`",
            );
            return None;
        };
        let command = |ports: &[u16; 3]| {
            let [port, metrics, http] = ports.map(|port| port.to_string());
            let mut command = leashed(&cli);
            // Variables that name a server for the CLI must not steer this one.
            for (name, _) in env::vars_os() {
                if name.to_string_lossy().starts_with("TEMPORAL_") {
                    command.env_remove(name);
                }
            }
            command.args(["server", "start-dev", "--headless", "--log-level", "error"]);
            command.args(["--ip", "127.0.0.1", "--port", &port]);
            command.args(["--metrics-port", &metrics, "--http-port", &http]);
            let settings = SETTINGS.iter().chain(settings);
            command.args(settings.flat_map(|set| ["--dynamic-config-value", set]));
            command
        };
        // The port opens before the namespace exists.
        let ready = |[port, ..]: &[u16; 3]| {
            succeeds(cli_for(&cli, *port).args(["operator", "namespace", "describe", "default"]))
        };
        let (server, [port, ..]) = Server::on_free_ports(command, ready);
        Some(Self { server, cli, port })
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> String {
        address(self.port)
    }

    /// The CLI for this server; the command is still to be added.
    pub fn cli(&self) -> Command {
        cli_for(&self.cli, self.port)
    }

    /// Processor time that it has taken so far; `None` where the system does not say.
    pub fn processor_time(&self) -> Option<Duration> {
        self.server.processor_time()
    }

    /// Makes a namespace, which no other test sees.
    ///
    /// # Panics
    /// The server refuses.
    pub fn namespace(&self) -> String {
        let name = crate::unique("test");
        let create = ["operator", "namespace", "create", "--namespace", &name];
        assert!(succeeds(self.cli().args(create)), "there is no namespace {name}");
        name
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn cli_for(cli: &Path, port: u16) -> Command {
    let mut command = Command::new(cli);
    command.args(["--address", &address(port)]);
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// [`CLI_VARIABLE`], else the one that `make setup` fetched, else the `PATH`'s.
fn cli() -> Option<PathBuf> {
    if let Some(named) = env::var_os(CLI_VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "{CLI_VARIABLE}: there is no file {}", named.display());
        return Some(named);
    }
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/temporal");
    if fetched.is_file() { Some(fetched) } else { on_path(&["temporal"]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_answers_and_ends() {
        let Some(temporal) = Temporal::start(&[]) else { return };
        let (cli, port) = (temporal.cli.clone(), temporal.port);
        let namespace = temporal.namespace();
        let list = || succeeds(cli_for(&cli, port).args(["workflow", "list", "-n", &namespace]));
        assert!(list());
        drop(temporal);
        assert!(!list());
    }
}
