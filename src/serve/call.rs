//! One call: choose a model, wait for the turn, send the body unchanged, pass the answer on.

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
    access::AccessLine,
    client_call::ClientCall,
    door::Door,
    in_turn::{Stop, admit, ask_in_turn, first_ask, request, retry_delay},
    keys::Holder,
    problem::Problem,
    turn,
    usage_filter::UsageFilter,
};

/// Headers of a vendor's answer that go on to the client. Headers about limits do not: the account is
/// shared with other clients.
const HEADERS_FOR_CLIENT: [&str; 7] = [
    "content-type",
    "cache-control",
    "request-id",
    "x-request-id",
    "openai-processing-ms",
    "openai-version",
    "retry-after",
];

/// The result of a turn: an admission to send the body unchanged, or a translated answer of another
/// dialect.
enum Turn {
    Admitted(Admitted),
    Answered(Value),
}

/// Answers a call. A model of the route that speaks another dialect is asked, too, if the body can be
/// translated.
pub(super) async fn answer(
    door: &Arc<Door>,
    call: &ClientCall,
    line: &AccessLine,
) -> Result<Response, Problem> {
    let providers = &door.services.providers;
    let Some(asked) = &call.asked else {
        let counts = |it: &&ModelId| providers.get(it).is_some_and(|it| it.takes(call.operation));
        let model = call.route.models.iter().find(counts);
        let model = model.ok_or_else(|| Problem::invalid("model", "does not count tokens"))?;
        line.set_model(model);
        return count_tokens(door, call, model).await;
    };
    let named = (call.operation, call.name.as_str());
    let ways = DialectRoute::read(named, &call.fields, asked, &call.route, providers)?;
    let route = &ways.route;
    let attempt = new_attempt(call, route);
    let ask = |request: Request| -> BoxFuture<'_, _> {
        let is_first = request.ticket.is_none();
        let (own_door, holder, own_attempt) =
            (Arc::clone(door), Arc::clone(&call.holder), attempt.clone());
        let (question, asked) = (ways.translated(&request.model).cloned(), request.clone());
        let ask = async move {
            match question {
                Some(question) => {
                    ask_translated(&own_door, &holder, &own_attempt, &question, asked).await
                }
                None => ask_leave(&own_door, &own_attempt, asked).await,
            }
        };
        match is_first {
            true => Box::pin(first_ask(door, &attempt, request, ask)),
            false => Box::pin(ask),
        }
    };
    let (turn, model) = ask_in_turn(door, (call, line), route, &attempt, ask).await?;
    match turn {
        Turn::Admitted(admitted) => send_unchanged(door, call, admitted, model, &attempt).await,
        Turn::Answered(answer) => Ok(Json(answer).into_response()),
    }
}

/// Asks the limiter to admit the unchanged body.
async fn ask_leave(door: &Door, attempt: &Attempt, request: Request) -> Result<Turn, Stop> {
    let admitted = admit(door, attempt, &request).await;
    admitted.map(Turn::Admitted).map_err(|held| Stop::from_held(&held, door))
}

/// Asks a model that speaks another dialect.
async fn ask_translated(
    door: &Door,
    holder: &Holder,
    attempt: &Attempt,
    question: &Translated,
    request: Request,
) -> Result<Turn, Stop> {
    let patience = request.max_wait.unwrap_or_default();
    let patient = attempt.clone().deadline(Some(Instant::now() + patience));
    let (lane, tenant) = (&holder.lane, &holder.tenant);
    let terms = Terms { lane, tenant, batch_usd: None, retries: None };
    let route = Route::single(request.model);
    let asked = door.services.caller().ask(&patient, terms, &route, question).await;
    let answered = asked.map(|(_, completion)| Turn::Answered(question.answer(&completion)));
    answered.map_err(|failure| {
        // After a request was sent, only the client may repeat it.
        let turn = if attempt.has_sent() { None } else { retry_delay(&failure, door) };
        Stop::new(failure, turn)
    })
}

/// A new attempt with a unique reservation, in the turn that the client's ticket names.
fn new_attempt(call: &ClientCall, route: &Route) -> Attempt {
    let reservation = format!("http:{:032x}", rand::random::<u128>());
    let ticket = call.headers.get("x-tidegate-ticket").and_then(|value| value.to_str().ok());
    let given = ticket.and_then(|text| turn::read_ticket(&call.holder, &route.models, text));
    let state = given.map(|(index, ticket)| CallState {
        ticket: Some(ticket),
        model: u32::try_from(index).unwrap_or_default(),
        ..CallState::default()
    });
    let attempt = Attempt::new(reservation.clone(), String::new(), state.unwrap_or_default());
    attempt.of_batch("", &reservation)
}

