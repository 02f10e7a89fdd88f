//! How often each model is asked about a document with checked answers.
//!
//! Without earlier results, a document is asked once at best; at worst each model of the route is
//! asked twice. A report in the output narrows this down to the 95 % confidence interval of the mean.

use tidegate_calls::route::Route;
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::Job;

use crate::{
    document::check::VERDICT_TOKENS,
    failure::Failure,
    number::whole,
    output::{
        agreement::Rate,
        finish::{Checks, Report},
        forecast::Range,
        job::resolve,
        recorded_question,
        result::MAX_ASKS,
    },
    services::Services,
};

/// The number of calls for one document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpectedCalls {
    /// The models of the route, one after the other if the batch escalates, with the number of calls of
    /// each.
    asks: Vec<(Vec<ModelId>, Range)>,
    /// The models that judge each answer.
    judges: Vec<ModelId>,
}

impl ExpectedCalls {
    /// Determines the expected calls for a job's documents: one call each without checks.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub(super) async fn load(
        services: &Services,
        job: &Job,
        route: &Route,
    ) -> Result<Self, Failure> {
        let levels = if job.escalate { route.levels() } else { vec![route.clone()] };
        let judges = job.judges().map(|judge| Route::for_model(&judge.model, &services.routes));
        let judges = judges.filter_map(|route| route.models.into_iter().next()).collect();
        let most = if job.checks.is_empty() { 1.0 } else { f64::from(MAX_ASKS) };
        let before =
            if job.checks.is_empty() { None } else { earlier_report(services, job).await? };
        let asks = levels.into_iter().enumerate().map(|(place, level)| {
            let range = match &before {
                Some(report) => observed_calls(&report.checks, place),
                None => Range { from: if place == 0 { 1.0 } else { 0.0 }, to: most },
            };
            (level.models, range)
        });
        Ok(Self { asks: asks.collect(), judges })
    }

    fn answers(&self) -> Range {
        let none = Range { from: 0.0, to: 0.0 };
        self.asks.iter().fold(none, |sum, (_, range)| sum.plus(*range))
    }

    /// Calls for a document.
    pub(super) fn calls(&self) -> Range {
        self.answers().times(1.0 + self.judges.len() as f64)
    }

    /// Input tokens of a document with `each` tokens in one call.
    pub(super) fn input(&self, each: Range) -> Range {
        each.by(self.calls())
    }

    /// Output tokens of a document with `each` tokens in one answer.
    pub(super) fn output(&self, each: Range) -> Range {
        each.by(self.answers())
    }

    /// US dollars for a document; `None` where a model has no price.
    pub(super) fn cost(&self, services: &Services, input: Range, output: Range) -> Option<Range> {
        let mut sum = Range { from: 0.0, to: 0.0 };
        for (models, asks) in &self.asks {
            sum = sum.plus(cost(services, models, input, output)?.by(*asks));
        }
        let (read, answers) = (input.plus(output), self.answers());
        let verdict = Range { from: 1.0, to: VERDICT_TOKENS.into() };
        for judge in &self.judges {
            let each = cost(services, std::slice::from_ref(judge), read, verdict)?;
            sum = sum.plus(each.by(answers));
        }
        Some(sum)
    }
}

/// Reads the report on this question in the output, if part of it was asked there before.
async fn earlier_report(services: &Services, job: &Job) -> Result<Option<Report>, Failure> {
    let output = resolve(&services.storage, "output", &job.output)?;
    if !recorded_question::has_answers(&output, job).await? {
        return Ok(None);
    }
    let report = output.child("report.json").read_if_there().await?;
    let report = report.and_then(|json| serde_json::from_slice::<Report>(&json).ok());
    Ok(report.filter(|report| !report.checks.levels.is_empty()))
}

