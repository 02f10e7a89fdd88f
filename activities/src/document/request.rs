//! A document that is a request in a vendor's own form. Its body is sent unchanged, or translated
//! for a model that speaks another dialect, as the HTTP door does. The reply is the answer.

use std::time::SystemTime;

use bytes::Bytes;
use serde_json::Value;
use tidegate_calls::{
    dialect::{DialectRoute, account_fields},
    route::{Route, Routes},
};
use tidegate_providers::{
    BatchApi, Completion, Fields, Operation, Provider, RequestFacts, StopReason, passive::Whole,
};
use tidegate_types::{FailureType, ModelId, Spend, Usage, seconds_since_1970};
use tidegate_workflows::contract::{Job, Lines};

use crate::{
    attempt::Attempt,
    document::read::content,
    failure::Failure,
    output::{
        job::{Document, Shard, route_of},
        jsonl::unmarked,
        result::{DocumentResult, Given},
    },
    services::Services,
};

/// The error of a line that is not a request.
pub(crate) const NO_OBJECT: &str = "it is not one JSON object with each field once";

/// Parses a line into its fields, without changing their text.
///
/// # Errors
/// A sentence that quotes nothing of the line.
pub(crate) fn fields(line: &[u8]) -> Result<Fields, String> {
    Fields::read(unmarked(line)).map_err(|_| NO_OBJECT.to_owned())
}

/// The models that a batch of requests asks, as far as its lines name known ones; otherwise the
/// models that the batch's author names for all lines.
///
/// # Errors
/// `InvalidInput` where the author names none either.
pub(crate) fn route(services: &Services, job: &Job, lines: &Lines) -> Result<Route, Failure> {
    let mut models: Vec<ModelId> = Vec::new();
    for name in &lines.names {
        for model in route_of_name(services, name).map(|route| route.models).unwrap_or_default() {
            if !models.contains(&model) {
                models.push(model);
            }
        }
    }
    match models.is_empty() {
        true => route_of(&job.target, &services.routes),
        false => Ok(Route::pool(models)),
    }
}

/// The models behind a name; `None` where this worker knows no such model or route.
fn route_of_name(services: &Services, name: &str) -> Option<Route> {
    let is_configured =
        |model: &ModelId| services.guard.quota.models().any(|known| known.id == *model);
    let routes: &Routes = &services.routes;
    let model = || name.parse::<ModelId>().ok().filter(is_configured);
    routes.get(name).cloned().or_else(|| Some(Route::for_model(&model()?, routes)))
}

/// Estimated input tokens of a request; `None` for one that cannot be parsed.
pub(crate) fn input_tokens(lines: &Lines, line: &str) -> Option<u64> {
    let body = fields(line.as_bytes()).ok()?.get("body")?;
    let asked = RequestFacts::read(&lines.endpoint, body.to_string().as_bytes())?;
    Some(asked.input_tokens)
}

/// Builds a request for a batch of this model's provider, and its estimated input tokens. `None`
/// for a request to another model or in another dialect, and for an invalid one: the direct path
/// reports why.
///
/// # Errors
/// A [`Failure`] when the store does not return it.
pub(crate) async fn in_batch(
    services: &Services,
    lines: &Lines,
    document: &Document,
    (model, batches): (&ModelId, &dyn BatchApi),
    custom_id: &str,
) -> Result<Option<(Vec<u8>, u64)>, Failure> {
    if document.unreadable.is_some() {
        return Ok(None);
    }
    let bytes = content::read_line(services, document, document.line.unwrap_or_default()).await?;
    let call = Call::read(services, lines, document, &bytes).ok();
    let call = call.filter(|call| call.as_it_is(services).step(0).contains(&model));
    Ok(call.and_then(|Call { operation, body, asked, .. }| {
        let line = batches.line_as_it_is(custom_id, operation, model.model(), &body);
        Some((line.ok()?, asked.input_tokens))
    }))
}

/// Turns the vendor's reply to a request into a completion whose answer is the reply as JSON.
pub(crate) fn completion(Whole { body, facts, .. }: Whole) -> Completion {
    Completion {
        answer: body.to_string(),
        stop_reason: StopReason::EndTurn,
        usage: facts.usage,
        observed: facts.observed,
    }
}

