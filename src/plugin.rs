//! Runs tidegate beside a program's own worker, as a plug-in of Temporal's SDK: [`Plugin`].
//!
//! ```no_run
//! use temporalio_sdk::WorkerOptions;
//!
//! # async fn worker() -> anyhow::Result<()> {
//! let tidegate = tidegate::Plugin::new(tidegate::config::Config::load(None)?)?;
//! let quota = tidegate.quota("anthropic:claude-sonnet-5")?; // for activities of your own
//! let options = WorkerOptions::new("my-queue").worker_plugin(tidegate).build();
//! # drop((quota, options));
//! # Ok(())
//! # }
//! ```
//!
//! As with [`attach()`], the first line of `main` is [`read_documents_here`](crate::attach::read_documents_here).

use std::sync::Arc;

use futures::{FutureExt as _, future::LocalBoxFuture};
use parking_lot::Mutex;
use temporalio_client::PluginError;
use temporalio_sdk::{
    SimplePlugin, WorkerOptions, WorkerPlugin,
    error::WorkerRunError,
    interceptors::{Next, RunWorkerInput, WorkerInterceptor},
};
use tidegate_activities::own;
use tokio::sync::oneshot;

use crate::{
    attach::{Attached, attach},
    config::Config,
};

/// Adds tidegate's workers to the worker that this plug-in is registered with. They run while that worker
/// runs, in its process, on their own task queues (each lane needs one), and end with it. If traces are
/// on, they include your worker's.
///
/// The interface is experimental in Temporal's SDK; [`attach()`] does not need it.
#[derive(Debug)]
pub struct Plugin {
    beside: Arc<Beside>,
}

impl Plugin {
    /// Makes the workers; they run when yours does.
    ///
    /// # Errors
    /// The configuration cannot be used.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new(config: Config) -> anyhow::Result<Self> {
        let attached = attach(config)?;
        Ok(Self { beside: Arc::new(Beside(Mutex::new(Some(attached)))) })
    }

    /// See [`Attached::quota`].
    ///
    /// # Errors
    /// No limits are configured for the model, or a worker with this plug-in runs already.
    pub fn quota(&self, model: &str) -> anyhow::Result<own::Quota> {
        let attached = self.beside.0.lock();
        let attached = attached.as_ref();
        attached
            .ok_or_else(|| anyhow::anyhow!("ask for a quota before the worker runs"))?
            .quota(model)
    }
}

impl WorkerPlugin for Plugin {
    fn name(&self) -> &str {
        "tidegate"
    }

    fn configure_worker_options(&self, options: &mut WorkerOptions) -> Result<(), PluginError> {
        let beside: Vec<Arc<dyn WorkerInterceptor>> = vec![Arc::<Beside>::clone(&self.beside)];
        SimplePlugin::builder(self.name())
            .worker_interceptors(beside)
            .build()
            .configure_worker_options(options)?;
        #[cfg(feature = "traces")]
        if let Some(traces) = crate::traces::plugin() {
            traces.configure_worker_options(options)?;
        }
        Ok(())
    }
}

/// The workers, until they run. A second worker with this plug-in runs without them.
#[derive(Debug)]
struct Beside(Mutex<Option<Attached>>);

impl WorkerInterceptor for Beside {
    fn run_worker<'a>(
        &'a self,
        input: RunWorkerInput<'a>,
        next: Next<'a, RunWorkerInput<'a>, LocalBoxFuture<'a, Result<(), WorkerRunError>>>,
    ) -> LocalBoxFuture<'a, Result<(), WorkerRunError>> {
        let Some(attached) = self.0.lock().take() else { return next.run(input) };
        let end_theirs = input.worker.shutdown_handle();
        let (end_ours, ended) = oneshot::channel::<()>();
        let ours = async move {
            let ended = attached.run(ended.map(drop)).await;
            // If tidegate's workers cannot work, the worker that needs them stops too.
            end_theirs();
            ended.map_err(|error| WorkerRunError::Fatal {
                message: format!("tidegate's workers ended: {error:#}"),
                source: error.into(),
            })
        };
        let theirs = async move {
            let ended = next.run(input).await;
            drop(end_ours);
            ended
        };
        async move {
            let (theirs, ours) = futures::join!(theirs, ours);
            theirs.and(ours)
        }
        .boxed_local()
    }
}
