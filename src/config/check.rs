//! Finds faults that the types cannot exclude: values that are invalid, alone or together.

mod prefixes;

use std::{collections::BTreeMap, net::SocketAddr, ops::RangeInclusive, time::Duration};

use tidegate_providers::Vendor;
use tidegate_quota::{LimitError, ModelQuota, Quota, configured_limits::Algorithm};
use tidegate_types::{ModelId, spend::is_amount};
use tidegate_workflows::policy::{ATTEMPT, LONGEST_CALL};

use super::{
    duration::HumanDuration,
    fault::{Fault, dotted_path},
    mask,
    sections::{Config, quota_lanes},
    serve::{INTERACTIVE, OPEN, folder_of_key},
};

/// The range of heartbeat timeouts. A shorter silence may be a busy worker; an attempt at a document
/// lasts no longer than the maximum.
const HEARTBEATS: RangeInclusive<Duration> = Duration::from_secs(5)..=ATTEMPT;

/// All faults, in the order of the sections.
pub(super) fn find_faults(config: &Config) -> Vec<Fault> {
    let mut found = Faults { config, faults: Vec::new() };
    found.check_temporal();
    found.check_redis();
    found.check_gate();
    found.check_worker();
    found.check_serve();
    found.check_documents();
    found.check_storage();
    found.check_calls();
    found.check_providers();
    found.check_models();
    found.check_quotas();
    found.check_lanes();
    found.check_tenants_and_routes();
    found.check_webhooks();
    found.faults
}

struct Faults<'a> {
    config: &'a Config,
    faults: Vec<Fault>,
}

