//! The sections of `tidegate.toml`; those of providers and models have files of their own.

use std::{collections::BTreeMap, env, path::PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_activities::failure::Backoff;
use tidegate_quota::{LimitError, Share};

use super::{
    documents::Documents, group::Group, host::Host, mask, model::Model, pool::Pools,
    provider::Provider, serve::Serve, size::Size, sources::Sources, span::Span,
    version::Versioning, webhook::Webhook,
};

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Where the Temporal server is.
    pub temporal: Temporal,
    /// Where the fleet shares its quota.
    pub redis: Redis,
    /// Pauses and retry delays.
    pub gate: Gate,
    /// One worker process.
    pub worker: Worker,
    /// How much is read of a document, and by what.
    pub documents: Documents,
    /// What the fleet is doing, in a browser.
    pub dashboard: Dashboard,
    /// The HTTP door.
    pub serve: Serve,
    /// What may be read and written.
    pub storage: Storage,
    /// Calls of workflows that are none of ours: `tidegate.call` and `tidegate.embed`.
    pub calls: Calls,
    /// How each provider is reached.
    pub providers: BTreeMap<String, Provider>,
    /// What the providers allow, by `provider:model`.
    pub models: BTreeMap<String, Model>,
    /// Models that share one limit.
    pub quotas: BTreeMap<String, Group>,
    /// Classes of traffic.
    pub lanes: BTreeMap<String, Lane>,
    /// Budgets of those that batches are charged to.
    pub tenants: BTreeMap<String, Tenant>,
    /// Lists of models.
    pub routes: BTreeMap<String, Route>,
    /// Who is told of a batch's end.
    pub webhooks: BTreeMap<String, Webhook>,
    /// What calls cost.
    pub prices: Prices,
    /// Where each key comes from.
    #[serde(skip)]
    pub(crate) sources: Sources,
    /// What is written of pools, whose members stand among providers and models.
    #[serde(skip)]
    pub(super) pools: Pools,
}

impl Default for Config {
    fn default() -> Self {
        let vendors = tidegate_providers::Vendor::ALL;
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
        self.sources.of(path)
    }

    /// The file that was read, if any.
    pub fn file(&self) -> Option<&PathBuf> {
        self.sources.file.as_ref()
    }
}

/// The Temporal server and our place in it. What is absent comes from `TEMPORAL_ADDRESS`,
/// `TEMPORAL_NAMESPACE`, `TEMPORAL_TLS_…`, `TEMPORAL_API_KEY` or `temporal.toml`, as in every
/// Temporal SDK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Temporal {
    /// `host:port`, or a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// `redis+sentinel://host:port,…/master-name`.
    pub url: String,
    /// First part of every key.
    pub key_prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self { url: "redis://127.0.0.1:6379".to_owned(), key_prefix: "tidegate".to_owned() }
    }
}

/// The URL is shown without its password.
impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis")
            .field("url", &mask::url(&self.url))
            .field("key_prefix", &self.key_prefix)
            .finish()
    }
}

/// The page: what the fleet is doing, in a browser. A worker serves it, `tidegate dev` and `tidegate
/// demo` do anyway, and `tidegate dashboard` does nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dashboard {
    /// An address and a port, such as 127.0.0.1:9465, or off. Reading is open on loopback alone;
    /// elsewhere it wants the token, as the password that a browser asks for.
    pub listen: String,
    /// The variable that holds the token which actions want; without one there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self { listen: "off".to_owned(), token_env: None }
    }
}

impl Dashboard {
    /// Where the page is served, if anywhere.
    pub fn address(&self) -> Option<&str> {
        Some(self.listen.as_str()).filter(|listen| !listen.is_empty() && *listen != "off")
    }

    /// What actions want; `None` where none is named.
    ///
    /// # Errors
    /// It is named and not there.
    pub fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(name) = &self.token_env else { return Ok(None) };
        match env::var(name) {
            Ok(token) if !token.trim().is_empty() => Ok(Some(token.trim().to_owned())),
            _ => anyhow::bail!(
                "dashboard.token-env names {name}, which is not set; set it, or remove the key"
            ),
        }
    }
}

/// Pauses and retry delays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gate {
    /// Each wake-up after a pause is spread over 0 to this.
    pub jitter: Span,
    /// Bound of the first retry delay.
    pub base_backoff: Span,
    /// No retry delay after a provider's failure, and no wait behind a closed gate, is longer.
    pub max_backoff: Span,
    /// No wait for quota that Temporal holds is longer; the turn is kept.
    pub max_quota_wait: Span,
    /// No pause lasts longer, so that one which is forgotten ends.
    pub pause_ttl: Span,
}

