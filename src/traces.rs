//! OpenTelemetry: one trace of a batch, from its start through workflows and activities to each
//! provider's call and the written answer. Off, and without cost, unless the standard variables name a
//! collector:
//!
//! | variable | means |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | a collector's URL: switches it on |
//! | `OTEL_TRACES_EXPORTER` | `otlp` switches it on (`http://localhost:4318` then), `none` off |
//! | `OTEL_SDK_DISABLED` | `true`: off |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | the service of these spans [`tidegate`] |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…` | as in OpenTelemetry |
//!
//! The SDK's plug-in passes the context between processes, in the header `_tracer-data` that all of
//! Temporal's SDKs use.

use std::{
    env,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use opentelemetry::{
    Context, global,
    propagation::TextMapPropagator as _,
    trace::{Status, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    propagation::TraceContextPropagator,
    trace::{BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanProcessor},
};
use temporalio_client::{ClientOptions, ClientPlugin as _};
use temporalio_sdk::{
    SimplePlugin,
    opentelemetry::{INSTRUMENTATION_SCOPE, OpenTelemetryPlugin, WorkflowIdGenerator},
};
use tokio::runtime::Handle;
use tracing::{Subscriber, info, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// Time limit for sending spans to the collector.
const SENT_WITHIN: Duration = Duration::from_secs(10);

/// Time limit for sending the remaining spans at the end.
const FLUSHED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum length of an error text, in characters.
const LONGEST_ERROR: usize = 300;

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Whether the variables switch traces on.
///
/// # Errors
/// They ask for something that this program does not support.
fn is_on(variable: impl Fn(&str) -> Option<String>) -> Result<bool, String> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    let named = |name: &str| {
        variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    match variable("OTEL_TRACES_EXPORTER").as_deref() {
        Some("otlp") => {}
        None if named("ENDPOINT").is_some() => {}
        None | Some("none") => return Ok(false),
        Some(other) => {
            return Err(format!(
                "OTEL_TRACES_EXPORTER is \"{other}\"; \"otlp\" and \"none\" are known"
            ));
        }
    }
    match named("PROTOCOL").as_deref() {
        None | Some("http/protobuf") => Ok(true),
        Some(other) => Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL is \"{other}\"; this program speaks http/protobuf, which collectors take at port 4318"
        )),
    }
}

/// The layer that turns `tracing` spans into OpenTelemetry spans, if the variables ask for it; the
/// error is the reason why they cannot. Call it once in a process, in its Tokio runtime.
pub(crate) fn layer<S>() -> Result<Option<impl Layer<S> + Send + Sync + use<S>>, String>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    if !is_on(|name| env::var(name).ok())? {
        return Ok(None);
    }
    let provider = provider().map_err(|error| format!("{error:#}"))?;
    let tracer = provider.tracer("tidegate");
    global::set_tracer_provider(provider.clone());
    if PROVIDER.set(provider).is_err() {
        return Ok(None);
    }
    // Only our own spans: the libraries below have spans for each poll and each frame.
    let ours = filter_fn(|meta| meta.is_span() && meta.target().starts_with("tidegate"));
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    Ok(Some(layer.with_filter(ours)))
}

fn provider() -> anyhow::Result<SdkTracerProvider> {
    let runtime = Handle::try_current().context("traces need a Tokio runtime")?;
    let http = reqwest::Client::builder().timeout(SENT_WITHIN).build()?;
    let sender = Sender { http, runtime, fails: Arc::default() };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(sender)
        .build()
        .context("OTEL_EXPORTER_OTLP_… cannot be used")?;
    Ok(SdkTracerProvider::builder()
        .with_id_generator(WorkflowIdGenerator::default())
        .with_resource(resource())
        .with_span_processor(SpanFilter(BatchSpanProcessor::builder(exporter).build()))
        .build())
}

/// The service of these spans, from the variables.
fn resource() -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let says_so = |name: &str, key: &str| env::var(name).is_ok_and(|value| value.contains(key));
    let named =
        says_so("OTEL_SERVICE_NAME", "") || says_so("OTEL_RESOURCE_ATTRIBUTES", "service.name=");
    let resource = Resource::builder().with_attribute(version);
    if named { resource } else { resource.with_service_name("tidegate") }.build()
}

/// The Temporal SDK's plug-in, if traces are on.
pub(crate) fn plugin() -> Option<SimplePlugin> {
    PROVIDER.get().map(|_| OpenTelemetryPlugin::builder().build())
}

