//! The way of one call: choose a model, wait for the turn, send the body as it is, pass the answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderName, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, future::BoxFuture, stream};
use serde_json::{Value, json};
use tidegate_calls::{
    Ask, Attempt,
    admission::Admitted,
    attempt::CallState,
    caller::Terms,
    failure::{Failure, Retry},
    gates::Held,
    route::Route,
    verbatim::{Answer, NoAnswer},
};
use tidegate_providers::{Error, Fields, Kind, Operation, Provider, Verbatim};
use tidegate_quota::{Quota, Refused, Request};
use tidegate_types::ModelId;
use tokio::sync::oneshot;

use super::{
    client_call::ClientCall,
    dialect::Translated,
    door::Door,
    problem::Problem,
    turn::{self, LAPSES},
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

/// What comes of a call, and which model was asked, for the log.
pub(super) struct Outcome {
    pub(super) model: Option<ModelId>,
    pub(super) result: Result<Response, Problem>,
}

/// Answers a call.
pub(super) async fn answer(door: &Arc<Door>, call: &ClientCall) -> Outcome {
    let services = &door.services;
    let takes =
        |model: &ModelId| services.providers.get(model).is_some_and(|it| it.takes(call.operation));
    let route = call.route_of(takes);
    let Some(first) = route.models.first() else { return translated(door, call).await };
    if call.operation == Operation::CountTokens {
        let result = count_tokens(door, call, first).await;
        return Outcome { model: Some(first.clone()), result };
    }
    let attempt = attempt(call, &route);
    let ask = |request: Request| -> BoxFuture<'_, _> {
        Box::pin(async {
            let is_new = request.ticket.is_none();
            let admitted = match is_new {
                true => first_ask(door, &attempt, request).await,
                false => admit(door, &attempt, &request).await,
            };
            admitted.map_err(|held| Stop::of(&held, door))
        })
    };
    match in_turn(door, call, &route, &attempt, ask).await {
        Ok((admitted, model)) => {
            let result = sent(door, call, admitted, model, &attempt).await;
            Outcome { model: Some(model.clone()), result }
        }
        Err(outcome) => *outcome,
    }
}

/// Answers a call of models that speak another dialect.
async fn translated(door: &Arc<Door>, call: &ClientCall) -> Outcome {
    let services = &door.services;
    let Some(asked) = &call.asked else {
        let result = Err(Problem::invalid("model", "does not count tokens"));
        return Outcome { model: None, result };
    };
    let named = (call.operation, call.name.as_str());
    let read = Translated::read(named, &call.fields, asked, &call.route, &services.providers);
    let (question, route) = match read {
        Ok(read) => read,
        Err(problem) => return Outcome { model: None, result: Err(problem) },
    };
    let attempt = attempt(call, &route);
    let ask = |request: Request| -> BoxFuture<'_, _> {
        let (attempt, question) = (&attempt, &question);
        Box::pin(async move {
            let patience = request.max_wait.unwrap_or_default();
            let patient = attempt.clone().deadline(Some(Instant::now() + patience));
            let (lane, tenant) = (&call.holder.lane, &call.holder.tenant);
            let terms = Terms { lane, tenant, batch_usd: None, retries: None };
            let route = Route::single(request.model);
            let asked = services.caller().ask(&patient, terms, &route, question).await;
            asked.map(|(_, completion)| completion).map_err(|failure| {
                // What a provider has answered is for the client to ask again.
                let turn = if attempt.has_sent() { None } else { delay(&failure, door) };
                Stop { failure, turn }
            })
        })
    };
    match in_turn(door, call, &route, &attempt, ask).await {
        Ok((completion, model)) => {
            let body = question.answer(&completion);
            Outcome { model: Some(model.clone()), result: Ok(Json(body).into_response()) }
        }
        Err(outcome) => *outcome,
    }
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

/// Why nothing was asked, and when it is worth to ask again; never, where there is no turn.
struct Stop {
    failure: Failure,
    turn: Option<Duration>,
}

impl Stop {
    fn of(held: &Held, door: &Door) -> Self {
        let turn = match held.refused.as_deref() {
            Some(Refused::Wait { wait, .. } | Refused::Paused { wait, .. }) => Some(*wait),
            _ => delay(&held.failure, door),
        };
        Self { failure: held.failure.clone(), turn }
    }
}

fn delay(failure: &Failure, door: &Door) -> Option<Duration> {
    match failure.retry {
        Retry::Turn(turn) => Some(turn),
        retry => retry.delay(door.services.guard.backoff, 1),
    }
}

