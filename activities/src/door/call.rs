//! `tidegate.call` with a prompt in tidegate's own fields, for any vendor; or with a body in the vendor's own
//! form, which is sent unchanged, tools and pictures included.

use serde_json::Value;
use tidegate_calls::{
    caller::Terms,
    dialect::account_fields::{check_background, is_off},
};
use tidegate_providers::{Fields, Turn};
use tidegate_types::{DocumentId, Spend};
use tidegate_workflows::{
    contract::{CallOutcome, Job, Target},
    input::{self, call::CallInput},
};

use crate::{
    batch::model_parameters,
    document::ask::{
        evidence::QuoteSource,
        inquiry::{AnswerSubject, Inquiry, answer},
        output_cap,
        prompt::{Content, Question},
        prompt_builder::{InstructionsPosition, PromptText, role},
    },
    door::{call_context::CallContext, input::ResolvedInput},
    failure::Failure,
    fingerprint::hash,
    metrics,
    output::{
        job::{Document, route_of},
        result::DocumentResult,
        version::Version,
    },
    schema::SchemaValidator,
};

/// Asks. Waits in place if the caller allows no further attempt.
///
/// # Errors
/// `InvalidInput` states the remedy; otherwise the failures of the guard and the provider.
pub(super) async fn ask(
    asked: CallContext<'_>,
    given: ResolvedInput,
) -> Result<CallOutcome, Failure> {
    let call = input::call::call(given.value).map_err(Failure::invalid_input)?;
    if let Some(body) = given.body {
        return ask_body(asked, call, body).await;
    }
    let CallContext { services, lane, stored, .. } = asked;
    let job = Job { lane: lane.clone(), ..call.job().map_err(Failure::invalid_input)? };
    let validator = job.schema.as_ref().map(SchemaValidator::compile).transpose()?;
    let route = route_of(&job.target, &services.routes)?.require_equivalents()?;
    let mut job = model_parameters::with_parameters(services, &job, &route)?;
    if job.default_output {
        let (guard, thinking) = (&services.guard, job.thinking_tokens());
        job.max_output_tokens = output_cap::of_route(guard, &services.providers, &route, thinking);
    }
    let template = template(&job);
    let terms = Terms { lane, tenant: &job.tenant, batch_usd: None, retries: None };
    let inquiry = Inquiry {
        job: &job,
        route: &route,
        validator: validator.as_ref(),
        terms,
        asks: stored.asks,
    };
    let nothing = Content::Text(String::new());
    let answered = asked.ask(&route, |attempt| {
        let question =
            Question::for_document(&job, template, wording(&job), &nothing).without_cache();
        let document = Document::file(DocumentId::from_relative_path("call"), String::new());
        let size_advice = "ask for less, or choose a model that takes more".into();
        let (version, refused, sought) = (Version::default(), &stored.part, QuoteSource::Gone);
        let about =
            AnswerSubject { document, version, refused, correction: None, size_advice, sought };
        async move { answer(services, &attempt, inquiry, question, about).await }
    });
    let result = answered.await?;
    metrics::count_answer(&result.model, result.cost_usd, &job.tenant);
    Ok(outcome(result, job.schema.is_some()))
}

/// The prompt's text: no template is filled, and nothing is added around the prompt.
fn wording(job: &Job) -> PromptText<'_> {
    let turns = job.messages.iter();
    PromptText {
        system: job.system.as_deref().unwrap_or_default().into(),
        turns: turns.map(|it| Turn { role: role(it.role), text: it.content.clone() }).collect(),
        place: InstructionsPosition::Around,
        instructions: job.instructions.as_str().into(),
        is_shared: false,
    }
}

/// Hash of similar calls, whose token use is learned together. Their prompts differ; system prompt,
/// schema and thinking are equal.
fn template(job: &Job) -> u64 {
    let common = serde_json::to_vec(&(&job.system, &job.schema, &job.asked_with));
    hash([&b"call"[..], &common.unwrap_or_default()])
}

fn outcome(result: DocumentResult, has_schema: bool) -> CallOutcome {
    let finish = serde_json::to_value(result.finish).ok();
    let finish = finish.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    CallOutcome {
        value: has_schema.then(|| serde_json::from_str(&result.answer).ok()).flatten(),
        answer: Some(result.answer),
        reply: None,
        answer_uri: None,
        finish,
        model: result.model,
        input_tokens: result.input_tokens,
        cached_input_tokens: result.cached_input_tokens,
        output_tokens: result.output_tokens,
        usage_unknown: result.usage_unknown,
        cost_usd: result.cost_usd,
        provider_calls: result.provider_calls,
    }
}

/// Stands for details of a reply that is not parsed.
const UNKNOWN: &str = "unknown";

/// Sends the body. Waits in place if the caller allows no further attempt.
///
/// # Errors
/// `InvalidInput` states the remedy; otherwise the failures of the guard and the provider.
async fn ask_body(
    asked: CallContext<'_>,
    call: CallInput,
    body: Fields,
) -> Result<CallOutcome, Failure> {
    let CallContext { services, lane, .. } = asked;
    let (model, tenant) = call.into_body().map_err(Failure::invalid_input)?;
    check_answer_comes_whole(&body).map_err(Failure::invalid_input)?;
    let route = &route_of(&Target::Model(model), &services.routes)?;
    let terms = Terms { lane, tenant: &tenant, batch_usd: None, retries: None };
    let body = &body;
    let answered = asked.ask(route, |attempt| async move {
        services.caller().send(&attempt.call, terms, route, None, body).await
    });
    let (model, whole) = answered.await?;
    let usage = whole.facts.usage;
    let cost_usd = usage.and_then(|usage| services.cost_usd(model, &usage));
    metrics::count_answer(model, cost_usd, &tenant);
    let own = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
    let spend = asked.attempt.spent() + own;
    Ok(CallOutcome {
        answer: None,
        value: None,
        reply: Some(whole.body),
        answer_uri: None,
        finish: UNKNOWN.to_owned(),
        model: model.clone(),
        input_tokens: spend.input_tokens,
        cached_input_tokens: spend.cached_input_tokens,
        output_tokens: spend.output_tokens,
        usage_unknown: usage.is_none(),
        cost_usd: cost_usd.map(|_| spend.cost_usd),
        provider_calls: spend.provider_calls,
    })
}

/// Refuses a body whose answer does not come whole.
///
/// # Errors
/// The reason.
fn check_answer_comes_whole(body: &Fields) -> Result<(), String> {
    if !is_off(body.get("stream").as_ref()) {
        return Err("body.stream must be false: an activity returns the answer whole".to_owned());
    }
    check_background(body).map_err(|refused| format!("body.{refused}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_whose_answer_does_not_come_whole_is_refused_by_the_fields_name() {
        for (body, names) in [
            (r#"{"stream":true}"#, Some("body.stream")),
            (r#"{"stream":"true"}"#, Some("body.stream")),
            (r#"{"background":true}"#, Some("body.background")),
            (r#"{"background":1}"#, Some("body.background")),
            (r#"{"stream":false,"background":null,"previous_response_id":"r"}"#, None),
        ] {
            let checked = check_answer_comes_whole(&Fields::read(body.as_bytes()).unwrap());
            match (checked, names) {
                (Err(why), Some(name)) => assert!(why.starts_with(name), "{why}"),
                (checked, names) => assert_eq!((checked, names), (Ok(()), None), "{body}"),
            }
        }
    }
}
