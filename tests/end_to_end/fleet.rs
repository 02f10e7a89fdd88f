//! A whole fleet on this machine: a real Temporal dev server, a real Redis, a simulated provider,
//! and worker processes.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test binary uses its part of this module, and may stop at the first fault"
)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_simulator::{Config, Simulator};
use tidegate_testkit::{Redis, Temporal, unique};
use tokio::process::{Child, Command};

pub const MODEL: &str = "anthropic:claude-sonnet-5";

/// Whether tests of large scale run at their full size.
pub fn full_scale() -> bool {
    std::env::var_os("TIDEGATE_FULL_SCALE").is_some_and(|value| value == "1")
}

/// A size that a variable overrides.
pub fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap())
}

/// A free port of loopback.
pub fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A folder that lies under no root, and its URI.
pub fn private_folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("file://{}", folder.path().canonicalize().unwrap().display());
    (folder, uri)
}

/// Checks that a folder and all in it can be read by its user alone.
pub fn assert_is_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let is_folder = path.is_dir();
    let mode = path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, if is_folder { 0o700 } else { 0o600 }, "{}", path.display());
    if is_folder {
        std::fs::read_dir(path)
            .unwrap()
            .for_each(|entry| assert_is_private(&entry.unwrap().path()));
    }
}

pub struct Fleet {
    pub temporal: &'static Temporal,
    /// The fleet's own namespace in Temporal.
    namespace: String,
    /// A Redis of its own, which may be killed.
    pub own_redis: Option<Redis>,
    pub redis_url: String,
    pub simulator: Simulator,
    pub folder: TempDir,
    pub workers: Vec<Child>,
}

/// A fleet on the Temporal and the Redis that all fleets of this process share. `None`, with a message,
/// if they cannot be started.
pub async fn fleet(simulator: &str, settings: &str) -> Option<Fleet> {
    let url = Redis::shared()?.url.clone();
    start(url, None, simulator, settings).await
}

/// A fleet whose Redis may be killed.
pub async fn fleet_with_its_own_redis(simulator: &str, settings: &str) -> Option<Fleet> {
    let redis = Redis::start()?;
    start(redis.url.clone(), Some(redis), simulator, settings).await
}

fn temporal() -> Option<&'static Temporal> {
    static SHARED: OnceLock<Option<Temporal>> = OnceLock::new();
    // Tenants of one queue take turns, as on the program's embedded server.
    SHARED.get_or_init(|| Temporal::start(&["matching.enableFairness=true"])).as_ref()
}

async fn start(
    redis_url: String,
    own_redis: Option<Redis>,
    simulator: &str,
    settings: &str,
) -> Option<Fleet> {
    let temporal = temporal()?;
    let simulator = Simulator::start(Config::from_toml(simulator).unwrap()).await.unwrap();
    let fleet = Fleet {
        temporal,
        namespace: temporal.namespace(),
        own_redis,
        redis_url,
        simulator,
        folder: tempfile::tempdir().unwrap(),
        workers: Vec::new(),
    };
    std::fs::create_dir(fleet.path("in")).unwrap();
    let config = format!(
        "[temporal]\naddress = \"{}\"\nnamespace = \"{}\"\n[redis]\nurl = \"{}\"\nkey-prefix = \"{}\"\n[storage]\nroots = [\"{}\"]\n\
         [providers.anthropic]\nbase-url = \"{}\"\napi-key-env = \"SIMULATED_KEY\"\n{settings}\n",
        fleet.temporal.address(),
        fleet.namespace,
        fleet.redis_url,
        unique("test"),
        fleet.uri(""),
        fleet.simulator.base_url(),
    );
    std::fs::write(fleet.path("tidegate.toml"), config).unwrap();
    Some(fleet)
}

impl Fleet {
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    /// Writes `count` documents of about `tokens` tokens each, all different.
    pub fn documents(&self, count: usize, tokens: usize) {
        for number in 0..count {
            let mut text = format!("# Report {number}\n\n");
            for line in 0.. {
                if text.len() >= tokens * 43 / 10 {
                    break;
                }
                text.push_str(&format!(
                    "In line {line} of report {number} the harbour master writes about the tide and ship {}. ",
                    line * 7 + number
                ));
            }
            std::fs::write(self.path(&format!("in/report-{number:04}.md")), text).unwrap();
        }
    }

    pub fn worker(&mut self) {
        self.worker_with(&[]);
    }

    /// Starts a worker with further settings in its environment.
    pub fn worker_with(&mut self, settings: &[(&str, &str)]) {
        self.worker_of(Path::new(env!("CARGO_BIN_EXE_tidegate")), settings);
    }

