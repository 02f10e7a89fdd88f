//! One worker process: it processes batches from one task queue, and each lane's documents from
//! another, until it is told to stop.
//!
//! * [`slots`]: the pool of slots that the lanes share
//! * `supplier`: supplies its slots to Temporal's SDK
//! * [`settings`]: keeps a copy of operators' settings outside of Redis
//! * `batches`: counts batches as a metric
//! * [`admissible`]: the amount of work that the limits admit, as a metric for autoscalers

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::{
    telemetry::TelemetryOptions,
    worker::{VersioningBehavior, WorkerDeploymentOptions, WorkerDeploymentVersion},
};
use temporalio_sdk::{Worker, WorkerOptions, runtime::PollerBehavior};
use temporalio_sdk_core::{
    CoreRuntime, FixedSizeSlotSupplier, RuntimeOptions, TunerBuilder, TunerHolder,
};
use tidegate_activities::{
    DocumentActivities, Services,
    checkpoints::Checkpoints,
    output::{pending_writes::PendingWrites, spool::Spool},
    services::guard,
};
use tidegate_calls::{budget::Budgets, waiting::WaitingRoom, worker_status::WorkerFacts};
use tidegate_documents::Reader;
use tidegate_providers::Providers;
use tidegate_types::{Lane, seconds_since_1970};
use tidegate_workflows::{
    ProcessCall, ProcessDocuments, ProcessGroup, ProcessParts, ProcessShard, ProcessWebhook, policy,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::{
    slots::Pool,
    supplier::LaneSlots,
    upkeep::{settle, upkeep},
};
use crate::{
    config::{Config, Version, Versioning, mask},
    metrics,
    telemetry::Telemetry,
    temporal::{self, Temporal},
};

pub mod admissible;
mod batches;
mod memory;
mod reachable;
pub mod settings;
pub mod slots;
mod supplier;
pub(crate) mod upkeep;

/// Time for which the next workflow task of a killed worker waits on that worker's own queue. The
/// SDK's 10 s would be the longest part of a failover.
const STICKY: Duration = Duration::from_secs(2);

/// Minimum interval between heartbeats to the server, which return cancellations. It is shorter
/// than the activities' own interval, so that no heartbeat is delayed to the next.
const BEAT: Duration = Duration::from_secs(1);

/// Slots for workflow tasks, which are short, because workflows only decide.
const WORKFLOW_SLOTS: usize = 50;

/// The command with which this program reads one document: see `tidegate_documents::reader`.
pub const READ_DOCUMENT: &str = "read-document";

/// Slots for plans, seals and finishes, which stream from and to the object store.
const BATCH_SLOTS: usize = 20;

/// Slots for submissions to a provider's batch API: each holds a batch in memory.
const SUBMISSION_SLOTS: usize = 2;

/// Works until `shutdown` resolves. Then it starts nothing new, waits for provider calls under way up to
/// [`Config::shutdown_grace`], and hands everything else back.
///
/// # Errors
/// The configuration cannot be used, or Temporal cannot be reached.
pub async fn run(
    config: &Config,
    telemetry: &Telemetry,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    keep_private(config);
    let process = Process::new(config)?;
    run_process(config, telemetry, process, shutdown).await
}

/// Sets the umask so that only this process's user can read what it writes, unless the configuration
/// leaves that to the umask. Not for workers in another program's process, which has its own umask.
pub(crate) fn keep_private(config: &Config) {
    #[cfg(unix)]
    if config.storage.private_files {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }
}

/// Like [`run`], for a process that exists already.
pub(crate) async fn run_process(
    config: &Config,
    telemetry: &Telemetry,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    for warning in
        config.warnings().iter().chain(&config.missing_keys()).chain(&config.unusable_webhooks())
    {
        warn!("{warning}");
    }
    metrics::build_info(config);
    let (services, pool) = (Arc::clone(&process.services), Arc::clone(&process.pool));
    let (quota, call_stats) = (&services.guard.quota, &services.guard.call_stats);
    let identity = identity();
    let mut worker = boxed_worker(config, telemetry, &identity, process).await?;
    let stop = worker.stop.take();

    let (ended, outdated) = (CancellationToken::new(), Notify::new());
    let (temporal, queue) = (worker.temporal.clone(), worker.temporal.queue());
    let place = (identity.as_str(), queue.as_str());
    let upkeep = upkeep(config, &services, place, about(config), (&ended, &outdated))?;
    let watch = async {
        tokio::select! {
            () = shutdown => {}
            () = outdated.notified() => {}
        }
        let calls = match config.shutdown_grace() {
            grace if grace.is_zero() => String::new(),
            grace => format!("provider calls under way are waited for up to {grace:?}, "),
        };
        info!("stopping: {calls}all else is handed back; a second signal ends this at once");
        telemetry.set_ready(false);
        // First stop polling, so that another worker gets the work that is handed back.
        if let Some(stop) = stop {
            stop();
        }
        services.guard.stopping.cancel();
        // Never resolves: the worker's own end ends the select.
        std::future::pending::<()>().await;
    };
    // Never resolves, because the report does not.
    let background = async {
        tokio::join!(
            services.pending_writes.drain(|uri| services.place(uri)),
            reachable::warn_of_unreachable(config),
            quota.keep_holds(),
            admissible::report(&pool, quota, call_stats, config.worker.max_concurrent_documents),
        );
    };
    let work = async {
        let result = tokio::select! {
            result = &mut worker.run => result,
            () = watch => Ok(()),
            () = background => Ok(()),
        };
        ended.cancel();
        result
    };
    if let Err(error) = quota.worker_statuses().await {
        warn!(%error, "Redis at {} does not answer; documents wait", mask::url(&config.redis.url));
    }
    info!(task_queue = %config.temporal.task_queue, %identity, slots = config.worker.max_concurrent_documents, "working");
    telemetry.set_ready(true);
    let batches = batches::report(&temporal, quota, telemetry, ended.cancelled());
    let (result, kept, ()) = tokio::join!(work, upkeep, batches);
    settle(&services.guard).await;
    info!("stopped");
    result?;
    Ok(kept?)
}

/// The activities' services, from the configuration.
///
/// # Errors
/// The configuration cannot be used.
pub fn services(config: &Config) -> Result<Services> {
    services_with(config, providers(config)?, None)
}

fn providers(config: &Config) -> Result<Providers> {
    Providers::new(config.provider_settings()?).context("setting up the providers")
}

/// Services without the providers' clients, which need keys: enough to read documents and to estimate.
///
/// # Errors
/// The configuration cannot be used.
pub fn services_without_providers(config: &Config) -> Result<Services> {
    services_with(config, Providers::without_clients(config.dialects()), None)
}

/// Services with these providers, which may include a program's own, and the folder for answers that
/// cannot be written. Each provider decides what its models' calls are charged.
///
/// # Errors
/// The configuration cannot be used.
pub fn services_with(
    config: &Config,
    providers: Providers,
    spool: Option<Spool>,
) -> Result<Services> {
    let providers = providers.with_defaults(config.model_defaults());
    let (quota, prices) = (config.quota_for(&providers)?, config.prices()?);
    let budgets = Budgets::new(quota.budgets(), config.daily_budgets()?, prices.clone())
        .with_longest_call(config.longest_call());
    let pending_writes = Arc::new(spool.map(PendingWrites::with_spool).unwrap_or_default());
    Ok(Services {
        storage: config.storage(&quota)?,
        answers: config.answers()?,
        calls: config.calls()?,
        reader: reader(config)?,
        providers,
        budgets: Arc::new(match config.state()? {
            Some(state) => {
                budgets.with_checkpoints(|ledger| Arc::new(Checkpoints::new(state, ledger)))
            }
            None => budgets,
        }),
        prices,
        webhooks: config.webhooks()?,
        routes: config.routes()?,
        heartbeats: config.heartbeats(),
        queues: Default::default(),
        warmth: Arc::default(),
        guard: guard(quota, config.backoff(), &pending_writes),
        pending_writes,
        truncation_stats: Arc::default(),
        archives: Default::default(),
        memory: tidegate_activities::memory::Memory::new(memory::for_documents(config)),
        shards: tidegate_activities::output::job::Shards::default(),
        slots: config.worker.max_concurrent_documents,
    })
}

/// A reader that runs this program for each document, so that a hostile file harms only its own process.
pub(crate) fn reader(config: &Config) -> Result<Reader> {
    let program =
        std::env::current_exe().context("finding this program, to read documents with it")?;
    let documents = &config.documents;
    Ok(Reader::isolated(program, [READ_DOCUMENT.to_owned()], documents.limits())
        .with_commands(documents.commands())
        .with_max_processes(memory::readers(config)))
}

/// State that the workers of one process share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) services: Arc<Services>,
    lanes: Vec<Lane>,
    pool: Arc<Pool>,
    /// The maximum of open polls, for each lane.
    polls: Vec<usize>,
}