/// Sends the body unchanged. If the vendor refuses the one field that the door adds, asks for a new
/// admission and sends the body without that field.
async fn send_unchanged(
    door: &Door,
    call: &ClientCall,
    mut admitted: Admitted,
    model: &ModelId,
    attempt: &Attempt,
) -> Result<Response, Problem> {
    let Some(provider) = door.services.providers.get(model) else {
        return Err(Problem::no_model(&call.name));
    };
    let mut was_refused = false;
    loop {
        let asks_for_usage = !was_refused && door.asks_for_usage(model);
        let with_usage = asks_for_usage.then(|| add_usage_option(call)).flatten();
        let verbatim = Verbatim {
            operation: call.operation,
            model: model.model(),
            body: with_usage.as_ref().unwrap_or(&call.fields),
            headers: &call.headers_for_vendor(),
        };
        match admitted.send(provider, &verbatim).await {
            Ok(answer) => {
                // Only now is it known that the field was the fault, and not the client's request.
                if was_refused {
                    door.record_usage_refused(model);
                }
                return Ok(pass_answer(answer, with_usage.is_some()));
            }
            Err(no_answer) if with_usage.is_some() && refuses_usage(&no_answer, &call.body) => {
                was_refused = true;
                let request = request(door, call, attempt, model).max_wait(call.wait.time_left());
                let again = admit(door, attempt, &request).await;
                admitted = again.map_err(|held| Problem::from_failure(&held.failure))?;
            }
            Err(no_answer) => return Err(Problem::from_provider(&no_answer)),
        }
    }
}

/// The body with `stream_options.include_usage` set, so that a stream of Chat Completions reports its
/// usage. `None` if the call is no such stream, or already asks for usage.
fn add_usage_option(call: &ClientCall) -> Option<Fields> {
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

/// Whether the vendor refuses the question for usage, and does not only quote `request`, the client's
/// own body.
fn refuses_usage(NoAnswer { error, body, .. }: &NoAnswer, request: &[u8]) -> bool {
    let is_named = |said: &str| said.contains("stream_options") || said.contains("include_usage");
    let told = body.get("error").unwrap_or(body);
    let name = |field: &str| told.get(field).and_then(Value::as_str).unwrap_or_default();
    let may_quote = || match serde_json::from_slice::<Value>(request) {
        Ok(request) => is_named(&request.to_string()),
        Err(_) => true,
    };
    matches!(error.kind, Kind::InvalidRequest | Kind::Unsupported)
        // Texts of the request are cut from the error's message.
        && ([name("param"), name("code"), error.message.as_str()].into_iter().any(is_named)
            || (is_named(&body.to_string()) && !may_quote()))
}

fn pass_answer(answer: Answer, hides_usage: bool) -> Response {
    let Answer { status, headers, body } = answer;
    let body = match hides_usage {
        true => hide_usage(Body::new(body)),
        false => Body::new(body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().extend(headers_for_client(&headers));
    response
}

fn headers_for_client(headers: &HeaderMap) -> HeaderMap {
    let named = HEADERS_FOR_CLIENT
        .iter()
        .filter_map(|name| Some((HeaderName::from_static(name), headers.get(*name)?.clone())));
    named.collect()
}

fn hide_usage(body: Body) -> Body {
    let pieces = body.into_data_stream().map(Some).chain(stream::iter([None]));
    let passed = pieces.scan(UsageFilter::default(), |filter, piece| {
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

/// Counts tokens at the provider. That asks no model and counts towards no token limit.
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
        headers: &call.headers_for_vendor(),
    };
    let failed = |error: Error, body: Value| {
        let failure = Failure::from_provider(&error, &Default::default());
        Problem::from_provider(&NoAnswer { error, failure, body })
    };
    let reply = provider.send(&verbatim).await.map_err(|error| failed(error, Value::Null))?;
    if !(200..300).contains(&reply.status()) {
        let (error, body) = reply.refused().await;
        return Err(failed(error, body));
    }
    let whole = reply.whole().await.map_err(|error| failed(error, Value::Null))?;
    let mut response = Json(whole.body).into_response();
    response.headers_mut().extend(headers_for_client(&whole.headers));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use tidegate_providers::Charged;

    use super::*;

    #[test]
    fn a_refusal_of_the_question_for_usage_is_told_from_a_quotation() {
        let plain = json!({"messages": [{"role": "user", "content": "hi"}]});
        let quoted = json!({"messages": [{"role": "user", "content": "stream_options?"}]});
        let of_fast_api = json!({"detail": [{"loc": ["body", "stream_options"], "msg": "extra"}]});
        let echo = json!({"error": {"message": "bad value: stream_options?", "param": "messages"}});
        let by_param = json!({"error": {"message": "no", "param": "stream_options.include_usage"}});
        for (request, kind, message, body, refuses) in [
            (&plain, Kind::InvalidRequest, "status 400", &of_fast_api, true),
            (&plain, Kind::RateLimited, "status 429", &of_fast_api, false),
            (
                &plain,
                Kind::InvalidRequest,
                "status 400: unknown field stream_options",
                &json!({}),
                true,
            ),
            (
                &plain,
                Kind::InvalidRequest,
                "status 400",
                &json!({"error": {"param": "seed"}}),
                false,
            ),
            (&quoted, Kind::InvalidRequest, "status 400: bad value: …", &echo, false),
            (&quoted, Kind::InvalidRequest, "status 400: no", &by_param, true),
        ] {
            let error = Error::no_reply(message.to_owned(), Charged::No);
            let error = Error { kind, ..error };
            let failure = Failure::from_provider(&error, &Default::default());
            let no_answer = NoAnswer { error, failure, body: body.clone() };
            let request = request.to_string();
            assert_eq!(refuses_usage(&no_answer, request.as_bytes()), refuses, "{request} {body}");
        }
    }
}
