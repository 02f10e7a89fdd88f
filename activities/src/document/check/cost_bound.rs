//! Upper bound on the cost of checks: each model of the route is asked twice, and each judge judges
//! each answer.

use chrono::Utc;
use tidegate_calls::route::Route;
use tidegate_providers::Prices;
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{Job, Judge};

use super::{judge::VERDICT_TOKENS, pending::Pending};
use crate::output::result::{DocumentResult, MAX_ASKS};

/// The prices of the calls of one document.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) prices: &'a Prices,
    pub(crate) job: &'a Job,
    /// The models that are asked, one after the other.
    pub(crate) levels: &'a [Route],
}

impl<'a> Bound<'a> {
    /// The models that judge an answer.
    pub(crate) fn judges(job: &'a Job) -> impl Iterator<Item = &'a Judge> {
        job.checks.iter().filter_map(|check| check.judge.as_ref())
    }

    /// US dollars of a call with these tokens; 0 where no price is known.
    pub(crate) fn usd(&self, model: &ModelId, input: u64, output: u64) -> f64 {
        let usage = Usage { uncached_input: input, output, ..Usage::default() };
        self.prices.cost_usd(model, &usage, Utc::now().date_naive()).unwrap_or_default()
    }

    /// US dollars of an answer of this model of the route, verdicts included.
    fn answer_usd(&self, level: &Route, input: u64) -> f64 {
        let output = u64::from(self.job.likely_output_tokens());
        let asked = level.models.iter().map(|model| self.usd(model, input, output));
        asked.fold(0.0, f64::max) + self.verdicts_usd(input, 0)
    }

    /// US dollars of the verdicts on an answer, without the first `but_for`.
    pub(crate) fn verdicts_usd(&self, input: u64, but_for: usize) -> f64 {
        let input = input + u64::from(self.job.likely_output_tokens());
        let judges = Self::judges(self.job).skip(but_for);
        judges.map(|judge| self.usd(&judge.model, input, VERDICT_TOKENS.into())).sum()
    }

    /// US dollars of all calls that may follow the next one, for a document of this many tokens.
    pub(super) fn rest_usd(&self, input: u64, pending: &Pending) -> f64 {
        let level = usize::try_from(pending.level).unwrap_or_default();
        let later = self.levels.iter().skip(level + 1);
        let later: f64 = later.map(|it| f64::from(MAX_ASKS) * self.answer_usd(it, input)).sum();
        let Some(now) = self.levels.get(level) else { return 0.0 };
        let judged = pending.next_judge(self.job).map(|_| {
            let result = pending.result.as_ref();
            result.map_or(0, |it| it.unchecked.len() + self.verdict_count(it))
        });
        let left = MAX_ASKS.saturating_sub(pending.asks);
        match judged {
            Some(judged) => {
                self.verdicts_usd(input, judged + 1)
                    + f64::from(left) * self.answer_usd(now, input)
                    + later
            }
            None => {
                let more = f64::from(left.saturating_sub(1)) * self.answer_usd(now, input);
                self.verdicts_usd(input, 0) + more + later
            }
        }
    }

    fn verdict_count(&self, result: &DocumentResult) -> usize {
        let is_judge = |name: &str| {
            self.job.checks.iter().any(|check| check.name == name && check.judge.is_some())
        };
        result.checks.iter().filter(|check| is_judge(&check.name)).count()
    }
}
