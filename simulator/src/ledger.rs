//! Where the account is kept.

use std::{collections::HashMap, time::Duration};

use crate::{
    account::{Account, ModelAccount},
    amounts::{Amounts, Dimension},
    fault::FaultKind,
    limiter::Limiter,
    limits::Limits,
    series::Series,
    worst::Worst,
};

/// No client has more models than this; one that makes names up is stopped here.
const MAX_MODELS: usize = 1_000;

/// How many prompts are remembered: 16 MB or so.
const MAX_PROMPTS: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) rejected: u64,
    batches: u64,
    batch_requests: u64,
    models: HashMap<String, ModelLedger>,
    prompts: HashMap<u64, u32>,
    answered_twice: u64,
    forgotten: u64,
}

/// One model: its limits and its account.
#[derive(Debug)]
pub(crate) struct ModelLedger {
    pub(crate) limiter: Limiter,
    account: ModelAccount,
    worst: Worst,
    series: Series,
}

impl Ledger {
    /// A model's ledger, opened at its first call; `None` when there are too many models.
    pub(crate) fn open(&mut self, model: &str, limits: &Limits) -> Option<&mut ModelLedger> {
        if !self.models.contains_key(model) {
            if self.models.len() >= MAX_MODELS {
                return None;
            }
            self.models.insert(model.to_owned(), ModelLedger::new(limits));
        }
        self.models.get_mut(model)
    }

    /// The ledger of a model that has one.
    pub(crate) fn model(&mut self, model: &str) -> Option<&mut ModelLedger> {
        self.models.get_mut(model)
    }

    /// A prompt was answered whole.
    pub(crate) fn answered(&mut self, prompt: u64) {
        if self.prompts.len() >= MAX_PROMPTS && !self.prompts.contains_key(&prompt) {
            self.forgotten += 1;
            return;
        }
        let times = self.prompts.entry(prompt).or_default();
        *times = times.saturating_add(1);
        if *times == 2 {
            self.answered_twice += 1;
        }
    }

    /// A batch was taken in.
    pub(crate) const fn batch(&mut self, requests: u64) {
        self.batches += 1;
        self.batch_requests += requests;
    }

    pub(crate) fn account(&self, uptime: Duration) -> Account {
        Account {
            uptime_seconds: uptime.as_secs_f64(),
            rejected: self.rejected,
            prompts: self.prompts.len() as u64,
            answered_twice: self.answered_twice,
            forgotten: self.forgotten,
            batches: self.batches,
            batch_requests: self.batch_requests,
            models: self
                .models
                .iter()
                .map(|(name, model)| (name.clone(), model.account()))
                .collect(),
        }
    }

    /// Begins the account anew. Limits stay as used as they are, and calls at work stay at work.
    pub(crate) fn reset(&mut self) {
        for model in self.models.values_mut() {
            let at_work = model.account.in_flight;
            model.account = ModelAccount {
                requests: at_work,
                in_flight: at_work,
                max_in_flight: at_work,
                ..ModelAccount::default()
            };
            model.worst = Worst::default();
            model.series = Series::default();
        }
        self.prompts.clear();
        (self.rejected, self.answered_twice, self.forgotten) = (0, 0, 0);
        (self.batches, self.batch_requests) = (0, 0);
    }
}

impl ModelLedger {
    fn new(limits: &Limits) -> Self {
        Self {
            limiter: Limiter::new(limits),
            account: ModelAccount::default(),
            worst: Worst::default(),
            series: Series::default(),
        }
    }

    pub(crate) fn arrived(&mut self) {
        self.account.requests += 1;
        self.account.in_flight += 1;
        self.account.max_in_flight = self.account.max_in_flight.max(self.account.in_flight);
    }

    pub(crate) const fn left(&mut self) {
        self.account.in_flight = self.account.in_flight.saturating_sub(1);
    }

    pub(crate) const fn refused(&mut self, dimension: Dimension) {
        self.account.refused.count(dimension);
    }

    pub(crate) fn admitted(&mut self, at: Duration, amounts: &Amounts) {
        self.account.admitted.add(amounts);
        self.worst.record(at, amounts);
        self.series.record(at, amounts);
        if amounts.requests > 0 {
            let seconds = at.as_secs_f64();
            self.account.first_admission.get_or_insert(seconds);
            self.account.last_admission = Some(seconds);
        }
    }

    pub(crate) const fn cached(&mut self, read: u64, written: u64) {
        self.account.cache_read += read;
        self.account.cache_written += written;
    }

    pub(crate) const fn ok(&mut self) {
        self.account.ok += 1;
    }

    pub(crate) const fn abandoned(&mut self) {
        self.account.abandoned += 1;
    }

    pub(crate) fn faulted(&mut self, kind: FaultKind) {
        *self.account.faults.entry(kind).or_default() += 1;
    }

    fn account(&self) -> ModelAccount {
        ModelAccount {
            worst_window: self.worst.worst(),
            series: Some(self.series.clone()),
            ..self.account.clone()
        }
    }
}
