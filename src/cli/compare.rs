//! `tidegate compare`: asks several models about one sample, and compares their answers.

mod comparison;
mod judge;
mod model_batch;
mod show;

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use tidegate_activities::{
    batch::plan,
    failure::Failure,
    output::{
        agreement::{Agreement, Compared, Disagreement, Rate},
        comparisons::{self, Comparisons},
        forecast::Range,
        question::StatedQuestion,
    },
    services::Services,
    storage::Location,
};
use tidegate_calls::worker_status::worker_statuses;
use tidegate_types::{FailureType, ModelId};
use tidegate_workflows::{
    contract::{Job, Progress},
    input::BatchInput,
};

use crate::{config::Config, temporal::Temporal, worker};

use self::{
    comparison::{Comparison, Judged, ModelResult, Pair},
    judge::{Judging, pairs_of},
    model_batch::ModelBatch,
};
use super::{
    agreement,
    batch_flags::BatchFlags,
    batch_report::BatchReport,
    exit::{Outcome, usage},
    fleet::Fleet,
    keys, output,
    sample_report::Answered,
};

/// The default number of documents in a comparison.
const SAMPLE: u32 = 100;

/// Ask several models the same question about a sample, and compare answers, price and failures
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The models, such as anthropic:claude-sonnet-5
    #[arg(required = true, num_args = 1.., value_name = "MODEL")]
    models: Vec<ModelId>,
    #[command(flatten)]
    given: BatchFlags<true>,
    #[command(flatten)]
    judge: judge::JudgeFlags,
    /// Exit with 1 if fewer of a model's answers than PART, such as 0.9, agree with --truth, or else with
    /// the first model's answers (lower end of the 95 % interval)
    #[arg(long, value_name = "PART", value_parser = agreement::part)]
    at_least: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A line of `disagreements.jsonl`: the answers of two models.
#[derive(Serialize)]
struct Difference<'a> {
    id: &'a str,
    field: &'a str,
    answers: BTreeMap<&'a ModelId, &'a Value>,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    worker::keep_private(config);
    let base = args.given.input()?;
    let asked = plan_batches(&args.models, &base)?;
    let judge = args.judge.batch(&base)?;
    let services = worker::services_without_providers(config)?;
    let temporal = Temporal::open(config).await?;
    check(&services, &temporal, &asked, judge.as_ref()).await?;
    let output =
        services.storage.resolve(&base.output).map_err(|error| usage(error.to_string()))?;
    if !base.replace.unwrap_or_default() {
        match comparisons::check(&output).await {
            Err(failure) if failure.kind == FailureType::InvalidInput => {
                return Err(usage(failure.message));
            }
            checked => checked.context("looking at the output")?,
        }
    }
    for one in &asked {
        one.start(&temporal).await?;
    }
    let mut models = Vec::new();
    let fleet = Fleet { config, limiter: &config.quota()?, temporal: &temporal };
    for one in &asked {
        let Some(progress) = one.completed(fleet).await? else { return Ok(Outcome::Done) };
        models.push(read_result(config, &services, one, &progress).await?);
    }
    let mut judging = Judging::new(&services, judge.as_ref(), base.truth.as_deref()).await?;
    let mut compared = judging.compare(&mut models);
    if let Some(judge) = &judge {
        if !judge::ask(fleet, &services, judge, &mut judging).await? {
            return Ok(Outcome::Done);
        }
        compared = judging.compare(&mut models);
    }
    let (comparison, differences) =
        compare_results(&services, &asked, (models, compared, judging.judged)).await?;
    // The record first: by that, the files are known as a comparison's.
    record(&services, &asked, &comparison, args.at_least, &output).await?;
    write(&comparison, differences, &output).await?;
    if args.json {
        output::print_json(&comparison)?;
    } else {
        show::show(&comparison, &base.output)?;
    }
    let outcome = args.at_least.map_or(Outcome::Done, |at_least| enough(&comparison, at_least));
    let some_failed = comparison.models.iter().any(|seen| seen.failed > 0);
    Ok(if outcome == Outcome::Done && some_failed { Outcome::SomeFailed } else { outcome })
}

