//! Our workers in anybody's process, beside their own: [`attach`].
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

/// The workers of tidegate, before they run.
#[derive(Debug)]
pub struct Attached {
    config: Config,
    process: Process,
}

/// Makes tidegate's workers: that of batches, that of submissions, and one for each lane, since each
/// polls a task queue of its own. They work while [`Attached::run`] does.
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
    /// The quota of one model for activities of your own, in whatever worker of this process: its
    /// limits, its gate, its keys' health and its tenants' budgets are those of tidegate's documents.
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

    /// The limiter that the workers share, for calls that are no activities.
    pub fn limiter(&self) -> tidegate_quota::Quota {
        self.process.services.guard.quota.clone()
    }

    /// Works until `shutdown` resolves; then provider calls under way are waited for, and all else is
    /// handed back. Not `Send`, as Temporal's workers are not: join it with your own worker's `run`.
    ///
    /// # Errors
    /// Temporal cannot be reached, or a newer program has taken over the quota.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        // Only a second call fails: then the program has chosen.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let telemetry = telemetry::start(self.config.worker.metrics_address()).await;
        Box::pin(worker::run_process(&self.config, &telemetry, self.process, shutdown)).await
    }
}

/// Reads one document and ends, if that is what this process was started for. Documents are read in
/// processes of the same program, so that a hostile one harms none but itself, and so are templates
/// and schemas of the kinds that could: call this first in
/// `main`. Without it, this program would be started as a whole for each document.
pub fn read_documents_here() {
    if std::env::args_os().nth(1).is_some_and(|command| command == worker::READ_DOCUMENT) {
        let is_work = std::env::args_os().nth(2).is_some_and(|it| it == sandbox::ARGUMENT);
        let served = if is_work { sandbox::serve() } else { tidegate_documents::serve() };
        exit(i32::from(served.is_err()));
    }
}