impl Process {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let lanes = config.quota_lanes()?;
        let shares = lanes.iter().map(|(_, share)| *share).collect();
        let pool = Arc::new(Pool::new(shares, config.worker.max_concurrent_documents));
        let polls = (0..lanes.iter().len()).map(|lane| pool.polls(lane)).collect();
        let open = |folder: &PathBuf| {
            Spool::open(folder)
                .with_context(|| format!("worker.spool: {} cannot be used", folder.display()))
        };
        let spool = config.worker.spool.as_ref().map(open).transpose()?;
        let mut services = services_with(config, providers(config)?, spool)?;
        services.guard.waiting = Arc::new(WaitingRoom::new({
            let (pool, lanes) = (Arc::clone(&pool), lanes.clone());
            move |lane| lanes.index(lane).map_or(0, |lane| pool.reach(lane))
        }));
        Ok(Self {
            services: Arc::new(services),
            lanes: lanes.iter().map(|(lane, _)| lane.clone()).collect(),
            pool,
            polls,
        })
    }
}

/// The SDK's worker future, boxed so that its code is generated only here and not in every crate that
/// polls it.
struct BoxedWorker {
    run: Pin<Box<dyn Future<Output = Result<()>>>>,
    stop: Option<Box<dyn FnOnce()>>,
    temporal: Temporal,
}

