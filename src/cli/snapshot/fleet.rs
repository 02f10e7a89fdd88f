//! The whole snapshot, and its cache, which is refreshed at most every two seconds for any number
//! of readers.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures::{StreamExt, stream};
use serde::Serialize;
use tidegate_calls::worker_status::worker_statuses;
use tidegate_quota::{Budgets, Quota, budget::Payer};
use tidegate_types::Tenant;
use tokio::sync::Mutex;

use super::{
    batch::{self, BatchView},
    model::{ModelView, Sources},
    verdict,
    worker::WorkerView,
};
use crate::{
    cli::{fleet::Fleet, format},
    config::Config,
    temporal::{Batch, Temporal},
};

/// The minimum age at which the quota is read again; each read is a Redis call for each model.
const EVERY: Duration = Duration::from_secs(2);

/// The minimum age at which batches are queried again; each query is an action, which Temporal Cloud
/// charges for.
const BATCHES_EVERY: Duration = Duration::from_secs(5);

/// The number of batches in a snapshot, newest first.
const BATCHES: usize = 20;

/// Batches that are queried at once.
const AT_ONCE: usize = 4;

/// A snapshot of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(in crate::cli) struct Snapshot {
    /// RFC 3339.
    pub(in crate::cli) at: String,
    /// One sentence about the fleet's state.
    pub(in crate::cli) verdict: String,
    pub(in crate::cli) models: Vec<ModelView>,
    pub(in crate::cli) batches: Vec<BatchView>,
    pub(in crate::cli) workers: Vec<WorkerView>,
    pub(in crate::cli) budgets: Vec<BudgetView>,
    /// The services that could not be read, and the reasons.
    pub(in crate::cli) away: Vec<String>,
}

/// A tenant's budget today.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct BudgetView {
    pub(in crate::cli) tenant: Tenant,
    pub(in crate::cli) budget_usd: f64,
    /// US dollars spent, including reservations of calls under way.
    pub(in crate::cli) spent_usd: f64,
}

/// All tenants with a budget; tenants whose state cannot be read are left out.
async fn budgets_of_today(config: &Config, budgets: &Budgets) -> Vec<BudgetView> {
    let mut seen = Vec::new();
    for (tenant, budget_usd) in config.daily_budgets().unwrap_or_default() {
        if let Ok(spent_usd) = budgets.spent(&Payer::Tenant(tenant.clone())).await {
            seen.push(BudgetView { tenant, budget_usd, spent_usd });
        }
    }
    seen.sort_by(|a, b| a.tenant.as_str().cmp(b.tenant.as_str()));
    seen
}

/// Takes snapshots of a fleet, and shares each with all readers.
pub(in crate::cli) struct SnapshotCache {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) quota: Quota,
    /// Connected for the first snapshot, and again until that succeeds.
    temporal: Mutex<Option<Temporal>>,
    last: Mutex<Option<(Instant, Arc<Snapshot>)>>,
    batches: Mutex<Batches>,
}

#[derive(Debug, Default)]
struct Batches {
    asked: Option<Instant>,
    seen: Vec<BatchView>,
    /// Ended batches do not change.
    ended: HashMap<(String, Option<SystemTime>), BatchView>,
    away: Option<String>,
}

