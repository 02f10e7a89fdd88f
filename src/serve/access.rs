//! A line of the log and the metrics of each call: names, counts and times, never a word of a body.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use tidegate_types::ModelId;
use tracing::{Span, debug_span, field::Empty, info};

const CALLS: &str = "tidegate_http_calls_total";
const SECONDS: &str = "tidegate_http_answer_begins_seconds";

/// Gives each metric its help text.
pub(super) fn describe() {
    describe_counter!(CALLS, "Calls at the HTTP door, by path, key and status");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "Time until an answer of the HTTP door begins, the wait for the turn included"
    );
}

/// Around a call, in the trace that its client's `traceparent` names.
pub(super) fn span(path: &'static str, headers: &HeaderMap) -> Span {
    let span = debug_span!(
        "http",
        otel.name = format!("POST {path}"),
        otel.kind = "server",
        http.request.method = "POST",
        http.route = path,
        http.response.status_code = Empty,
    );
    #[cfg(feature = "traces")]
    crate::traces::join(&span, headers);
    #[cfg(not(feature = "traces"))]
    let _ = headers;
    span
}

/// What is told of a call.
pub(super) struct Line<'a> {
    pub(super) path: &'static str,
    pub(super) key: &'a str,
    pub(super) model: Option<&'a ModelId>,
    pub(super) status: StatusCode,
    /// How long its client was told to stay away.
    pub(super) retry_after: Option<Duration>,
    pub(super) began: Instant,
}

impl Line<'_> {
    pub(super) fn tell(self) {
        let Self { path, key, model, status, retry_after, began } = self;
        let took = began.elapsed();
        Span::current().record("http.response.status_code", status.as_u16());
        let labels = [
            ("path", path.to_owned()),
            ("key", key.to_owned()),
            ("status", status.as_str().to_owned()),
        ];
        counter!(CALLS, &labels).increment(1);
        histogram!(SECONDS, "path" => path).record(took.as_secs_f64());
        info!(
            target: "tidegate::access",
            path,
            key,
            model = model.map(tracing::field::display),
            status = status.as_u16(),
            ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            retry_after = retry_after.map(|wait| wait.as_secs_f64()),
        );
    }
}