impl Default for Gate {
    fn default() -> Self {
        let (backoff, options) = (Backoff::default(), tidegate_quota::Options::default());
        Self {
            jitter: Span(options.jitter),
            base_backoff: Span(backoff.base),
            max_backoff: Span(backoff.max),
            max_quota_wait: Span(backoff.max_quota_wait),
            pause_ttl: Span(options.pause_ttl),
        }
    }
}

/// One worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Worker {
    /// Documents that are worked on at once: the slots that the lanes share, each at least one. A
    /// worker uses fewer when its models' limits cannot use them all.
    pub max_concurrent_documents: usize,
    /// A longer wait for quota goes back to Temporal.
    pub max_slot_wait: Span,
    /// Memory for documents and for the processes that read them; without it half of what this
    /// machine, or the container, has. Documents that do not fit wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Provider calls under way get this long to be answered when the worker is told to stop; then
    /// they are cut off, and paid for again elsewhere. Without it as long as the longest
    /// `request-timeout` of the providers that serve a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace: Option<Span>,
    /// A folder of this machine for answers that are bought and cannot be written: what is still
    /// unwritten when its attempt or the worker ends is written by whichever worker has this folder
    /// next. Without it such answers are lost, and bought again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spool: Option<PathBuf>,
    /// The deployment that this worker is a version of; else `TEMPORAL_DEPLOYMENT_NAME`. Nothing for
    /// a worker without a version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Which version of it; else `TEMPORAL_WORKER_BUILD_ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Whether batches go on with a version that is made current after they began.
    pub versioning: Versioning,
    /// Where Prometheus finds `/metrics`: `host:port`; `off` or nothing for no page.
    pub metrics_listen: String,
}

impl Worker {
    /// Where the metrics page is to be, unless it is off.
    pub fn metrics_address(&self) -> Option<&str> {
        Some(self.metrics_listen.as_str()).filter(|listen| !listen.is_empty() && *listen != "off")
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            max_concurrent_documents: 200,
            max_slot_wait: Span::seconds(10),
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
    /// Where what budgets have spent and the limits that were set are kept beside Redis, so that they
    /// survive one that comes back empty: a prefix as in `roots`, which need not lie under one of
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// A prefix for answers that batches share: the same question about the same content is bought
    /// once. Off without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Whether what a worker writes on `file://` roots and in its spool is for its own user alone: files of mode
    /// 0600 in folders of mode 0700. `false` leaves it to the umask that the worker is started with.
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

/// Calls of workflows that are none of ours: `tidegate.call` and `tidegate.embed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calls {
    /// A prefix for their answers, as in `storage.roots`, which need not lie under one of them: an
    /// answer lies there before its attempt returns, so that the next one buys nothing again. Without
    /// it they are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Prefixes under which an input that is given as `{"uri": "…"}` may lie.
    pub inputs: Vec<String>,
    /// What is larger is not returned, but named by its URI under `answers`; at most 1MiB, because
    /// Temporal holds no payload of more than 2 MiB.
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

/// One lane's part of each model's limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lane {
    /// Guaranteed, whatever the other lanes do.
    pub share: f64,
    /// The most it may borrow when the others are idle.
    pub burst: f64,
    /// After this long without a beat a worker is given up, and its documents begin elsewhere; a beat
    /// is sent after five elevenths of it, and is an action. Without it 55s; 10s in `interactive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Span>,
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

/// All lanes as the limiter wants them; names that cannot be used are left out (validation has
/// named them).
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
    /// US dollars that it may spend in a day (UTC); without it as much as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget_usd: Option<f64>,
}

/// Models that are tried in order under sustained limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Route {
    /// `provider:model`, each with a `[models]` section.
    pub models: Vec<String>,
    /// Those of them that answer as well as the first: a document goes to the one that admits it
    /// soonest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<String>,
    /// Refusals in a row, the provider's or the quota's, after which a document goes on to the next
    /// model; three at most where the provider refuses or fails, since each of these costs a call.
    pub after_refusals: u32,
    /// A prefix in the store, under one of the workers' `roots`, with what `tidegate compare` wrote: a
    /// document goes on to models that were compared with the first for its question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<String>,
    /// Whether a document may go on to models that nobody has compared with the first; results, report
    /// and `tidegate doctor` say so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// Whether a document whose content a provider refuses goes on to the next model; else it fails as
    /// `ContentRefused`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_content_refused: bool,
}

impl Default for Route {
    fn default() -> Self {
        // Waiting for quota is the rule in a full batch: a document asks four times as a median of
        // the simulations.
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
    /// replace and add to the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}