/// Asks when its turn has come, after a wait in place if need be; and of which model.
async fn in_turn<'r, 'a, T>(
    door: &Door,
    call: &ClientCall,
    route: &'r Route,
    attempt: &Attempt,
    ask: impl Fn(Request) -> BoxFuture<'a, Result<T, Stop>>,
) -> Result<(T, &'r ModelId), Box<Outcome>> {
    let services = &door.services;
    let quota = &services.guard.quota;
    let knows_tickets = call.headers.contains_key("x-tidegate-ticket");
    let name = |model: &ModelId| turn::name(&call.holder, call.operation, model, &call.body);
    if !knows_tickets && call.wait.may_be_back {
        for (place, model) in (0..).zip(&route.models) {
            if let Some(ticket) = quota.take_turn(&call.holder.name, &name(model)).await {
                attempt.asks(place);
                attempt.deferred(Some(ticket));
                break;
            }
        }
    }
    loop {
        let chosen = route.choose(&services.guard, &services.queues, attempt, &call.holder.lane);
        let Some(model) = chosen.await else {
            let result = Err(Problem::no_model(&call.name));
            return Err(Box::new(Outcome { model: None, result }));
        };
        let told = |problem| Box::new(Outcome { model: Some(model.clone()), result: Err(problem) });
        let request = request(door, call, attempt, model);
        // First its turn is asked for: it must be known where a client hangs up while it waits.
        let (is_new, place) = (request.ticket.is_none(), Place::new(quota, &request));
        let patience = if is_new { Duration::ZERO } else { call.wait.left() };
        let Stop { failure, turn } = match ask(request.max_wait(patience)).await {
            Ok(answer) => {
                place.leave();
                return Ok((answer, model));
            }
            Err(stop) => stop,
        };
        let Some(turn) = turn else { return Err(told(Problem::held(&failure))) };
        if turn <= call.wait.left() {
            if !is_new || attempt.state().ticket.is_none() {
                tokio::time::sleep(turn).await;
            }
            place.leave();
            continue;
        }
        place.leave();
        let ticket = attempt.state().ticket.filter(|ticket| ticket.position > 0);
        if let Some(ticket) = ticket.filter(|_| !knows_tickets) {
            quota.keep_turn(&call.holder.name, &name(model), ticket, turn + LAPSES).await;
        }
        let written = ticket.map(|ticket| turn::written(&call.holder, model, ticket, turn));
        return Err(told(Problem::later(&failure, turn, written)));
    }
}

/// What is asked of the limiter, in the attempt's turn.
fn request(door: &Door, call: &ClientCall, attempt: &Attempt, model: &ModelId) -> Request {
    let services = &door.services;
    let ask = call.asked.as_ref().map(Ask::of).unwrap_or_default();
    let bound = services.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
    let output = bound.map_or(ask.max_output_tokens, |most| ask.max_output_tokens.min(most.into()));
    let ask = Ask { max_output_tokens: output, ..ask };
    let ask = ask.lane(call.holder.lane.clone()).tenant(call.holder.tenant.clone());
    ask.request(model.clone(), attempt.reservation.clone()).ticket(attempt.state().ticket)
}

/// Asks for a turn. Where the client hangs up before the answer, it is heard nevertheless, and given
/// up.
async fn first_ask(
    door: &Arc<Door>,
    attempt: &Attempt,
    request: Request,
) -> Result<Admitted, Box<Held>> {
    let (tell, told) = oneshot::channel();
    let (door, attempt) = (Arc::clone(door), attempt.clone());
    tokio::spawn(async move {
        let answer = admit(&door, &attempt, &request).await;
        if tell.send(answer).is_err() {
            let request = request.ticket(attempt.state().ticket);
            drop(Place::new(&door.services.guard.quota, &request));
        }
    });
    let stops = || Box::new(Held::by_budget(Failure::worker_stops()));
    told.await.unwrap_or_else(|_| Err(stops()))
}

async fn admit(door: &Door, attempt: &Attempt, request: &Request) -> Result<Admitted, Box<Held>> {
    let services = &door.services;
    let budget = services
        .budgets
        .call_budget(attempt, request, None)
        .map_err(|failure| Box::new(Held::by_budget(failure)))?;
    services.guard.admit(attempt, request, &budget).await.map_err(Box::new)
}

/// The place of a call that waits: given up when this is dropped, as where its client hangs up.
struct Place {
    waits: Option<(Quota, Request)>,
}

impl Place {
    /// Of a request with a ticket; one without has none yet.
    fn new(quota: &Quota, request: &Request) -> Self {
        let waits = request.ticket.map(|_| (quota.clone(), request.clone()));
        Self { waits }
    }

    /// It went, or its turn is kept.
    fn leave(mut self) {
        self.waits = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((quota, request)) = self.waits.take() {
            tokio::spawn(async move {
                // While Redis is away nobody stands in its line.
                let _ = quota.give_up(&request).await;
            });
        }
    }
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
    let headers = passed_headers(reply.headers());
    let mut response = Response::new(Body::new(reply.into_body()));
    response.headers_mut().extend(headers);
    Ok(response)
}
