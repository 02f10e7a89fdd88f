//! A call's turn: request it, wait for it in place, or keep it for the client's next try.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tidegate_calls::{
    Ask, Attempt,
    admission::Admitted,
    failure::{Failure, Retry},
    gates::Held,
    route::Route,
};
use tidegate_quota::{Quota, Refused, Request, Ticket};
use tidegate_types::ModelId;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::{
    access::AccessLine,
    client_call::ClientCall,
    door::Door,
    problem::Problem,
    turn::{self, LAPSE_TIME},
};

/// Delay between a client's hang-up and giving its place up: a request for a turn that was already sent
/// is answered by then, so that it cannot take a place afterwards.
const GIVE_UP_DELAY: Duration = Duration::from_millis(300);

/// The reason why no model was asked, and the call's turn. `turn` is `None` if asking again is
/// useless.
pub(super) struct Stop {
    pub(super) failure: Failure,
    pub(super) turn: Option<Turn>,
    /// The place in the queue that the limiter has just granted, until `ask_in_turn` takes it over.
    place: Option<QueuePlace>,
}

/// The times until a call's turn.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// Until it is due at the present rate: this is what the client is told.
    due: Duration,
    /// Until it is worth asking again, since a turn may come earlier.
    ask_again: Duration,
}

impl Turn {
    fn from_refused(refused: &Refused) -> Option<Self> {
        let (ask_again, _) = refused.comes_back()?;
        Some(Self { due: refused.turn()?, ask_again })
    }
}

impl From<Duration> for Turn {
    fn from(delay: Duration) -> Self {
        Self { due: delay, ask_again: delay }
    }
}

impl Stop {
    /// A failure without a newly granted place, and the delay before the call may be tried again.
    pub(super) fn new(failure: Failure, delay: Option<Duration>) -> Self {
        Self { failure, turn: delay.map(Turn::from), place: None }
    }

    pub(super) fn from_held(held: &Held, door: &Door) -> Self {
        let turn = held.refused.as_deref().and_then(Turn::from_refused);
        let turn = turn.or_else(|| retry_delay(&held.failure, door).map(Turn::from));
        Self { failure: held.failure.clone(), turn, place: None }
    }
}

pub(super) fn retry_delay(failure: &Failure, door: &Door) -> Option<Duration> {
    match failure.retry {
        Retry::Turn(turn) => Some(turn),
        retry => retry.delay(door.services.guard.backoff, 1),
    }
}

/// Calls `ask` in the call's turn, after a wait in place if the turn is near enough. Returns the answer
/// and the model that gave it.
pub(super) async fn ask_in_turn<'r, 'a, T>(
    door: &Door,
    (call, line): (&ClientCall, &AccessLine),
    route: &'r Route,
    attempt: &Attempt,
    ask: impl Fn(Request) -> BoxFuture<'a, Result<T, Stop>>,
) -> Result<(T, &'r ModelId), Problem> {
    let services = &door.services;
    let quota = &services.guard.quota;
    let knows_tickets = call.headers.contains_key("x-tidegate-ticket");
    let name = |model: &ModelId| turn::turn_name(&call.holder, call.operation, model, &call.body);
    loop {
        let chosen = route.choose(&services.guard, &services.queues, attempt, &call.holder.lane);
        let model = chosen.await.ok_or_else(|| Problem::no_model(&call.name))?;
        line.set_model(model);
        let request = request(door, call, attempt, model);
        // The first request only asks for a turn and does not wait, so that the place is known if the
        // client hangs up during the wait.
        let (is_new, place) = (request.ticket.is_none(), QueuePlace::new(quota, &request));
        let patience = if is_new { Duration::ZERO } else { call.wait.time_left() };
        let Stop { failure, turn, place: newer } = match ask(request.max_wait(patience)).await {
            Ok(answer) => {
                place.keep();
                return Ok((answer, model));
            }
            Err(stop) => stop,
        };
        let place = newer.unwrap_or(place);
        let Some(Turn { due, ask_again }) = turn else {
            return Err(Problem::from_failure(&failure));
        };
        // Only a call that must wait needs the turn that was kept when its client came before. The
        // newer place is then given up.
        if is_new
            && !knows_tickets
            && call.wait.may_be_back
            && let Some((index, ticket)) = kept_turn(quota, call, route, name).await
        {
            attempt.choose_model(index);
            attempt.defer(Some(ticket));
            continue;
        }
        let stopping = &services.guard.stopping;
        if due <= call.wait.time_left() && !stopping.is_cancelled() {
            if !is_new || attempt.state().ticket.is_none() {
                tokio::select! {
                    () = tokio::time::sleep(ask_again) => {}
                    () = stopping.cancelled() => {}
                }
            }
            place.keep();
            continue;
        }
        if stopping.is_cancelled() {
            return Err(Problem::stops());
        }
        place.keep();
        let ticket = attempt.state().ticket.filter(|ticket| ticket.position > 0);
        if let Some(ticket) = ticket.filter(|_| !knows_tickets) {
            quota.keep_turn(&call.holder.name, &name(model), ticket, due + LAPSE_TIME).await;
        }
        let written = ticket.map(|ticket| turn::sign_ticket(&call.holder, model, ticket, due));
        return Err(Problem::later(&failure, due, written));
    }
}

