//! The parameters of each model of a batch: the author's take precedence over the configuration's.

use std::collections::BTreeMap;

use tidegate_calls::route::Route;
use tidegate_providers::{Providers, parameters::ALLOW_UNKNOWN};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{AskedWith, Job, Task};

use crate::{failure::Failure, services::Services};

/// Adds to the job the parameters of each model of its route. They are decided once, so that
/// workers with different configurations use the same ones.
///
/// # Errors
/// `InvalidInput` names the field that a model does not take.
pub(crate) fn with_parameters(
    services: &Services,
    job: &Job,
    route: &Route,
) -> Result<Job, Failure> {
    let mut asked_with = BTreeMap::new();
    for model in &route.models {
        let with = of_model(&services.providers, job, model)?;
        if !with.is_default() {
            asked_with.insert(model.clone(), with);
        }
    }
    Ok(Job { asked_with, ..job.clone() })
}

fn of_model(providers: &Providers, job: &Job, model: &ModelId) -> Result<AskedWith, Failure> {
    let configured = providers.defaults(model);
    let effort = job.effort.or_else(|| configured.and_then(|it| it.effort));
    let mut given = configured.map(|it| it.parameters.clone()).unwrap_or_default();
    if job.parameters.contains_key("thinking_budget") && job.effort.is_none() {
        // The author's effort replaces the configured effort.
        given.extend(job.parameters.clone());
        return checked(providers, job, model, AskedWith { effort: None, parameters: given });
    }
    if job.effort.is_some() {
        given.remove("thinking_budget");
    }
    given.extend(job.parameters.clone());
    checked(providers, job, model, AskedWith { effort, parameters: given })
}

fn checked(
    providers: &Providers,
    job: &Job,
    model: &ModelId,
    with: AskedWith,
) -> Result<AskedWith, Failure> {
    if with.is_default() {
        return Ok(with);
    }
    let AskedWith { effort, mut parameters } = with;
    let Some(dialect) = providers.dialect(model) else {
        // A program's own provider may take anything.
        parameters.remove(ALLOW_UNKNOWN);
        return Ok(AskedWith { effort, parameters });
    };
    let room = (!job.default_output).then_some(job.max_output_tokens);
    let parameters = match job.task {
        Task::Answer => dialect.check(model.model(), effort, &parameters, room),
        Task::Embed => dialect.check_embedding(model.model(), &parameters),
    };
    let parameters = parameters
        .map_err(|why| Failure::invalid_input(format!("parameters for {model}: {why}")))?;
    Ok(AskedWith { effort, parameters })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::{Value, json};
    use tidegate_providers::{Api, Defaults, Dialect, Vendor};
    use tidegate_types::Effort;

    use super::*;
    use crate::output::question::StatedQuestion;

    fn job(more: &Value) -> Job {
        let mut job = json!({"source": {"prefix": "file:///in/"}, "output": "file:///out/",
            "instructions": "Sum up.", "model": "openai:gpt-5.4", "lane": "batch",
            "tenant": "default", "max_output_tokens": 9_000, "default_output": true});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    fn providers(defaults: Option<Defaults>) -> Providers {
        let dialect = Dialect::new(Vendor::OPENAI, Api::ChatCompletions);
        Providers::without_clients([("openai".to_owned(), dialect)])
            .with_defaults(defaults.map(|it| ("openai:gpt-5.4".parse().unwrap(), it)))
    }

    fn asked(more: &Value, defaults: Option<Defaults>) -> Result<Job, Failure> {
        let (job, model) = (job(more), "openai:gpt-5.4".parse().unwrap());
        let with = of_model(&providers(defaults), &job, &model)?;
        let asked_with = (!with.is_default()).then_some((model, with)).into_iter().collect();
        Ok(Job { asked_with, ..job })
    }

    #[test]
    fn a_batch_goes_before_the_configuration() {
        let parameters = json!({"seed": 1, "verbosity": "low"}).as_object().unwrap().clone();
        let defaults = || {
            Some(Defaults {
                effort: Some(Effort::Low),
                parameters: parameters.clone(),
                ..Defaults::default()
            })
        };
        let with = |more: Value| {
            let job = asked(&more, defaults()).unwrap();
            serde_json::to_value(&job.asked_with).unwrap()["openai:gpt-5.4"].clone()
        };
        assert_eq!(
            with(json!({})),
            json!({"effort": "low", "parameters": {"seed": 1, "verbosity": "low"}})
        );
        let stated = json!({"effort": "none", "parameters": {"seed": 2, "temperature": 0}});
        assert_eq!(
            with(stated),
            json!({"effort": "none", "parameters": {"seed": 2, "verbosity": "low", "temperature": 0}})
        );
        let failure = asked(&json!({"parameters": {"temperature": 0}}), defaults()).unwrap_err();
        assert!(
            failure.message.contains("parameters for openai:gpt-5.4: temperature"),
            "{failure}"
        );
    }

    #[test]
    fn what_is_not_stated_asks_what_was_always_asked() {
        let question = |more: Value| StatedQuestion::from_job(&asked(&more, None).unwrap());
        let plain = question(json!({}));
        assert_eq!(
            plain.fingerprint().to_string(),
            StatedQuestion::from_job(&job(&json!({}))).fingerprint().to_string()
        );
        let warm = question(json!({"parameters": {"seed": 1}}));
        assert_eq!(warm.differences(&plain), ["parameters"]);
        let thinks = question(json!({"effort": "high"}));
        assert_eq!(thinks.differences(&plain), ["effort"]);
        // A field stated in another form is the same question.
        let unknown = question(json!({"parameters": {"seed": 1, "allow_unknown": true}}));
        assert_eq!(unknown, warm);
    }

    #[test]
    fn what_is_thought_has_room_and_is_reckoned_with() {
        let of = |more: Value| asked(&more, None).unwrap();
        assert_eq!(of(json!({})).likely_output_tokens(), 1_024);
        assert_eq!(of(json!({"effort": "low"})).likely_output_tokens(), 2_048);
        assert_eq!(of(json!({"effort": "medium"})).likely_output_tokens(), 9_000, "the bound");
        assert_eq!(of(json!({"effort": "none"})).thinking_tokens(), 0);
    }
}
