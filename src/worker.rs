//! One worker process, until told to stop: batches on one task queue, and each lane's documents on
//! one of its own.
//!
//! * [`slots`]: the pool of slots that the lanes share
//! * `supplier`: how Temporal's SDK takes slots from it
//! * [`settings`]: what operators have set, beside Redis
//! * `batches`: how many there are
//! * [`admissible`]: how much work more workers could take, for whoever starts them

use std::{
    future::Future,
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
    DocumentActivities, Services, checkpoints::Checkpoints, output::spool::Spool, services::guard,
};
use tidegate_calls::{budget::Budgets, waiting::WaitingRoom, worker_status::WorkerFacts};
use tidegate_documents::Reader;
use tidegate_providers::Providers;
use tidegate_types::{Lane, seconds_since_1970};
use tidegate_workflows::{
    ProcessCall, ProcessDocuments, ProcessGroup, ProcessParts, ProcessShard, ProcessWebhook, policy,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::{slots::Pool, supplier::LaneSlots};
use crate::{
    config::{Config, Version, Versioning},
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

/// After a worker is killed, its workflows' next task waits this long on its own queue before
/// another worker gets it. The SDK's 10 s would be the longest part of a failover.
const STICKY: Duration = Duration::from_secs(2);

/// Beats reach the server at most this often; cancellation comes back with them. Less than the
/// activities' own beat: what they tell between two must not wait for the next.
const BEAT: Duration = Duration::from_secs(1);

/// Settlements of answered calls that are under way when the worker stops have this long.
const SETTLE: Duration = Duration::from_secs(5);

/// Workflow tasks are short: they only decide.
const WORKFLOW_SLOTS: usize = 50;

/// The command with which this program reads one document: see `tidegate_documents::reader`.
pub const READ_DOCUMENT: &str = "read-document";

/// Plans, seals and finishes, which stream from and to the object store.
const BATCH_SLOTS: usize = 20;

/// Documents that are submitted to a provider's batch API, each step a batch that lies in memory.
const SUBMISSION_SLOTS: usize = 2;

/// Works until `shutdown` resolves. Then nothing new is begun, provider calls under way are waited
/// for up to [`Config::shutdown_grace`], and all else is handed back.
///
/// # Errors
/// When the configuration cannot be used or Temporal cannot be reached.
pub async fn run(
    config: &Config,
    telemetry: &Telemetry,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    keep_private(config);
    let process = Process::new(config)?;
    run_process(config, telemetry, process, shutdown).await
}

/// From now on, what this process writes is for its own user alone, unless the configuration leaves that
/// to the umask that it was started with. A process that is another program's has its own.
fn keep_private(config: &Config) {
    #[cfg(unix)]
    if config.storage.private_files {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }
}

/// The same of a process that is made already.
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
    let (quota, call_stats) =
        (process.services.guard.quota.clone(), Arc::clone(&process.services.guard.call_stats));
    let (services, stopping) =
        (Arc::clone(&process.services), process.services.guard.stopping.clone());
    let pool = Arc::clone(&process.pool);
    let identity = identity();
    let mut worker = boxed_worker(config, telemetry, &identity, process).await?;
    let stop = worker.stop.take();
    let (grace, state) = (config.shutdown_grace(), config.state()?);

    let ended = CancellationToken::new();
    let outdated = tokio::sync::Notify::new();
    let alive = async {
        quota.keep_alive(&identity, ended.cancelled()).await.inspect_err(|error| {
            error!(%error, "this worker stops");
            outdated.notify_one();
        })
    };
    // What it works for, in the registry of workers.
    let (temporal, queue) = (worker.temporal.clone(), worker.temporal.queue());
    let place = (identity.as_str(), queue.as_str());
    let keys = services.guard.gates.keys.keep(
        (&services.providers, &quota, &services.guard.gates.health),
        place,
        about(config),
        ended.cancelled(),
    );
    let watch = async {
        tokio::select! {
            () = shutdown => {}
            () = outdated.notified() => {}
        }
        info!(
            "stopping: provider calls under way are waited for up to {grace:?}, all else is handed back; a second signal ends this at once"
        );
        telemetry.set_ready(false);
        // First no new work, so that what is handed back goes to another worker.
        if let Some(stop) = stop {
            stop();
        }
        stopping.cancel();
        // Never resolves: the worker's own end ends the select.
        std::future::pending::<()>().await;
    };
    let spool = async {
        services.unwritten.drain(|uri| services.place(uri)).await;
        // Without a spool there is nothing to do.
        std::future::pending::<()>().await;
    };
    let look = async {
        reachable::look(config).await;
        std::future::pending::<()>().await;
    };
    let work = async {
        let result = tokio::select! {
            result = &mut worker.run => result,
            () = watch => Ok(()),
            () = spool => Ok(()),
            () = look => Ok(()),
            () = quota.keep_holds() => Ok(()),
            () = admissible::keep(&pool, &quota, &call_stats, config.worker.max_concurrent_documents) => Ok(()),
        };
        ended.cancel();
        result
    };
    if let Err(error) = quota.said().await {
        warn!(%error, "until Redis answers, documents wait: nobody knows how large this worker's share of the limits is");
    }
    info!(task_queue = %config.temporal.task_queue, %identity, slots = config.worker.max_concurrent_documents, "working");
    telemetry.set_ready(true);
    let money = services.budgets.keep(ended.cancelled());
    let settings = settings::keep(&quota, state.as_ref(), ended.cancelled());
    let batches = async {
        // Counted for the page alone.
        if telemetry.bound().is_some() {
            batches::keep(&temporal, &quota, telemetry, ended.cancelled()).await;
        }
    };
    let (result, alive, (), (), (), ()) = tokio::join!(work, alive, keys, money, settings, batches);
    services.guard.settling.close();
    // Redis may be away: what was reserved then stays charged until it passes.
    let _ = tokio::time::timeout(SETTLE, services.guard.settling.wait()).await;
    info!("stopped");
    result?;
    Ok(alive?)
}

/// Does `work` beside a worker of this process, which stops after it.
///
/// # Errors
/// Those of the work, or of a worker that ends before it.
pub async fn beside<T>(
    config: &Config,
    telemetry: &Telemetry,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
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
    let providers =
        Providers::new(config.provider_settings()?).context("setting up the providers")?;
    services_with(config, providers)
}

/// All but the providers, which want keys: enough to look at documents and to reckon.
///
/// # Errors
/// When the configuration cannot be used.
pub fn services_without_providers(config: &Config) -> Result<Services> {
    services_with(config, Providers::without_clients(config.dialects()))
}

/// The same with these providers, among which may be a program's own. What a model's calls count
/// is what its provider says.
///
/// # Errors
/// When the configuration cannot be used.
pub fn services_with(config: &Config, providers: Providers) -> Result<Services> {
    let providers = providers.with_defaults(config.model_defaults());
    let (quota, prices) = (config.quota_for(&providers)?, config.prices()?);
    let budgets = Budgets::new(quota.budgets(), config.daily_budgets()?, prices.clone())
        .with_longest_call(config.longest_call());
    let unwritten = Arc::default();
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
        guard: guard(quota, config.backoff(), &unwritten),
        unwritten,
        cuts: Arc::default(),
        archives: Default::default(),
        memory: tidegate_activities::memory::Memory::new(memory::of_documents(config)),
        shards: tidegate_activities::output::job::Shards::default(),
        slots: config.worker.max_concurrent_documents,
    })
}

