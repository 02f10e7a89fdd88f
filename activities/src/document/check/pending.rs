//! The state of a checked answer between two attempts: `<output>/_tidegate/checking/<id>.json`.

use serde::{Deserialize, Serialize};
use tidegate_types::{CallCounts, DocumentId, Spend};
use tidegate_workflows::contract::{self, AskedAnswer, Check, Job};

use crate::{
    attempt::Attempt,
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        jsonl::json,
        layout,
        pending_writes::Bought,
        result::{AskedModel, Checked, DocumentResult},
        version::Version,
    },
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
    /// The activity that wrote this, by its scheduled time.
    activity: i64,
    /// The calls of that activity.
    counts: CallCounts,
    discarded: Spend,
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
        if self.activity == attempt.scheduled_millis {
            attempt.call.recall(self.counts, self.discarded);
        } else {
            self.before += Spend::from(self.counts) + self.discarded;
        }
        attempt.set_answered_questions(self.step);
        attempt.set_asked_answers(self.answers());
    }

    /// Returns the answers that were asked for, in the form of a failure's report. The reasons are
    /// left out, because they quote the answers.
    pub(super) fn answers(&self) -> Vec<AskedAnswer> {
        let answer = |asked: &AskedModel| {
            let AskedModel { model, level, failed, why: _ } = asked.clone();
            AskedAnswer { model, level, failed }
        };
        self.asked.iter().map(answer).collect()
    }

    pub(super) fn bought(
        &mut self,
        attempt: &Attempt,
        place: &Location,
    ) -> Result<Bought, Failure> {
        let call = attempt.call.state();
        self.activity = attempt.scheduled_millis;
        (self.counts, self.discarded) = (call.counts, call.discarded);
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

    /// The next judge, if the answer has passed everything before.
    pub(super) fn next_judge<'a>(&self, job: &'a Job) -> Option<(&'a str, &'a contract::Judge)> {
        let result = self.result.as_ref().filter(|_| self.failed_checks().is_empty())?;
        let is_open = |check: &&Check| {
            let is_known = result.checks.iter().any(|it| it.name == check.name);
            check.judge.is_some() && !is_known && !result.unchecked.contains(&check.name)
        };
        let check = job.checks.iter().find(is_open)?;
        Some((check.name.as_str(), check.judge.as_ref()?))
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
