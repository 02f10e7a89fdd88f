//! The comparison of answers, with a judge that says which whole answers say the same.

use anyhow::Context;
use serde_json::Value;
use tidegate_activities::{
    Services,
    batch::pairs::{INSTRUCTIONS, Pairs, batch},
    output::{
        agreement::{Agreement, Compared},
        truth::Truth,
    },
};
use tidegate_types::ModelId;
use tidegate_workflows::{contract::Judge, input::BatchInput};

use crate::cli::{batch_flags, fleet::Fleet, output, sample_report::Answered};

use super::{
    comparison::{Judged, ModelResult},
    model_batch::ModelBatch,
};

#[derive(Debug, clap::Args)]
pub(super) struct JudgeFlags {
    /// A model that compares answers without a schema by what they say; without it they are compared
    /// word by word
    #[arg(long, value_name = "MODEL", conflicts_with = "schema")]
    judge: Option<ModelId>,
    /// When an answer passes for the expected one [default: if it says the same]; @FILE reads it from a
    /// file
    #[arg(long, value_name = "TEXT|@FILE", requires = "judge")]
    judge_instructions: Option<String>,
}

impl JudgeFlags {
    /// The judge's batch, whose pairs are not known yet.
    pub(super) fn batch(&self, base: &BatchInput) -> anyhow::Result<Option<ModelBatch>> {
        let Some(model) = self.judge.clone() else { return Ok(None) };
        let given = self.judge_instructions.as_deref().unwrap_or(INSTRUCTIONS);
        let instructions = batch_flags::text("--judge-instructions", given)?;
        let below = |name: &str| format!("{}/{name}", base.output.trim_end_matches('/'));
        let judge = Judge { model: model.clone(), instructions };
        let input = batch(&judge, base, below("judged/_tidegate/pairs.jsonl"), below("judged/"));
        ModelBatch::new(model, input).map(Some)
    }
}

/// The state of a comparison, and what the judge has said.
#[derive(Debug, Default)]
pub(super) struct Judging {
    pub(super) judge: Option<ModelId>,
    /// The expected answers, if a judge compares with them.
    pub(super) truth: Option<Truth>,
    pub(super) pairs: Pairs,
    pub(super) judged: Option<Judged>,
}

impl Judging {
    pub(super) async fn new(
        services: &Services,
        judge: Option<&ModelBatch>,
        truth: Option<&str>,
    ) -> anyhow::Result<Self> {
        let judge = judge.map(|judge| judge.model.clone());
        let truth = match truth.filter(|_| judge.is_some()) {
            Some(uri) => Some(Truth::read_checked(&services.storage, uri).await?.1),
            None => None,
        };
        Ok(Self { judge, truth, ..Self::default() })
    }

    /// Compares each two models, and all with the truth where a judge decides about that. Pairs without
    /// a verdict are noted.
    pub(super) fn compare(&mut self, models: &mut [ModelResult]) -> Vec<Compared> {
        if let Some(truth) = self.truth.take() {
            models.iter_mut().for_each(|seen| self.compare_with(&truth, seen));
            self.truth = Some(truth);
        }
        pairs_of(models).map(|(one, other)| compare_answers(one, other, self)).collect()
    }

    fn compare_with(&mut self, truth: &Truth, seen: &mut ModelResult) {
        let Some(by_words) = &seen.agreement else { return };
        let mut compared = Compared::default();
        for (id, answer) in &seen.answers {
            if let Some(expected) = truth.expected(id) {
                self.add(&mut compared, expected, answer, (answer.usd(), answer.seconds));
            }
        }
        let Agreement { unanswered, .. } = *by_words;
        let (without_document, without_truth) =
            (by_words.without_document.clone(), by_words.without_truth.clone());
        let Compared { agreement, .. } = compared.into_report(self.judge.as_ref());
        let agreement = Agreement { unanswered, without_document, without_truth, ..agreement };
        seen.agreement = Some(agreement);
    }

    fn add(
        &mut self,
        compared: &mut Compared,
        expected: &Value,
        answer: &Answered,
        taken: (Option<f64>, Option<f64>),
    ) {
        compared.add(&answer.id, expected, &answer.answer, taken, |one, other| match self.judge {
            Some(_) => self.pairs.verdict(one, other),
            None => Some(false),
        });
    }
}

/// Each two models once.
pub(super) fn pairs_of(
    models: &[ModelResult],
) -> impl Iterator<Item = (&ModelResult, &ModelResult)> {
    let with_later = |(at, one)| models[at + 1..].iter().map(move |other| (one, other));
    models.iter().enumerate().flat_map(with_later)
}

/// Compares another model's answers with the first model's answers as the truth.
pub(super) fn compare_answers(
    one: &ModelResult,
    other: &ModelResult,
    judging: &mut Judging,
) -> Compared {
    let mut compared = Compared::default();
    for (id, first) in &one.answers {
        let expected = match serde_json::from_str(&first.answer) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(first.answer.clone()),
        };
        match other.answers.get(id) {
            Some(second) => judging.add(&mut compared, &expected, second, (None, None)),
            None => compared.agreement.unanswered += 1,
        }
    }
    compared.into_report(judging.judge.as_ref())
}

/// Asks the judge about the noted pairs, and takes its verdicts. Returns whether it has ended; otherwise
/// the user has detached. Pairs stay unjudged where the judge has no budget or quota.
pub(super) async fn ask(
    fleet: Fleet<'_>,
    services: &Services,
    judge: &ModelBatch,
    judging: &mut Judging,
) -> anyhow::Result<bool> {
    let mut answers = Vec::new();
    if !judging.pairs.is_empty() {
        let source = judge.input.source.as_deref().unwrap_or_default();
        let place = services.storage.resolve(source).context("output")?;
        place.write(judging.pairs.lines()?).await.context("writing the pairs")?;
        judge.start(fleet.temporal).await?;
        match judge.completed(fleet).await {
            Ok(Some(_)) => answers = judge.answers(services).await?,
            Ok(None) => return Ok(false),
            Err(error) => output::print_message(&format!("no pair is judged: {error:#}")),
        }
    }
    let verdicts = answers.iter().filter(|it| judging.pairs.take(&it.id, &it.answer)).count();
    judging.judged = Some(Judged {
        model: judge.model.clone(),
        pairs: judging.pairs.len() as u64,
        verdicts: verdicts as u64,
        cost_usd: answers.iter().filter_map(Answered::usd).sum(),
    });
    Ok(true)
}
