//! One worker process: workflows and activities on one task queue, until told to stop.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use temporalio_common::telemetry::TelemetryOptions;
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::{
        RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tidegate_activities::{DocumentActivities, Services, guard::Guard};
use tidegate_providers::Providers;
use tidegate_workflows::{ProcessDocuments, ProcessShard};
use tracing::{info, warn};

use crate::{config::Config, telemetry::Telemetry, temporal};

/// After a worker is killed, its workflows' next task waits this long on its own queue before another worker gets it.
/// The SDK's 10 s would be the longest part of a failover.
const STICKY: Duration = Duration::from_secs(2);

/// Beats reach the server at most this often; cancellation comes back with them.
const BEAT: Duration = Duration::from_secs(4);

/// Workflow tasks are short: they only decide.
const WORKFLOW_SLOTS: usize = 50;

/// Works until `shutdown` resolves, then finishes or hands back what is in flight.
///
/// # Errors
/// When the configuration cannot be used or Temporal cannot be reached.
pub async fn run(config: &Config, telemetry: &Telemetry, shutdown: impl Future<Output = ()>) -> Result<()> {
    for warning in config.warnings() {
        warn!("{warning}");
    }
    let services = services(config)?;
    let quota = services.guard.quota.clone();
    let identity = identity();
    let mut worker = boxed_worker(config, telemetry, &identity, services).await?;
    let stop = worker.stop.take();

    let (stopped, gone) = tokio::sync::oneshot::channel::<()>();
    let alive = quota.keep_alive(&identity, async {
        let _ = gone.await;
    });
    let watch = async {
        shutdown.await;
        info!("stopping: documents in flight get {} to finish, then they are handed back", config.worker.shutdown_grace);
        if let Some(stop) = stop {
            stop();
        }
        // Never resolves: the worker's own end ends the select.
        std::future::pending::<()>().await;
    };
    let work = async {
        let result = tokio::select! {
            result = worker.run => result,
            () = watch => Ok(()),
        };
        drop(stopped);
        result
    };
    info!(task_queue = %config.temporal.task_queue, %identity, slots = config.worker.max_concurrent_documents, "working");
    let (result, ()) = tokio::join!(work, alive);
    info!("stopped");
    result
}

/// Does `work` beside a worker of this process, which stops after it.
///
/// # Errors
/// Those of the work, or of a worker that ends before it.
pub async fn beside<T>(config: &Config, telemetry: &Telemetry, work: impl Future<Output = Result<T>>) -> Result<T> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let mut worker = Box::pin(run(config, telemetry, stopped));
    let result = tokio::select! {
        ended = &mut worker => return Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("it was told to stop")).context("the worker ended before its work")),
        result = work => result,
    };
    drop(stop);
    worker.await?;
    result
}

/// What the activities work with, from the configuration.
///
/// # Errors
/// When the configuration cannot be used.
pub fn services(config: &Config) -> Result<Services> {
    let quota = config.quota()?;
    Ok(Services {
        storage: config.storage()?,
        providers: Providers::new(config.provider_settings()?).context("setting up the providers")?,
        prices: config.prices()?,
        guard: Guard { quota, backoff: config.backoff(), stopped: Arc::default() },
        shards: tidegate_activities::job::Shards::default(),
    })
}

/// The SDK's worker future, behind a pointer: its code is generated here once, and not in every crate that polls it.
struct BoxedWorker {
    run: Pin<Box<dyn Future<Output = Result<()>>>>,
    stop: Option<Box<dyn FnOnce()>>,
}

async fn boxed_worker(config: &Config, telemetry: &Telemetry, identity: &str, services: Services) -> Result<BoxedWorker> {
    let metrics = TelemetryOptions::builder().maybe_metrics(telemetry.meter()).build();
    let options = RuntimeOptions::builder().telemetry_options(metrics).build().map_err(anyhow::Error::msg)?;
    let runtime = Runtime::from_current_tokio(options).context("starting Temporal's runtime")?;
    let temporal = temporal::connect(config, telemetry.client_meter()).await?;
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(WORKFLOW_SLOTS))
        .activity_task_slot_supplier(slots(config.worker.max_concurrent_documents))
        .local_activity_task_slot_supplier(slots(1))
        .nexus_task_slot_supplier(slots(1))
        .build();
    let options = WorkerOptions::new(config.temporal.task_queue.clone())
        .client_identity_override(identity.to_owned())
        .tuner(tuner)
        .max_eager_activity_reservations_per_workflow_task(0)
        .sticky_queue_schedule_to_start_timeout(STICKY)
        .max_heartbeat_throttle_interval(BEAT)
        .default_heartbeat_throttle_interval(BEAT)
        .graceful_shutdown_period(*config.worker.shutdown_grace)
        .register_activities(DocumentActivities::new(services))
        .register_workflow::<ProcessDocuments>()?
        .register_workflow::<ProcessShard>()?
        .build();
    let mut worker = Worker::new(&runtime, temporal.client().clone(), options)
        .map_err(|error| anyhow::anyhow!("starting the Temporal worker: {error}"))?;
    let stop = worker.shutdown_handle();
    let run = Box::pin(async move {
        // The runtime must outlive the worker.
        let _runtime = runtime;
        worker.run().await.map_err(|error| anyhow::anyhow!("the Temporal worker ended: {error}"))
    });
    Ok(BoxedWorker { run, stop: Some(Box::new(stop)) })
}

/// Shown in Temporal's UI and counted in the fleet: unique to this process.
fn identity() -> String {
    let host =
        std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "worker".to_owned(), |name| name.trim().to_owned());
    format!("tidegate-{host}-{}-{:04x}", std::process::id(), rand::random::<u16>())
}
