//! A Temporal dev server: in memory, on loopback, with its web UI.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::net::TcpStream;

use super::{
    child::{Child, free_ports, with_free_ports},
    server_program::TEMPORAL,
};
use crate::{config::Config, temporal::Temporal};

/// The variable that names a Temporal CLI; it takes precedence over all others.
pub const CLI_VARIABLE: &str = "TIDEGATE_TEMPORAL_CLI";

/// The path of the Temporal CLI that `make setup` fetches, in the project's folder.
const FETCHED: &str = ".tools/bin/temporal";

/// Time limit for its start, which takes one or two seconds; a busy machine takes longer.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Settings of the server. Fairness: tenants of one queue take turns. One partition: with four, a task
/// tries three partitions without pollers first. A larger events cache keeps the shards' histories in
/// memory: two shards of documents in flight fill the default of 512 KiB, and beyond that the server
/// reads hundreds of events again for each document.
const SETTINGS: [&str; 4] = [
    "history.eventsCacheMaxSizeBytes=67108864",
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
];

/// A running `temporal server start-dev`.
#[derive(Debug)]
pub struct TemporalServer {
    pub(super) child: Child,
    port: u16,
    ui_port: u16,
}

impl TemporalServer {
    /// Starts one and waits until it answers.
    ///
    /// # Errors
    /// There is no Temporal CLI (the error says how to install it), or the server does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let cli = find()?.with_context(|| TEMPORAL.missing())?;
        let started = with_free_ports(async || Self::attempt(&cli).await).await;
        let broken = || format!("the embedded Temporal server ({}) does not start", cli.display());
        started.with_context(broken)
    }

    async fn attempt(cli: &Path) -> anyhow::Result<Self> {
        let [port, ui_port] = free_ports()?;
        let (port_text, ui_text) = (port.to_string(), ui_port.to_string());
        let arguments = [
            "server",
            "start-dev",
            "--ip",
            "127.0.0.1",
            "--log-level",
            "error",
            "--port",
            &port_text,
            "--ui-port",
            &ui_text,
        ];
        let settings = SETTINGS.iter().flat_map(|setting| ["--dynamic-config-value", setting]);
        let arguments = arguments.into_iter().chain(settings).map(OsString::from);
        let mut child = Child::start("temporal server start-dev", cli, arguments)?;
        let mut config = Config::default();
        config.temporal.address = Some(format!("http://{}", address(port)));
        config.temporal.namespace = Some(NAMESPACE.to_owned());
        child.wait_until_ready(READY_WITHIN, async || answers(port, &config).await).await?;
        Ok(Self { child, port, ui_port })
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> String {
        address(self.port)
    }

    /// The web UI.
    pub fn ui(&self) -> String {
        format!("http://127.0.0.1:{}", self.ui_port)
    }

    /// The web UI's page of one workflow.
    pub fn workflow_page(&self, id: &str) -> String {
        format!("{}/namespaces/{NAMESPACE}/workflows/{id}", self.ui())
    }
}

/// The namespace that a dev server makes.
pub const NAMESPACE: &str = "default";

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Checks that the port is open and that the namespace answers.
async fn answers(port: u16, config: &Config) -> anyhow::Result<()> {
    drop(TcpStream::connect(("127.0.0.1", port)).await?);
    Temporal::open(config).await?.list(1).await?;
    Ok(())
}

/// Finds the Temporal CLI: [`CLI_VARIABLE`], then the one that `make setup` fetched, then the `PATH`,
/// then the user's cache. `None` if there is none.
///
/// # Errors
/// [`CLI_VARIABLE`] names no program.
pub fn find() -> anyhow::Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(CLI_VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("{CLI_VARIABLE} names no program: {}; correct it, or unset it", named.display());
        }
        return Ok(Some(named));
    }
    let program = env::current_exe().context("finding this program")?;
    Ok(fetched(&program).or_else(|| TEMPORAL.find()))
}

/// Only the program's own location counts: the current folder and its parents may belong to another user.
fn fetched(program: &Path) -> Option<PathBuf> {
    let target = program.ancestors().find(|folder| folder.ends_with("target"))?;
    Some(target.parent()?.join(FETCHED)).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_of_the_current_folder_is_run_and_none_of_those_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let tools = folder.path().join(".tools/bin");
        std::fs::create_dir_all(&tools).unwrap();
        std::fs::write(tools.join("temporal"), "").unwrap();
        let program = |path: &str| folder.path().join(path);
        assert_eq!(fetched(&program("target/debug/tidegate")), Some(tools.join("temporal")));
        assert_eq!(fetched(&program("bin/tidegate")), None);
        assert_eq!(fetched(&program("deep/target/debug/tidegate")), None);
    }

    #[tokio::test]
    async fn it_starts_answers_and_goes() {
        if !matches!(find(), Ok(Some(_))) {
            tidegate_testkit::skip("no Temporal CLI");
            return;
        }
        let server = TemporalServer::start().await.unwrap();
        let (port, config) = (server.port, Config::default());
        assert_eq!(server.address(), format!("127.0.0.1:{port}"));
        TcpStream::connect(("127.0.0.1", server.ui_port)).await.unwrap();
        server.child.stop().await;
        assert!(answers(port, &config).await.is_err());
    }
}