/// The first turn of a route's models that was kept for this call, with the model's index.
async fn kept_turn(
    quota: &Quota,
    call: &ClientCall,
    route: &Route,
    name: impl Fn(&ModelId) -> String,
) -> Option<(u32, Ticket)> {
    for (index, model) in (0..).zip(&route.models) {
        if let Some(ticket) = quota.take_turn(&call.holder.name, &name(model)).await {
            return Some((index, ticket));
        }
    }
    None
}

/// The request to the limiter, with the attempt's ticket.
pub(super) fn request(
    door: &Door,
    call: &ClientCall,
    attempt: &Attempt,
    model: &ModelId,
) -> Request {
    let services = &door.services;
    let cap = services.providers.get(model).and_then(|it| it.bounds(model.model()).output_tokens);
    let ask = call.asked.as_ref().map(|asked| Ask::from_facts(asked, cap)).unwrap_or_default();
    let ask = ask.lane(call.holder.lane.clone()).tenant(call.holder.tenant.clone());
    ask.request(model.clone(), attempt.reservation.clone()).ticket(attempt.state().ticket)
}

/// Runs a call's first ask in a task of its own. If the client hangs up before the limiter's answer, the
/// task still receives it and gives the place up; a call that has left is dropped a moment later.
pub(super) async fn first_ask<T: Send + 'static>(
    door: &Arc<Door>,
    attempt: &Attempt,
    request: Request,
    ask: impl Future<Output = Result<T, Stop>> + Send + 'static,
) -> Result<T, Stop> {
    let (mut tell, told) = oneshot::channel();
    let (door, attempt) = (Arc::clone(door), attempt.clone());
    let asks = async move {
        let hung_up = async {
            tell.closed().await;
            tokio::time::sleep(GIVE_UP_DELAY).await;
        };
        let answer = tokio::select! {
            biased;
            answer = ask => answer,
            () = hung_up => return,
        };
        let answer = answer.map_err(|stop| {
            let request = request.ticket(attempt.state().ticket);
            Stop { place: Some(QueuePlace::new(&door.services.guard.quota, &request)), ..stop }
        });
        // If the receiver is gone, dropping the answer gives the place up.
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

/// The place of a waiting call. Dropping it gives the place up, for instance when the client hangs up.
struct QueuePlace {
    waits: Option<Box<(Quota, Request)>>,
}

impl QueuePlace {
    /// Creates the place of a request. A request without a ticket has no place yet.
    fn new(quota: &Quota, request: &Request) -> Self {
        let waits = request.ticket.map(|_| Box::new((quota.clone(), request.clone())));
        Self { waits }
    }

    /// Keeps the place: the call was sent, or its turn is kept.
    fn keep(mut self) {
        self.waits = None;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let Some(waits) = self.waits.take() {
            tokio::spawn(async move {
                let (quota, request) = *waits;
                tokio::time::sleep(GIVE_UP_DELAY).await;
                // While Redis is away, there is no place to give up.
                let _ = quota.give_up(&request).await;
            });
        }
    }
}
