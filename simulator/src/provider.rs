//! The way of one call: key, fault, limits, work, answer.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{ConnectInfo, RawPathParams, State as Shared},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures::stream;

use crate::{
    admission::Admission,
    answer::Answer,
    fault::{Fault, FaultKind},
    problem::Problem,
    rng,
    state::State,
    vendor::{self, Style, Vendor},
    wire::Wire,
};

/// How long a `slow` answer drags on.
const SLOW: Duration = Duration::from_secs(5);

/// In how many pieces.
const PIECES: usize = 10;

/// A gateway's error page.
const PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

pub(crate) async fn call<V: Vendor>(
    Shared(state): Shared<Arc<State>>,
    ConnectInfo(wire): ConnectInfo<Wire>,
    named: RawPathParams,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let number = state.number();
    let exchange = Exchange::begin(&state, rng::draw(&[state.config.seed, number, 0x1d]));
    // Behind projects and places stands the model.
    let named = named.iter().last().map(|(_, named)| named);
    let call = match V::read(named, &headers, &body) {
        Ok(call) => call,
        Err(problem) => return exchange.rejected::<V::Style>(&problem),
    };
    drop(body);
    if let Some(problem) = state.refused(&headers, &call.model) {
        return exchange.rejected::<V::Style>(&problem);
    }
    let answer = Answer::write(&call, &state.config);
    let Some(mut admission) = Admission::arrive(&state, call, answer.output) else {
        return exchange.rejected::<V::Style>(&Problem::no_model());
    };
    let fault = state.fault(number, &admission.call.prompt);
    if let Some(fault) = fault.filter(|fault| !fault.kind.is_charged()) {
        admission.fault(fault.kind);
        return exchange.fail::<V::Style>(fault, &wire, &admission).await;
    }
    if let Err(refusal) = admission.admit() {
        let problem = Problem::Refused(refusal);
        return exchange.problem::<V::Style>(&problem, problem.wait(), Some(&admission));
    }
    let chance = rng::uniform(rng::draw(&[state.config.seed, number, 0x1a7e]));
    state.sleep(state.config.latency.time_of(answer.output, chance)).await;
    admission.complete();
    let mut headers = exchange.headers::<V::Style>(Some(&admission));
    vendor::set(&mut headers, "content-type", "application/json");
    let text = V::answer(&admission.call, &answer, exchange.id).to_string();
    match fault {
        None => {
            admission.answered();
            (headers, text).into_response()
        }
        Some(fault) => {
            admission.fault(fault.kind);
            inject_fault(fault, &wire, admission, headers, text).await
        }
    }
}

/// A fault of the connection that strikes a good answer.
async fn inject_fault(
    fault: &Fault,
    wire: &Wire,
    admission: Admission,
    headers: HeaderMap,
    mut text: String,
) -> Response {
    if fault.kind == FaultKind::Slow {
        return (headers, drip(text, fault.delay.unwrap_or(SLOW), admission)).into_response();
    }
    admission.wait(fault.delay.unwrap_or_default()).await;
    match fault.kind {
        FaultKind::ResetAfter => wire.cut_in_half(),
        _ => text.truncate(text.floor_char_boundary(text.len() / 2)),
    }
    (headers, text).into_response()
}

/// A body in small pieces, over so much time. The call is at work until the last of them.
fn drip(text: String, over: Duration, admission: Admission) -> Body {
    let bytes = Bytes::from(text);
    let (piece, pause) = (bytes.len().div_ceil(PIECES).max(1), over / 10);
    let pieces = stream::unfold((bytes, admission), move |(mut rest, admission)| async move {
        if rest.is_empty() {
            return None;
        }
        admission.wait(pause).await;
        let next = rest.split_to(piece.min(rest.len()));
        Some((Ok::<_, Infallible>(next), (rest, admission)))
    });
    Body::from_stream(pieces)
}

/// One call and its response, so far as it is the same for every outcome.
pub(crate) struct Exchange<'a> {
    id: u64,
    began: Duration,
    state: &'a State,
}

impl<'a> Exchange<'a> {
    /// A call has come; `id` differs from call to call.
    pub(crate) fn begin(state: &'a State, id: u64) -> Self {
        Self { id, began: state.now(), state }
    }

    /// The headers of a response; the limits are stated for an admitted call alone.
    pub(crate) fn headers<S: Style>(&self, admission: Option<&Admission>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let model = admission.map_or("", |admission| &admission.call.model);
        S::headers(&mut headers, model, self.id, self.state.now().saturating_sub(self.began));
        if let Some(admission) = admission {
            S::limits(&mut headers, &admission.statuses());
        }
        headers
    }

    /// A call that is none.
    pub(crate) fn rejected<S: Style>(&self, problem: &Problem) -> Response {
        self.state.ledger().rejected += 1;
        self.problem::<S>(problem, None, None)
    }

    /// An error, and when to come back. Limits are stated on 429 alone.
    pub(crate) fn problem<S: Style>(
        &self,
        problem: &Problem,
        wait: Option<Duration>,
        admission: Option<&Admission>,
    ) -> Response {
        let (status, mut body) =
            S::problem(problem, admission.map_or("", |admission| &admission.call.model), self.id);
        let mut headers =
            self.headers::<S>(admission.filter(|_| status == StatusCode::TOO_MANY_REQUESTS));
        S::problem_headers(&mut headers, problem);
        match wait {
            // Whole seconds, rounded up: an earlier retry fails.
            Some(wait) if S::TELLS_WAIT => {
                vendor::set(&mut headers, "retry-after", wait.as_millis().div_ceil(1_000).max(1));
            }
            Some(wait) => S::advise(&mut body, wait),
            None => {}
        }
        (status, headers, axum::Json(body)).into_response()
    }

    /// A fault that strikes before any work is done.
    async fn fail<S: Style>(&self, fault: &Fault, wire: &Wire, admission: &Admission) -> Response {
        // Without a delay a hang lasts as long as the simulator.
        let delay = if fault.kind == FaultKind::Hang { Duration::MAX } else { Duration::ZERO };
        self.state.sleep(fault.delay.unwrap_or(delay)).await;
        let problem = match fault.kind {
            FaultKind::Overloaded => Problem::Overloaded,
            FaultKind::ServerError => Problem::Server,
            FaultKind::RateLimited => Problem::Ramp,
            FaultKind::SpendLimit => Problem::Spent,
            FaultKind::UnknownModel => Problem::unknown_model(),
            FaultKind::Html => {
                return (
                    StatusCode::BAD_GATEWAY,
                    [("content-type", "text/html"), ("server", "cloudflare")],
                    PAGE,
                )
                    .into_response();
            }
            // The connection is cut, so nothing of this response goes out.
            FaultKind::Hang
            | FaultKind::ResetBefore
            | FaultKind::ResetAfter
            | FaultKind::Malformed
            | FaultKind::Slow => {
                wire.cut();
                return StatusCode::BAD_GATEWAY.into_response();
            }
        };
        let wait = fault.retry_after.filter(|_| fault.kind != FaultKind::SpendLimit);
        self.problem::<S>(&problem, wait, Some(admission))
    }
}
