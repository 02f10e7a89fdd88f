//! The question of a batch about each document, in parts that can be compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{AskedWith, Attach, Job, Target, Task};

use crate::fingerprint::Fingerprint;

/// The fingerprint of each part of a question, by the name of its input field. A part that was not
/// stated is absent, so that a field of a later version does not change older questions.
///
/// Fields that only affect how the question is asked are left out: the cap on output, the pack, the
/// lane, the provider's batch API. So is the frame that tidegate puts around the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StatedQuestion(BTreeMap<String, Fingerprint>);

impl StatedQuestion {
    /// The question of a job.
    pub fn from_job(job: &Job) -> Self {
        let Job {
            instructions, target, schema, evidence, long, records, attach, asked_with, ..
        } = job;
        let Job {
            task,
            dimensions,
            template,
            system,
            messages,
            shown,
            checks,
            escalate,
            lines,
            ..
        } = job;
        let target = match target {
            Target::Model(model) => ("model", json!(model)),
            Target::Route(route) => ("route", json!(route)),
        };
        // Members of a pool get the same question, and their number is not part of it.
        let one = match &job.target {
            Target::Model(model) => Some(model),
            Target::Route(_) => None,
        };
        let of_models = |part: fn(&AskedWith) -> Option<Value>| {
            let parts = asked_with
                .iter()
                .filter_map(|(model, with)| Some((one.unwrap_or(model), part(with)?)));
            let parts: BTreeMap<&ModelId, Value> = parts.collect();
            (!parts.is_empty()).then(|| json!(parts))
        };
        let fields =
            |with: &AskedWith| (!with.parameters.is_empty()).then(|| json!(with.parameters));
        let optional = [
            ("task", (*task != Task::Answer).then(|| json!(task))),
            ("dimensions", dimensions.map(|dimensions| json!(dimensions))),
            ("template", template.then(|| json!(true))),
            ("system", system.as_ref().map(|system| json!(system))),
            ("messages", (!messages.is_empty()).then(|| json!(messages))),
            ("examples", (!shown.is_empty()).then(|| json!(shown))),
            ("parameters", of_models(fields)),
            ("effort", of_models(|with| with.effort.map(|effort| json!(effort)))),
            ("schema", schema.clone()),
            ("checks", (!checks.is_empty()).then(|| json!(checks))),
            ("escalate", escalate.then(|| json!(true))),
            ("evidence", evidence.then(|| json!(true))),
            ("attach", (*attach != Attach::Text).then(|| json!(attach))),
            ("long", long.map(|long| json!(long))),
            ("records", records.as_ref().map(|records| json!(records))),
            ("lines", lines.as_ref().map(|lines| json!(lines.endpoint))),
        ];
        let stated = [("instructions", json!(instructions)), target];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let parts = stated.into_iter().chain(optional);
        Self(parts.map(|(name, value)| (name.to_owned(), Fingerprint::of_json(&value))).collect())
    }

    /// The fingerprint of the whole question.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!(self))
    }

    /// The question without its model and that model's parameters.
    pub fn of_any_model(mut self) -> Self {
        let of_one = ["model", "route", "parameters", "effort"];
        self.0.retain(|name, _| !of_one.contains(&name.as_str()));
        self
    }

    /// The names of the parts that differ from another question.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        let (Self(ours), Self(theirs)) = (self, other);
        let only_there = theirs.keys().filter(|name| !ours.contains_key(*name));
        let ours = ours.iter().filter(|(name, part)| theirs.get(*name) != Some(part));
        ours.map(|(name, _)| name).chain(only_there).map(String::as_str).collect()
    }
}