/// The number of calls at this level of the route for each document of a report: the part of the
/// documents that reached the level, times one call and the part of them that was asked twice.
///
/// The parts are independent, so the squares of their deviations add up (G. Y. Zou and A. Donner,
/// "Construction of confidence limits about effect measures", 2008).
fn observed_calls(checks: &Checks, level: usize) -> Range {
    let level = u32::try_from(level).ok().and_then(|level| checks.levels.get(&level));
    let level = level.copied().unwrap_or_default();
    let reached = Rate { agreed: level.documents, compared: checks.documents };
    let again = Rate { agreed: level.asked_again, compared: level.documents };
    let calls = reached.part() * (1.0 + again.part());
    let deviation = |end: usize| {
        let of_reached = (reached.interval()[end] - reached.part()) * (1.0 + again.part());
        let of_again = (again.interval()[end] - again.part()) * reached.part();
        of_reached.hypot(of_again)
    };
    Range { from: (calls - deviation(0)).max(0.0), to: (calls + deviation(1)).min(MAX_ASKS.into()) }
}

/// The price of so many tokens at the cheapest and the dearest of some models, if all prices are known.
fn cost(services: &Services, models: &[ModelId], input: Range, output: Range) -> Option<Range> {
    let price = |model: &ModelId, input, output| {
        let usage =
            Usage { uncached_input: whole(input), output: whole(output), ..Usage::default() };
        services.cost_usd(model, &usage)
    };
    let each = models.iter().map(|model| {
        let from = price(model, input.from, output.from)?;
        Some(Range { from, to: price(model, input.to, output.to)? })
    });
    let each: Option<Vec<Range>> = each.collect();
    each?
        .into_iter()
        .reduce(|one, other| Range { from: one.from.min(other.from), to: one.to.max(other.to) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

    use super::*;
    use crate::output::finish::LevelTotals;

    #[test]
    fn tokens_follow_how_often_models_are_asked() {
        let range = |from, to| Range { from, to };
        let model = |name: &str| vec![name.parse().unwrap()];
        let checked = ExpectedCalls {
            asks: vec![(model("p:a"), range(1.0, 2.0)), (model("p:b"), range(0.0, 2.0))],
            judges: model("p:j"),
        };
        assert_eq!(checked.input(range(100.0, 200.0)), range(200.0, 1_600.0));
        assert_eq!(checked.output(range(10.0, 20.0)), range(10.0, 80.0));
    }

    /// Each document reaches the level with one probability, and is asked twice there with another.
    #[test]
    fn the_interval_of_a_levels_calls_holds_the_truth_in_95_of_100_samples() {
        const SEEDS: u64 = 1_000;
        const DOCUMENTS: u64 = 300;
        let pairs =
            [(1.0, 0.1), (1.0, 0.65), (0.6, 0.65), (0.6, 0.2), (0.2, 0.5), (0.1, 0.9), (0.9, 0.3)];
        for (share, twice) in pairs {
            let truth = share * (1.0 + twice);
            let holds = |seed: &u64| {
                let mut chance = SmallRng::seed_from_u64(*seed);
                let mut level = LevelTotals::default();
                for _ in 0..DOCUMENTS {
                    if chance.random_bool(share) {
                        level.documents += 1;
                        level.asked_again += u64::from(chance.random_bool(twice));
                    }
                }
                let levels = [(1, level)].into();
                let checks = Checks { documents: DOCUMENTS, levels, ..Checks::default() };
                let Range { from, to } = observed_calls(&checks, 1);
                from <= truth && truth <= to
            };
            let held = (0..SEEDS).filter(holds).count();
            println!(
                "{share} go on, {twice} of them are asked twice: {held} of {SEEDS} intervals hold"
            );
            assert!((930..=970).contains(&held), "{held} at {share} and {twice}");
        }
        let none = Checks { documents: 20, ..Checks::default() };
        let Range { from, to } = observed_calls(&none, 1);
        assert!(from == 0.0 && (0.1..0.2).contains(&to), "{to}");
    }
}
