//! Traces of documents: a span for each attempt at an activity, with those of its calls in it, and
//! one for writing the answer. Lines of the log carry the attempt's span. Spans contain only names,
//! counts and times, never text of a document, a prompt or an answer.

use temporalio_sdk::activities::ActivityContext;
use tidegate_types::DocumentId;
use tracing::{Span, debug_span, field::Empty, info_span};

use crate::attempt::Attempt;

/// Opens a span around an attempt, in the trace context of the activity.
pub(crate) fn attempt(ctx: &ActivityContext, attempt: &Attempt) -> Span {
    let info = ctx.info();
    let span = info_span!(
        "attempt",
        activity = info.activity_type,
        batch = attempt.call.batch,
        attempt = info.attempt,
        document = Empty,
        trace = Empty,
    );
    if let Some(trace) = trace_id() {
        span.record("trace", trace);
    }
    span
}

/// Records the document's name in the span of its attempt.
pub(crate) fn record_document(document: &DocumentId) {
    Span::current().record("document", document.as_str());
}

/// Opens a span around the writing of an answer.
pub(crate) fn writing() -> Span {
    debug_span!("result")
}

/// The id of the current trace, if there is one.
#[cfg(feature = "traces")]
fn trace_id() -> Option<String> {
    use opentelemetry::{Context, trace::TraceContextExt as _};

    let context = Context::current();
    let span = context.span().span_context().clone();
    span.is_valid().then(|| span.trace_id().to_string())
}

#[cfg(not(feature = "traces"))]
fn trace_id() -> Option<&'static str> {
    None
}