impl Faults<'_> {
    fn add<T: AsRef<str>>(&mut self, path: &[T], what: impl Into<String>) {
        let source = self.config.sources.source_of_fault(path);
        self.faults.push(Fault { source, key: dotted_path(path), what: what.into() });
    }

    fn check_temporal(&mut self) {
        let temporal = &self.config.temporal;
        if temporal.task_queue.trim().is_empty() {
            self.add(&["temporal", "task-queue"], "is empty; write a name, such as \"tidegate\"");
        }
        if temporal.namespace.as_ref().is_some_and(|name| name.trim().is_empty()) {
            self.add(&["temporal", "namespace"], "is empty; write a name, or leave it out");
        }
        let Some(address) = &self.config.temporal.address else { return };
        let whole =
            if address.contains("://") { address.clone() } else { format!("http://{address}") };
        if whole.parse::<url::Url>().is_err() {
            let what =
                format!("is \"{}\"; write host:port, such as 127.0.0.1:7233", mask::url(address));
            return self.add(&["temporal", "address"], what);
        }
        let scheme = address.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| !["http", "https"].contains(&scheme)) {
            let what = format!(
                "is \"{}\"; write host:port, http://host:port or, over TLS, https://host:port",
                mask::url(address)
            );
            self.add(&["temporal", "address"], what);
        }
    }

    fn check_redis(&mut self) {
        let redis = &self.config.redis;
        let scheme = redis.url.split_once("://").map_or("", |(scheme, _)| scheme);
        let known = [
            "redis",
            "rediss",
            "unix",
            "redis+unix",
            "redis+cluster",
            "rediss+cluster",
            "redis+sentinel",
            "rediss+sentinel",
        ];
        if !known.contains(&scheme) {
            let url = mask::url(&redis.url);
            self.add(
                &["redis", "url"],
                format!("is \"{url}\"; write redis://host:6379, rediss://…, redis+cluster://… or redis+sentinel://…"),
            );
        } else if let Err(why) = Quota::check_url(&redis.url) {
            let url = mask::url(&redis.url);
            let what = format!(
                "is \"{url}\", which cannot be used ({why}); write {scheme}:// and a host with a port of at most 65535, such as redis://host:6379"
            );
            self.add(&["redis", "url"], what);
        }
        if tidegate_quota::key::check_prefix(&redis.key_prefix).is_err() {
            let what = format!(
                "is \"{}\"; write 1 to 64 letters, digits, '-', '_', '.' or ':'",
                redis.key_prefix
            );
            self.add(&["redis", "key-prefix"], what);
        }
    }

    fn check_gate(&mut self) {
        let gate = &self.config.gate;
        for (key, span) in [
            ("base-backoff", gate.base_backoff),
            ("max-backoff", gate.max_backoff),
            ("max-quota-wait", gate.max_quota_wait),
            ("pause-ttl", gate.pause_ttl),
        ] {
            if span.is_zero() {
                self.add(&["gate", key], "is 0; write a length of time above 0");
            }
        }
        if gate.max_backoff < gate.base_backoff {
            let what = format!(
                "is {}, less than base-backoff ({}); raise it or lower base-backoff",
                gate.max_backoff, gate.base_backoff
            );
            self.add(&["gate", "max-backoff"], what);
        }
        if gate.jitter > gate.pause_ttl {
            let what = format!(
                "is {}, longer than pause-ttl ({}); documents would wait longer than any pause",
                gate.jitter, gate.pause_ttl
            );
            self.add(&["gate", "jitter"], format!("{what}; lower it"));
        }
    }

    fn check_worker(&mut self) {
        let worker = &self.config.worker;
        if worker.spool.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            self.add(&["worker", "spool"], "is empty; write a folder, or leave it out");
        }
        if worker.max_concurrent_documents == 0 {
            self.add(&["worker", "max-concurrent-documents"], "is 0; write at least 1");
        }
        self.check_listen(&["worker", "metrics-listen"], worker.metrics_address(), 9464);
        self.check_listen(&["dashboard", "listen"], self.config.dashboard.address(), 9465);
        if worker.memory.is_some_and(|memory| memory.0 < 64 << 20) {
            self.add(
                &["worker", "memory"],
                "is less than one document may need; write at least 64MiB",
            );
        }
        let named = [("deployment", &worker.deployment), ("build-id", &worker.build_id)];
        for (key, value) in named {
            // The server's rule for names of deployments and versions.
            let plain = |name: &String| !name.is_empty() && !name.contains(['.', ':']);
            if key == "deployment" && value.as_ref().is_some_and(|name| !plain(name)) {
                self.add(&["worker", key], "must be a name without '.' and ':'");
            }
            if value.is_none() && named.iter().any(|(_, other)| other.is_some()) {
                let what = "is not set; a version has both: deployment (TEMPORAL_DEPLOYMENT_NAME) and build-id (TEMPORAL_WORKER_BUILD_ID)";
                self.add(&["worker", key], what);
            }
        }
    }

    fn check_listen(&mut self, key: &[&str], address: Option<&str>, usual_port: u16) {
        let wrong = address.filter(|address| address.parse::<SocketAddr>().is_err());
        if let Some(address) = wrong {
            let what = format!(
                "is \"{address}\"; write an address and a port such as 127.0.0.1:{usual_port}, or off"
            );
            self.add(key, what);
        }
    }

    fn check_serve(&mut self) {
        let serve = &self.config.serve;
        self.check_listen(&["serve", "listen"], serve.address(), 8080);
        if serve.tls_certificate_file.is_some() != serve.tls_key_file.is_some() {
            let what = "wants both tls-certificate-file and tls-key-file";
            self.add(&["serve", "tls-key-file"], what);
        }
        if serve.files.as_ref().is_some_and(|files| url::Url::parse(files).is_err()) {
            let what = "must be an absolute URI such as file:///data/files or s3://bucket/files";
            self.add(&["serve", "files"], what);
        }
        let mut folders = BTreeMap::from([(folder_of_key(OPEN), OPEN)]);
        for (name, key) in &serve.keys {
            if let Some(other) = folders.insert(folder_of_key(name), name) {
                let whose = match other {
                    OPEN => "callers without a key".to_owned(),
                    other => format!("[serve.keys.{other}]"),
                };
                let what = format!("would share the files of {whose}; choose another name");
                self.add(&["serve", "keys", name], what);
            }
            if key.key_env.is_some() == key.key_file.is_some() {
                self.add(&["serve", "keys", name], "needs exactly one of key-env and key-file");
            }
            let lane = key.lane.as_deref().unwrap_or(INTERACTIVE);
            if !self.config.lanes.contains_key(lane) {
                let what = format!("is \"{lane}\", which is no lane; add a [lanes.{lane}] section");
                self.add(&["serve", "keys", name, "lane"], what);
            }
            for model in &key.models {
                let is_known = self.config.models.contains_key(model)
                    || self.config.routes.contains_key(model)
                    || self.config.model_names().contains(model);
                if !is_known {
                    let what = format!("names \"{model}\", which is no model and no route here");
                    self.add(&["serve", "keys", name, "models"], what);
                }
            }
        }
    }

    fn check_webhooks(&mut self) {
        for (name, webhook) in &self.config.webhooks {
            if !is_web(&webhook.url) {
                let what = "must be an http:// or https:// URL";
                self.add(&["webhooks", name, "url"], what);
            }
            let secret = webhook.secret_env.as_deref();
            if secret.is_some_and(|name| is_odd(name) || name.starts_with("whsec_")) {
                // The value may be a pasted secret: do not show it.
                let what = "is no name of an environment variable; write its name, and the secret into the variable";
                self.add(&["webhooks", name, "secret-env"], what);
            }
            if webhook.secret_env.is_some() == webhook.secret_file.is_some() {
                self.add(&["webhooks", name], "needs exactly one of secret-env and secret-file");
            }
        }
    }

    fn check_documents(&mut self) {
        for (key, what) in self.config.documents.faults() {
            self.add(&["documents", key], what);
        }
    }

    fn check_providers(&mut self) {
        for (name, provider) in &self.config.providers {
            let key = |key: &'static str| ["providers".to_owned(), name.clone(), key.to_owned()];
            match (&provider.kind, provider.vendor(name)) {
                (_, Some(_)) => {}
                (None, None) => {
                    let others = Vendor::OWN.into_iter().filter(|vendor| *vendor != Vendor::OPENAI);
                    let others = super::provider::quote_kinds(others);
                    let what =
                        format!("write \"openai\" for anything compatible with it, or {others}");
                    self.add(&key("kind"), format!("is missing; {what}"));
                }
                (Some(kind), None) => {
                    let kinds = super::provider::quote_kinds(Vendor::known());
                    self.add(&key("kind"), format!("is \"{kind}\"; write {kinds}"));
                }
            }
            match provider.endpoint(name) {
                None => self.add(
                    &key("base-url"),
                    "is missing; write the endpoint, such as \"http://localhost:8000/v1\"",
                ),
                Some(url) if !is_web(&url) => {
                    self.add(
                        &key("base-url"),
                        format!("is \"{}\"; write an http:// or https:// URL", mask::url(&url)),
                    );
                }
                Some(_) => {}
            }
            if provider.api_key_env.as_deref().is_some_and(is_odd) {
                // The value may be a pasted key: do not show it.
                let what = "is no name of an environment variable; write its name, such as \"OPENAI_API_KEY\", and the key into the variable";
                self.add(&key("api-key-env"), what);
            }
            for (row, fault) in provider.error_faults() {
                self.add(&key("errors"), format!("cannot be used: row {row}: {fault}"));
            }
            if let Some(what) = provider.pool_fault() {
                self.add(&key("pool"), what);
            }
            if provider.timeout().is_zero() {
                self.add(&key("request-timeout"), "is 0; write a length of time above 0");
            }
            if *provider.timeout() > LONGEST_CALL {
                let (stated, most) = (provider.timeout(), HumanDuration(LONGEST_CALL));
                let what = format!(
                    "is {stated}; write at most {most}: Temporal ends the attempt soon after, and a longer call would be paid for and lost"
                );
                self.add(&key("request-timeout"), what);
            }
            if let Err((header, why)) = provider.header_map() {
                self.add(&["providers", name, "headers", header], why);
            }
        }
    }

    fn check_models(&mut self) {
        let lanes = std::sync::Arc::new(tidegate_quota::Lanes::single());
        for (name, model) in &self.config.models {
            let section = ["models".to_owned(), name.clone()];
            let id = match name.parse::<ModelId>() {
                Ok(id) => id,
                Err(error) => {
                    self.add(&section, format!("cannot be used: {error}"));
                    continue;
                }
            };
            if !self.config.providers.contains_key(id.provider()) {
                let what = format!(
                    "names the provider {0}, which is not configured; add [providers.{0}] or correct the name",
                    id.provider()
                );
                self.add(&section, what);
            }
            let dialect = self.config.providers.get(id.provider());
            let dialect = dialect.and_then(|provider| provider.dialect(id.provider()));
            if let Some(dialect) = dialect
                && let Err(why) = dialect.check(id.model(), model.effort, &model.parameters, None)
            {
                self.add(&[&section[0], name, "parameters"], format!("cannot be used: {why}"));
            }
            let price = model.price.map(|price| price.entry(name)).unwrap_or_default();
            for (key, rate) in price.iter().filter_map(|(key, rate)| Some((key, rate.as_float()?)))
            {
                if !is_amount(rate) {
                    let key = format!("{key}-usd-per-mtok");
                    self.add(
                        &[&section[0], name, "price", &key],
                        format!("is {rate}; write dollars per million tokens, from 0 to 1e12"),
                    );
                }
            }
            if let Some(weight) =
                model.output_weight.filter(|weight| !(weight.is_finite() && *weight >= 0.0))
            {
                self.add(
                    &[&section[0], name, "output-weight"],
                    format!("is {weight}; write a number from 0 up, such as 5"),
                );
            }
            let (_, stating) = self.config.limits_of(name, model);
            if let Err(error) = ModelQuota::new(
                id,
                stating.limits(Algorithm::Unknown),
                tidegate_quota::Charge::default(),
                std::sync::Arc::clone(&lanes),
            ) {
                self.add(&section, format!("cannot be used: {error}"));
            }
        }
    }

    fn check_quotas(&mut self) {
        for (name, what) in self.config.group_faults() {
            self.add(&["quotas", name], what);
        }
    }

    fn check_lanes(&mut self) {
        for name in self.config.lanes.keys() {
            if let Err(error) = tidegate_types::Lane::new(name.clone()) {
                self.add(&["lanes", name], format!("cannot be used: {error}"));
            }
        }
        for (name, lane) in &self.config.lanes {
            if let Some(timeout) = lane.heartbeat_timeout
                && (!HEARTBEATS.contains(&*timeout) || timeout.subsec_nanos() != 0)
            {
                let what = format!("is {timeout}; write whole seconds, from 5s to 30m",);
                self.add(&["lanes", name, "heartbeat-timeout"], what);
            }
        }
        match quota_lanes(&self.config.lanes) {
            Ok(_) => {}
            Err(LimitError::Share { lane, what, value }) => {
                self.add(
                    &["lanes", lane.as_str(), what],
                    format!("is {value}; write a number from 0 to 1"),
                );
            }
            Err(LimitError::Ceiling { lane, share, burst }) => {
                let what = format!("is {burst}; write more than 0 and at least its share, {share}");
                self.add(&["lanes", lane.as_str(), "burst"], what);
            }
            Err(error) => {
                self.add(&["lanes"], format!("cannot be used: {error}; lower some of them"))
            }
        }
    }

    fn check_tenants_and_routes(&mut self) {
        for (name, tenant) in &self.config.tenants {
            if let Err(error) = tidegate_types::Tenant::new(name.clone()) {
                self.add(&["tenants", name], format!("cannot be used: {error}"));
            }
            if let Some(budget) = tenant.daily_budget_usd.filter(|budget| !is_amount(*budget)) {
                self.add(
                    &["tenants", name, "daily-budget-usd"],
                    format!("is {budget}; write dollars, from 0 to 1e12"),
                );
            }
        }
        for (name, route) in &self.config.routes {
            let path = ["routes", name, "models"];
            if route.models.is_empty() {
                self.add(&path, "is empty; write at least one provider:model");
            }
            if route.after_refusals == 0 {
                self.add(&["routes", name, "after-refusals"], "is 0; write at least 1");
            }
            self.check_written(&["routes", name, "compared"], route.compared.as_ref());
            for model in route.equivalent.iter().filter(|model| !route.models.contains(*model)) {
                let what = format!(
                    "names {model}, which is not among the route's models; add it there or take it out"
                );
                self.add(&["routes", name, "equivalent"], what);
            }
            for model in
                route.models.iter().filter(|model| !self.config.models.contains_key(*model))
            {
                self.add(&path, format!("names {model}, which has no limits; add a [models.\"{model}\"] section or take it out"));
            }
        }
    }
}

/// Whether this is an `http://` or `https://` URL.
fn is_web(url: &str) -> bool {
    url.parse::<url::Url>().is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether this is no usual name of an environment variable.
fn is_odd(variable: &str) -> bool {
    !variable.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}
