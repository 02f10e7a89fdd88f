//! The sections of `tidegate.toml`; those of providers and models have files of their own.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_activities::failure::Backoff;
use tidegate_quota::{LimitError, Share};

use super::{
    documents::Documents, duration::HumanDuration, host::Host, listen::unless_off, mask,
    model::Model, pool::Pools, provider::Provider, secret, serve::Serve, size::Size,
    sources::Sources, version::Versioning, webhook::Webhook,
};

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The Temporal server and our namespace.
    pub temporal: Temporal,
    /// The Redis that holds the fleet's quota.
    pub redis: Redis,
    /// Pauses and retry delays.
    pub gate: Gate,
    /// Settings of a worker process.
    pub worker: Worker,
    /// Limits for reading documents, and own reader programs.
    pub documents: Documents,
    /// The page about the fleet, for a browser.
    pub dashboard: Dashboard,
    /// The HTTP door.
    pub serve: Serve,
    /// Locations that may be read and written.
    pub storage: Storage,
    /// The doors of other programs' workflows: `tidegate.call` and `tidegate.embed`.
    pub calls: Calls,
    /// How to reach each provider.
    pub providers: BTreeMap<String, Provider>,
    /// The models and their limits, by `provider:model`.
    pub models: BTreeMap<String, Model>,
    /// Models that share one limit.
    pub quotas: BTreeMap<String, Group>,
    /// Lanes: classes of traffic.
    pub lanes: BTreeMap<String, Lane>,
    /// Tenants, to which batches are charged, and their budgets.
    pub tenants: BTreeMap<String, Tenant>,
    /// Lists of models.
    pub routes: BTreeMap<String, Route>,
    /// Webhooks that are told of a batch's end.
    pub webhooks: BTreeMap<String, Webhook>,
    /// Prices of calls.
    pub prices: Prices,
    /// The source of each key.
    #[serde(skip)]
    pub(crate) sources: Sources,
    /// The pools as written; their members are expanded into providers and models.
    #[serde(skip)]
    pub(super) pools: Pools,
}

impl Default for Config {
    fn default() -> Self {
        let vendors = tidegate_providers::Vendor::OWN;
        Self {
            temporal: Temporal::default(),
            redis: Redis::default(),
            gate: Gate::default(),
            worker: Worker::default(),
            documents: Documents::default(),
            dashboard: Dashboard::default(),
            serve: Serve::default(),
            storage: Storage::default(),
            calls: Calls::default(),
            providers: vendors
                .into_iter()
                .map(|vendor| (vendor.to_string(), Provider::default()))
                .collect(),
            models: BTreeMap::new(),
            quotas: BTreeMap::new(),
            lanes: built_in_lanes(),
            tenants: BTreeMap::new(),
            routes: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            prices: Prices::default(),
            sources: Sources::default(),
            pools: Pools::new(),
        }
    }
}

impl Config {
    /// The file or variable that set a key, or [`super::sources::DEFAULT`].
    pub fn source_of(&self, path: &[&str]) -> &str {
        self.sources.source(path)
    }

    /// Every key that is set, as JSON.
    pub(super) fn set_keys(&self) -> Value {
        let mut keys = serde_json::to_value(self).unwrap_or_default();
        remove_nulls(&mut keys);
        keys
    }

    /// The file that was read, if any.
    pub fn file(&self) -> Option<&PathBuf> {
        self.sources.file.as_ref()
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The Temporal server and our namespace. Absent keys are taken from `TEMPORAL_ADDRESS`,
/// `TEMPORAL_NAMESPACE`, `TEMPORAL_TLS_…`, `TEMPORAL_API_KEY` or `temporal.toml`, as in every Temporal
/// SDK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Temporal {
    /// `host:port`, or a URL.
    pub address: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The task queue that workers poll and batches are started on.
    pub task_queue: String,
}

impl Default for Temporal {
    fn default() -> Self {
        Self { address: None, namespace: None, task_queue: "tidegate".to_owned() }
    }
}

/// The Redis that holds the quota of the whole fleet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Redis {
    /// `redis://`, `rediss://`, `unix://`, `redis+cluster://host:port,…` or
    /// `redis+sentinel://host:port,…/master-name`; the last two also with `rediss`, and with user and
    /// password before the first host.
    pub url: String,
    /// First part of every key.
    pub key_prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self { url: "redis://127.0.0.1:6379".to_owned(), key_prefix: "tidegate".to_owned() }
    }
}

/// Shows the URL without its password.
impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis")
            .field("url", &mask::url(&self.url))
            .field("key_prefix", &self.key_prefix)
            .finish()
    }
}

