//! The limiter.

use std::{sync::Arc, time::Duration};

use pyo3::{
    IntoPyObjectExt as _,
    exceptions::{PyConnectionError, PyRuntimeError},
    prelude::*,
    types::PyDict,
};
use tidegate_calls::{Attempt, Backoff, Guard, attempt::Patience, budget::Budgets, gates::Held};
use tidegate_quota::{Error, Options, Refused, Request, Ticket, come_back};
use tidegate_types::{Lane, ModelId, Tenant};

use crate::{
    configured::{Model, lanes},
    pending::{Made, Pending},
    permit::Permit,
    runtime::{Own, Process, bad},
};

/// A limiter over some models.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Quota {
    pub(crate) guard: Own<Guard>,
    pub(crate) budgets: Arc<Budgets>,
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| bad(format!("{seconds} s is no time")))
}

fn failed(error: Error) -> PyErr {
    let told = error.to_string();
    match error {
        Error::Away(_) => PyConnectionError::new_err(told),
        Error::Address(_) | Error::UnknownModel(_) => bad(told),
        Error::Protocol(_) | Error::Outdated(_) => PyRuntimeError::new_err(told),
    }
}

#[pymethods]
impl Quota {
    /// Without a `redis` of this process alone.
    #[new]
    #[pyo3(signature = (*, redis, models, lanes, key_prefix, max_slot_wait, jitter, pause_ttl, base_backoff, max_backoff, max_quota_wait))]
    #[expect(clippy::too_many_arguments, reason = "each is a key of the configuration, by name")]
    fn new(
        redis: Option<&str>,
        models: Vec<Model>,
        lanes: Vec<(String, f64, f64)>,
        key_prefix: String,
        max_slot_wait: f64,
        jitter: f64,
        pause_ttl: f64,
        base_backoff: f64,
        max_backoff: f64,
        max_quota_wait: f64,
    ) -> PyResult<Self> {
        let lanes = self::lanes(lanes)?;
        let models = models.into_iter().map(|model| model.quota(&lanes));
        let models = models.collect::<PyResult<Vec<_>>>()?;
        let options = Options {
            key_prefix,
            max_slot_wait: seconds(max_slot_wait)?,
            jitter: seconds(jitter)?,
            pause_ttl: seconds(pause_ttl)?,
            ..Options::default()
        };
        let _inside = Process::this()?.runtime.enter();
        let quota = match redis {
            Some(url) => tidegate_quota::Quota::with_redis(url, models, options).map_err(bad)?,
            None => tidegate_quota::Quota::in_memory(models, options),
        };
        let backoff = Backoff {
            base: seconds(base_backoff)?,
            max: seconds(max_backoff)?,
            max_quota_wait: seconds(max_quota_wait)?,
        };
        Ok(Self { guard: Own::new(Guard::new(quota, backoff)), budgets: Arc::default() })
    }