/// Reads documents in processes of this very program, so that a hostile file harms none but itself.
pub(crate) fn reader(config: &Config) -> Result<Reader> {
    let program =
        std::env::current_exe().context("finding this program, to read documents with it")?;
    let documents = &config.documents;
    Ok(Reader::isolated(program, [READ_DOCUMENT.to_owned()], documents.limits())
        .with_commands(documents.commands())
        .at_once(memory::readers(config)))
}

/// What the workers of this process share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) services: Arc<Services>,
    lanes: Vec<Lane>,
    pool: Arc<Pool>,
    /// Each lane's polls that may be open at once.
    polls: Vec<usize>,
}

impl Process {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let lanes = config.quota_lanes()?;
        let shares = lanes.iter().map(|(_, share)| *share).collect();
        let pool = Arc::new(Pool::new(shares, config.worker.max_concurrent_documents));
        let polls = (0..lanes.iter().len()).map(|lane| pool.polls(lane)).collect();
        let mut services = services(config)?;
        if let Some(folder) = &config.worker.spool {
            let spool = Spool::open(folder)
                .with_context(|| format!("worker.spool: {} cannot be used", folder.display()))?;
            services = services.with_spool(spool);
        }
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

/// The SDK's worker futures, behind a pointer: its code is generated here once, and not in every
/// crate that polls it.
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
    let run = Box::pin(async move {
        // The runtime must outlive the workers.
        let _runtime = runtime;
        let run = async |worker: &mut Worker| {
            worker
                .run()
                .await
                .map_err(|error| anyhow::anyhow!("the Temporal worker ended: {error}"))
        };
        futures::future::try_join_all(workers.iter_mut().map(run)).await.map(drop)
    });
    let stop = Box::new(move || stops.iter().for_each(|stop| stop()));
    Ok(BoxedWorker { run, stop: Some(stop), temporal })
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

/// A worker of the SDK with slots of our own, for which it has a way only through its core.
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

/// What the fleet is told of this worker.
pub(crate) fn about(config: &Config) -> WorkerFacts {
    WorkerFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: seconds_since_1970(SystemTime::now()),
        slots: config.worker.max_concurrent_documents as u64,
        fingerprint: config.fingerprint(),
    }
}

/// Shown in Temporal's UI and counted in the fleet: unique to this process.
pub(crate) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "worker".to_owned(), |name| name.trim().to_owned());
    format!("tidegate-{host}-{}-{:04x}", std::process::id(), rand::random::<u16>())
}
