//! Trace spans: one for the wait for admission, one for the call. They hold names, counts and
//! times, and no word of a document, prompt or answer.
//!
//! The call's fields are those of OpenTelemetry's conventions for generative AI:
//! opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans, read 2026-11-22.

use tidegate_providers::{Error, Operation};
use tidegate_quota::Request;
use tidegate_types::{FailureType, ModelId, Usage};
use tracing::{Span, debug_span, field::Empty};

/// The span of the wait for admission.
pub(crate) fn admission(request: &Request) -> Span {
    debug_span!(
        "admission",
        tidegate.model = %request.model,
        tidegate.lane = %request.lane,
        tidegate.tenant = %request.tenant,
        tidegate.input_tokens = request.input_tokens,
        tidegate.max_output_tokens = request.max_output_tokens,
        tidegate.outcome = Empty,
    )
}

/// Records the wait's outcome. A refusal is not an error: the document comes back.
pub(crate) fn record_admission<T>(span: &Span, admitted: Result<T, FailureType>) {
    let outcome = admitted.map_or_else(FailureType::as_str, |_| "admitted");
    span.record("tidegate.outcome", outcome);
}

/// The operation's name in OpenTelemetry's conventions.
pub(crate) fn operation(operation: Operation) -> &'static str {
    if operation == Operation::Embeddings { "embeddings" } else { "chat" }
}

/// The span of one call; `operation` is `chat` or `embeddings`.
pub fn call(operation: &'static str, request: &Request) -> Span {
    let provider = provider(&request.model);
    debug_span!(
        "call",
        otel.name = format!("{operation} {}", request.model.model()),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = operation,
        gen_ai.provider.name = provider,
        // The field's name before version 1.37 of the conventions, which many tools still read.
        gen_ai.system = provider,
        gen_ai.request.model = request.model.model(),
        gen_ai.request.max_tokens = request.max_output_tokens,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        error.type = Empty,
        http.response.status_code = Empty,
    )
}

/// Records an answer: its usage, and why it ended (embeddings give no reason).
pub(crate) fn record_answer(span: &Span, usage: Option<&Usage>, stopped: Option<&str>) {
    record_usage(span, usage);
    if let Some(reason) = stopped {
        set_finish_reason(span, reason);
    }
}

/// Records the usage, if the provider reported it.
pub fn record_usage(span: &Span, usage: Option<&Usage>) {
    let Some(usage) = usage else { return };
    span.record("gen_ai.usage.input_tokens", usage.input());
    span.record("gen_ai.usage.output_tokens", usage.output);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
}

/// Records a provider's failure without its message, which may quote the request.
pub fn record_failure(span: &Span, error: &Error) {
    span.record("error.type", error.kind.label());
    span.record("otel.status_code", "ERROR");
    if let Some(status) = error.status {
        span.record("http.response.status_code", status);
    }
}

/// The provider's name in OpenTelemetry's conventions, if they have one for it.
fn provider(model: &ModelId) -> &str {
    match model.provider() {
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// Sets the list of finish reasons by OpenTelemetry's API, because `tracing` has no list fields.
#[cfg(feature = "traces")]
fn set_finish_reason(span: &Span, reason: &str) {
    use opentelemetry::{
        Array, Context, KeyValue, StringValue, Value, trace::TraceContextExt as _,
    };

    let reasons = Value::Array(Array::String(vec![StringValue::from(reason.to_owned())]));
    span.in_scope(|| {
        Context::current()
            .span()
            .set_attribute(KeyValue::new("gen_ai.response.finish_reasons", reasons));
    });
}

#[cfg(not(feature = "traces"))]
fn set_finish_reason(_: &Span, _: &str) {}