impl SnapshotCache {
    pub(in crate::cli) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            config: config.clone(),
            quota: config.quota()?,
            temporal: Mutex::default(),
            last: Mutex::default(),
            batches: Mutex::default(),
        })
    }

    /// The current snapshot. It names the parts that could not be read, and contains the others.
    pub(in crate::cli) async fn get(&self) -> Arc<Snapshot> {
        // Concurrent readers wait here and get this snapshot.
        let mut last = self.last.lock().await;
        if let Some((at, seen)) = &*last
            && at.elapsed() < EVERY
        {
            return Arc::clone(seen);
        }
        let seen = Arc::new(Box::pin(self.collect()).await);
        *last = Some((Instant::now(), Arc::clone(&seen)));
        seen
    }

    /// Discards the snapshot after a change.
    pub(in crate::cli) async fn forget(&self) {
        *self.last.lock().await = None;
        self.batches.lock().await.asked = None;
    }

    pub(in crate::cli) async fn temporal(&self) -> anyhow::Result<Temporal> {
        let mut temporal = self.temporal.lock().await;
        if let Some(temporal) = &*temporal {
            return Ok(temporal.clone());
        }
        let opened = Temporal::open(&self.config).await?;
        *temporal = Some(opened.clone());
        Ok(opened)
    }

    async fn collect(&self) -> Snapshot {
        let mut away = Vec::new();
        let quota = &self.quota;
        let cards = worker_statuses(quota).await.unwrap_or_else(|error| {
            away.push(format!("{error}; next: start it, or correct redis.url"));
            Vec::new()
        });
        let held = quota.operator_holds().await.unwrap_or_default();
        let mut models = Vec::new();
        // If Redis is away, that is reported already, and each further call would wait for its
        // time-out.
        let is_there = away.is_empty();
        for model in quota.models().filter(|_| is_there) {
            match quota.inspect(&model.id).await {
                Ok(seen) => {
                    let mut seen =
                        ModelView::new(model, &seen, Sources { cards: &cards, held: &held });
                    seen.history = quota.history(&model.id).await.ok();
                    models.push(seen);
                }
                Err(error) => away.push(format!("{} cannot be seen: {error}", model.id)),
            }
        }
        let budgets = budgets_of_today(&self.config, &quota.budgets()).await;
        let (batches, of_batches) = Box::pin(self.batches()).await;
        away.extend(of_batches);
        let workers = WorkerView::all(&cards);
        // Without a server, the verdict says so.
        let ready = match &*self.temporal.lock().await {
            Some(temporal) => count_ready(&workers, &batches, temporal.task_queue(), |queue| {
                temporal.queue_named(queue)
            }),
            None => 0,
        };
        let verdict = verdict::summarize(&models, &batches, ready, &away);
        let at = format::rfc3339(SystemTime::now());
        Snapshot { at, verdict, models, batches, workers, budgets, away }
    }

    async fn batches(&self) -> (Vec<BatchView>, Option<String>) {
        let mut batches = self.batches.lock().await;
        if batches.asked.is_none_or(|asked| asked.elapsed() >= BATCHES_EVERY) {
            match Box::pin(self.ask(&batches.ended)).await {
                Ok(seen) => {
                    let ended = seen.iter().filter(|seen| !seen.batch.is_running());
                    batches.ended = ended.map(|seen| (key(&seen.batch), seen.clone())).collect();
                    (batches.seen, batches.away) = (seen, None);
                }
                Err(error) => {
                    (batches.seen, batches.away) = (Vec::new(), Some(format!("{error:#}")))
                }
            }
            batches.asked = Some(Instant::now());
        }
        (batches.seen.clone(), batches.away.clone())
    }

    async fn ask(
        &self,
        ended: &HashMap<(String, Option<SystemTime>), BatchView>,
    ) -> anyhow::Result<Vec<BatchView>> {
        let temporal = &self.temporal().await?;
        let fleet = Fleet { config: &self.config, limiter: &self.quota, temporal };
        let listed = temporal.list(BATCHES).await?;
        let asked = listed.into_iter().map(|batch| async move {
            match ended.get(&key(&batch)) {
                Some(seen) if !batch.is_running() => seen.clone(),
                _ => batch::inspect(fleet, batch).await,
            }
        });
        let mut seen: Vec<BatchView> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        batch::forecast(&mut seen);
        Ok(seen)
    }
}

/// The number of workers on the task queues of the running batches; if none runs, on `own`, this
/// configuration's task queue. A door takes no documents.
fn count_ready(
    workers: &[WorkerView],
    batches: &[BatchView],
    own: &str,
    queue_named: impl Fn(&str) -> String,
) -> usize {
    let running = batches.iter().filter(|seen| seen.batch.is_running());
    let mut queues: HashSet<String> =
        running.map(|seen| queue_named(&seen.batch.task_queue)).collect();
    if queues.is_empty() {
        queues.insert(queue_named(own));
    }
    workers.iter().filter(|worker| queues.contains(&worker.queue)).count()
}

