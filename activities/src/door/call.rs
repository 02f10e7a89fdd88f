//! `tidegate.call` with a prompt in tidegate's own fields, for any vendor.

use serde_json::Value;
use tidegate_calls::caller::Terms;
use tidegate_providers::Turn;
use tidegate_types::DocumentId;
use tidegate_workflows::{
    contract::{CallOutcome, Job},
    input,
};

use super::{body, call_context::CallContext, input::ResolvedInput};
use crate::{
    batch::model_parameters,
    document::ask::{
        evidence::QuoteSource,
        inquiry::{AnswerSubject, Inquiry, answer},
        output_cap,
        prompt::{Content, Question},
        prompt_builder::{InstructionsPosition, PromptText, role},
    },
    failure::Failure,
    hash::hash,
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
        return body::ask(asked, call, body).await;
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
