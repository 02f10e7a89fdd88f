//! A call's turn: asked for, waited for in place, or kept.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tidegate_calls::{
    Ask, Attempt,
    admission::Admitted,
    failure::{Failure, Retry},
    gates::Held,
    route::Route,
};
use tidegate_quota::{Quota, Refused, Request};
use tidegate_types::ModelId;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::{
    access::Line,
    client_call::ClientCall,
    door::Door,
    problem::Problem,
    turn::{self, LAPSES},
};

/// A question that was put before a client hung up is answered by then, and no place is taken after it
/// was given up.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// Why nothing was asked, and when it is worth to ask again; never, where there is no turn.
pub(super) struct Stop {
    pub(super) failure: Failure,
    pub(super) turn: Option<Duration>,
    /// The place of who was told its turn, until that is known here.
    place: Option<Place>,
}

impl Stop {
    /// What a failure means that nobody has been told a turn with, or whose turn is known.
    pub(super) fn new(failure: Failure, turn: Option<Duration>) -> Self {
        Self { failure, turn, place: None }
    }

    pub(super) fn of(held: &Held, door: &Door) -> Self {
        let turn = match held.refused.as_deref() {
            Some(Refused::Wait { wait, .. } | Refused::Paused { wait, .. }) => Some(*wait),
            _ => delay(&held.failure, door),
        };
        Self::new(held.failure.clone(), turn)
    }
}

pub(super) fn delay(failure: &Failure, door: &Door) -> Option<Duration> {
    match failure.retry {
        Retry::Turn(turn) => Some(turn),
        retry => retry.delay(door.services.guard.backoff, 1),
    }
}

/// Asks when its turn has come, after a wait in place if need be; and of which model.
pub(super) async fn in_turn<'r, 'a, T>(
    door: &Door,
    (call, line): (&ClientCall, &Line),
    route: &'r Route,
    attempt: &Attempt,
    ask: impl Fn(Request) -> BoxFuture<'a, Result<T, Stop>>,
) -> Result<(T, &'r ModelId), Problem> {
    let services = &door.services;
    let quota = &services.guard.quota;
    let knows_tickets = call.headers.contains_key("x-tidegate-ticket");
    let name = |model: &ModelId| turn::name(&call.holder, call.operation, model, &call.body);
    if !knows_tickets && call.wait.may_be_back {
        for (place, model) in (0..).zip(&route.models) {
            if let Some(ticket) = quota.take_turn(&call.holder.name, &name(model)).await {
                attempt.choose_model(place);
                attempt.defer(Some(ticket));
                break;
            }
        }
    }
    loop {
        let chosen = route.choose(&services.guard, &services.queues, attempt, &call.holder.lane);
        let model = chosen.await.ok_or_else(|| Problem::no_model(&call.name))?;
        line.asks(model);
        let request = request(door, call, attempt, model);
        // First its turn is asked for: it must be known where a client hangs up while it waits.
        let (is_new, place) = (request.ticket.is_none(), Place::new(quota, &request));
        let patience = if is_new { Duration::ZERO } else { call.wait.left() };
        let Stop { failure, turn, place: newer } = match ask(request.max_wait(patience)).await {
            Ok(answer) => {
                place.leave();
                return Ok((answer, model));
            }
            Err(stop) => stop,
        };
        let place = match newer {
            Some(newer) => newer,
            None => place,
        };
        let Some(turn) = turn else { return Err(Problem::held(&failure)) };
        let stopping = &services.guard.stopping;
        if turn <= call.wait.left() && !stopping.is_cancelled() {
            if !is_new || attempt.state().ticket.is_none() {
                tokio::select! {
                    () = tokio::time::sleep(turn) => {}
                    () = stopping.cancelled() => {}
                }
            }
            place.leave();
            continue;
        }
        if stopping.is_cancelled() {
            return Err(Problem::stops());
        }
        place.leave();
        let ticket = attempt.state().ticket.filter(|ticket| ticket.position > 0);
        if let Some(ticket) = ticket.filter(|_| !knows_tickets) {
            quota.keep_turn(&call.holder.name, &name(model), ticket, turn + LAPSES).await;
        }
        let written = ticket.map(|ticket| turn::written(&call.holder, model, ticket, turn));
        return Err(Problem::later(&failure, turn, written));
    }
}

/// What is asked of the limiter, in the attempt's turn.
pub(super) fn request(
    door: &Door,
    call: &ClientCall,
    attempt: &Attempt,
    model: &ModelId,
) -> Request {
    let services = &door.services;
    let ask = call.asked.as_ref().map(Ask::from_asked).unwrap_or_default();
    let bound = services.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
    let output = bound.map_or(ask.max_output_tokens, |most| ask.max_output_tokens.min(most.into()));
    let ask = Ask { max_output_tokens: output, ..ask };
    let ask = ask.lane(call.holder.lane.clone()).tenant(call.holder.tenant.clone());
    ask.request(model.clone(), attempt.reservation.clone()).ticket(attempt.state().ticket)
}

/// Asks for a turn. Where the client hangs up before the answer, it is heard nevertheless, and the
/// place given up.
pub(super) async fn first_ask(
    door: &Arc<Door>,
    attempt: &Attempt,
    request: Request,
) -> Result<Admitted, Stop> {
    let (tell, told) = oneshot::channel();
    let (door, attempt) = (Arc::clone(door), attempt.clone());
    let asks = async move {
        let answer = admit(&door, &attempt, &request).await.map_err(|held| {
            let request = request.ticket(attempt.state().ticket);
            let place = Some(Place::new(&door.services.guard.quota, &request));
            Stop { place, ..Stop::of(&held, &door) }
        });
        // Dropped here, or by who hangs up with it in hand, it gives its place up.
        let _ = tell.send(answer);
    };
    tokio::spawn(asks.in_current_span());
    told.await.unwrap_or_else(|_| Err(Stop::new(Failure::worker_stops(), None)))
}

pub(super) async fn admit(
    door: &Door,
    attempt: &Attempt,
    request: &Request,
) -> Result<Admitted, Box<Held>> {
    let services = &door.services;
    let budget = services
        .budgets
        .call_budget(attempt, request, None)
        .map_err(|failure| Box::new(Held::by_budget(failure)))?;
    services.guard.admit(attempt, request, &budget).await.map_err(Box::new)
}

/// The place of a call that waits: given up when this is dropped, as where its client hangs up.
struct Place {
    waits: Option<Box<(Quota, Request)>>,
}

impl Place {
    /// Of a request with a ticket; one without has none yet.
    fn new(quota: &Quota, request: &Request) -> Self {
        let waits = request.ticket.map(|_| Box::new((quota.clone(), request.clone())));
        Self { waits }
    }

    /// It went, or its turn is kept.
    fn leave(mut self) {
        self.waits = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(waits) = self.waits.take() {
            tokio::spawn(async move {
                let (quota, request) = *waits;
                tokio::time::sleep(UNDER_WAY).await;
                // While Redis is away nobody stands in its line.
                let _ = quota.give_up(&request).await;
            });
        }
    }
}