/// The page about the fleet, for a browser. A worker serves it if `listen` is set, `tidegate dev` and
/// `tidegate demo` always do, and `tidegate dashboard` serves nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dashboard {
    /// An address and a port, such as 127.0.0.1:9465, or off. Reading is open on loopback; elsewhere it
    /// needs the token, as the password that a browser asks for.
    pub listen: String,
    /// The variable that holds the token for actions, of at least 16 characters; without it, the page has
    /// no actions.
    pub token_env: Option<String>,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self { listen: "off".to_owned(), token_env: None }
    }
}

impl Dashboard {
    /// The address of the page, unless it is off.
    pub fn address(&self) -> Option<&str> {
        unless_off(&self.listen)
    }

    /// The token for actions; `None` if none is named.
    ///
    /// # Errors
    /// The token is named, and missing or too short.
    pub fn token(&self) -> anyhow::Result<Option<String>> {
        let read = |name| secret::read_access("dashboard.token", Some(name), None);
        self.token_env.as_ref().map(read).transpose()
    }
}

/// Pauses and retry delays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gate {
    /// Each wake-up after a pause is spread over 0 to this.
    pub jitter: HumanDuration,
    /// Maximum of the first retry delay.
    pub base_backoff: HumanDuration,
    /// Maximum of retry delays after a provider's failure and of waits behind a closed gate.
    pub max_backoff: HumanDuration,
    /// Maximum of a quota wait in Temporal; a document whose turn is later keeps it.
    pub max_quota_wait: HumanDuration,
    /// Maximum of `tidegate pause --for`, and of a pause after a refusal, except of an exhausted account.
    pub pause_ttl: HumanDuration,
}

impl Default for Gate {
    fn default() -> Self {
        let (backoff, options) = (Backoff::default(), tidegate_quota::Options::default());
        Self {
            jitter: HumanDuration(options.jitter),
            base_backoff: HumanDuration(backoff.base),
            max_backoff: HumanDuration(backoff.max),
            max_quota_wait: HumanDuration(backoff.max_quota_wait),
            pause_ttl: HumanDuration(options.pause_ttl),
        }
    }
}

/// Settings of a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Worker {
    /// Documents that are processed at once: the slots that the lanes share, each at least one. A worker
    /// uses fewer if its models' limits cannot use them all.
    pub max_concurrent_documents: usize,
    /// A longer wait for quota goes back to Temporal.
    pub max_slot_wait: HumanDuration,
    /// Memory for documents and for the processes that read them; default: half of what this machine, or
    /// the container, has. Documents that do not fit wait.
    pub memory: Option<Size>,
    /// Time for provider calls under way to end when the worker stops; then they are cut off, and paid
    /// for again elsewhere. Default: the longest `request-timeout` of the providers that serve a model.
    pub shutdown_grace: Option<HumanDuration>,
    /// A local folder for paid answers that cannot be written. The next worker with this folder writes
    /// what is still unwritten when its attempt or the worker ends. Without it, such answers are lost and
    /// paid for again.
    pub spool: Option<PathBuf>,
    /// The deployment of which this worker is a version; default: `TEMPORAL_DEPLOYMENT_NAME`. Unset for a
    /// worker without a version.
    pub deployment: Option<String>,
    /// The build of this version; default: `TEMPORAL_WORKER_BUILD_ID`.
    pub build_id: Option<String>,
    /// Whether running batches move to a version that becomes current.
    pub versioning: Versioning,
    /// The address of `/metrics` for Prometheus: `host:port`; `off` or empty for none.
    pub metrics_listen: String,
}

impl Worker {
    /// The address of the metrics page, unless it is off.
    pub fn metrics_address(&self) -> Option<&str> {
        unless_off(&self.metrics_listen)
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            max_concurrent_documents: 200,
            max_slot_wait: HumanDuration::seconds(10),
            memory: None,
            shutdown_grace: None,
            spool: None,
            deployment: None,
            build_id: None,
            versioning: Versioning::AutoUpgrade,
            metrics_listen: "127.0.0.1:9464".to_owned(),
        }
    }
}

/// Roots of all sources and outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Storage {
    /// `file:///folder`, `s3://bucket/prefix`, `gs://…`, `az://…`.
    pub roots: Vec<String>,
    /// A prefix for a copy, beside Redis, of what budgets have spent and of limits that were set without
    /// an end, so that both survive a Redis that comes back empty. It is a prefix as in `roots` and lies
    /// under none of them, because batches must not write there.
    pub state: Option<String>,
    /// A prefix for answers that batches share: an identical question about identical content is paid
    /// once. It lies under no root, either. Off if unset.
    pub answers: Option<String>,
    /// Whether files that a worker writes on `file://` roots and in its spool are readable for its own
    /// user alone (mode 0600 in folders of mode 0700). With `false`, the worker's umask decides.
    pub private_files: bool,
    /// How often the fleet may ask a host of `https://` roots, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Host>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            roots: vec!["file:///data".to_owned()],
            answers: None,
            state: None,
            private_files: true,
            hosts: BTreeMap::new(),
        }
    }
}

