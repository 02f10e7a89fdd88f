//! Converts the configuration into the other crates' types.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use tidegate_activities::{
    failure::Backoff,
    host_rates::HostRates,
    output::answers::Answers,
    services::Calls,
    storage::{Location, Storage},
    webhooks::Webhooks,
};
use tidegate_calls::route::{Route, Routes};
use tidegate_providers::{Defaults, Dialect, Prices, Providers, Settings, Vendor};
use tidegate_quota::{ModelQuota, Options, Quota, configured_limits::Algorithm};
use tidegate_types::{Charge, ModelId, Tenant};

use super::{
    fault::{ConfigError, dotted_path},
    host::Host,
    mask,
    model::Model,
    provider::{self, Key, Provider},
    sections::{self, Config},
    version::Version,
    webhook::Webhook,
};

/// Says that no model is configured, and what to do.
pub(crate) const NO_MODEL: &str =
    "no model is configured; add a [models.\"provider:model\"] section with its limits";

impl Config {
    /// Every configured model with its limits and lanes. Its charging rules are those of the provider
    /// that serves it, else those of the vendor that its section names.
    ///
    /// # Errors
    /// Names the model or lane that cannot be used; never after [`Config::load`] has accepted the
    /// configuration.
    pub fn quota_models(&self, providers: &Providers) -> anyhow::Result<Vec<ModelQuota>> {
        let lanes = Arc::new(self.quota_lanes()?);
        let quota = |(name, model): (&String, &Model)| {
            let id: ModelId = name.parse().with_context(|| format!("models.\"{name}\""))?;
            let vendor = || self.vendor_of(&id);
            let charge = match providers.get(&id) {
                Some(provider) => provider.charge(),
                None => vendor().map_or(Charge::CAUTIOUS, Vendor::charge),
            };
            let charge = Charge {
                output_weight: model.output_weight.unwrap_or(charge.output_weight),
                ..charge
            };
            let (stating, limits) = self.limits_of(name, model);
            let limits = limits.limits(self.known_algorithm(stating));
            let quota = ModelQuota::new(id, limits, charge, Arc::clone(&lanes))
                .with_context(|| format!("models.\"{name}\""))?;
            Ok(match self.group_of(name) {
                Some((group, _)) => quota.sharing(group),
                None => quota,
            })
        };
        self.models.iter().map(quota).collect()
    }

    /// The vendor whose API the model's provider speaks.
    pub fn vendor_of(&self, model: &ModelId) -> Option<Vendor> {
        self.providers.get(model.provider())?.vendor(model.provider())
    }

    /// The known counting algorithm of a model's endpoint.
    fn known_algorithm(&self, model: &str) -> Algorithm {
        let name = model.split_once(':').map_or(model, |(provider, _)| provider);
        let known = self
            .providers
            .get(name)
            .and_then(|provider| Some((provider.vendor(name)?, provider.endpoint(name)?)));
        match known {
            Some((vendor, endpoint)) if vendor.has_token_buckets(&endpoint) => {
                Algorithm::TokenBucket
            }
            _ => Algorithm::Unknown,
        }
    }

    /// The limiter's options for waiting.
    pub fn quota_options(&self) -> Options {
        Options {
            key_prefix: self.redis.key_prefix.clone(),
            max_slot_wait: *self.worker.max_slot_wait,
            jitter: *self.gate.jitter,
            pause_ttl: *self.gate.pause_ttl,
            ..Options::default()
        }
    }

    /// The error for a key whose value a command cannot use.
    pub(crate) fn fault(&self, path: &[&str], what: &str) -> ConfigError {
        ConfigError::new(self.sources.source_of_fault(path), dotted_path(path), what)
    }

    /// The configured heartbeat timeouts in seconds, by lane.
    pub fn heartbeats(&self) -> BTreeMap<tidegate_types::Lane, u32> {
        let said = self.lanes.iter().filter_map(|(name, lane)| {
            let seconds = lane.heartbeat_timeout?.as_secs();
            let name = tidegate_types::Lane::new(name.clone()).ok()?;
            Some((name, u32::try_from(seconds).unwrap_or(u32::MAX)))
        });
        said.collect()
    }

