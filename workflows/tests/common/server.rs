//! The dev server as a child process.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use url::Url;

/// A dev server that ends with the value.
pub struct Server {
    shell: Child,
    url: Url,
}

impl Server {
    /// `None`, said aloud, where the Temporal CLI is not installed; a failure when
    /// `TIDEGATE_REQUIRE_SERVICES=1`.
    pub fn start(dynamic_config: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!(
                "SKIPPED: no Temporal CLI in TIDEGATE_TEMPORAL_CLI, .tools/bin or the PATH; run `make setup`"
            );
            let required =
                std::env::var_os("TIDEGATE_REQUIRE_SERVICES").is_some_and(|value| value == "1");
            assert!(!required, "a Temporal dev server is required");
            return None;
        };
        let port = free_port().to_string();
        // The shell ends the server when its input closes, and with it when the test process is
        // gone, however it went.
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\" </dev/null & cat; kill -KILL $!", "sh"]).arg(program);
        command.args([
            "server",
            "start-dev",
            "--headless",
            "--ip",
            "127.0.0.1",
            "--log-level",
            "error",
            "--port",
            &port,
        ]);
        command.args([
            "--metrics-port",
            &free_port().to_string(),
            "--http-port",
            &free_port().to_string(),
        ]);
        for setting in dynamic_config {
            command.args(["--dynamic-config-value", setting]);
        }
        let shell = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { shell, url: format!("http://127.0.0.1:{port}").parse().unwrap() })
    }

    /// A client of the default namespace, as soon as the server answers.
    pub async fn client(&self) -> Client {
        let mut error = None;
        for _ in 0..600 {
            match self.connect().await {
                Ok(client) => return client,
                Err(failed) => error = Some(failed),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("Temporal did not answer on {}: {error:?}", self.url);
    }

    async fn connect(&self) -> Result<Client, String> {
        let connection = Connection::connect(ConnectionOptions::new(self.url.clone()).build())
            .await
            .map_err(|error| error.to_string())?;
        let client = Client::new(connection, ClientOptions::new("default").build())
            .map_err(|error| error.to_string())?;
        // The port opens before the namespace exists.
        client
            .count_workflows("", temporalio_client::WorkflowCountOptions::default())
            .await
            .map_err(|error| error.to_string())?;
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// One server for all tests of a binary that need nothing special; each test has a task queue of
/// its own.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[])).as_ref()
}

fn program() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TIDEGATE_TEMPORAL_CLI").map(PathBuf::from) {
        assert!(given.is_file(), "TIDEGATE_TEMPORAL_CLI: there is no file {}", given.display());
        return Some(given);
    }
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/temporal");
    if installed.is_file() {
        return Some(installed);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("temporal"))
        .find(|program| program.is_file())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
