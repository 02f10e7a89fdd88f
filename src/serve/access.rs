//! The access log and the metrics of each call: names, counts and times, never any text of a body.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use parking_lot::Mutex;
use tidegate_types::ModelId;
use tracing::{Span, debug_span, field::Empty, info};

const CALLS: &str = "tidegate_http_calls_total";
const SECONDS: &str = "tidegate_http_answer_begins_seconds";

/// Gives each metric its help text.
pub(super) fn describe() {
    describe_counter!(CALLS, "Calls at the HTTP door; status 499: the client hung up");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "Time until an answer of the HTTP door begins, including the wait for its turn"
    );
}

/// The trace span of a call. It joins the trace that the client's `traceparent` names.
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

/// The status that is recorded when the client hangs up before the answer begins.
const HUNG_UP: u16 = 499;

/// The access log's line of one call. It is written when the answer begins; or on drop, if the
/// client hung up before that.
pub(super) struct AccessLine {
    path: &'static str,
    key: String,
    began: Instant,
    model: Mutex<Option<ModelId>>,
    is_recorded: bool,
}

impl AccessLine {
    /// Starts the line of a call that begins now.
    pub(super) fn new(path: &'static str, key: &str) -> Self {
        let (key, began) = (key.to_owned(), Instant::now());
        Self { path, key, began, model: Mutex::default(), is_recorded: false }
    }

    /// Notes the model that the call asks.
    pub(super) fn set_model(&self, model: &ModelId) {
        *self.model.lock() = Some(model.clone());
    }

    /// Records the status of the answer; `retry_after` is the wait that the client was told.
    pub(super) fn record_answer(mut self, status: StatusCode, retry_after: Option<Duration>) {
        histogram!(SECONDS, "path" => self.path).record(self.began.elapsed().as_secs_f64());
        self.is_recorded = true;
        self.write(status.as_u16(), retry_after);
    }

    fn write(&self, status: u16, retry_after: Option<Duration>) {
        let Self { path, key, began, model, .. } = self;
        Span::current().record("http.response.status_code", status);
        counter!(CALLS, "path" => *path, "key" => key.clone(), "status" => status.to_string())
            .increment(1);
        info!(
            target: "tidegate::access",
            path,
            key,
            model = model.lock().as_ref().map(tracing::field::display),
            status,
            ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            retry_after = retry_after.map(|wait| wait.as_secs_f64()),
        );
    }
}

impl Drop for AccessLine {
    fn drop(&mut self) {
        if !self.is_recorded {
            self.write(HUNG_UP, None);
        }
    }
}