    /// Leave for one call: a `Permit`, or a `Refusal`. With `max_wait`, a longer wait is refused;
    /// without it, the turn is waited for however long it takes.
    #[pyo3(signature = (model, name, *, tokens, max_output, lane, tenant, template, ticket, max_wait))]
    #[expect(clippy::too_many_arguments, reason = "each is one of a request's fields, by name")]
    fn admit(
        &self,
        model: &str,
        name: Option<String>,
        tokens: u64,
        max_output: u64,
        lane: Option<String>,
        tenant: Option<String>,
        template: u64,
        ticket: Option<(u64, u64)>,
        max_wait: Option<f64>,
    ) -> PyResult<Pending> {
        let (guard, budgets) = (self.guard.get()?.clone(), Arc::clone(&self.budgets));
        // Before a name is drawn.
        Process::this()?;
        let model: ModelId = model.parse().map_err(bad)?;
        let attempt = name.map_or_else(Attempt::once, Attempt::alone);
        let request = Request::new(model, attempt.reservation.clone())
            .tokens(tokens, max_output)
            .template(template)
            .lane(lane.map(Lane::new).transpose().map_err(bad)?.unwrap_or_default())
            .tenant(tenant.map(Tenant::new).transpose().map_err(bad)?.unwrap_or_default())
            .ticket(ticket.map(|(epoch, position)| Ticket { epoch, position }));
        let (attempt, request) = match max_wait.map(seconds).transpose()? {
            Some(most) => (attempt, request.max_wait(most)),
            None => (attempt.patience(Patience::Whole), request),
        };
        let backoff = guard.backoff;
        Pending::start(async move {
            let admitted = match budgets.call_budget(&attempt, &request, None) {
                Ok(budget) => guard.admit(&attempt, &request, &budget).await,
                Err(failure) => Err(Held::by_budget(failure)),
            };
            match admitted {
                Ok(admitted) => {
                    let permit = Permit::new(admitted, backoff);
                    Box::new(move |py: Python<'_>| permit.into_py_any(py)) as Made
                }
                Err(held) => {
                    let refusal = Refusal::from_held(&held, backoff);
                    Box::new(move |py: Python<'_>| refusal.into_py_any(py)) as Made
                }
            }
        })
    }

    /// What a model's quota looks like.
    fn inspect(&self, model: &str) -> PyResult<Pending> {
        let quota = self.guard.get()?.quota.clone();
        let model = model.parse::<ModelId>().map_err(bad)?;
        Pending::start(async move {
            let seen = quota.inspect(&model).await;
            Box::new(move |py: Python<'_>| {
                let seen = seen.map_err(failed)?;
                let (used, told) = (seen.used(), PyDict::new(py));
                told.set_item("requests", used.requests)?;
                told.set_item("input", used.input)?;
                told.set_item("output", used.output)?;
                told.set_item("combined", used.combined)?;
                told.set_item("reason", seen.reason)?;
                told.into_py_any(py)
            }) as Made
        })
    }

    /// Shows the fleet that this process shares its limits, until it is cancelled.
    fn keep_alive(&self, worker: String) -> PyResult<Pending> {
        let quota = self.guard.get()?.quota.clone();
        Pending::start(async move {
            let ended = quota.keep_alive(&worker, std::future::pending()).await;
            Box::new(move |py: Python<'_>| ended.map_err(failed)?.into_py_any(py)) as Made
        })
    }
}

/// Why a call was not admitted.
#[pyclass(frozen, get_all, module = "tidegate._tidegate")]
pub(crate) struct Refusal {
    /// As in tidegate's workflows: `QuotaWait`, `QuotaExhausted`, `TooLarge`, `InvalidInput`; and
    /// what calls have met lately, such as `Overloaded` and `Unauthorized`.
    kind: &'static str,
    message: String,
    /// Whether it is worth asking again.
    may_pass: bool,
    /// Seconds until then.
    wait: f64,
    /// Seconds until the next attempt, where something else dispatches it.
    delay: f64,
    /// Keeps the turn.
    ticket: Option<(u64, u64)>,
}

impl Refusal {
    fn from_held(held: &Held, backoff: Backoff) -> Self {
        match &held.refused {
            Some(refused) => Self::by_quota(refused, backoff),
            None => {
                let failure = &held.failure;
                let delay = failure.retry.delay(backoff, 1);
                Self {
                    kind: failure.kind.as_str(),
                    message: failure.message.clone(),
                    may_pass: delay.is_some(),
                    wait: delay.unwrap_or_default().as_secs_f64(),
                    delay: delay.unwrap_or_default().as_secs_f64(),
                    ticket: None,
                }
            }
        }
    }

    fn by_quota(refused: &Refused, backoff: Backoff) -> Self {
        let (kind, wait, delay, ticket) = match refused {
            Refused::Wait { wait, ticket, .. } => {
                let delay = come_back::elsewhere(*wait).min(backoff.max_quota_wait);
                ("QuotaWait", *wait, Some(delay), Some(*ticket))
            }
            Refused::GateClosed { wait, ticket, .. } => {
                ("QuotaWait", *wait, Some((*wait).min(backoff.max)), Some(*ticket))
            }
            Refused::Undecided { wait, ticket, .. } => {
                ("QuotaWait", *wait, Some((*wait).min(backoff.max)), *ticket)
            }
            Refused::Outdated(_) => ("QuotaWait", backoff.base, Some(backoff.base), None),
            Refused::Exhausted { wait, .. } => ("QuotaExhausted", *wait, None, None),
            Refused::NeverFits { .. } => ("TooLarge", Duration::ZERO, None, None),
            Refused::UnknownModel(_) | Refused::UnknownLane(_) => {
                ("InvalidInput", Duration::ZERO, None, None)
            }
        };
        Self {
            kind,
            message: refused.to_string(),
            may_pass: delay.is_some(),
            wait: wait.as_secs_f64(),
            delay: delay.unwrap_or_default().as_secs_f64(),
            ticket: ticket.map(|ticket| (ticket.epoch, ticket.position)),
        }
    }
}