    /// Starts a worker from a copy of the program.
    pub fn worker_of(&mut self, program: &Path, settings: &[(&str, &str)]) {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("worker.log"))
            .unwrap();
        let child = Command::new(program)
            .args(["worker", "--config"])
            .arg(self.path("tidegate.toml"))
            .env("SIMULATED_KEY", "sk-simulated-secret")
            .env("TIDEGATE_WORKER__METRICS_LISTEN", "off")
            .env("RUST_LOG", "info")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.workers.push(child);
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        self.workers.iter().filter_map(Child::id)
    }

    /// The processor time that the workers have taken so far, in sum.
    pub fn processor_time(&self) -> Duration {
        self.processes().filter_map(tidegate_testkit::processor_time).sum()
    }

    /// The maximum memory that one of its workers ever had, in MB.
    pub fn peak_memory(&self) -> u64 {
        let peak = |process: u32| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            peak.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        self.processes().filter_map(peak).max().unwrap_or_default() / 1_024
    }

    /// Waits until all workers poll for work.
    pub async fn working(&self) {
        let log = || std::fs::read_to_string(self.path("worker.log")).unwrap_or_default();
        for _ in 0..6_000 {
            if log().matches(" working ").count() >= self.workers.len() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the workers do not begin: {}", log());
    }

    /// `kill -9`.
    pub async fn kill_worker(&mut self, number: usize) {
        self.workers[number].start_kill().unwrap();
        self.workers[number].wait().await.unwrap();
    }

    /// Runs the Temporal CLI against the dev server.
    pub async fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = Command::from(self.temporal.cli());
        command.args(arguments).args(["--namespace", &self.namespace]).kill_on_drop(true);
        let patience = if full_scale() { 3 * 3_600 } else { 400 };
        tokio::time::timeout(Duration::from_secs(patience), command.output())
            .await
            .expect("the CLI took too long")
            .unwrap()
    }

    /// Sends a batch a signal. A workflow whose tasks wait for the processor is "busy" for a moment.
    pub async fn signal(&self, id: &str, name: &str) {
        for _ in 0..30 {
            let sent = self.cli(&["workflow", "signal", "--workflow-id", id, "--name", name]).await;
            let said = String::from_utf8_lossy(&sent.stderr).into_owned();
            assert!(sent.status.success() || said.contains("Workflow is busy"), "{said}");
            if sent.status.success() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{id} stays busy");
    }

    /// Truncated answers are kept, because the tests count calls.
    pub fn batch(&self, output: &str) -> Value {
        json!({"source": self.uri("in/"), "output": self.uri(output), "instructions": "Summarise in three points.", "model": MODEL, "max_output_tokens": 256, "on_cut": "keep"})
    }

    pub async fn start(&self, id: &str, input: &Value) {
        self.start_with(id, input, &[]).await;
    }

    /// Starts a batch that is paused from the beginning.
    pub async fn start_paused(&self, id: &str, input: &Value) {
        self.start_by("signal-with-start", id, input, &["--signal-name", "pause"]).await;
    }

    /// Starts a batch with further arguments of the `temporal` CLI.
    pub async fn start_with(&self, id: &str, input: &Value, more: &[&str]) {
        self.start_by("start", id, input, more).await;
    }

    async fn start_by(&self, command: &str, id: &str, input: &Value, more: &[&str]) {
        let input = input.to_string();
        let usual = [
            "workflow",
            command,
            "--type",
            "ProcessDocuments",
            "--task-queue",
            "tidegate",
            "--workflow-id",
            id,
            "--input",
            &input,
        ];
        let output = self.cli(&[&usual, more].concat()).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The workflow's result, or its failure.
    pub async fn result(&self, id: &str) -> Result<Value, Value> {
        let output = self.cli(&["workflow", "result", "--workflow-id", id, "-o", "json"]).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        if value["status"] == "COMPLETED" { Ok(value["result"].clone()) } else { Err(value) }
    }

    pub async fn progress(&self, id: &str) -> Option<Value> {
        let output = self
            .cli(&["workflow", "query", "--workflow-id", id, "--type", "progress", "-o", "json"])
            .await;
        let value: Value = serde_json::from_slice(&output.stdout).ok()?;
        value["queryResult"].as_array().map(|list| list[0].clone()).or_else(|| Some(value.clone()))
    }

    /// Polls the batch's progress until `ready`.
    pub async fn until(&self, id: &str, mut ready: impl FnMut(&Value) -> bool) -> Value {
        for _ in 0..1_200 {
            if let Some(progress) = self.progress(id).await.filter(|progress| ready(progress)) {
                return progress;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("{id} never got so far: {:?}", self.progress(id).await);
    }

    /// All results by document, each parsed.
    pub fn results(&self, output: &str) -> BTreeMap<String, Value> {
        let path = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().path();
        // Skips files that are being written, such as `a.md.json#1`.
        let is_whole = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "json");
        let read = |path: PathBuf| {
            let value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (value["id"].as_str().unwrap().to_owned(), value)
        };
        let folder = self.path(output).join("results");
        if folder.exists() {
            std::fs::read_dir(folder).unwrap().map(path).filter(is_whole).map(read).collect()
        } else {
            BTreeMap::new()
        }
    }

    pub fn lines(&self, object: &str) -> Vec<Value> {
        lines(&self.path(object))
    }

    pub fn account(&self) -> tidegate_simulator::ModelAccount {
        self.simulator.account().model("claude-sonnet-5")
    }

    pub async fn stop(mut self) {
        let log = std::fs::read_to_string(self.path("worker.log")).unwrap_or_default();
        assert!(!log.contains("sk-simulated-secret"), "a key was logged");
        assert!(!log.contains("panicked"), "a worker panicked: {log}");
        for worker in &mut self.workers {
            let _ = worker.start_kill();
            let _ = worker.wait().await;
        }
        self.simulator.shutdown().await;
    }
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