    /// The lanes, in the limiter's order.
    ///
    /// # Errors
    /// The shares are invalid.
    pub fn quota_lanes(&self) -> anyhow::Result<tidegate_quota::Lanes> {
        sections::quota_lanes(&self.lanes).context("lanes")
    }

    /// The limiter that this fleet shares, for commands that call no provider. It connects at the
    /// first use.
    ///
    /// # Errors
    /// The Redis URL cannot be used.
    pub fn quota(&self) -> anyhow::Result<Quota> {
        self.quota_for(&Providers::default())
    }

    /// The limiter for calls of these providers, with their charging rules.
    ///
    /// # Errors
    /// The Redis URL cannot be used.
    pub fn quota_for(&self, providers: &Providers) -> anyhow::Result<Quota> {
        Quota::with_redis(&self.redis.url, self.quota_models(providers)?, self.quota_options())
            .with_context(|| format!("redis.url is \"{}\"", mask::url(&self.redis.url)))
    }

    /// The names of the providers that some model needs. The others need no key.
    pub fn used_providers(&self) -> BTreeSet<String> {
        self.models
            .keys()
            .filter_map(|name| Some(name.parse::<ModelId>().ok()?.provider().to_owned()))
            .collect()
    }

    /// The connection settings of each needed provider, keys included.
    ///
    /// # Errors
    /// Names the provider and the remedy: usually, which variable to set.
    pub fn provider_settings(&self) -> anyhow::Result<Vec<(String, Settings)>> {
        let used = self.used_providers();
        let used = self.providers.iter().filter(|(name, _)| used.contains(*name));
        used.map(|(name, provider)| Ok((name.clone(), provider.settings(name)?))).collect()
    }

    /// The known dialect of each provider, for commands that make no call.
    pub fn dialects(&self) -> Vec<(String, Dialect)> {
        let known =
            |(name, provider): (&String, &Provider)| Some((name.clone(), provider.dialect(name)?));
        self.providers.iter().filter_map(known).collect()
    }

    /// The defaults of each model, for what a batch does not state.
    pub fn model_defaults(&self) -> Vec<(ModelId, Defaults)> {
        let stated = |(name, model): (&String, &Model)| {
            let defaults = model.defaults();
            (defaults != Defaults::default()).then_some((name.parse().ok()?, defaults))
        };
        self.models.iter().filter_map(stated).collect()
    }