/// Makes a batch for each model. Each model's answers have a separate folder, where the next run finds
/// them.
fn plan_batches(models: &[ModelId], base: &BatchInput) -> anyhow::Result<Vec<ModelBatch>> {
    let mut asked: Vec<ModelBatch> = Vec::new();
    for model in models {
        if asked.iter().any(|it| it.model == *model) {
            return Err(usage(format!("{model} is named twice")));
        }
        let name = model.to_string().replace([':', '/'], "-");
        let input = BatchInput {
            model: Some(model.clone()),
            output: format!("{}/{name}/", base.output.trim_end_matches('/')),
            sample: Some(base.sample.unwrap_or(SAMPLE)),
            results: None,
            results_jsonl: Some(true),
            ..base.clone()
        };
        asked.push(ModelBatch::new(model.clone(), input)?);
    }
    Ok(asked)
}

/// Checks every model before the first call: its name, its price if there is a budget, and whether a
/// worker has a key for it. This machine's configuration should equal the workers'.
async fn check(
    services: &Services,
    temporal: &Temporal,
    asked: &[ModelBatch],
    judge: Option<&ModelBatch>,
) -> anyhow::Result<()> {
    // Without Redis, the workers' keys are unknown.
    let cards = worker_statuses(&services.guard.quota).await.unwrap_or_default();
    let mut wrong: Vec<String> = Vec::new();
    // The judge's pairs are not known yet, so its batch has no forecast.
    let judge = judge.map(|judge| (&judge.model, &judge.job, false));
    for (model, job, priced) in asked.iter().map(|it| (&it.model, &it.job, true)).chain(judge) {
        let refused = match models_of(services, job, priced).await {
            Ok(models) => keys::unable(&cards, &temporal.queue(), &models),
            Err(failure) if failure.kind == FailureType::InvalidInput => Some(failure.message),
            Err(failure) => return Err(failure).context(format!("looking at {model}")),
        };
        wrong.extend(refused.map(|why| format!("{model}: {why}")));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(usage(format!("nothing was started; {}", wrong.join("\n"))))
}

/// The models of a batch.
///
/// # Errors
/// The batch's plan would fail with this error.
async fn models_of(
    services: &Services,
    job: &Job,
    is_priced: bool,
) -> Result<Vec<ModelId>, Failure> {
    let models = plan::check(services, job).await?;
    if is_priced && job.budget_usd.is_some() {
        plan::forecast(services, job).await?.check(job.budget_usd)?;
    }
    Ok(models)
}

async fn read_result(
    config: &Config,
    services: &Services,
    asked: &ModelBatch,
    progress: &Progress,
) -> anyhow::Result<ModelResult> {
    let answers = asked.answers(services).await?;
    let answers: BTreeMap<_, _> = answers.into_iter().map(|it| (it.id.clone(), it)).collect();
    let failed = progress.totals.failures.by_count();
    let failed_checks = failed.iter().find(|(kind, _)| *kind == FailureType::CheckFailed.as_str());
    let failed_checks = Rate {
        agreed: failed_checks.map_or(0, |(_, documents)| *documents),
        compared: answers.len() as u64 + progress.totals.failed,
    };
    let reported = BatchReport::read(config, progress).await;
    Ok(ModelResult {
        model: asked.model.clone(),
        workflow_id: asked.id.clone(),
        output: asked.job.output.clone(),
        answered: answers.len() as u64,
        failed: progress.totals.failed,
        cost_usd_each: mean(answers.values().filter_map(Answered::usd)),
        cost_usd_of_all: None,
        seconds_each: mean(answers.values().filter_map(|answer| answer.seconds)),
        failed_checks: (!asked.job.checks.is_empty()).then_some(failed_checks),
        agreement: reported.agreement,
        answers,
    })
}

/// The mean of some values; `None` if there are none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// US dollars for all documents on a route of two models. With checks, the first model answers all
/// documents and the second one those that have failed; else either may answer all.
fn cost_of_route(one: &ModelResult, other: &ModelResult) -> Option<Range> {
    let (first, second) = one.cost_usd_of_all.zip(other.cost_usd_of_all)?;
    let [from, to] = match one.failed_checks {
        Some(failed) => failed.interval().map(|part| first + part * second),
        None => [first.min(second), first.max(second)],
    };
    Some(Range { from, to })
}

/// Compares the results. Also returns the lines of `disagreements.jsonl`.
async fn compare_results(
    services: &Services,
    asked: &[ModelBatch],
    (mut models, compared, judge): (Vec<ModelResult>, Vec<Compared>, Option<Judged>),
) -> anyhow::Result<(Comparison, Vec<u8>)> {
    let whole = match asked.first() {
        Some(one) => plan::forecast(services, &Job { sample: None, ..one.job.clone() }).await.ok(),
        None => None,
    };
    let documents_in_all = whole.map(|whole| whole.documents);
    for seen in &mut models {
        let all = seen.cost_usd_each.zip(documents_in_all);
        let of_all = all.map(|(each, documents)| each * documents as f64);
        seen.cost_usd_of_all = of_all;
    }
    let (mut pairs, mut lines) = (Vec::new(), Vec::new());
    for ((one, other), compared) in pairs_of(&models).zip(compared) {
        let Compared { agreement, disagreements, .. } = compared;
        for Disagreement { id, field, expected, answered } in &disagreements {
            let answers = BTreeMap::from([(&one.model, expected), (&other.model, answered)]);
            serde_json::to_writer(&mut lines, &Difference { id, field, answers })?;
            lines.push(b'\n');
        }
        let models = [one.model.clone(), other.model.clone()];
        pairs.push(Pair { models, cost_usd_of_route: cost_of_route(one, other), agreement });
    }
    Ok((Comparison { documents_in_all, judge, models, pairs }, lines))
}

/// Writes the comparison next to the models' outputs.
async fn write(
    comparison: &Comparison,
    differences: Vec<u8>,
    output: &Location,
) -> anyhow::Result<()> {
    let place = output.child("disagreements.jsonl");
    place.write(differences).await.context("writing the differences")?;
    let mut json = serde_json::to_vec_pretty(comparison)?;
    json.push(b'\n');
    output.child("comparison.json").write(json).await.context("writing the comparison")
}

/// Records which models a route may fall back to by this comparison. A pair below `--at-least` is removed
/// if it was recorded before.
async fn record(
    services: &Services,
    asked: &[ModelBatch],
    comparison: &Comparison,
    at_least: Option<f64>,
    output: &Location,
) -> anyhow::Result<()> {
    let mut questions: BTreeMap<&ModelId, StatedQuestion> = BTreeMap::new();
    for one in asked {
        let place = services.storage.resolve(&one.job.output).context("output")?;
        let question = comparisons::question_of(&place).await?;
        let question = question.with_context(|| format!("what {} was asked is gone", one.model))?;
        questions.insert(&one.model, question);
    }
    let question = questions.values().next().cloned().map(StatedQuestion::of_any_model);
    let Some(question) = question else { return Ok(()) };
    let mut known = Comparisons::read(output, question.fingerprint()).await?;
    let to_truth = |model: &ModelId| {
        let seen = comparison.models.iter().find(|seen| seen.model == *model);
        seen.and_then(|seen| seen.agreement.as_ref())
    };
    let suffices = |agreement: &Agreement| {
        let [from, _] = agreement.at_worst().interval();
        at_least.is_none_or(|least| from >= least)
    };
    for Pair { models, agreement, .. } in &comparison.pairs {
        let both: Vec<&Agreement> = models.iter().filter_map(to_truth).collect();
        let enough = match both.is_empty() {
            true => suffices(agreement),
            false => both.len() == models.len() && both.into_iter().all(suffices),
        };
        let models = models.each_ref().map(|model| comparisons::ModelQuestion {
            model: model.clone(),
            question: questions[model].fingerprint(),
        });
        match enough {
            true => known.insert(comparisons::Pair { models, documents: agreement.at_worst() }),
            false => known.remove(&models),
        }
    }
    Ok(known.write(output, &question).await?)
}

fn enough(comparison: &Comparison, at_least: f64) -> Outcome {
    let by_truth = comparison.models.iter().any(|seen| seen.agreement.is_some());
    let outcomes: Vec<Outcome> = if by_truth {
        let of = |seen: &ModelResult| {
            agreement::enough(seen.agreement.as_ref(), at_least, &seen.model.to_string())
        };
        comparison.models.iter().map(of).collect()
    } else {
        let first = comparison.models.first().map(|seen| &seen.model);
        let pairs = comparison.pairs.iter().filter(|pair| Some(&pair.models[0]) == first);
        pairs
            .map(|pair| {
                agreement::enough(Some(&pair.agreement), at_least, &pair.models[1].to_string())
            })
            .collect()
    };
    if outcomes.contains(&Outcome::Faulty) { Outcome::Faulty } else { Outcome::Done }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::sample_report, judge::compare_answers, *};

    fn result(model: &str, answers: &[(&str, &str)]) -> ModelResult {
        let lines: Vec<String> = answers
            .iter()
            .map(|(id, answer)| {
                let line = json!({"id": id, "answer": answer, "finish": "complete", "input_tokens": 1, "output_tokens": 1});
                line.to_string()
            })
            .collect();
        let read: Vec<Answered> = sample_report::lines(lines.join("\n").as_bytes()).unwrap();
        ModelResult {
            model: model.parse().unwrap(),
            workflow_id: String::new(),
            output: String::new(),
            answered: answers.len() as u64,
            failed: 0,
            cost_usd_each: None,
            cost_usd_of_all: None,
            seconds_each: None,
            failed_checks: None,
            agreement: None,
            answers: read.into_iter().map(|it| (it.id.clone(), it)).collect(),
        }
    }

    #[test]
    fn models_are_compared_field_by_field() {
        let one =
            result("a:one", &[("1", r#"{"to": "Anna", "total": 5}"#), ("2", "yes"), ("3", "x")]);
        let other = result("a:two", &[("1", r#"{"total": 5.0, "to": "Berta"}"#), ("2", "yes ")]);
        let Compared { agreement, disagreements, .. } =
            compare_answers(&one, &other, &mut Judging::default());
        assert_eq!((agreement.documents.agreed, agreement.documents.compared), (1, 2));
        assert_eq!(agreement.unanswered, 1);
        assert_eq!(agreement.fields["total"].rate.agreed, 1);
        assert_eq!((&*disagreements[0].id, &*disagreements[0].field), ("1", "to"));
        let models = [one.model.clone(), other.model.clone()];
        let pairs =
            vec![Pair { models, cost_usd_of_route: cost_of_route(&one, &other), agreement }];
        let comparison =
            Comparison { documents_in_all: None, judge: None, models: vec![one, other], pairs };
        assert_eq!(enough(&comparison, 0.05), Outcome::Done);
        assert_eq!(enough(&comparison, 0.5), Outcome::Faulty);
    }

    #[test]
    fn texts_that_differ_are_left_to_the_judge() {
        let one = result("a:one", &[("1", "at noon"), ("2", "yes"), ("3", "ebb")]);
        let other = result("a:two", &[("1", "12 o'clock"), ("2", "yes "), ("3", "flood")]);
        let mut judging = Judging { judge: Some("a:judge".parse().unwrap()), ..Judging::default() };
        let Compared { agreement, .. } = compare_answers(&one, &other, &mut judging);
        assert_eq!((agreement.documents, agreement.unjudged), (Rate { agreed: 1, compared: 1 }, 2));
        assert_eq!(agreement.at_worst(), Rate { agreed: 1, compared: 3 });
        let enough = agreement::enough(Some(&agreement), 0.2, "a:two");
        assert_eq!(enough, Outcome::Faulty, "what agrees word by word needs no judge");
        let pairs = String::from_utf8(judging.pairs.lines().unwrap()).unwrap();
        let pairs: Vec<serde_json::Value> =
            pairs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(pairs.len(), 2);
        for pair in pairs {
            let (id, text) = (pair["id"].as_str().unwrap(), pair["text"].as_str().unwrap());
            let passed = text.contains("<expected>\nat noon\n</expected>\n<answer>\n12 o'clock");
            judging.pairs.take(
                &format!("pairs.jsonl__{id}"),
                &json!({"passed": passed, "reason": ""}).to_string(),
            );
        }
        let Compared { agreement, .. } = compare_answers(&one, &other, &mut judging);
        assert_eq!((agreement.documents, agreement.unjudged), (Rate { agreed: 2, compared: 3 }, 0));
    }

    #[test]
    fn a_route_costs_what_either_model_costs_or_all_of_the_first_and_a_part_of_the_second() {
        let with_cost = |model, usd| ModelResult { cost_usd_of_all: usd, ..result(model, &[]) };
        let (cheap, dear) = (with_cost("a:cheap", Some(10.0)), with_cost("a:dear", Some(100.0)));
        assert_eq!(cost_of_route(&cheap, &dear), Some(Range { from: 10.0, to: 100.0 }));
        assert_eq!(cost_of_route(&dear, &cheap), Some(Range { from: 10.0, to: 100.0 }));
        assert_eq!(cost_of_route(&cheap, &with_cost("a:free", None)), None);
        let failed = Rate { agreed: 30, compared: 100 };
        let checked = ModelResult { failed_checks: Some(failed), ..cheap };
        let Range { from, to } = cost_of_route(&checked, &dear).unwrap();
        let [least, most] = failed.interval().map(|part| 10.0 + 100.0 * part);
        assert!(least > 30.0 && most < 50.0, "{least} to {most}");
        assert_eq!((from, to), (least, most));
    }
}
