//! The worker inside this process: a thread of its own, because the SDK's worker stays on one
//! thread.

use std::{sync::Arc, thread};

use anyhow::{Context, anyhow};
use tokio::{sync::oneshot, task::LocalSet};

use crate::{config::Config, telemetry::Telemetry, worker};

/// A worker at work.
#[derive(Debug)]
pub struct WorkerThread {
    stop: Option<oneshot::Sender<()>>,
    result: oneshot::Receiver<anyhow::Result<()>>,
}

impl WorkerThread {
    /// Starts one.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(config: Config, telemetry: Arc<Telemetry>) -> anyhow::Result<Self> {
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
    pub async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.result).await {
            Ok(Ok(())) => anyhow!("the worker ended"),
            Ok(Err(error)) => error.context("the worker ended"),
            Err(_) => anyhow!("the worker's thread died"),
        }
    }

    /// Stops it: what is in flight is finished or handed back.
    ///
    /// # Errors
    /// The worker had failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
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
    LocalSet::new().block_on(&runtime, async {
        let shutdown = async {
            let _ = stopped.await;
        };
        worker::run(config, telemetry, shutdown).await
    })
}