    /// The prefixes under which batches may read and write.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.storage.roots.iter().chain(&self.serve.files).map(String::as_str)
    }

    /// The configured storage, and how often the fleet of this limiter may ask each host.
    ///
    /// # Errors
    /// Names the root that cannot be opened.
    pub fn storage(&self, quota: &Quota) -> anyhow::Result<Storage> {
        let limit = |(name, host): (&String, &Host)| {
            let limit = host.limit().with_context(|| format!("storage.hosts.\"{name}\""))?;
            anyhow::Ok((name.clone(), limit))
        };
        let hosts = self.storage.hosts.iter().map(limit).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Storage::new(self.roots())
            .context("storage.roots or serve.files")?
            .with_rates(HostRates::new(quota, hosts)))
    }

    /// The store of answers, if there is one.
    ///
    /// # Errors
    /// The prefix cannot be used.
    pub fn answers(&self) -> anyhow::Result<Option<Answers>> {
        let prefix = self.storage.answers.as_deref();
        prefix.map(Answers::open).transpose().context("storage.answers")
    }

    /// The webhooks that batches may name.
    ///
    /// # Errors
    /// Their HTTP client cannot be made. A fault of a single webhook is reported to the batch that names
    /// it.
    pub fn webhooks(&self) -> anyhow::Result<Webhooks> {
        let known = self.webhooks.iter().map(|(name, webhook)| (name.clone(), webhook.open()));
        Webhooks::new(known.collect()).context("webhooks")
    }

    /// One sentence for each webhook whose secret cannot be used, for a worker's log.
    pub fn unusable_webhooks(&self) -> Vec<String> {
        let unusable = |(name, webhook): (&String, &Webhook)| {
            let why = webhook.open().err()?;
            Some(format!("webhooks.{name}: {why}; batches that name it are refused"))
        };
        self.webhooks.iter().filter_map(unusable).collect()
    }

    /// The store of call answers, if it is configured.
    ///
    /// # Errors
    /// Names the prefix that cannot be used.
    pub fn calls(&self) -> anyhow::Result<Option<Calls>> {
        let sections::Calls { answers, inputs, inline } = &self.calls;
        let open = |answers: &String| Calls::open(answers, inputs, **inline);
        answers.as_ref().map(open).transpose().context("calls.answers or calls.inputs")
    }

    /// The prices of calls. A model's own price goes before the configured file, the file before the
    /// built-in prices.
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub fn prices(&self) -> anyhow::Result<Prices> {
        let mut prices = Prices::default();
        if let Some(file) = &self.prices.file {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("prices.file: {} cannot be read", file.display()))?;
            prices = prices.overlaid_with(
                Prices::parse(&text).with_context(|| format!("prices.file: {}", file.display()))?,
            );
        }
        for (model, members) in self.pool_routes() {
            for member in members {
                prices = prices.also_for(model, member);
            }
        }
        let own = self.models.iter().filter_map(|(name, model)| Some(model.price?.entry(name)));
        let own = toml::Table::from_iter([(
            "price".to_owned(),
            toml::Value::from(own.collect::<Vec<_>>()),
        )]);
        Ok(prices.overlaid_with(Prices::parse(&own.to_string()).context("models.….price")?))
    }

    /// The routes, by name.
    ///
    /// # Errors
    /// Names the invalid route; never after [`Config::load`] has accepted the configuration.
    pub fn routes(&self) -> anyhow::Result<Routes> {
        let ids = |models: &[String]| {
            models.iter().map(|model| model.parse()).collect::<Result<Vec<ModelId>, _>>()
        };
        let route = |route: &sections::Route| {
            let (models, equivalent) = (ids(&route.models)?, ids(&route.equivalent)?);
            anyhow::Ok(Route {
                models,
                equivalent,
                after_refusals: route.after_refusals,
                compared: route.compared.clone(),
                unchecked: route.unchecked,
                after_content_refused: route.after_content_refused,
                by_room: false,
            })
        };
        let pools = self.pool_routes().map(|(model, members)| {
            let members = ids(members).with_context(|| format!("models.\"{model}\""))?;
            Ok((model.clone(), Route::pool(members)))
        });
        self.routes
            .iter()
            .map(|(name, given)| {
                Ok((name.clone(), route(given).with_context(|| format!("routes.{name}"))?))
            })
            .chain(pools)
            .collect()
    }

    /// What each tenant with a budget may spend in a day, in US dollars.
    ///
    /// # Errors
    /// Names the invalid tenant; never after [`Config::load`] has accepted the configuration.
    pub fn daily_budgets(&self) -> anyhow::Result<HashMap<Tenant, f64>> {
        let budgets =
            self.tenants.iter().filter_map(|(name, tenant)| Some((name, tenant.daily_budget_usd?)));
        budgets
            .map(|(name, usd)| {
                Ok((Tenant::new(name.clone()).with_context(|| format!("tenants.{name}"))?, usd))
            })
            .collect()
    }

    /// The version that a worker registers as, if it has one.
    pub fn version(&self) -> Option<Version> {
        let (deployment, build_id) = (self.worker.deployment.clone(), self.worker.build_id.clone());
        deployment.zip(build_id).map(|(deployment, build_id)| Version { deployment, build_id })
    }

    /// How long a stopping worker waits for provider calls under way. Default: the longest
    /// `request-timeout` of a provider that serves a model, which is as long as a call can take.
    pub fn shutdown_grace(&self) -> Duration {
        self.worker.shutdown_grace.map_or_else(|| self.longest_call(), |grace| *grace)
    }

    /// The longest `request-timeout` of a provider that serves a model.
    pub fn longest_call(&self) -> Duration {
        let timeout = |model: &String| {
            let name = model.split_once(':').map_or(model.as_str(), |(provider, _)| provider);
            *self
                .providers
                .get(name)
                .map_or_else(|| Provider::default().timeout(), Provider::timeout)
        };
        self.models.keys().map(timeout).max().unwrap_or_default()
    }

    /// The location beside Redis for what must survive a loss of Redis, if configured. Each fleet has a
    /// folder there, named by its key prefix.
    ///
    /// # Errors
    /// The location cannot be used.
    pub fn state(&self) -> anyhow::Result<Option<Location>> {
        let Some(uri) = &self.storage.state else { return Ok(None) };
        let place = Storage::new([uri.as_str()]).and_then(|storage| storage.resolve(uri));
        Ok(Some(place.context("storage.state")?.child(&self.redis.key_prefix)))
    }

    /// How retry delays grow.
    pub fn backoff(&self) -> Backoff {
        Backoff {
            base: *self.gate.base_backoff,
            max: *self.gate.max_backoff,
            max_quota_wait: *self.gate.max_quota_wait,
        }
    }

    /// Settings that are valid and useless: one sentence each, for a worker's log.
    pub fn warnings(&self) -> Vec<String> {
        let no_model = self.models.is_empty().then(|| NO_MODEL.to_owned());
        no_model.into_iter().chain(self.ignored_variables(|name| env::var(name).ok())).collect()
    }

    /// The models whose provider usually needs a key and has none, one sentence for each provider. A
    /// vendor's own host takes no call without a key: there, no worker starts. At any other host, such as
    /// a gateway, a missing key may be right.
    pub fn missing_keys(&self) -> Vec<String> {
        let missing = |name: &String| {
            let provider = self.providers.get(name)?;
            let Key::VendorEnv(variable) = provider.key(name) else { return None };
            if provider::is_set(&variable) || !provider.vendor(name)?.always_has_key() {
                return None;
            }
            let of = |model: &&String| model.split_once(':').is_some_and(|(of, _)| of == name);
            let models: Vec<&str> = self.models.keys().filter(of).map(String::as_str).collect();
            Some(format!(
                "there is no key for {} (provider {name}): {variable} is not set, and calls to {} go without one; export it where the workers run, or name another variable or a file ({}, {})",
                models.join(", "),
                mask::url(&provider.endpoint(name).unwrap_or_default()),
                provider::setting(name, "api-key-env"),
                provider::setting(name, "api-key-file"),
            ))
        };
        self.used_providers().iter().filter_map(missing).collect()
    }

    /// Addresses in the environment that other programs use and this one does not.
    fn ignored_variables(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let base_url = |kind: &str| {
            let provider =
                self.providers.get(kind).filter(|_| self.used_providers().contains(kind));
            provider.and_then(|provider| provider.endpoint(kind))
        };
        let known = [
            ("TEMPORAL_ADDRESS", "temporal.address", self.temporal.address.clone()),
            ("TEMPORAL_NAMESPACE", "temporal.namespace", self.temporal.namespace.clone()),
            ("REDIS_URL", "redis.url", Some(self.redis.url.clone())),
            ("ANTHROPIC_BASE_URL", "providers.anthropic.base-url", base_url("anthropic")),
            ("OPENAI_BASE_URL", "providers.openai.base-url", base_url("openai")),
        ];
        let ignored = known.into_iter().filter_map(|(name, key, in_force)| {
            let (given, in_force) = (variable(name).filter(|it| !it.is_empty())?, in_force?);
            let (shown, in_force) = (mask::url(&given), mask::url(&in_force));
            let bare = |text: &str| text.trim_end_matches('/').rsplit("://").next().map(str::to_owned);
            (bare(&shown) != bare(&in_force)).then(|| {
                format!("{name} is {shown} in the environment and is not used: {key} is {in_force}; unset it, or correct {key}")
            })
        });
        ignored.collect()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_providers::{BoxFuture, Completion, Error, Provider, Request};

    use super::*;

    const OWN: Charge = Charge { cached_input: false, failed_calls: false, ..Charge::CAUTIOUS };

    #[derive(Debug)]
    struct Own;

    impl Provider for Own {
        fn complete<'a>(
            &'a self,
            _request: &'a Request<'a>,
        ) -> BoxFuture<'a, Result<Completion, Error>> {
            Box::pin(std::future::pending())
        }

        fn charge(&self) -> Charge {
            OWN
        }
    }

    #[test]
    fn an_address_in_the_environment_is_not_ignored_in_silence() {
        let mut config = Config::default();
        config.temporal.address = Some("http://here:7233".to_owned());
        let ignored = |address: &'static str| {
            config
                .ignored_variables(|name| (name == "TEMPORAL_ADDRESS").then(|| address.to_owned()))
        };
        let told = ignored("there:7233").remove(0);
        assert!(told.starts_with("TEMPORAL_ADDRESS is there:7233 in the environment"), "{told}");
        assert!(told.contains("temporal.address is http://here:7233"), "{told}");
        assert_eq!(ignored("here:7233").len() + ignored("").len(), 0, "it is the same, or none");
    }

    /// At another host than the vendor's own, a missing key may be right: it is a warning and no fault.
    #[test]
    fn a_key_that_is_not_set_is_named_with_its_models() {
        let missing = |text: &str| {
            let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
            std::fs::write(file.path(), text).unwrap();
            Config::from_layers(Some(file.path()), []).unwrap().missing_keys()
        };
        // No test sets this provider's variable.
        let models = "[models.\"mistral:sonar\"]\nrpm = 1\n[models.\"ollama:m\"]\nrpm = 1\n\
            [models.\"mine:m\"]\nrpm = 1\n";
        let providers = "[providers.mistral]\nbase-url = \"http://gateway/v1\"\n\
            [providers.ollama]\n[providers.mine]\nkind = \"openai\"\nbase-url = \"http://h/v1\"\n";
        let told = missing(&format!("{models}{providers}"));
        let [told] = told.as_slice() else { panic!("{told:?}") };
        for part in ["mistral:sonar", "MISTRAL_API_KEY is not set", "http://gateway/v1"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(told.contains("providers.mistral.api-key-env"), "{told}");
    }

    #[test]
    fn a_call_is_waited_for_as_long_as_it_can_take() {
        let grace = |text: &str| {
            let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
            std::fs::write(file.path(), text).unwrap();
            Config::from_layers(Some(file.path()), []).unwrap().shutdown_grace().as_secs()
        };
        let providers = "[providers.a]\nkind = \"openai\"\nbase-url = \"http://h\"\nrequest-timeout = \"90s\"\n\
            [providers.b]\nkind = \"openai\"\nbase-url = \"http://h\"\nrequest-timeout = \"2m\"\n\
            [providers.idle]\nkind = \"openai\"\nbase-url = \"http://h\"\nrequest-timeout = \"20m\"\n";
        let model = |name: &str| format!("[models.\"{name}\"]\nrpm = 10\n");
        assert_eq!(grace(&format!("{providers}{}", model("a:m"))), 90);
        assert_eq!(grace(&format!("{providers}{}{}", model("a:m"), model("b:m"))), 120);
        assert_eq!(grace(&model("anthropic:m")), 600, "the default of request-timeout");
        let stated = "[worker]\nshutdown-grace = \"5s\"\n";
        assert_eq!(grace(&format!("{stated}{providers}{}", model("b:m"))), 5);
    }

    #[test]
    fn bursts_are_learned_and_buckets_known_at_the_vendors_own_hosts() {
        let limits = |text: &str| {
            let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
            std::fs::write(file.path(), text).unwrap();
            let config = Config::from_layers(Some(file.path()), []).unwrap();
            config.quota_models(&Providers::default()).unwrap().remove(0).limits
        };
        let own = "[models.\"anthropic:m\"]\nitpm = 1_000\n";
        let known = limits(own);
        assert!(known.token_bucket && known.burst.is_none(), "{known:?}");
        assert!(known.margin < 1.0, "what is only taken to be so keeps the margin");
        let proxy = limits(&format!("{own}[providers.anthropic]\nbase-url = \"http://h\""));
        assert!(!proxy.token_bucket && proxy.burst.is_none(), "{proxy:?}");
        let stated = limits(&format!("{own}algorithm = \"unknown\"\nburst = \"5s\""));
        let five = Some(Duration::from_secs(5));
        assert!(!stated.token_bucket && stated.burst == five, "{stated:?}");
    }

    #[test]
    fn models_of_a_quota_share_its_limits_and_its_name() {
        let load = |text: &str| {
            let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
            std::fs::write(file.path(), text).unwrap();
            Config::from_layers(Some(file.path()), [])
        };
        let group = "[quotas.sonnet]\nmodels = [\"anthropic:a\", \"anthropic:b\"]\n";
        let a = "[models.\"anthropic:a\"]\nitpm = 1_000\nrps = 2\n";
        let b = "[models.\"anthropic:b\"]\n";
        let config = load(&format!("{group}{a}{b}")).unwrap();
        let models = config.quota_models(&Providers::default()).unwrap();
        assert_eq!(models[0].limits, models[1].limits);
        assert_eq!(models[1].limits.per_minute.requests, Some(120));
        assert_eq!(
            models[1].limits.burst,
            Some(Duration::from_millis(1)),
            "a limit by the second lets calls go evenly"
        );
        assert!(models.iter().all(|model| model.quota_name() == "sonnet"));
        let faults = |text: &str| load(text).unwrap_err().to_string();
        let differs = faults(&format!("{group}{a}{b}itpm = 2_000\n"));
        assert!(differs.contains("anthropic:b states another than anthropic:a"), "{differs}");
        let unknown = faults(&format!("{group}{a}"));
        assert!(unknown.contains("names anthropic:b, which is not configured"), "{unknown}");
        let twice = faults(&format!("{group}{a}{b}[quotas.x]\nmodels = [\"anthropic:b\"]\n"));
        assert!(twice.contains("is in quotas.\"sonnet\" already"), "{twice}");
    }

    #[tokio::test]
    async fn a_models_charging_rules_are_those_of_the_provider_that_serves_it() {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let text = "[models.\"mine:m\"]\ntpm = 10\n[models.\"mine:weighted\"]\ntpm = 10\noutput-weight = 3\n\
            [models.\"theirs:m\"]\ntpm = 10\n[providers.mine]\nkind = \"openai\"\nbase-url = \"http://h/v1\"\n\
            [providers.theirs]\nkind = \"openai\"\nbase-url = \"http://h/v1\"";
        std::fs::write(file.path(), text).unwrap();
        let config = Config::from_layers(Some(file.path()), []).unwrap();
        let providers =
            Providers::new(config.provider_settings().unwrap()).unwrap().with("mine", Own);
        let charges = |providers: &Providers| {
            let models = config.quota_models(providers).unwrap();
            models.iter().map(|model| model.charge).collect::<Vec<_>>()
        };
        let openai = Charge::CAUTIOUS;
        let weighted = Charge { output_weight: 3.0, ..OWN };
        assert_eq!(charges(&providers), [OWN, weighted, openai]);
        // Without clients, for commands that make no call: the charging rules of the section's vendor.
        let weighted = Charge { output_weight: 3.0, ..openai };
        assert_eq!(charges(&Providers::default()), [openai, weighted, openai]);
        let quota = config.quota_for(&providers).unwrap();
        assert!(quota.models().any(|model| model.charge == OWN));
    }
}
