//! Runs tidegate's workers in another program's process: [`attach`].
//!
//! ```no_run
//! # async fn my_worker(_quota: tidegate_activities::own::Quota) {}
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! tidegate::attach::read_documents_here(); // first of all: this program is started again for each document
//! let config = tidegate::config::Config::load(None)?;
//! let attached = tidegate::attach(config)?;
//! let quota = attached.quota("anthropic:claude-sonnet-5")?; // for activities of your own
//! let (ours, ()) = tokio::join!(attached.run(tidegate::signal::stop()), my_worker(quota));
//! ours
//! # }
//! ```

use std::process::exit;

use tidegate_activities::{document::ask::sandbox, own};
use tidegate_types::ModelId;

use crate::{
    config::Config,
    telemetry,
    worker::{self, Process},
};

/// Tidegate's workers, before they run.
#[derive(Debug)]
pub struct Attached {
    config: Config,
    process: Process,
}

/// Makes tidegate's workers: one for batches, one for submissions, and one for each lane, because each
/// polls its own task queue. They work while [`Attached::run`] does.
///
/// # Errors
/// The configuration cannot be used.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn attach(config: Config) -> anyhow::Result<Attached> {
    let process = Process::new(&config)?;
    Ok(Attached { config, process })
}

impl Attached {
    /// The quota of one model for your own activities, in any worker of this process. It shares limits,
    /// gate, key health and tenants' budgets with tidegate's documents.
    ///
    /// # Errors
    /// No limits are configured for the model.
    pub fn quota(&self, model: &str) -> anyhow::Result<own::Quota> {
        let model: ModelId = model.parse()?;
        let services = &self.process.services;
        anyhow::ensure!(
            services.guard.quota.models().any(|known| known.id == model),
            "no limits are configured for {model}; add a [models.\"{model}\"] section"
        );
        let vendor = self.config.vendor_of(&model);
        let quota = own::Quota::from_services(services, model);
        Ok(match vendor {
            Some(vendor) => quota.vendor(vendor),
            None => quota,
        })
    }

    /// The limiter that the workers share, for calls outside of activities.
    pub fn limiter(&self) -> tidegate_quota::Quota {
        self.process.services.guard.quota.clone()
    }

    /// Works until `shutdown` resolves; then waits for provider calls under way, and hands everything
    /// else back. It is not `Send`, because Temporal's workers are not: join it with your own worker's
    /// `run`.
    ///
    /// # Errors
    /// Temporal cannot be reached, or a newer program has taken over the quota.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        // This fails only if the program has chosen a provider already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let telemetry = telemetry::start(self.config.worker.metrics_address()).await;
        Box::pin(worker::run_process(&self.config, &telemetry, self.process, shutdown)).await
    }
}

/// Reads one document and exits, if this process was started for that; otherwise returns. Documents, and
/// templates and schemas that could do harm, are handled in child processes of this program, so that a
/// hostile one harms only its own process. Call this first in `main`: otherwise each document would start
/// the whole program.
pub fn read_documents_here() {
    if std::env::args_os().nth(1).is_some_and(|command| command == worker::READ_DOCUMENT) {
        let is_work = std::env::args_os().nth(2).is_some_and(|it| it == sandbox::ARGUMENT);
        let served = if is_work { sandbox::serve() } else { tidegate_documents::serve() };
        exit(i32::from(served.is_err()));
    }
}