async fn boxed_worker(
    config: &Config,
    telemetry: &Telemetry,
    identity: &str,
    process: Process,
) -> Result<BoxedWorker> {
    let metrics = TelemetryOptions::builder().maybe_metrics(telemetry.meter()).build();
    let options =
        RuntimeOptions::builder().telemetry_options(metrics).build().map_err(anyhow::Error::msg)?;
    let runtime = CoreRuntime::new_assume_tokio(options).context("starting Temporal's runtime")?;
    let temporal = temporal::connect(config, telemetry.client_meter()).await?;
    let version = deployment(config);
    let common = |task_queue: String| {
        let options = WorkerOptions::new(task_queue);
        #[cfg(feature = "traces")]
        let options = match crate::traces::plugin() {
            Some(plugin) => options.worker_plugin(plugin),
            None => options,
        };
        options
            .maybe_deployment_options(version.clone())
            .client_identity_override(identity.to_owned())
            .max_eager_activity_reservations_per_workflow_task(0)
            .sticky_queue_schedule_to_start_timeout(STICKY)
            .max_heartbeat_throttle_interval(BEAT)
            .default_heartbeat_throttle_interval(BEAT)
            .graceful_shutdown_period(config.shutdown_grace())
            .register_activities(DocumentActivities::new(Arc::clone(&process.services)))
    };
    let batches = common(config.temporal.task_queue.clone())
        .register_workflow::<ProcessDocuments>()?
        .register_workflow::<ProcessGroup>()?
        .register_workflow::<ProcessShard>()?
        .register_workflow::<ProcessParts>()?
        .register_workflow::<ProcessCall>()?
        .register_workflow::<ProcessWebhook>()?
        .build();
    let mut tuner = TunerBuilder::default();
    tuner.workflow_slot_supplier(Arc::new(FixedSizeSlotSupplier::new(WORKFLOW_SLOTS)));
    tuner.activity_slot_supplier(Arc::new(FixedSizeSlotSupplier::new(BATCH_SLOTS)));
    let mut workers = vec![sdk_worker(&runtime, temporal.client(), batches, tuner.build())?];
    let submissions = common(policy::submission_queue(&config.temporal.task_queue)).build();
    let mut tuner = TunerBuilder::default();
    tuner.activity_slot_supplier(Arc::new(FixedSizeSlotSupplier::new(SUBMISSION_SLOTS)));
    workers.push(sdk_worker(&runtime, temporal.client(), submissions, tuner.build())?);
    for (number, lane) in process.lanes.iter().enumerate() {
        let queue = policy::lane_queue(&config.temporal.task_queue, lane);
        let polls = PollerBehavior::SimpleMaximum(process.polls[number]);
        let options = common(queue).activity_task_poller_behavior(polls).build();
        let mut tuner = TunerBuilder::default();
        let (pool, quota) = (Arc::clone(&process.pool), process.services.guard.quota.clone());
        tuner.activity_slot_supplier(Arc::new(LaneSlots::new(pool, number, quota, lane.clone())));
        workers.push(sdk_worker(&runtime, temporal.client(), options, tuner.build())?);
    }
    let stops: Vec<_> = workers.iter().map(Worker::shutdown_handle).collect();
    let namespace = temporal.namespace().to_owned();
    let run = Box::pin(async move {
        // The runtime must outlive the workers.
        let _runtime = runtime;
        let run = async |worker: &mut Worker| {
            worker.run().await.map_err(|error| worker_error(&error.to_string(), &namespace))
        };
        futures::future::try_join_all(workers.iter_mut().map(run)).await.map(drop)
    });
    let stop = Box::new(move || stops.iter().for_each(|stop| stop()));
    Ok(BoxedWorker { run, stop: Some(stop), temporal })
}