/// The doors of other programs' workflows: `tidegate.call` and `tidegate.embed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calls {
    /// A prefix for their answers, as in `storage.roots`; it need not lie under one of them. An answer is
    /// stored before its attempt returns, so that a repeated attempt pays nothing. Without it, calls are
    /// refused.
    pub answers: Option<String>,
    /// Prefixes of inputs that are given as `{"uri": "…"}`.
    pub inputs: Vec<String>,
    /// A larger answer is not returned but named by its URI under `answers`; at most 1MiB, because
    /// Temporal accepts no payload of more than 2 MiB.
    pub inline: Size,
}

impl Calls {
    /// The largest `inline`.
    pub(super) const MAX_INLINE: Size = Size(1 << 20);
}

impl Default for Calls {
    fn default() -> Self {
        Self { answers: None, inputs: Vec::new(), inline: Size(256 << 10) }
    }
}

/// One lane's share of each model's limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lane {
    /// The guaranteed share, whatever the other lanes do.
    pub share: f64,
    /// The maximum share when the other lanes are idle; at least `share`.
    pub burst: f64,
    /// After this long without a heartbeat, a worker counts as lost and its documents begin elsewhere. A
    /// heartbeat is sent after five elevenths of it, and is a billable action. Default: 55s; 10s in
    /// `interactive`.
    pub heartbeat_timeout: Option<HumanDuration>,
}

impl Default for Lane {
    fn default() -> Self {
        Self { share: 0.0, burst: 1.0, heartbeat_timeout: None }
    }
}

/// `interactive`, `standard` and `batch`.
pub(super) fn built_in_lanes() -> BTreeMap<String, Lane> {
    [("interactive", 0.6), ("standard", 0.3), ("batch", 0.1)]
        .into_iter()
        .map(|(name, share)| (name.to_owned(), Lane { share, ..Lane::default() }))
        .collect()
}

/// All lanes in the limiter's type. Invalid names are left out; validation reports them.
pub(super) fn quota_lanes(
    lanes: &BTreeMap<String, Lane>,
) -> Result<tidegate_quota::Lanes, LimitError> {
    let shares = lanes.iter().filter_map(|(name, lane)| {
        let name = tidegate_types::Lane::new(name.clone()).ok()?;
        Some((name, Share { guaranteed: lane.share, ceiling: lane.burst }))
    });
    tidegate_quota::Lanes::new(shares.collect())
}

/// One tenant, which batches are charged to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tenant {
    /// Maximum spending a day (UTC), in US dollars; unlimited if unset.
    pub daily_budget_usd: Option<f64>,
}

/// Models that are tried in order under sustained limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Route {
    /// `provider:model`, each with a `[models]` section.
    pub models: Vec<String>,
    /// Models that answer as well as the first: a document goes to the one that admits it first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<String>,
    /// Consecutive refusals, by the provider or the quota, after which a document moves to the next
    /// model; at most three where the provider refuses or fails, because each of these costs a call.
    pub after_refusals: u32,
    /// A prefix in the store, under one of the workers' `roots`, that `tidegate compare` wrote to: a
    /// document may move to models that were compared with the first for its question.
    pub compared: Option<String>,
    /// Whether a document may move to models that were never compared with the first; results, report and
    /// `tidegate doctor` state it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// Whether a document whose content a provider refuses moves to the next model; otherwise it fails as
    /// `ContentRefused`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_content_refused: bool,
}

impl Default for Route {
    fn default() -> Self {
        // Quota waits are normal in a full batch: in simulations, a document asks four times as a median.
        Self {
            models: Vec::new(),
            equivalent: Vec::new(),
            after_refusals: 5,
            compared: None,
            unchecked: false,
            after_content_refused: false,
        }
    }
}

/// Prices beyond the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prices {
    /// A file in the form of the built-in tables (`providers/src/<vendor>/prices.toml`); its models
    /// replace and extend the built-in ones.
    pub file: Option<PathBuf>,
}

/// A quota that several models share. What it allows stands in the section of any of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Group {
    /// The models, as `provider:model`.
    pub models: Vec<String>,
}