/// Asks; returns the vendor's reply as JSON in place of an answer, with its cost.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    lines: &Lines,
    document: Document,
) -> Result<DocumentResult, Failure> {
    if lines.until.is_some_and(|until| seconds_since_1970(SystemTime::now()) >= until) {
        return Err(Failure::never(
            FailureType::Expired,
            "This request could not be executed before the completion window expired.",
        ));
    }
    if let Some(why) = document.unreadable {
        return Err(Failure::never(FailureType::InvalidRequest, why));
    }
    let bytes = content::read_line(services, &document, document.line.unwrap_or_default()).await?;
    let call = Call::read(services, lines, &document, &bytes)?;
    let (model, usage, reply) = Box::pin(call.ask(services, attempt, shard)).await?;
    let cost_usd = usage.and_then(|usage| services.cost_usd(&model, &usage));
    let own = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
    let version = document.version.clone();
    let given = Given::Answer(reply.to_string(), StopReason::EndTurn);
    Ok(DocumentResult::answered((&shard.job, shard.asks), (document, version), &model, given)
        .with_usage_unknown(usage.is_none())
        .with_spend(attempt.spent() + own, cost_usd.is_some()))
}

/// A valid request.
struct Call {
    operation: Operation,
    body: Fields,
    /// The client's name for the model.
    name: String,
    route: Route,
    asked: RequestFacts,
    /// The client's name for the line.
    place: String,
}

impl Call {
    fn read(
        services: &Services,
        lines: &Lines,
        document: &Document,
        line: &Bytes,
    ) -> Result<Self, Failure> {
        let word = if lines.is_anthropics() { "request" } else { "line" };
        let number = document.id.as_str().trim_start_matches('0');
        let place = format!("{word} {number}");
        let refused = |why: String| refusal(&place, &why);
        let operation = Operation::at(&lines.endpoint)
            .ok_or_else(|| refused(format!("url: there is no {} here", lines.endpoint)))?;
        let line = fields(line).map_err(refused)?;
        let body = line.raw("body").unwrap_or_default();
        let body = Fields::read(body.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let Some(Value::String(name)) = body.get("model") else {
            return Err(refused("model must be a model's or a route's name".to_owned()));
        };
        let may_ask = lines.may_ask.is_empty() || lines.may_ask.contains(&name);
        let route = route_of_name(services, &name).filter(|_| may_ask).ok_or_else(|| {
            let message = format!(
                "{place}: the model {name} does not exist, or this key may not ask it; GET /v1/models lists those that it may"
            );
            Failure::never(FailureType::UnknownModel, message)
        })?;
        let route = route
            .require_equivalents()
            .map_err(|failure| refused(format!("model cannot be asked: {}", failure.message)))?;
        if !account_fields::is_off(body.get("stream").as_ref()) {
            return Err(refused("stream must be false: a batch's answers come whole".to_owned()));
        }
        account_fields::check(&body, &lines.may_ask).map_err(|why| refused(why.to_string()))?;
        let asked = RequestFacts::read(operation.path(), &body.to_vec()).ok_or_else(|| {
            let (field, why) = body.unreadable().unwrap_or(("messages", String::new()));
            refused(format!("{field} cannot be read: {why}"))
        })?;
        Ok(Self { operation, body, name, route, asked, place })
    }

    /// The route's models that take the request unchanged.
    fn as_it_is(&self, services: &Services) -> Route {
        let takes = |it: &dyn Provider| it.takes(self.operation);
        self.route.filter(|model| services.providers.get(model).is_some_and(takes))
    }

    /// Asks once. Returns the model, its use, and its reply in the request's dialect.
    async fn ask(
        &self,
        services: &Services,
        attempt: &Attempt,
        shard: &Shard,
    ) -> Result<(ModelId, Option<Usage>, Value), Failure> {
        let Self { operation, body, name, route, asked, place } = self;
        let named = (*operation, name.as_str());
        let read = DialectRoute::read(named, body, asked, route, &services.providers);
        let ways = read.map_err(|why| refusal(place, &why.to_string()))?;
        let (caller, terms) = (services.caller(), shard.terms());
        let (model, usage, reply) = ways.ask(caller, &attempt.call, terms, body).await?;
        Ok((model.clone(), usage, reply))
    }
}

fn refusal(place: &str, why: &str) -> Failure {
    Failure::never(FailureType::InvalidRequest, format!("{place}: body.{why}"))
}