/// The error of an SDK worker that has ended, with the remedy for a namespace that does not exist.
fn worker_error(words: &str, namespace: &str) -> anyhow::Error {
    let remedy = if words.contains("entity was not found") {
        format!("; {}", temporal::namespace_remedy(namespace))
    } else {
        String::new()
    };
    anyhow::anyhow!("the Temporal worker ended: {words}{remedy}")
}

/// The version that the worker registers as, if it has one.
fn deployment(config: &Config) -> Option<WorkerDeploymentOptions> {
    let Version { deployment: deployment_name, build_id } = config.version()?;
    let behavior = match config.worker.versioning {
        Versioning::AutoUpgrade => VersioningBehavior::AutoUpgrade,
        Versioning::Pinned => VersioningBehavior::Pinned,
    };
    let version = WorkerDeploymentVersion::builder()
        .deployment_name(deployment_name)
        .build_id(build_id)
        .build();
    let options = WorkerDeploymentOptions::new(version).use_worker_versioning(true);
    Some(options.default_versioning_behavior(behavior).build())
}

/// An SDK worker with our own slots, which the SDK accepts only through its core.
fn sdk_worker(
    runtime: &CoreRuntime,
    client: &Client,
    options: WorkerOptions,
    tuner: TunerHolder,
) -> Result<Worker> {
    let mut core = options
        .to_core_options(client.namespace(), client.identity())
        .map_err(anyhow::Error::msg)?;
    core.tuner = Some(Arc::new(tuner));
    let core = temporalio_sdk_core::init_worker(runtime, core, client.connection().clone())
        .context("starting the Temporal worker")?;
    Worker::new_from_core_options(Arc::new(core), client.options().clone(), options)
        .map_err(|error| anyhow::anyhow!("starting the Temporal worker: {error}"))
}

/// This worker's description in the registry of workers.
pub(crate) fn about(config: &Config) -> WorkerFacts {
    WorkerFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: seconds_since_1970(SystemTime::now()),
        slots: config.worker.max_concurrent_documents as u64,
    }
}

/// The worker's name in Temporal's UI and in the fleet, unique to this process.
pub(crate) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "worker".to_owned(), |name| name.trim().to_owned());
    format!("tidegate-{host}-{}-{:04x}", std::process::id(), rand::random::<u16>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_namespace_is_told_with_the_remedy() {
        let words = "worker validation failed: code: 'Some requested entity was not found'";
        let error = worker_error(words, "n").to_string();
        assert!(error.contains("namespace create --namespace n"), "{error}");
        assert_eq!(worker_error("x", "n").to_string(), "the Temporal worker ended: x");
    }
}
