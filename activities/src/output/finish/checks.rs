//! The results of a batch's checks by name, and the documents that escalated to the next model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{AskedAnswer, FailureFacts};

use crate::output::result::DocumentResult;

/// The results of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checks {
    /// By the check's name.
    pub by_name: BTreeMap<String, CheckTotals>,
    /// Documents whose answers were checked.
    pub documents: u64,
    /// Of these, the documents that were asked of more than one model of the route.
    pub escalated: u64,
    /// How often each model was asked for an answer.
    pub asked: BTreeMap<ModelId, u64>,
    /// The documents of each level: index of the route's model, from 0.
    pub levels: BTreeMap<u32, LevelTotals>,
}

/// The documents that reached one level of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelTotals {
    /// Documents that were asked there.
    pub documents: u64,
    /// Of these, the documents that were asked there once more.
    pub asked_again: u64,
}

/// The results of one check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckTotals {
    /// Results that pass it.
    pub passed: u64,
    /// Documents that were given up and whose last answer failed it.
    pub failed: u64,
    /// Results whose judge could not be asked.
    pub unchecked: u64,
    /// Answers that failed it, and were asked for once more.
    pub asked_again: u64,
    /// Answers that failed it, and were asked of the next model.
    pub escalated: u64,
}

impl Checks {
    /// Whether nothing was checked.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a result. Only its model was asked unless it states otherwise.
    pub(super) fn add(&mut self, result: &DocumentResult) {
        if result.checks.is_empty() && result.unchecked.is_empty() {
            return;
        }
        self.documents += 1;
        for check in result.checks.iter().filter(|check| check.passed) {
            self.totals_mut(&check.name).passed += 1;
        }
        result.unchecked.iter().for_each(|name| self.totals_mut(name).unchecked += 1);
        if result.asked.is_empty() {
            *self.asked.entry(result.model.clone()).or_default() += 1;
            self.levels.entry(0).or_default().documents += 1;
        }
        self.asked_for(result.asked.iter().map(|it| &it.answer));
    }

    /// Adds a document that was given up.
    pub(super) fn fail(&mut self, failed: &FailureFacts) {
        self.documents += u64::from(!failed.asked.is_empty());
        failed.failed_checks.iter().for_each(|name| self.totals_mut(name).failed += 1);
        self.asked_for(failed.asked.iter());
    }

    /// Adds the answers that a document was asked for, in order.
    fn asked_for<'a>(&mut self, asked: impl Iterator<Item = &'a AskedAnswer>) {
        let mut before = None;
        for AskedAnswer { model, level, failed } in asked {
            let level = *level;
            *self.asked.entry(model.clone()).or_default() += 1;
            let documents = self.levels.entry(level).or_default();
            match before == Some(level) {
                true => documents.asked_again += 1,
                false => documents.documents += 1,
            }
            for name in failed {
                let totals = self.totals_mut(name);
                match before == Some(level) {
                    true => totals.asked_again += 1,
                    false => totals.escalated += 1,
                }
            }
            before = Some(level);
        }
        self.escalated += u64::from(before > Some(0));
    }

    fn totals_mut(&mut self, name: &str) -> &mut CheckTotals {
        self.by_name.entry(name.to_owned()).or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn checks_are_counted_by_name_and_models_by_how_often_they_were_asked() {
        let result = |checks, asked| -> DocumentResult {
            serde_json::from_value(json!({
                "id": "a", "uri": "file:///a", "model": "p:a", "answer": "", "stop_reason": "end_turn",
                "finish": "complete", "input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1,
                "provider_calls": 1, "completed_at": "2026-01-01T00:00:00Z",
                "checks": checks, "unchecked": ["judge"], "asked": asked,
            }))
            .unwrap()
        };
        let passed = json!([{"name": "total", "passed": true}]);
        let mut checks = Checks::default();
        checks.add(&result(passed.clone(), json!([])));
        checks.add(&result(
            passed,
            json!([
                {"model": "p:a", "why": "first"},
                {"model": "p:a", "why": "", "failed": ["total"]},
                {"model": "p:b", "level": 1, "why": "", "failed": ["total"]},
            ]),
        ));
        let given_up = json!({
            "error_type": "CheckFailed",
            "failed_checks": ["total"],
            "asked": [
                {"model": "p:a"},
                {"model": "p:a", "failed": ["total", "date"]},
                {"model": "p:b", "level": 1, "failed": ["total"]},
                {"model": "p:b", "level": 1, "failed": ["date"]},
            ],
        });
        checks.fail(&serde_json::from_value(given_up).unwrap());
        // A document that was given up before it was answered.
        checks.fail(&FailureFacts::default());
        let total = checks.by_name["total"];
        assert_eq!((total.passed, total.failed, total.asked_again, total.escalated), (2, 1, 2, 2));
        let date = checks.by_name["date"];
        assert_eq!((date.failed, date.asked_again, date.escalated), (0, 2, 0));
        assert_eq!(
            (checks.by_name["judge"].unchecked, checks.escalated, checks.documents),
            (2, 2, 3)
        );
        let of = |model: &str| checks.asked[&model.parse().unwrap()];
        assert_eq!((of("p:a"), of("p:b")), (5, 3));
        let level = |documents, asked_again| LevelTotals { documents, asked_again };
        assert_eq!(checks.levels, [(0, level(3, 2)), (1, level(2, 1))].into());
    }
}
