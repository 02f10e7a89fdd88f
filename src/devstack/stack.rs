//! The whole stack: Temporal, Redis, the simulated provider and one worker.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use anyhow::{Context, anyhow};
use futures::FutureExt as _;
use tempfile::TempDir;
use tidegate_simulator::Simulator;
use tokio::{sync::oneshot, task::LocalSet};
use url::Url;

use super::{
    redis_server::RedisServer,
    simulation::{self, Simulated},
    temporal_server::{NAMESPACE, TemporalServer},
};
use crate::{
    config::{Config, duration::HumanDuration},
    telemetry::{self, Telemetry},
    worker,
};

/// Work in flight is lost with the stack, so there is little to wait for.
const GRACE: HumanDuration = HumanDuration::seconds(2);

/// The parts to start, and their configuration.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The base configuration. Gate, lanes, tenants and prices stay; without a simulator, providers and
    /// models stay, too.
    pub config: Config,
    /// The models of a simulated provider; empty: use the configured providers.
    pub simulated: Vec<Simulated>,
    /// Further roots for sources and outputs.
    pub roots: Vec<PathBuf>,
}

/// A running stack. Dropping it ends it less gently than [`Stack::stop`].
#[derive(Debug)]
pub struct Stack {
    // In the order in which they must be dropped.
    worker: WorkerThread,
    pub(crate) telemetry: Arc<Telemetry>,
    /// The simulated provider, if there is one.
    pub(crate) simulator: Option<Simulator>,
    pub(crate) temporal: TemporalServer,
    pub(crate) redis: RedisServer,
    /// The configuration that the worker runs with.
    pub(crate) config: Config,
    /// A folder that is removed with the stack.
    pub(crate) folder: TempDir,
}

impl Stack {
    /// Starts all parts and waits until they answer.
    ///
    /// # Errors
    /// A program is missing (the error says how to install it) or does not start.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let Options { mut config, simulated, roots } = options;
        let folder = tempfile::Builder::new()
            .prefix("tidegate-")
            .tempdir()
            .context("no temporary folder can be made")?;
        let (temporal, redis) = tokio::try_join!(TemporalServer::start(), RedisServer::start())?;
        config.temporal.address = Some(format!("http://{}", temporal.address()));
        config.temporal.namespace = Some(NAMESPACE.to_owned());
        config.redis.url = redis.url();
        config.worker.metrics_listen = "127.0.0.1:0".to_owned();
        config.worker.shutdown_grace = Some(GRACE);
        if config.calls.answers.is_none() {
            config.calls.answers = Some(folder_url(folder.path())? + "calls/");
        }
        if config.serve.files.is_none() {
            config.serve.files = Some(folder_url(folder.path())? + "files/");
        }
        for root in roots {
            config.storage.roots.push(folder_url(&root)?);
        }
        let simulator = if simulated.is_empty() {
            None
        } else {
            let key_file = folder.path().join("key");
            std::fs::write(&key_file, "simulated")
                .context("the temporary folder cannot be written")?;
            let started = Simulator::start(simulation::provider(&simulated)).await;
            let simulator = started.context("the simulated provider does not start")?;
            simulation::configure(&mut config, &simulator, &simulated, &key_file);
            Some(simulator)
        };
        let telemetry = Arc::new(telemetry::start(config.worker.metrics_address()).await);
        let worker = WorkerThread::start(config.clone(), Arc::clone(&telemetry))?;
        Ok(Self { worker, telemetry, simulator, temporal, redis, config, folder })
    }

    /// Resolves when a part of the stack ends by itself, with the reason.
    pub async fn broken(&mut self) -> anyhow::Error {
        tokio::select! {
            error = self.worker.ended() => error,
            error = self.temporal.child.ended() => error,
            error = self.redis.child.ended() => error,
        }
    }

    /// Stops all parts: the worker first, which finishes or hands back its work.
    ///
    /// # Errors
    /// The worker had failed. All other parts are stopped nevertheless.
    pub async fn stop(self) -> anyhow::Result<()> {
        let worked = self.worker.stop().await;
        drop(self.telemetry);
        if let Some(simulator) = self.simulator {
            simulator.shutdown().await;
        }
        tokio::join!(self.temporal.child.stop(), self.redis.child.stop());
        worked
    }
}

/// An absolute folder as a URL.
///
/// # Errors
/// The path is not absolute.
pub fn folder_url(folder: &Path) -> anyhow::Result<String> {
    Url::from_directory_path(folder)
        .map(String::from)
        .map_err(|()| anyhow!("{} is no absolute path", folder.display()))
}

/// The worker inside this process, on its own thread, because the SDK's worker cannot move between
/// threads.
#[derive(Debug)]
struct WorkerThread {
    stop: Option<oneshot::Sender<()>>,
    result: oneshot::Receiver<anyhow::Result<()>>,
}

impl WorkerThread {
    /// Starts a worker.
    ///
    /// # Errors
    /// The system provides no thread.
    fn start(config: Config, telemetry: Arc<Telemetry>) -> anyhow::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (report, result) = oneshot::channel();
        let work = move || {
            let _ = report.send(work(&config, &telemetry, stopped));
        };
        thread::Builder::new()
            .name("worker".to_owned())
            .spawn(work)
            .context("no thread for the worker")?;
        Ok(Self { stop: Some(stop), result })
    }

    /// Resolves when the worker ends by itself.
    async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.result).await {
            Ok(Ok(())) => anyhow!("the worker ended"),
            Ok(Err(error)) => error.context("the worker ended"),
            Err(_) => anyhow!("the worker's thread died"),
        }
    }

    /// Stops the worker, which finishes or hands back its work.
    ///
    /// # Errors
    /// The worker had failed.
    async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if self.result.is_terminated() {
            // `ended` has reported its result already.
            return Ok(());
        }
        (&mut self.result).await.unwrap_or_else(|_| Err(anyhow!("the worker's thread died")))
    }
}

fn work(
    config: &Config,
    telemetry: &Telemetry,
    stopped: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for the worker")?;
    let run = Box::pin(worker::run(config, telemetry, stopped.map(drop)));
    LocalSet::new().block_on(&runtime, run)
}
