//! The way of one call: choose a model, wait for the turn, send the body as it is, pass the answer.

use std::{sync::Arc, time::Instant};

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderName, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, future::BoxFuture, stream};
use serde_json::{Value, json};
use tidegate_calls::{
    Attempt,
    admission::Admitted,
    attempt::CallState,
    caller::Terms,
    dialect::{DialectRoute, Translated},
    failure::Failure,
    route::Route,
    verbatim::{Answer, NoAnswer},
};
use tidegate_providers::{Error, Fields, Kind, Operation, Provider, Verbatim};
use tidegate_quota::Request;
use tidegate_types::ModelId;

use super::{
    access::Line,
    client_call::ClientCall,
    door::Door,
    in_turn::{Stop, admit, delay, first_ask, in_turn, request},
    problem::Problem,
    turn,
    usage_chunk::WithoutUsage,
};

/// Headers of a vendor's answer that go on to the client. Those of its limits do not: they are of an
/// account that others use, too.
const PASSED: [&str; 7] = [
    "content-type",
    "cache-control",
    "request-id",
    "x-request-id",
    "openai-processing-ms",
    "openai-version",
    "retry-after",
];

/// What comes of a turn: leave to send the body as it is, or the answer of another dialect, translated.
enum Turn {
    Admitted(Admitted),
    Answered(Value),
}

/// Answers a call. A model of a route that speaks another dialect is asked too, where the body can be
/// translated.
pub(super) async fn answer(
    door: &Arc<Door>,
    call: &ClientCall,
    line: &Line,
) -> Result<Response, Problem> {
    let providers = &door.services.providers;
    let Some(asked) = &call.asked else {
        let counts = |it: &&ModelId| providers.get(it).is_some_and(|it| it.takes(call.operation));
        let model = call.route.models.iter().find(counts);
        let model = model.ok_or_else(|| Problem::invalid("model", "does not count tokens"))?;
        line.asks(model);
        return count_tokens(door, call, model).await;
    };
    let named = (call.operation, call.name.as_str());
    let ways = DialectRoute::read(named, &call.fields, asked, &call.route, providers)?;
    let route = &ways.route;
    let attempt = attempt(call, route);
    let ask = |request: Request| -> BoxFuture<'_, _> {
        match ways.translated(&request.model) {
            Some(question) => Box::pin(ask_translated(door, call, &attempt, question, request)),
            None => Box::pin(ask_leave(door, &attempt, request)),
        }
    };
    let (turn, model) = in_turn(door, (call, line), route, &attempt, ask).await?;
    match turn {
        Turn::Admitted(admitted) => sent(door, call, admitted, model, &attempt).await,
        Turn::Answered(answer) => Ok(Json(answer).into_response()),
    }
}

/// Asks for leave to send the body as it is.
async fn ask_leave(door: &Arc<Door>, attempt: &Attempt, request: Request) -> Result<Turn, Stop> {
    if request.ticket.is_none() {
        return first_ask(door, attempt, request).await.map(Turn::Admitted);
    }
    let admitted = admit(door, attempt, &request).await;
    admitted.map(Turn::Admitted).map_err(|held| Stop::of(&held, door))
}

/// Asks a model that speaks another dialect.
async fn ask_translated(
    door: &Door,
    call: &ClientCall,
    attempt: &Attempt,
    question: &Translated,
    request: Request,
) -> Result<Turn, Stop> {
    let patience = request.max_wait.unwrap_or_default();
    let patient = attempt.clone().deadline(Some(Instant::now() + patience));
    let (lane, tenant) = (&call.holder.lane, &call.holder.tenant);
    let terms = Terms { lane, tenant, batch_usd: None, retries: None };
    let route = Route::single(request.model);
    let asked = door.services.caller().ask(&patient, terms, &route, question).await;
    let answered = asked.map(|(_, completion)| Turn::Answered(question.answer(&completion)));
    answered.map_err(|failure| {
        // What a provider has answered is for the client to ask again.
        let turn = if attempt.has_sent() { None } else { delay(&failure, door) };
        Stop::new(failure, turn)
    })
}

/// An attempt of a name that no other has, in the turn of the client's ticket.
fn attempt(call: &ClientCall, route: &Route) -> Attempt {
    let reservation = format!("http:{:032x}", rand::random::<u128>());
    let ticket = call.headers.get("x-tidegate-ticket").and_then(|value| value.to_str().ok());
    let kept = ticket.and_then(|text| turn::read(&call.holder, &route.models, text));
    let state = kept.map(|(place, ticket)| CallState {
        ticket: Some(ticket),
        model: u32::try_from(place).unwrap_or_default(),
        ..CallState::default()
    });
    let attempt = Attempt::new(reservation.clone(), String::new(), state.unwrap_or_default());
    attempt.of_batch("", &reservation)
}

