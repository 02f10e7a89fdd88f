//! Calls that the package makes itself, as a worker makes them: by tidegate's own clients, which put
//! at most one request on the wire for each admission.

use std::sync::Arc;

use pyo3::{IntoPyObjectExt as _, prelude::*};
use tidegate_calls::{
    Attempt, Guard,
    attempt::Patience,
    budget::Budgets,
    caller::{self, Question as _, Terms},
    dialect::Translated,
    failure::{Failure, MAX_FAULTS, Shortfall},
    route::{Queues, Route},
    warm_cache::Warmth,
};
use tidegate_providers::{
    Completion, Fields, Finish, Operation, Providers, RequestFacts, Secret, Settings,
};
use tidegate_types::{FailureType, Lane, ModelId, Tenant, WaitsFor};
use tokio::sync::watch;

use crate::{
    listener::vendor,
    pending::{Made, Pending},
    permit,
    quota::Quota,
    runtime::{Own, Process, bad},
};

/// One model, asked behind a quota.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Caller(Own<Arc<Asking>>);

struct Asking {
    guard: Guard,
    budgets: Arc<Budgets>,
    providers: Providers,
    queues: Queues,
    warmth: Arc<Warmth>,
    route: Route,
    lane: Lane,
    tenant: Tenant,
    /// Set when no more calls may leave.
    stopping: watch::Sender<bool>,
}

/// One prompt, as the model's vendor is asked it.
struct Prompt {
    question: Translated,
    route: Route,
}

#[pymethods]
impl Caller {
    /// Of `model`, whose provider speaks `vendor`'s API at `base_url`, or at the vendor's own host. The
    /// key is read from the environment variable `key`; else from the vendor's own, if it is set.
    #[new]
    #[pyo3(signature = (quota, model, *, vendor, base_url, key, lane, tenant))]
    fn new(
        quota: &Quota,
        model: &str,
        vendor: &str,
        base_url: Option<String>,
        key: Option<&str>,
        lane: Option<String>,
        tenant: Option<String>,
    ) -> PyResult<Self> {
        let (model, vendor) = (model.parse::<ModelId>().map_err(bad)?, self::vendor(vendor)?);
        let url = base_url.unwrap_or_else(|| vendor.base_url("us-east-1"));
        if url.is_empty() {
            let provider = model.provider();
            return Err(bad(format!(
                "\"{provider}\" has no host for all accounts; state its base_url"
            )));
        }
        let url = url.parse().map_err(|error| bad(format!("base_url \"{url}\": {error}")))?;
        let settings = Settings::new(vendor, url);
        // A server of another name than a vendor's does not get that vendor's key unless it is named.
        let usual = vendor.key_variable();
        let is_vendors = vendor.as_str() == model.provider() && std::env::var_os(usual).is_some();
        let key = key.or_else(|| is_vendors.then_some(usual));
        let settings = match key {
            Some(variable) => settings.api_key(Secret::from_env(variable).map_err(bad)?),
            None => settings,
        };
        let providers = Providers::new([(model.provider().to_owned(), settings)]).map_err(bad)?;
        Ok(Self(Own::new(Arc::new(Asking {
            guard: quota.guard.get()?.clone(),
            budgets: Arc::clone(&quota.budgets),
            providers,
            queues: Queues::default(),
            warmth: Arc::default(),
            route: Route::single(model),
            lane: lane.map(Lane::new).transpose().map_err(bad)?.unwrap_or_default(),
            tenant: tenant.map(Tenant::new).transpose().map_err(bad)?.unwrap_or_default(),
            stopping: watch::Sender::new(false),
        }))))
    }

    /// Breaks all calls off, and lets no more leave.
    fn stop(&self) -> PyResult<()> {
        self.0.get()?.stopping.send_replace(true);
        Ok(())
    }

    /// Asks what a body of Chat Completions says, when its turn comes; again where the provider had no
    /// room or failed, as often as a document is asked. The answer's text, or a `Failure`.
    fn ask(&self, body: &[u8]) -> PyResult<Pending> {
        let asking = Arc::clone(self.0.get()?);
        let prompt = asking.read(body)?;
        let _inside = Process::this()?.runtime.enter();
        Pending::start(async move {
            // Looked at first: else what is broken off would make room for one that waits.
            let asked = tokio::select! {
                biased;
                () = asking.stopped() => Err(Failure::worker_stops()),
                asked = asking.ask(&prompt) => asked,
            };
            match asked {
                Ok(text) => Box::new(move |py: Python<'_>| text.into_py_any(py)) as Made,
                Err(failure) => {
                    let failure = permit::Failure::last(failure);
                    Box::new(move |py: Python<'_>| failure.into_py_any(py)) as Made
                }
            }
        })
    }
}

impl Asking {
    async fn stopped(&self) {
        // Its sender is here: it cannot be gone.
        let _ = self.stopping.subscribe().wait_for(|stops| *stops).await;
    }

    fn read(&self, body: &[u8]) -> PyResult<Prompt> {
        let operation = Operation::ChatCompletions;
        let fields = Fields::read(body).map_err(bad)?;
        let asked = RequestFacts::read(operation.path(), body)
            .ok_or_else(|| bad("the prompt is no request of a model"))?;
        let named = (operation, asked.model.as_str());
        let read = Translated::read(named, &fields, &asked, &self.route, &self.providers);
        let (question, route) = read.map_err(bad)?;
        Ok(Prompt { question, route })
    }

    /// An answer that is whole.
    async fn ask(&self, prompt: &Prompt) -> Result<String, Failure> {
        let Prompt { question, route } = prompt;
        let caller = caller::Caller {
            providers: &self.providers,
            queues: &self.queues,
            warmth: &self.warmth,
            budgets: &self.budgets,
            guard: &self.guard,
        };
        let terms =
            Terms { lane: &self.lane, tenant: &self.tenant, batch_usd: None, retries: None };
        let mut attempt = Attempt::once().patience(Patience::Whole);
        // Beside those that the guard counts: where no connection comes about, nobody is there to mend it.
        let mut faults = 0;
        loop {
            match caller.ask(&attempt, terms, route, question).await {
                Ok((model, completion)) => return self.whole(prompt, model, completion),
                // No other worker may have a better key, or reach Redis.
                Err(failure)
                    if failure.kind == FailureType::Unauthorized
                        || failure.waits_for == Some(WaitsFor::Redis) =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    faults += u32::from(!failure.benign);
                    let delay = failure.retry.delay(self.guard.backoff, faults.max(1));
                    match delay.filter(|_| faults < MAX_FAULTS) {
                        Some(delay) => tokio::time::sleep(delay).await,
                        None => return Err(failure),
                    }
                }
            }
            attempt = attempt.next();
        }
    }

    fn whole(
        &self,
        prompt: &Prompt,
        model: &ModelId,
        completion: Completion,
    ) -> Result<String, Failure> {
        let is_empty = completion.answer.trim().is_empty();
        if !is_empty && completion.stop_reason.finish() != Finish::Cut {
            return Ok(completion.answer);
        }
        let cap = self.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
        let shortfall = Shortfall { is_empty, room: prompt.question.room(cap) };
        let message = format!("{shortfall}; raise max_output_tokens");
        Err(Failure::never(FailureType::Truncated, message))
    }
}