/// Makes this client's starts and signals carry the trace.
pub(crate) fn trace_client(client: &mut ClientOptions) -> anyhow::Result<()> {
    let Some(plugin) = plugin() else { return Ok(()) };
    plugin.configure_client_options(client).context("traces cannot be joined")
}

/// Makes a span part of the trace that `traceparent` names.
pub(crate) fn join(span: &tracing::Span, headers: &HeaderMap) {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if context.has_active_span() {
        // This fails without a layer for traces; then there is no trace to join.
        drop(span.set_parent(context));
    }
}

/// Sends the remaining spans. Nothing is traced afterwards.
pub(crate) async fn end() {
    if let Some(provider) = PROVIDER.get().cloned() {
        // The shutdown blocks while the runtime sends.
        let ended =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSHED_WITHIN));
        if !matches!(ended.await, Ok(Ok(()))) {
            warn!("the last spans were not sent");
        }
    }
}

/// Sends spans with this program's HTTP client, because the exporter's thread has no runtime.
#[derive(Debug, Clone)]
struct Sender {
    http: reqwest::Client,
    runtime: Handle,
    /// Whether the last attempt failed, so that a failure is logged once and not for each attempt.
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (http, fails) = (self.http.clone(), Arc::clone(&self.fails));
        let host = request.uri().host().map(str::to_owned);
        let sent = async move {
            let reply = http.execute(request.try_into()?).await?.error_for_status()?;
            let status = reply.status();
            Ok::<_, reqwest::Error>((status, reply.bytes().await?))
        };
        // The URL may hold a password.
        let sent = self.runtime.spawn(sent).await?;
        let sent = sent.map_err(|error| anyhow::Error::from(error.without_url()));
        let failed = sent.is_err();
        if fails.swap(failed, Ordering::Relaxed) != failed {
            match &sent {
                Ok(_) => info!("spans are taken again"),
                Err(error) => warn!(
                    host,
                    "the collector does not accept spans; they are lost: {error:#}; check the collector, or unset OTEL_EXPORTER_OTLP_ENDPOINT"
                ),
            }
        }
        let (status, body) = sent?;
        Ok(Response::builder().status(status).body(body)?)
    }
}

/// Filters spans and shortens errors.
///
/// A client that follows a batch queries it each second: those queries are no part of the batch's trace.
/// The SDK writes an error's whole structure into an activity's span, with details as bytes, and marks a
/// document that waits for quota as an error.
#[derive(Debug)]
struct SpanFilter<P>(P);

impl<P: SpanProcessor> SpanProcessor for SpanFilter<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if let Some(span) = filter_span(span) {
            self.0.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn filter_span(mut span: SpanData) -> Option<SpanData> {
    if span.instrumentation_scope.name() != INSTRUMENTATION_SCOPE {
        return Some(span);
    }
    let asks = ["QueryWorkflow:", "HandleQuery:", "DescribeWorkflow"];
    if asks.iter().any(|name| span.name.starts_with(name)) {
        return None;
    }
    if let Status::Error { description } = &span.status {
        let waits = description.contains("category: Benign");
        let short: String = description.chars().take(LONGEST_ERROR).collect();
        span.status = if waits { Status::Unset } else { Status::error(short) };
        span.events = Default::default();
    }
    Some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_switch(variables: &[(&str, &str)]) -> String {
        let find = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        match is_on(find) {
            Ok(false) => "no".to_owned(),
            Ok(true) => "yes".to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn the_standard_variables_switch_it_on_and_off() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(describe_switch(&[]), "no");
        assert_eq!(describe_switch(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), "no");
        assert_eq!(describe_switch(&[endpoint]), "yes");
        assert_eq!(
            describe_switch(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/v1/traces")]),
            "yes"
        );
        assert_eq!(describe_switch(&[("OTEL_TRACES_EXPORTER", "otlp")]), "yes");
        assert_eq!(describe_switch(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), "no");
        assert_eq!(describe_switch(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), "no");
        assert_eq!(
            describe_switch(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]),
            "yes"
        );
        let grpc = describe_switch(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(grpc.contains("port 4318"), "{grpc}");
        let zipkin = describe_switch(&[("OTEL_TRACES_EXPORTER", "zipkin")]);
        assert!(zipkin.contains("\"zipkin\"; \"otlp\""), "{zipkin}");
    }
}