/// Sends the body as it is; once more, after leave of its own, where the vendor refuses the one field
/// that the door adds.
async fn sent(
    door: &Door,
    call: &ClientCall,
    mut admitted: Admitted,
    model: &ModelId,
    attempt: &Attempt,
) -> Result<Response, Problem> {
    let Some(provider) = door.services.providers.get(model) else {
        return Err(Problem::no_model(&call.name));
    };
    loop {
        let with_usage = door.asks_for_usage(model.provider()).then(|| with_usage(call)).flatten();
        let verbatim = Verbatim {
            operation: call.operation,
            model: model.model(),
            body: with_usage.as_ref().unwrap_or(&call.fields),
            headers: &call.passed_headers(),
        };
        match admitted.send(provider, &verbatim).await {
            Ok(answer) => return Ok(passed(answer, with_usage.is_some())),
            Err(no_answer) if with_usage.is_some() && refuses_usage(&no_answer) => {
                door.never_ask_for_usage(model.provider());
                let request = request(door, call, attempt, model).max_wait(call.wait.left());
                let again = admit(door, attempt, &request).await;
                admitted = again.map_err(|held| Problem::held(&held.failure))?;
            }
            Err(no_answer) => return Err(Problem::of_provider(&no_answer)),
        }
    }
}

/// A stream of Chat Completions tells what it used if it is asked to; `None` where there is nothing to
/// be asked.
fn with_usage(call: &ClientCall) -> Option<Fields> {
    let streams = call.asked.as_ref().is_some_and(|asked| asked.streams);
    if call.operation != Operation::ChatCompletions || !streams {
        return None;
    }
    let mut options = match call.fields.get("stream_options") {
        None | Some(Value::Null) => json!({}),
        Some(options @ Value::Object(_)) => options,
        Some(_) => return None,
    };
    if options.get("include_usage") == Some(&Value::Bool(true)) {
        return None;
    }
    options["include_usage"] = true.into();
    let mut fields = call.fields.clone();
    fields.set("stream_options", &options).ok()?;
    Some(fields)
}

fn refuses_usage(no_answer: &NoAnswer) -> bool {
    let says = || {
        let words = no_answer.body.to_string();
        words.contains("stream_options") || words.contains("include_usage")
    };
    matches!(no_answer.error.kind, Kind::InvalidRequest | Kind::Unsupported) && says()
}

fn passed(answer: Answer, hides_usage: bool) -> Response {
    let Answer { status, headers, body } = answer;
    let body = match hides_usage {
        true => without_usage(Body::new(body)),
        false => Body::new(body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().extend(passed_headers(&headers));
    response
}

fn passed_headers(headers: &HeaderMap) -> HeaderMap {
    let named = PASSED
        .iter()
        .filter_map(|name| Some((HeaderName::from_static(name), headers.get(*name)?.clone())));
    named.collect()
}

fn without_usage(body: Body) -> Body {
    let pieces = body.into_data_stream().map(Some).chain(stream::iter([None]));
    let passed = pieces.scan(WithoutUsage::default(), |filter, piece| {
        let passed = match piece {
            Some(Ok(piece)) => Ok(filter.pass(&piece)),
            Some(Err(error)) => Err(error),
            None => Ok(filter.rest()),
        };
        std::future::ready(Some(passed))
    });
    Body::from_stream(
        passed.filter(|piece| {
            std::future::ready(!piece.as_ref().is_ok_and(|piece| piece.is_empty()))
        }),
    )
}

/// It asks no model, and counts towards no limit on tokens.
async fn count_tokens(
    door: &Door,
    call: &ClientCall,
    model: &ModelId,
) -> Result<Response, Problem> {
    let provider: Option<&dyn Provider> = door.services.providers.get(model);
    let provider = provider.ok_or_else(|| Problem::no_model(&call.name))?;
    let verbatim = Verbatim {
        operation: call.operation,
        model: model.model(),
        body: &call.fields,
        headers: &call.passed_headers(),
    };
    let failed = |error: Error, body: Value| {
        let failure = Failure::from_provider(&error, &Default::default());
        Problem::of_provider(&NoAnswer { error, failure, body })
    };
    let reply = provider.send(&verbatim).await.map_err(|error| failed(error, Value::Null))?;
    if !(200..300).contains(&reply.status()) {
        let (error, body) = reply.refused().await;
        return Err(failed(error, body));
    }
    let whole = reply.whole().await.map_err(|error| failed(error, Value::Null))?;
    let mut response = Json(whole.body).into_response();
    response.headers_mut().extend(passed_headers(&whole.headers));
    Ok(response)
}