fn key(batch: &Batch) -> (String, Option<SystemTime>) {
    (batch.id.clone(), batch.started)
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use tidegate_calls::worker_status::WorkerStatus;
    use tidegate_quota::{
        Charge, Dimension, Lanes, Limits, ModelQuota, Snapshot as Quota,
        operator_holds::OperatorHolds, snapshot::LaneSnapshot,
    };
    use tidegate_workflows::contract::{Progress, Totals};

    use super::*;
    use crate::{
        cli::{diagnosis::Cause, failed::Failed, snapshot::Known},
        temporal::Status,
    };

    /// A fleet of one worker with a running and an ended batch.
    pub(in crate::cli) fn busy() -> Snapshot {
        let limits =
            Limits::default().with(Dimension::Requests, 5_000).with(Dimension::Combined, 400_000);
        let id = "openai:gpt-4.1-mini".parse().unwrap();
        let lanes = Arc::new(Lanes::single());
        let model = ModelQuota::new(id, limits, Charge::default(), lanes).unwrap();
        let mut quota = Quota { factor: 1.0, latency: Duration::from_secs(3), ..Quota::default() };
        (quota.dimensions.combined.limit, quota.dimensions.combined.used) = (392_000, 380_240);
        (quota.dimensions.requests.limit, quota.dimensions.requests.used) = (4_900, 312);
        quota.in_flight.used = 42;
        quota.lanes = vec![LaneSnapshot {
            share: tidegate_quota::Share::ALL,
            elsewhere: false,
            lane: "batch".to_owned().try_into().unwrap(),
            waiting: 120,
            queue: Duration::from_secs(17),
            in_flight: 42,
            used: Default::default(),
        }];
        let held = OperatorHolds::default();
        let model = ModelView::new(&model, &quota, Sources { cards: &[], held: &held });
        let batch = |id: &str, status, totals, documents| {
            let now = SystemTime::now();
            let started = now - Duration::from_secs(600);
            let eta = (status == Status::Running)
                .then(|| format::rfc3339(now + Duration::from_secs(937)));
            let progress = Progress { documents, totals, eta, ..Progress::default() };
            let closed = (status != Status::Running).then_some(now);
            let batch = Batch {
                id: id.to_owned(),
                run: format!("{id}-1"),
                task_queue: "tidegate".to_owned(),
                status,
                started: Some(started),
                closed,
                cancel_requested: false,
            };
            BatchView::listed(batch, Known::Progress(Box::new(progress)))
        };
        let mut totals =
            Totals { succeeded: 1_247, failed: 3, in_flight: 162, ..Totals::default() };
        totals.spend.cost_usd = 4.25;
        let mut night = batch("contracts-20261120-184530-03f9a", Status::Running, totals, 5_000);
        night.cause = Some(Cause::slows("it waits for quota: tokens: 97.0 % used, 11,760 free"));
        let said = serde_json::json!([{ "message": "the document is too long", "documents": 3 }]);
        night.failed = vec![Failed {
            kind: "TooLarge".to_owned(),
            documents: 3,
            said: serde_json::from_value(said).unwrap(),
            samples: vec!["annex-b.pdf".to_owned()],
        }];
        let totals = Totals { succeeded: 800, ..Totals::default() };
        let done = batch("invoices-20261119-010000-1b2c3", Status::Completed, totals, 800);
        let models = vec![model];
        let batches = vec![night, done];
        Snapshot {
            at: "2026-11-20T18:50:00Z".to_owned(),
            verdict: verdict::summarize(&models, &batches, 1, &[]),
            models,
            batches,
            workers: vec![WorkerView::new("tidegate-a-1", &WorkerStatus::default())],
            budgets: vec![BudgetView {
                tenant: "acme".to_owned().try_into().unwrap(),
                budget_usd: 10.0,
                spent_usd: 7.5,
            }],
            away: Vec::new(),
        }
    }

    #[test]
    fn only_workers_on_the_batches_task_queues_are_ready() {
        let mut seen = busy();
        let ready = |seen: &Snapshot, queues: &[&str]| {
            let worker =
                |queue: &&str| WorkerView { queue: (*queue).to_owned(), ..WorkerView::default() };
            let workers: Vec<WorkerView> = queues.iter().map(worker).collect();
            count_ready(&workers, &seen.batches, "own", |queue| format!("default/{queue}"))
        };
        assert_eq!(ready(&seen, &[crate::serve::QUEUE]), 0, "a door is no worker");
        let others = ["elsewhere/tidegate", "default/own"];
        assert_eq!(ready(&seen, &others), 0);
        assert_eq!(ready(&seen, &[&others[..], &["default/tidegate"; 2]].concat()), 2);
        seen.batches.remove(0);
        assert_eq!(ready(&seen, &others), 1, "where the next batch is started");
    }

    #[test]
    fn its_names_are_those_of_the_other_commands() {
        let value = serde_json::to_value(busy()).unwrap();
        let limit = &value["models"][0]["limits"]["tokens"];
        assert_eq!(
            (&limit["limit"], &limit["effective_limit"], &limit["headroom"]),
            (&400_000.into(), &392_000.into(), &11_760.into())
        );
        assert_eq!(value["models"][0]["lanes"]["batch"]["waiting"], 120);
        assert_eq!(value["batches"][0]["succeeded"], 1_247);
        assert_eq!(value["batches"][0]["failures_by_type"][0]["error_type"], "TooLarge");
        assert_eq!(value["workers"][0]["worker"], "tidegate-a-1");
        assert_eq!(value["budgets"][0]["spent_usd"], 7.5);
    }
}
