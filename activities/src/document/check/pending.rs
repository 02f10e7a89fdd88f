//! The state of a checked answer between two attempts: `<output>/_tidegate/checking/<id>.json`.

use serde::{Deserialize, Serialize};
use tidegate_calls::route::Route;
use tidegate_types::{DocumentId, ModelId, Spend, Usage};
use tidegate_workflows::contract::{AskedAnswer, Check, Job, Judge};

use crate::{
    attempt::{Attempt, RecordedUse},
    document::check::judge::VERDICT_TOKENS,
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        jsonl::json,
        layout,
        pending_writes::Bought,
        result::{AskedModel, Checked, DocumentResult, MAX_ASKS},
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// The progress of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pending {
    /// The last answer, with the results of its checks so far.
    pub(crate) result: Option<DocumentResult>,
    /// The models that were asked, in order.
    pub(crate) asked: Vec<AskedModel>,
    /// Index of the route's model that is asked now, from 0.
    pub(crate) level: u32,
    /// How often it has answered.
    pub(crate) asks: u32,
    /// Calls that returned an answer or a verdict.
    pub(crate) step: u32,
    /// The cost of earlier activities.
    pub(crate) before: Spend,
    /// The use of the activity that wrote this.
    #[serde(flatten)]
    used: RecordedUse,
}

impl Pending {
    pub(super) fn location(output: &Location, id: &DocumentId) -> Location {
        output.child(layout::FOLDER).child("checking").child(&format!("{id}.json"))
    }

    /// Reads the stored state, if it is about this question and this version of the document.
    pub(super) async fn read(
        place: &Location,
        asks: Fingerprint,
        version: &Version,
    ) -> Result<Option<Self>, Failure> {
        let bytes = place.read_if_there().await?;
        let pending = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let is_ours = |result: &DocumentResult| {
            result.question == Some(asks) && result.version.is_same(version) != Some(false)
        };
        Ok(pending.filter(|pending| pending.result.as_ref().is_some_and(is_ours)))
    }

    /// Continues an attempt from this state, because the reports of earlier attempts may be lost.
    pub(super) fn resume_with(&mut self, attempt: &Attempt) {
        if self.used.is_of(attempt) {
            attempt.recall(&self.used);
        } else {
            self.before += self.used.spent();
        }
        attempt.set_answered_questions(self.step);
        attempt.set_asked_answers(self.answers());
    }

    /// Returns the answers that were asked for, in the form of a failure's report. The reasons are
    /// left out, because they quote the answers.
    pub(super) fn answers(&self) -> Vec<AskedAnswer> {
        self.asked.iter().map(|asked| asked.answer.clone()).collect()
    }

    pub(super) fn bought(
        &mut self,
        attempt: &Attempt,
        place: &Location,
    ) -> Result<Bought, Failure> {
        self.used = attempt.recorded_use();
        Ok(Bought::new(place, json(self)?).replacing())
    }

    /// Turns the state into a result that includes all costs.
    pub(super) fn into_result(self, attempt: &Attempt, escalates: bool) -> Option<DocumentResult> {
        let result = self.result?;
        let has_price = result.cost_usd.is_some();
        let asked = if escalates || self.asked.len() > 1 { self.asked } else { Vec::new() };
        let spend = self.before + attempt.spent();
        Some(DocumentResult { asked, ..result }.with_spend(spend, has_price))
    }

    /// Whether the answer's expressions are still to be evaluated, because no process for them
    /// could be started.
    pub(super) fn needs_expressions(&self, job: &Job) -> bool {
        let mut expressions = job.checks.iter().filter(|check| check.judge.is_none());
        let is_known = |result: &DocumentResult, check: &Check| {
            result.checks.iter().any(|it| it.name == check.name)
        };
        let result = self.result.as_ref();
        result.is_some_and(|result| expressions.any(|check| !is_known(result, check)))
    }

    /// The checks that the answer has failed.
    pub(super) fn failed_checks(&self) -> Vec<Checked> {
        let checks = self.result.iter().flat_map(|result| &result.checks);
        checks.filter(|check| !check.passed).cloned().collect()
    }

    /// The judges that are still to be asked, if the answer has passed everything before.
    pub(super) fn open_judges<'a>(
        &self,
        job: &'a Job,
    ) -> impl Iterator<Item = (&'a str, &'a Judge)> {
        let result = self.result.as_ref().filter(|_| self.failed_checks().is_empty());
        let is_open = move |check: &&Check| {
            result.is_some_and(|result| {
                let is_known = result.checks.iter().any(|it| it.name == check.name);
                !is_known && !result.unchecked.contains(&check.name)
            })
        };
        let open = job.checks.iter().filter(is_open);
        open.filter_map(|check| Some((check.name.as_str(), check.judge.as_ref()?)))
    }

    /// Moves on to the next of `levels` models. Returns whether there is one.
    pub(super) fn move_to_next_model(&mut self, levels: usize) -> bool {
        let next = self.level + 1;
        let goes_on = usize::try_from(next).is_ok_and(|next| next < levels);
        if goes_on {
            (self.level, self.asks) = (next, 0);
        }
        goes_on
    }
}

/// The greatest cost of the calls of one document.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    pub(super) services: &'a Services,
    pub(super) job: &'a Job,
    /// The models that are asked, one after the other.
    pub(super) levels: &'a [Route],
}

impl Bound<'_> {
    /// US dollars of a call with these tokens; 0 where no price is known.
    fn usd(&self, model: &ModelId, input: u64, output: u64) -> f64 {
        let usage = Usage { uncached_input: input, output, ..Usage::default() };
        self.services.cost_usd(model, &usage).unwrap_or_default()
    }

    /// US dollars of an answer of this model of the route, verdicts included.
    fn answer_usd(&self, level: &Route, input: u64) -> f64 {
        let output = u64::from(self.job.likely_output_tokens());
        let asked = level.models.iter().map(|model| self.usd(model, input, output));
        asked.fold(0.0, f64::max) + self.verdicts_usd(input, self.job.judges())
    }

    /// US dollars of the verdicts of these judges on an answer.
    fn verdicts_usd<'j>(&self, input: u64, judges: impl Iterator<Item = &'j Judge>) -> f64 {
        let input = input + u64::from(self.job.likely_output_tokens());
        judges.map(|judge| self.usd(&judge.model, input, VERDICT_TOKENS.into())).sum()
    }

    /// US dollars of all calls that may follow the next one, for a document of this many tokens.
    pub(super) fn rest_usd(&self, input: u64, pending: &Pending) -> f64 {
        let level = usize::try_from(pending.level).unwrap_or_default();
        let later = self.levels.iter().skip(level + 1);
        let later: f64 = later.map(|it| f64::from(MAX_ASKS) * self.answer_usd(it, input)).sum();
        let Some(now) = self.levels.get(level) else { return 0.0 };
        let mut open = pending.open_judges(self.job).map(|(_, judge)| judge);
        let left = MAX_ASKS.saturating_sub(pending.asks);
        let (verdicts, left) = match open.next() {
            Some(_) => (self.verdicts_usd(input, open), left),
            None => (self.verdicts_usd(input, self.job.judges()), left.saturating_sub(1)),
        };
        verdicts + f64::from(left) * self.answer_usd(now, input) + later
    }
}
