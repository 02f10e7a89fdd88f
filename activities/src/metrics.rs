//! Every metric of this crate: nothing else in it spells a metric name.

use std::{
    collections::{HashMap, VecDeque},
    sync::LazyLock,
    time::{Duration, Instant},
};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use parking_lot::{Mutex, MutexGuard};
use tidegate_providers::Kind;
use tidegate_quota::budget::Payer;
use tidegate_types::{ModelId, Tenant, Usage};

const CALLS: &str = "tidegate_provider_calls_total";
const CALL_SECONDS: &str = "tidegate_provider_call_seconds";
const LITTLE_L: &str = "tidegate_little_l";
const DOCUMENTS: &str = "tidegate_documents_total";
const TOKENS: &str = "tidegate_tokens_total";
const CACHE_HIT_RATIO: &str = "tidegate_cache_hit_ratio";
const TOKENS_PER_MINUTE: &str = "tidegate_tokens_per_minute";
const COST: &str = "tidegate_cost_usd_total";
const BUDGET_LEFT: &str = "tidegate_budget_left_usd";
const CALLS_PER_DOCUMENT: &str = "tidegate_calls_per_document";

/// Little's law is reckoned over the calls that ended within this time.
const RECENT: Duration = Duration::from_secs(60);

/// Gives each metric its help text.
pub fn describe() {
    describe_counter!(CALLS, "Provider calls, by how they ended");
    describe_histogram!(CALL_SECONDS, Unit::Seconds, "Time of one provider call");
    describe_gauge!(
        LITTLE_L,
        "Arrival rate x mean time in system over the last minute: calls that this worker keeps in flight"
    );
    describe_counter!(
        DOCUMENTS,
        "Attempts at documents, by outcome: succeeded, skipped, or the failure's type"
    );
    describe_counter!(TOKENS, "Tokens used, by kind: input, cached_input, cache_write, output");
    describe_gauge!(
        CACHE_HIT_RATIO,
        "Input tokens read from the provider's prompt cache, as a part of all input"
    );
    describe_gauge!(
        TOKENS_PER_MINUTE,
        "Tokens of this worker's calls that ended in the last minute, cached input included: the effective rate"
    );
    describe_gauge!(COST, "US dollars, of calls whose price is known");
    describe_gauge!(
        BUDGET_LEFT,
        "US dollars that a tenant may still spend today, as this worker last saw it"
    );
    describe_gauge!(
        CALLS_PER_DOCUMENT,
        "Provider calls of this worker for each answered document; 1 is perfect"
    );
}

/// Sums that ratios are made of.
#[derive(Debug, Default)]
struct Sums {
    calls: f64,
    answered: f64,
    models: HashMap<ModelId, ModelSums>,
}

#[derive(Debug, Default)]
struct ModelSums {
    input: f64,
    cached: f64,
    /// Calls that ended lately: when, after how long, and their tokens.
    recent: VecDeque<(Instant, Duration, f64)>,
}

static SUMS: LazyLock<Mutex<Sums>> = LazyLock::new(Mutex::default);

fn sums() -> MutexGuard<'static, Sums> {
    SUMS.lock()
}

/// One provider call under way.
#[derive(Debug)]
pub(crate) struct Call {
    model: ModelId,
    started: Instant,
}

impl Call {
    pub(crate) fn start(model: &ModelId) -> Self {
        Self { model: model.clone(), started: Instant::now() }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn succeeded(self, usage: Option<&Usage>) {
        self.ended("ok", usage.map_or(0, |usage| usage.input() + usage.output));
        if let Some(usage) = usage {
            used(&self.model, usage);
        }
    }

    pub(crate) fn failed(self, kind: Kind) {
        self.ended(kind.label(), 0);
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 2^53")]
    fn ended(&self, outcome: &'static str, tokens: u64) {
        let (now, took) = (Instant::now(), self.started.elapsed());
        counter!(CALLS, "model" => self.model.to_string(), "outcome" => outcome).increment(1);
        histogram!(CALL_SECONDS, "model" => self.model.to_string()).record(took.as_secs_f64());
        let mut sums = sums();
        sums.calls += 1.0;
        let recent = &mut sums.models.entry(self.model.clone()).or_default().recent;
        recent.push_back((now, took, tokens as f64));
        while recent.front().is_some_and(|(ended, ..)| now - *ended > RECENT) {
            recent.pop_front();
        }
        // λ × W: (calls / minute) × (their time / calls) is their time / minute.
        let time: Duration = recent.iter().map(|(_, took, _)| took).sum();
        gauge!(LITTLE_L, "model" => self.model.to_string())
            .set(time.as_secs_f64() / RECENT.as_secs_f64());
        let tokens: f64 = recent.iter().map(|(.., tokens)| tokens).sum();
        gauge!(TOKENS_PER_MINUTE, "model" => self.model.to_string())
            .set(tokens * 60.0 / RECENT.as_secs_f64());
    }
}

/// Tokens that were used.
fn used(model: &ModelId, usage: &Usage) {
    let kinds = [
        ("input", usage.uncached_input),
        ("cached_input", usage.cache_read),
        ("cache_write", usage.cache_write),
        ("output", usage.output),
    ];
    for (kind, tokens) in kinds {
        counter!(TOKENS, "model" => model.to_string(), "kind" => kind).increment(tokens);
    }
    let mut sums = sums();
    let of_model = sums.models.entry(model.clone()).or_default();
    #[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 2^53")]
    {
        of_model.input += usage.input() as f64;
        of_model.cached += usage.cache_read as f64;
    }
    if of_model.input > 0.0 {
        gauge!(CACHE_HIT_RATIO, "model" => model.to_string()).set(of_model.cached / of_model.input);
    }
}

/// An answer out of a provider's batch.
pub(crate) fn batch_answer(
    model: &ModelId,
    usage: Option<&Usage>,
    failed: Option<Kind>,
    cost_usd: Option<f64>,
    tenant: &Tenant,
) {
    let outcome = failed.map_or("ok", Kind::label);
    counter!(CALLS, "model" => model.to_string(), "outcome" => outcome).increment(1);
    documents(1, failed.map_or("succeeded", Kind::label));
    if let Some(usage) = usage {
        used(model, usage);
    }
    sums().calls += 1.0;
    if failed.is_none() {
        answered(model, cost_usd, tenant);
    }
}

/// A document has its answer, at this price.
pub(crate) fn answered(model: &ModelId, cost_usd: Option<f64>, tenant: &Tenant) {
    if let Some(cost) = cost_usd {
        gauge!(COST, "model" => model.to_string(), "tenant" => tenant.to_string()).increment(cost);
    }
    let mut sums = sums();
    sums.answered += 1.0;
    gauge!(CALLS_PER_DOCUMENT).set(sums.calls / sums.answered);
}

/// Batches come and go, so they have no gauge.
pub(crate) fn budget_left(payer: &Payer, usd: f64) {
    if let Payer::Tenant(tenant) = payer {
        gauge!(BUDGET_LEFT, "tenant" => tenant.to_string()).set(usd);
    }
}

/// An attempt at a document ended.
pub(crate) fn attempt_ended(outcome: &'static str) {
    documents(1, outcome);
}

/// The same, of several.
pub(crate) fn documents(count: usize, outcome: &'static str) {
    counter!(DOCUMENTS, "outcome" => outcome).increment(count as u64);
}
